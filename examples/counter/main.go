// Counter adds to a counter that can only be read and written: the classic lost update, with and without a guard.
//
//	go -C examples run ./counter                                   # with locks of this process
//	go -C examples run ./counter --redis redis://localhost:6379     # with locks that other machines see
package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/latchkey-go/latchkey/examples/internal/example"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

func main() { example.Main(run) }

// Add is a request to add N to the counter of a page.
type Add struct {
	Page string
	N    int
}

// counters is a store without an atomic increment, as a file or somebody else's API is.
type counters struct {
	mu     sync.Mutex
	values map[string]int
}

func (c *counters) read(page string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values[page]
}

func (c *counters) write(page string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[page] = n
}

// add loses updates where two calls for one page meet.
func (c *counters) add(_ context.Context, a Add) error {
	n := c.read(a.Page)
	runtime.Gosched() // the others have their chance here
	c.write(a.Page, n+a.N)
	return nil
}

const adds = 1000

func run(ctx context.Context, locker lock.Locker, out io.Writer) error {
	bare, guarded := &counters{values: map[string]int{}}, &counters{values: map[string]int{}}
	g, err := guard.New(locker, guard.Name("counter.add"), guard.Key("counter:#{req.Page}"), guard.Wait(guard.Forever))
	if err != nil {
		return err
	}
	add, err := guard.Action(g, guarded.add)
	if err != nil {
		return err
	}
	for _, try := range []struct {
		how string
		to  *counters
		add func(context.Context, Add) error
	}{{"without a guard", bare, bare.add}, {"with a guard", guarded, add}} {
		if err := contend(ctx, try.add); err != nil {
			return err
		}
		fmt.Fprintf(out, "%-16s %4d of %d\n", try.how+":", try.to.read("home"), adds)
	}
	return nil
}

// contend adds 1 to one counter, adds times at once.
func contend(ctx context.Context, add func(context.Context, Add) error) error {
	failed := make(chan error, adds)
	var all sync.WaitGroup
	for range adds {
		all.Go(func() {
			if err := add(ctx, Add{Page: "home", N: 1}); err != nil {
				failed <- err
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}
