package guard_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// untilLost is work that stops when its lock is gone.
func untilLost(ctx context.Context, _ Order) (string, error) {
	<-ctx.Done()
	return "some", context.Cause(ctx)
}

// A loss says what the locker knows of it, and not only that the lock's time was over.
func TestLossSaysWhy(t *testing.T) {
	l := memlock.New()
	settle, _ := guarded(t, l, func(context.Context, Order) (string, error) {
		l.ForceUnlock("order:7")
		return "", nil
	})
	if _, err := settle(t.Context(), Order{ID: "7"}); !errors.Is(err, guard.ErrLost) || !strings.Contains(err.Error(), "unlocked by force") {
		t.Errorf("settle: %v, want the reason of memlock", err)
	}
}

// TestLost is a lock that ends after a minute, in several ways, while work runs that heeds or ignores it.
func TestLost(t *testing.T) {
	own := errors.New("own")
	ignore := func(err error) work {
		return func(context.Context, Order) (string, error) {
			time.Sleep(2 * time.Minute)
			return "some", err
		}
	}
	tests := []struct {
		name    string
		work    work
		opts    []guard.Option
		matches []error
		outcome string
		held    time.Duration
	}{
		{"heeded", untilLost, nil, []error{lock.ErrLost}, guard.OutcomeLost, time.Minute},
		{"ignored", ignore(nil), nil, []error{lock.ErrLost}, guard.OutcomeLost, 2 * time.Minute},
		{"ignored with an error", ignore(own), nil, []error{lock.ErrLost, own}, guard.OutcomeLost, 2 * time.Minute},
		{
			"lease", untilLost, []guard.Option{guard.Lease(time.Second)},
			[]error{lock.ErrLost}, guard.OutcomeLost, time.Second,
		},
		{
			"max hold", untilLost, []guard.Option{guard.MaxHold(time.Second)},
			[]error{lock.ErrLost, lock.ErrMaxHold}, guard.OutcomeMaxHold, time.Second,
		},
		{
			"max hold, ignored", ignore(own), []guard.Option{guard.MaxHold(time.Second)},
			[]error{lock.ErrLost, lock.ErrMaxHold, own}, guard.OutcomeMaxHold, 2 * time.Minute,
		},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			l := newSpy()
			settle, seen := guarded(t, l, tt.work, tt.opts...)
			time.AfterFunc(time.Minute, func() { l.ForceUnlock("order:7") })
			got, err := settle(t.Context(), Order{ID: "7"})
			if got != "some" {
				t.Errorf("%s: result %q is not the work's", tt.name, got)
			}
			for _, want := range append(tt.matches, guard.ErrLost) {
				if !errors.Is(err, want) {
					t.Errorf("%s: settle: %v, want %v", tt.name, err, want)
				}
			}
			if e := seen.only(t); e.Outcome != tt.outcome || e.Held != tt.held || e.Err != err || e.Refused != nil {
				t.Errorf("%s: event %+v, want %s after %v", tt.name, e, tt.outcome, tt.held)
			}
			l.check(t, "acquire order:7", "release order:7")
			synctest.Wait()
		})
	}
}

// TestLostAndNotReleased is a service that is gone altogether: the loss is not forgotten over the failed release.
func TestLostAndNotReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSpy()
		l.failing = map[string]error{"order:7": errors.New("connection reset")}
		settle, seen := guarded(t, l, untilLost, guard.MaxHold(time.Second))
		if _, err := settle(t.Context(), Order{ID: "7"}); !errors.Is(err, guard.ErrLost) || !errors.Is(err, lock.ErrMaxHold) {
			t.Errorf("settle: %v, want lost for MaxHold", err)
		}
		if e := seen.only(t); e.Outcome != guard.OutcomeMaxHold || !errors.Is(e.Release, l.failing["order:7"]) {
			t.Errorf("event %+v", e)
		}
	})
}

// TestReleaseSaysLost is a loss that shows only when the lock is given back.
func TestReleaseSaysLost(t *testing.T) {
	for _, answer := range []error{&lock.LostError{Held: time.Second}, lock.ErrNotHeld} {
		l := newSpy()
		l.failing = map[string]error{"order:7": answer}
		settle, seen := guarded(t, l, settled)
		if _, err := settle(t.Context(), Order{ID: "7"}); !errors.Is(err, guard.ErrLost) || !errors.Is(err, answer) {
			t.Errorf("settle: %v, want lost for %v", err, answer)
		}
		if e := seen.only(t); e.Outcome != guard.OutcomeLost || !errors.Is(e.Release, answer) {
			t.Errorf("event %+v", e)
		}
	}
}

