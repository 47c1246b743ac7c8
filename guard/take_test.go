package guard

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// counted is a context that knows how many functions it is going to call at its end.
type counted struct {
	context.Context
	done  chan struct{}
	calls int
}

func (c *counted) Done() <-chan struct{} { return c.done }

func (c *counted) AfterFunc(func()) (stop func() bool) {
	c.calls++
	stopped := false
	return func() bool {
		if stopped {
			return false
		}
		stopped = true
		c.calls--
		return true
	}
}

type panicking struct{}

func (panicking) Acquire(context.Context, lock.Request) (lock.Hold, error) { panic("locker") }

// TestPanicLeavesNothingInTheRegistry has a locker that panics in a call that a Drain would have had to end.
func TestPanicLeavesNothingInTheRegistry(t *testing.T) {
	reg := Must(NewRegistry())
	drain := &counted{Context: t.Context(), done: make(chan struct{})}
	reg.drain = drain
	job := Must(Job(Must(New(panicking{}, In(reg), Name("a"), Key("b"), Wait(time.Second))), func(context.Context) error { return nil }))
	func() {
		defer func() { _ = recover() }()
		_ = job(t.Context())
		t.Error("no panic")
	}()
	if drain.calls != 0 {
		t.Errorf("%d functions are left in the registry's context", drain.calls)
	}
	if report, err := reg.Drain(t.Context()); err != nil || len(report.Running) > 0 {
		t.Errorf("Drain = %+v, %v", report, err)
	}
}
