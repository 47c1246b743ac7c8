package lazy_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/lazy"
)

var errFirst, errSecond = errors.New("first"), errors.New("second")

type step struct {
	what string
	do   func(c *lazy.Context, end context.CancelCauseFunc)
}

func cancelled(cause error) step {
	return step{"cancelled", func(c *lazy.Context, _ context.CancelCauseFunc) { c.Cancel(cause) }}
}

func parentEnded(cause error) step {
	return step{"parent ended", func(_ *lazy.Context, end context.CancelCauseFunc) { end(cause) }}
}

var asked = step{"asked", func(c *lazy.Context, _ context.CancelCauseFunc) { _ = c.Done() }}

// What comes first is why the context ended, whether somebody has asked for Done by then or not. Package context is the judge.
func TestFirstEndWins(t *testing.T) {
	for _, tt := range []struct {
		steps []step
		want  error
	}{
		{nil, nil},
		{[]step{cancelled(nil)}, context.Canceled},
		{[]step{cancelled(errFirst), cancelled(errSecond)}, errFirst},
		{[]step{cancelled(errFirst), parentEnded(errSecond)}, errFirst},
		{[]step{cancelled(errFirst), parentEnded(errSecond), cancelled(errSecond)}, errFirst},
		{[]step{parentEnded(errFirst)}, errFirst},
		{[]step{parentEnded(errFirst), cancelled(errSecond)}, errFirst},
		{[]step{parentEnded(errFirst), cancelled(errSecond), cancelled(errSecond)}, errFirst},
	} {
		for at := range len(tt.steps) + 1 { // when it is asked for Done
			parent, end := context.WithCancelCause(t.Context())
			standard, cancel := context.WithCancelCause(parent)
			c := new(lazy.Context)
			c.Open(parent)
			for i, s := range tt.steps {
				if i == at {
					asked.do(c, end)
				}
				s.do(c, end)
				if s.what == "cancelled" {
					cancel(tt.want)
				}
				if c.Err() != standard.Err() {
					t.Errorf("%v, asked at %d: Err after step %d is %v, want %v", tt.steps, at, i, c.Err(), standard.Err())
				}
			}
			if got := context.Cause(c); !errors.Is(got, tt.want) {
				t.Errorf("%v, asked at %d: ended with %v, want %v", tt.steps, at, got, tt.want)
			}
			if _, open := <-closedOrNot(c); open != (tt.want == nil) {
				t.Errorf("%v, asked at %d: Done is open: %v", tt.steps, at, open)
			}
			cancel(nil)
			end(nil)
		}
	}
}

// closedOrNot is closed if Done of c is, and has something otherwise.
func closedOrNot(c context.Context) <-chan struct{} {
	select {
	case <-c.Done():
		return c.Done()
	default:
		open := make(chan struct{}, 1)
		open <- struct{}{}
		return open
	}
}

// Whoever has seen an end sees the same one ever after, and what derives from the context ends with it.
func TestEndIsSeenByAllAlike(t *testing.T) {
	for i := range 2000 {
		parent, end := context.WithCancelCause(t.Context())
		c := new(lazy.Context)
		c.Open(parent)
		var all sync.WaitGroup
		all.Go(func() { c.Cancel(errFirst) })
		all.Go(func() { end(errSecond) })
		for n := range 3 {
			all.Go(func() {
				if n == i%4 {
					_ = c.Done()
				}
				for c.Err() == nil {
				}
				cause := context.Cause(c)
				derived, stop := context.WithCancel(c)
				defer stop()
				if later := context.Cause(derived); cause == nil || later != cause || context.Cause(c) != cause {
					t.Errorf("ended with %v, and %v later", cause, later)
				}
			})
		}
		all.Wait()
		end(nil)
	}
}

// A parent is not told of contexts that nobody waits for, and what it knows is found.
func TestNobodyWaits(t *testing.T) {
	deadline := time.Now().Add(time.Hour)
	parent, stop := context.WithDeadline(context.WithValue(t.Context(), errFirst, "value"), deadline)
	defer stop()
	c := new(lazy.Context)
	n := testing.AllocsPerRun(100, func() {
		*c = lazy.Context{}
		c.Open(parent)
		if c.Err() != nil || c.Value(errFirst) != "value" {
			t.Errorf("Err %v, value %v", c.Err(), c.Value(errFirst))
		}
		c.Cancel(nil)
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
	if got, ok := c.Deadline(); !ok || !got.Equal(deadline) || c.Value(errFirst) != "value" {
		t.Errorf("deadline %v, value %v", got, c.Value(errFirst))
	}
}
