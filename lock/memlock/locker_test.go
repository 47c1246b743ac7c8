package memlock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

const key = "order:42"

// bubble runs f with a Locker, exact times, and the check that nothing is left of the locks at the end.
func bubble(t *testing.T, f func(t *testing.T, l *Locker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		f(t, l)
		synctest.Wait()
		if len(l.keys) != 0 {
			t.Errorf("%d keys left behind", len(l.keys))
		}
	})
}

func acquire(t *testing.T, ctx context.Context, l *Locker, r lock.Request) lock.Hold {
	t.Helper()
	r.Key = key
	h, err := l.Acquire(ctx, r)
	if err != nil {
		t.Fatalf("Acquire(%+v) = %v", r, err)
	}
	return h
}

func release(t *testing.T, h lock.Hold) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Errorf("Release() = %v", err)
	}
}

// visit waits for the lock and calls f under it. It may run in another goroutine than the test.
func visit(t *testing.T, ctx context.Context, l *Locker, f func()) {
	t.Helper()
	h, err := l.Acquire(ctx, lock.Request{Key: key, Wait: -1})
	if err != nil {
		t.Errorf("Acquire() = %v", err)
		return
	}
	f()
	release(t, h)
}

// busy checks that r is refused after exactly waited, with the given remaining time.
func busy(t *testing.T, ctx context.Context, l *Locker, r lock.Request, waited, remaining time.Duration) {
	t.Helper()
	r.Key = key
	start := time.Now()
	_, err := l.Acquire(ctx, r)
	if got := time.Since(start); got != waited {
		t.Errorf("Acquire(%+v) took %v, want %v", r, got, waited)
	}
	e, ok := errors.AsType[*lock.BusyError](err)
	if !ok || e.Waited != waited || e.Remaining != remaining {
		t.Errorf("Acquire(%+v) = %v, want busy after %v with %v remaining", r, err, waited, remaining)
	}
}

func TestBusyTellsTimes(t *testing.T) {
	for _, tt := range []struct {
		name            string
		holder          lock.Request
		wait, remaining time.Duration
	}{
		{"OneTry", lock.Request{Lease: 10 * time.Second}, 0, 10 * time.Second},
		{"LimitedWait", lock.Request{Lease: 10 * time.Second}, 3 * time.Second, 7 * time.Second},
		{"NoLease", lock.Request{}, time.Second, 0},
		{"MaxHold", lock.Request{MaxHold: 10 * time.Second}, time.Second, 9 * time.Second},
		{"Shorter", lock.Request{Lease: 10 * time.Second, MaxHold: 4 * time.Second}, time.Second, 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, l *Locker) {
				h := acquire(t, t.Context(), l, tt.holder)
				busy(t, t.Context(), l, lock.Request{Wait: tt.wait}, tt.wait, tt.remaining)
				release(t, h)
			})
		})
	}
}

func TestRemainingIsOfTheLastReader(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		long := acquire(t, t.Context(), l, lock.Request{Kind: lock.Read, Lease: 9 * time.Second})
		short := acquire(t, t.Context(), l, lock.Request{Kind: lock.Read, Lease: 5 * time.Second})
		busy(t, t.Context(), l, lock.Request{Kind: lock.Write}, 0, 9*time.Second)
		release(t, long)
		busy(t, t.Context(), l, lock.Request{Kind: lock.Write}, 0, 5*time.Second)
		release(t, short)
	})
}

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
		h = acquire(t, t.Context(), l, lock.Request{})
		time.Sleep(10 * time.Second)
		if err := h.Context().Err(); err != nil {
			t.Errorf("the lease of the hold before ended the next one: %v", context.Cause(h.Context()))
		}
		release(t, h)
	})
}

// Each hold of one owner has its own lease, and the last one to end frees the lock.
func TestReentrantLeases(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		ctx := lock.NewOwner(t.Context())
		start := time.Now()
		short := acquire(t, ctx, l, lock.Request{Lease: 2 * time.Second})
		long := acquire(t, ctx, l, lock.Request{Lease: 6 * time.Second})
		<-short.Context().Done()
		if err := long.Context().Err(); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("after %v the long hold = %v, want alive after 2s", time.Since(start), err)
		}
		next := acquire(t, t.Context(), l, lock.Request{Wait: -1})
		if got := time.Since(start); got != 6*time.Second {
			t.Errorf("served the next after %v, want 6s", got)
		}
		release(t, next)
	})
}

