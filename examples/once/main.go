// Once sets something up exactly once, however many instances start at the same time: a schema, a bucket, a first user.
//
//	go -C examples run ./once                                   # with locks of this process
//	go -C examples run ./once --redis redis://localhost:6379     # with locks that other machines see
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

// schema stands for what all instances share, a database perhaps.
type schema struct {
	mu      sync.Mutex
	ready   bool
	created int // how often create ran to its end; more than once would be the bug
}

func (s *schema) isReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

func (s *schema) create(ctx context.Context) error {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx) // the lock is lost: leave it to whoever has it now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready, s.created = true, s.created+1
	return nil
}

// prepare looks again under the lock: the lock says that nobody else is at it, and not that nobody was.
func (s *schema) prepare(ctx context.Context) error {
	if s.isReady() {
		return nil
	}
	return s.create(ctx)
}

const instances = 20

func run(ctx context.Context, locker lock.Locker, out io.Writer) error {
	g, err := guard.New(locker, guard.Name("schema.prepare"), guard.Key("schema:v7"), guard.Wait(time.Minute))
	if err != nil {
		return err
	}
	var shared schema
	prepare, err := guard.Job(g, shared.prepare)
	if err != nil {
		return err
	}
	failures := make([]error, instances)
	var all sync.WaitGroup
	for i := range instances {
		all.Go(func() { failures[i] = prepare(ctx) })
	}
	all.Wait()
	fmt.Fprintf(out, "%d instances started, the schema was created %d time(s)\n", instances, shared.created)
	return errors.Join(failures...)
}
