package memlock

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

func TestHoldEndsInTime(t *testing.T) {
	const wait = time.Minute
	for _, tt := range []struct {
		name  string
		r     lock.Request
		after time.Duration
		cause error
	}{
		{"Lease", lock.Request{Lease: 5 * time.Second}, 5 * time.Second, errLease},
		{"MaxHold", lock.Request{MaxHold: 3 * time.Second}, 3 * time.Second, lock.ErrMaxHold},
		{"LeaseFirst", lock.Request{Lease: time.Second, MaxHold: 3 * time.Second}, time.Second, errLease},
		{"Equal", lock.Request{Lease: 3 * time.Second, MaxHold: 3 * time.Second}, 3 * time.Second, errLease},
		{"MaxHoldFirst", lock.Request{Lease: 9 * time.Second, MaxHold: 3 * time.Second}, 3 * time.Second, lock.ErrMaxHold},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, l *Locker) {
				start := time.Now()
				h := acquire(t, t.Context(), l, tt.r)
				next := acquire(t, t.Context(), l, lock.Request{Wait: wait})
				if got := time.Since(start); got != tt.after {
					t.Errorf("served the next after %v, want %v", got, tt.after)
				}
				lost, ok := errors.AsType[*lock.LostError](context.Cause(h.Context()))
				if !ok || lost.Held != tt.after || lost.Reason != tt.cause {
					t.Errorf("cause = %v, want lost after %v: %v", context.Cause(h.Context()), tt.after, tt.cause)
				}
				if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) || !errors.Is(err, tt.cause) {
					t.Errorf("Release() = %v, want %v", err, tt.cause)
				}
				release(t, next)
			})
		})
	}
}

// hookContext calls stop when a context that derives from it ends by itself, before cancelling that returns.
type hookContext struct {
	context.Context
	stop func()
}

func (hookContext) Done() <-chan struct{} { return make(chan struct{}) }

func (c hookContext) AfterFunc(func()) func() bool {
	return func() bool { c.stop(); return true }
}

// While the context of a hold is being ended, the lock is still its own.
func TestToldBeforeOthersAreLetIn(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*testing.T, *Locker, lock.Hold)
	}{
		{"Release", func(t *testing.T, _ *Locker, h lock.Hold) { release(t, h) }},
		{"Lease", func(*testing.T, *Locker, lock.Hold) { time.Sleep(2 * time.Second) }},
		{"ForceUnlock", func(_ *testing.T, l *Locker, _ lock.Hold) { l.ForceUnlock(key) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, l *Locker) {
				notified := false
				ctx := hookContext{lock.NewOwner(t.Context()), func() {
					notified = true
					if _, err := l.Acquire(context.Background(), lock.Request{Key: key}); !errors.Is(err, lock.ErrBusy) {
						t.Errorf("another Acquire = %v, want ErrBusy", err)
					}
				}}
				h := acquire(t, ctx, l, lock.Request{MaxHold: time.Second})
				_ = h.Context().Done() // now its context is one of its parent's
				tt.end(t, l, h)
				synctest.Wait()
				if !notified {
					t.Error("the context of the hold does not end")
				}
			})
		})
	}
}

// The time in the queue counts neither for the lease nor for MaxHold.
func TestClockStartsWhenGranted(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		first := acquire(t, t.Context(), l, lock.Request{Lease: 5 * time.Second})
		h := acquire(t, t.Context(), l, lock.Request{Wait: -1, Lease: 4 * time.Second, MaxHold: 4 * time.Second})
		granted := time.Now()
		<-h.Context().Done()
		if got := time.Since(granted); got != 4*time.Second {
			t.Errorf("held for %v, want 4s", got)
		}
		if err := first.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release() = %v, want ErrLost", err)
		}
	})
}

func TestReleaseStopsTheClock(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		h := acquire(t, t.Context(), l, lock.Request{Lease: 5 * time.Second})
		release(t, h)
		if h.(*hold).timer.Stop() {
			t.Error("the timer runs on after the release")
		}
		h = acquire(t, t.Context(), l, lock.Request{})
		time.Sleep(10 * time.Second)
		if err := h.Context().Err(); err != nil {
			t.Errorf("the lease of the hold before ended the next one: %v", context.Cause(h.Context()))
		}
		release(t, h)
	})
}

func TestTokensGrowOverAllKeys(t *testing.T) {
	l := New()
	var last int64
	for _, key := range []string{"a", "b", "a"} {
		h, err := l.Acquire(t.Context(), lock.Request{Key: key, Kind: lock.Fenced})
		if err != nil {
			t.Fatal(err)
		}
		token := h.(interface{ Token() int64 }).Token()
		if token <= last {
			t.Errorf("token of %s = %d after %d", key, token, last)
		}
		last = token
		release(t, h)
	}
	h := acquire(t, t.Context(), l, lock.Request{})
	if _, ok := h.(interface{ Token() int64 }); ok {
		t.Error("an exclusive hold has a token")
	}
	release(t, h)
}

func TestForceUnlock(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		if l.ForceUnlock(key) {
			t.Error("ForceUnlock of a free key = true")
		}
		h := acquire(t, t.Context(), l, lock.Request{})
		inner := acquire(t, h.Context(), l, lock.Request{Lease: time.Minute})
		time.Sleep(time.Second)
		var wg sync.WaitGroup
		wg.Go(func() { visit(t, t.Context(), l, func() {}) })
		synctest.Wait()
		if !l.ForceUnlock(key) {
			t.Error("ForceUnlock of a held key = false")
		}
		wg.Wait()
		for _, h := range []lock.Hold{h, inner} {
			lost, ok := errors.AsType[*lock.LostError](h.Release(t.Context()))
			if !ok || lost.Held != time.Second || lost.Reason != errForced {
				t.Errorf("Release() = %v, want lost by force after 1s", lost)
			}
			if !errors.Is(context.Cause(h.Context()), lock.ErrLost) {
				t.Errorf("cause = %v, want lost", context.Cause(h.Context()))
			}
		}
	})
}

// The longest times that there are do not run over, and hide no shorter ones.
func TestLongestTimes(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for _, r := range []lock.Request{{Lease: longest}, {MaxHold: longest}, {Lease: longest, MaxHold: longest}} {
		h := acquire(t, t.Context(), New(), r)
		x := h.(*hold)
		if err := x.Extend(t.Context(), longest); err != nil {
			t.Errorf("%+v: Extend: %v", r, err)
		}
		if left := x.Remaining(); left < longest/2 || h.Context().Err() != nil {
			t.Errorf("%+v: %v left, %v", r, left, context.Cause(h.Context()))
		}
	}
	for _, r := range []lock.Request{{Lease: time.Millisecond, MaxHold: longest}, {Lease: longest, MaxHold: time.Millisecond}} {
		h := acquire(t, t.Context(), New(), r)
		select {
		case <-h.Context().Done():
		case <-time.After(10 * time.Second):
			t.Errorf("%+v: goes on", r)
		}
	}
}
