// Leader has one of several processes do the work, and another one when that is gone.
//
//	go -C examples run ./leader                                   # with locks of this process
//	go -C examples run ./leader --redis redis://localhost:6379     # with locks that other machines see
//
// Here three candidates stand, and each retires when it has written three entries. A process that stood still goes on before it hears that
// another one leads. So each lead has a token, and the journal refuses what comes with one below the newest that it has seen. The test has
// three processes, which are killed, stopped and cut off; docs/leader.md says how long it takes until the next one leads.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/examples/internal/example"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

func main() { example.Main(run) }

// Entry is what a leader writes.
type Entry struct {
	Author string
	Token  int64
}

// errStale says that a newer leader has written: the lead of the author is over.
var errStale = errors.New("written by a newer leader")

// journal is what must not have two authors at a time.
type journal struct {
	mu      sync.Mutex
	entries []Entry
	refused int
}

func (j *journal) write(e Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.entries); n > 0 && e.Token < j.entries[n-1].Token {
		j.refused++
		return errStale
	}
	j.entries = append(j.entries, e)
	return nil
}

// pace is the time between two entries.
const pace = 10 * time.Millisecond

// stand is what a process does for as long as it lives: while it leads, it writes.
func stand(ctx context.Context, locker lock.Locker, author string, write func(Entry) error) error {
	g, err := guard.New(locker, guard.Name("journal"), guard.Key("leader:journal"), guard.Fenced())
	if err != nil {
		return err
	}
	return guard.Lead(ctx, g, func(ctx context.Context) error {
		token, ok := guard.Token(ctx)
		if !ok {
			return errors.New("a leader of the journal needs a token")
		}
		for {
			if err := write(Entry{author, token}); err != nil {
				return err // and it stands again
			}
			select {
			case <-time.After(pace):
			case <-ctx.Done(): // the lead is over, or the process is to end
				return context.Cause(ctx)
			}
		}
	})
}

const (
	candidates = 3
	term       = 3 // entries
)

func run(ctx context.Context, locker lock.Locker, out io.Writer) error {
	var j journal
	failures := make([]error, candidates)
	var all sync.WaitGroup
	for i := range candidates {
		all.Go(func() {
			ctx, retire := context.WithCancel(ctx)
			defer retire()
			written := 0
			failures[i] = stand(ctx, locker, fmt.Sprintf("candidate %d", i+1), func(e Entry) error {
				if written++; written == term {
					retire()
				}
				return j.write(e)
			})
		})
	}
	all.Wait()
	for _, e := range j.entries {
		fmt.Fprintf(out, "%s wrote with token %d\n", e.Author, e.Token)
	}
	fmt.Fprintf(out, "%d entries, %d refused\n", len(j.entries), j.refused)
	return errors.Join(failures...)
}