// An owner who waits twice for a lock, from two goroutines, is given it twice although somebody stands in between: that
// one waits for the owner, who may be waiting for its other goroutine.
func TestReentryPassesTheQueueFromWithin(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		first := acquire(t, t.Context(), l, lock.Request{})
		ctx := lock.NewOwner(t.Context())
		var wg sync.WaitGroup
		enter := func(ctx context.Context, f func()) {
			wg.Go(func() { visit(t, ctx, l, f) })
			synctest.Wait()
		}
		together := make(chan struct{})
		enter(ctx, func() { together <- struct{}{} })
		enter(t.Context(), func() {})
		enter(ctx, func() { <-together })
		release(t, first)
		wg.Wait()
	})
}

// A writer who gives up lets the readers behind it join those that it waited for.
func TestLeavingServesThoseBehind(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		reader := acquire(t, t.Context(), l, lock.Request{Kind: lock.Read})
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { busy(t, t.Context(), l, lock.Request{Kind: lock.Write, Wait: time.Second}, time.Second, 0) })
		synctest.Wait()
		busy(t, t.Context(), l, lock.Request{Kind: lock.Read}, 0, 0) // would starve the writer
		release(t, acquire(t, t.Context(), l, lock.Request{Kind: lock.Read, Wait: -1}))
		if got := time.Since(start); got != time.Second {
			t.Errorf("read after %v, want 1s", got)
		}
		wg.Wait()
		release(t, reader)
	})
}

// The end of the wait and the grant come at the same time: either may win, but the lock must not be lost between them.
func TestGrantMeetsEndOfWait(t *testing.T) {
	for _, tt := range []struct {
		name string
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		wait time.Duration
	}{
		{"Timeout", context.WithCancel, time.Second},
		{"Deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 200 {
				bubble(t, func(t *testing.T, l *Locker) {
					acquire(t, t.Context(), l, lock.Request{Lease: time.Second})
					ctx, cancel := tt.ctx(t.Context())
					defer cancel()
					h, err := l.Acquire(ctx, lock.Request{Key: key, Wait: tt.wait})
					if (h == nil) == (err == nil) {
						t.Fatalf("Acquire() = %v, %v", h, err)
					}
					if h != nil {
						release(t, h)
					}
					synctest.Wait()
					release(t, acquire(t, t.Context(), l, lock.Request{}))
				})
			}
		})
	}
}

// Many owners with short waits, short leases and cancelled contexts: whatever happens, one holds at a time and in the end
// nothing is left.
func TestNothingLeaksUnderStress(t *testing.T) {
	l := New()
	var holders int // guarded by the lock itself, so that the race detector checks the exclusion too
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 500 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration((n*7+i)%20)*50*time.Microsecond)
				h, err := l.Acquire(ctx, lock.Request{Key: key, Wait: time.Duration(n%5-1) * 100 * time.Microsecond})
				if err == nil {
					holders++
					if holders != 1 {
						t.Errorf("%d holders", holders)
					}
					holders--
					release(t, h)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if len(l.keys) != 0 {
		t.Errorf("%d keys left behind", len(l.keys))
	}
}

func TestPermitsCountOwners(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		r := lock.Request{Kind: lock.Permit, Limit: 2}
		first := acquire(t, t.Context(), l, r)
		again := acquire(t, first.Context(), l, r)
		second := acquire(t, t.Context(), l, r)
		busy(t, t.Context(), l, r, 0, 0)
		release(t, first)
		busy(t, t.Context(), l, r, 0, 0) // the owner is still there
		release(t, again)
		release(t, acquire(t, t.Context(), l, r))
		release(t, second)
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

type keeper interface {
	Keep(ctx context.Context, d time.Duration) error
}

func TestKeep(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		start := time.Now()
		h := acquire(t, t.Context(), l, lock.Request{Lease: time.Second})
		if err := h.(keeper).Keep(t.Context(), 5*time.Second); err != nil {
			t.Errorf("Keep() = %v", err)
		}
		if context.Cause(h.Context()) != context.Canceled {
			t.Errorf("cause after Keep = %v, want canceled", context.Cause(h.Context()))
		}
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("Release() after Keep = %v, want ErrNotHeld", err)
		}
		busy(t, t.Context(), l, lock.Request{}, 0, 5*time.Second)
		next := acquire(t, t.Context(), l, lock.Request{Wait: -1})
		if got := time.Since(start); got != 5*time.Second {
			t.Errorf("served the next after %v, want 5s", got)
		}
		if err := next.(keeper).Keep(t.Context(), 0); err != nil {
			t.Errorf("Keep(0) = %v", err)
		}
	})
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

func TestForceUnlockEndsKeep(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		h := acquire(t, t.Context(), l, lock.Request{})
		if err := h.(keeper).Keep(t.Context(), time.Hour); err != nil {
			t.Errorf("Keep() = %v", err)
		}
		if !l.ForceUnlock(key) {
			t.Error("ForceUnlock of a kept key = false")
		}
		release(t, acquire(t, t.Context(), l, lock.Request{}))
	})
}
