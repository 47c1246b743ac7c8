package lazyctx

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"
)

var errOwn, errParent = errors.New("own"), errors.New("parent")

// Whoever has seen an end sees the same one ever after, and what derives from the context ends with it.
func TestEndIsSeenByAllAlike(t *testing.T) {
	for i := range 400 {
		parent, end := context.WithCancelCause(t.Context())
		var c Context
		c.Begin(parent)
		var all sync.WaitGroup
		all.Go(func() { c.End([]error{nil, errOwn}[i/4%2]) })
		all.Go(func() { end(errParent) })
		for n := range 3 {
			all.Go(func() {
				if n == i%4 {
					_ = c.Done()
				}
				for c.Err() == nil {
					runtime.Gosched()
				}
				cause := context.Cause(&c)
				derived, stop := context.WithCancel(&c)
				defer stop()
				if later := context.Cause(derived); cause == nil || later != cause || context.Cause(&c) != cause {
					t.Errorf("ended with %v, and %v later", cause, later)
				}
			})
		}
		all.Wait()
	}
}

// foreign is a context that package context does not know, around one that goes on.
type foreign struct {
	context.Context
	done chan struct{}
}

func (c foreign) Done() <-chan struct{} { return c.done }

func (c foreign) Err() error {
	select {
	case <-c.done:
		return errParent
	default:
		return nil
	}
}

// Where the parent is no context of package context, an end has a cause, too, and nothing waits for the parent before it has to.
func TestForeignParent(t *testing.T) {
	parent := foreign{t.Context(), make(chan struct{})}
	before := runtime.NumGoroutine()
	var c Context
	c.Begin(parent)
	if c.Err() != nil || context.Cause(&c) != nil || runtime.NumGoroutine() != before {
		t.Errorf("at the start: %v, cause %v, %d goroutines more", c.Err(), context.Cause(&c), runtime.NumGoroutine()-before)
	}
	close(parent.done)
	if cause := context.Cause(&c); cause != errParent {
		t.Errorf("cause %v after the parent's end, want its error", cause)
	}
	c.End(errOwn)
	if cause := context.Cause(&c); c.Err() != errParent || cause != errParent {
		t.Errorf("%v, cause %v after both ends: want the first", c.Err(), cause)
	}
}

func TestEnd(t *testing.T) {
	deadline := time.Now().Add(time.Hour)
	parent, stop := context.WithDeadline(t.Context(), deadline)
	defer stop()
	for _, asked := range []bool{false, true} {
		var c Context
		c.Begin(parent)
		if got, ok := c.Deadline(); !ok || !got.Equal(deadline) {
			t.Errorf("deadline %v, %v: want the parent's", got, ok)
		}
		if asked {
			_ = c.Done()
		}
		c.End(nil)
		c.End(errOwn)
		<-c.Done()
		if cause := context.Cause(&c); c.Err() != context.Canceled || cause != context.Canceled {
			t.Errorf("asked %v: %v, cause %v after End(nil)", asked, c.Err(), cause)
		}
	}
}