// TestLossOfTheCaller holds that each guard answers for its own locks, although the work of both is told.
func TestLossOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New()
		inner, innerSeen := guarded(t, l, untilLost, guard.Name("inner"), guard.Key("inner:#{req.ID}"))
		outer, _ := guarded(t, l, func(ctx context.Context, o Order) (string, error) {
			got, err := inner(ctx, o)
			if _, ok := errors.AsType[*guard.Error](err); ok {
				t.Errorf("inner: %v, want the work's own error", err)
			}
			return got, err
		}, guard.MaxHold(time.Second))
		_, err := outer(t.Context(), Order{ID: "7"})
		if e, ok := errors.AsType[*guard.Error](err); !ok || e.Guard != "order.settle" || e.Err != guard.ErrLost {
			t.Errorf("outer: %v, want its own ErrLost", err)
		}
		if e := innerSeen.only(t); e.Outcome != guard.OutcomeError {
			t.Errorf("inner's event %+v, want an ordinary error", e)
		}
	})
}

// TestLostBetweenKeys is a lock that ends while the next one is waited for: nothing runs.
func TestLostBetweenKeys(t *testing.T) {
	tests := []struct {
		name string
		opts []guard.Option
		want error
	}{
		{"lease", []guard.Option{guard.Lease(time.Second)}, guard.ErrBusy},
		{"max hold", []guard.Option{guard.MaxHold(time.Second)}, guard.ErrBusy},
		{"taken away", nil, guard.ErrOutage},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			l := newSpy()
			hold, err := l.Locker.Acquire(t.Context(), lock.Request{Key: "b"})
			if err != nil {
				t.Fatal(err)
			}
			settle, _ := guarded(t, l, func(context.Context, Order) (string, error) {
				t.Errorf("%s: ran without its first lock", tt.name)
				return "", nil
			}, append(tt.opts, guard.Key("#{req.Items}"), guard.Wait(time.Minute))...)
			if tt.opts == nil {
				time.AfterFunc(time.Second, func() { l.ForceUnlock("a") })
			}
			start := time.Now()
			_, err = settle(t.Context(), Order{Items: []string{"a", "b"}})
			if got := time.Since(start); got != time.Second {
				t.Errorf("%s: waited %v, want 1s", tt.name, got)
			}
			// Nothing was done, so it must not match ErrLost, which says that something was.
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), "lost") || errors.Is(err, guard.ErrLost) {
				t.Errorf("%s: settle: %v, want %v", tt.name, err, tt.want)
			}
			if err := hold.Release(t.Context()); err != nil {
				t.Error(err)
			}
			l.check(t, "acquire a", "acquire b", "release a")
		})
	}
}

// blocking is a context that blocks who derives from it, once it is armed.
type blocking struct {
	context.Context
	armed        atomic.Bool
	inside, free chan struct{}
}

func (c *blocking) Done() <-chan struct{} {
	if c.armed.CompareAndSwap(true, false) {
		close(c.inside)
		<-c.free
	}
	return c.Context.Done()
}

// The context of work ends, and its lock is free, before its call returns ErrLost.
func TestLossIsOverWhenTheCallReturns(t *testing.T) {
	l := memlock.New()
	base, stop := context.WithCancel(t.Context())
	defer stop()
	parent := &blocking{Context: base, inside: make(chan struct{}), free: make(chan struct{})}
	defer close(parent.free)
	var work context.Context
	f := guard.Must(guard.Func(guard.Must(guard.New(l, guard.Name("g"), guard.Key("k:#{req.ID}"))), func(ctx context.Context, _ Order) (string, error) {
		work = ctx
		parent.armed.Store(true)
		go l.ForceUnlock("k:7")
		<-parent.inside // the loss is under way
		return "", nil
	}))
	if _, err := f(parent, Order{ID: "7"}); !errors.Is(err, guard.ErrLost) || work.Err() == nil {
		t.Errorf("the call returned %v, and the context of its work %v", err, work.Err())
	}
	if err := l.Peek(t.Context(), lock.Request{Key: "k:7"}); err != nil {
		t.Errorf("the call has returned, and its lock: %v", err)
	}
}
