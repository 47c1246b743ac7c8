package memlock

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

type keeper interface {
	Keep(ctx context.Context, d time.Duration) error
}

func TestKeep(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		start := time.Now()
		h := acquire(t, t.Context(), l, lock.Request{Lease: time.Second})
		clock := h.(*hold).timer
		if err := h.(keeper).Keep(t.Context(), 5*time.Second); err != nil {
			t.Errorf("Keep() = %v", err)
		}
		if context.Cause(h.Context()) != context.Canceled {
			t.Errorf("cause after Keep = %v, want canceled", context.Cause(h.Context()))
		}
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("Release() after Keep = %v, want ErrNotHeld", err)
		}
		if clock.Stop() {
			t.Error("the timer of the lease runs on after Keep")
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

type extender interface {
	Extend(ctx context.Context, d time.Duration) error
}

func TestExtend(t *testing.T) {
	for _, tt := range []struct {
		name      string
		r         lock.Request
		after, by time.Duration
		end       time.Duration // 0 for never
		cause     error
	}{
		{"Longer", lock.Request{Lease: 5 * time.Second}, 2 * time.Second, 8 * time.Second, 10 * time.Second, errLease},
		{"Shorter", lock.Request{Lease: 5 * time.Second}, 2 * time.Second, time.Second, 5 * time.Second, errLease},
		{"Equal", lock.Request{Lease: 5 * time.Second}, 2 * time.Second, 3 * time.Second, 5 * time.Second, errLease},
		{"Zero", lock.Request{Lease: 5 * time.Second}, 2 * time.Second, 0, 5 * time.Second, errLease},
		{"Negative", lock.Request{Lease: 5 * time.Second}, 2 * time.Second, -time.Hour, 5 * time.Second, errLease},
		{"Endless", lock.Request{}, 2 * time.Second, time.Second, 0, nil},
		{
			"BelowMaxHold", lock.Request{Lease: 5 * time.Second, MaxHold: 9 * time.Second},
			2 * time.Second, 6 * time.Second, 8 * time.Second, errLease,
		},
		{
			"BeyondMaxHold", lock.Request{Lease: 5 * time.Second, MaxHold: 9 * time.Second},
			2 * time.Second, 8 * time.Second, 9 * time.Second, lock.ErrMaxHold,
		},
		{"MaxHoldOnly", lock.Request{MaxHold: 5 * time.Second}, 2 * time.Second, 8 * time.Second, 5 * time.Second, lock.ErrMaxHold},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, l *Locker) {
				start := time.Now()
				h := acquire(t, t.Context(), l, tt.r)
				time.Sleep(tt.after)
				if err := h.(extender).Extend(t.Context(), tt.by); err != nil {
					t.Errorf("Extend() = %v", err)
				}
				if tt.end == 0 {
					time.Sleep(time.Hour)
					release(t, h)
					return
				}
				busy(t, t.Context(), l, lock.Request{}, 0, tt.end-tt.after)
				next := acquire(t, t.Context(), l, lock.Request{Wait: -1})
				if got := time.Since(start); got != tt.end {
					t.Errorf("ended after %v, want %v", got, tt.end)
				}
				if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrLost) || !errors.Is(cause, tt.cause) {
					t.Errorf("ended with cause %v, want %v", cause, tt.cause)
				}
				release(t, next)
			})
		})
	}
}

func TestRemaining(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		remaining := func(h lock.Hold) time.Duration { return h.(interface{ Remaining() time.Duration }).Remaining() }
		check := func(what string, h lock.Hold, want time.Duration) {
			t.Helper()
			if got := remaining(h); got != want {
				t.Errorf("%s: Remaining() = %v, want %v", what, got, want)
			}
		}
		h := acquire(t, t.Context(), l, lock.Request{Lease: 5 * time.Second, MaxHold: time.Minute})
		time.Sleep(2 * time.Second)
		check("after a while", h, 3*time.Second)
		if err := h.(extender).Extend(t.Context(), 10*time.Second); err != nil {
			t.Errorf("Extend() = %v", err)
		}
		check("extended", h, 10*time.Second)
		if err := h.(keeper).Keep(t.Context(), time.Second); err != nil {
			t.Errorf("Keep() = %v", err)
		}
		check("kept", h, 0)
		time.Sleep(2 * time.Second)

		h = acquire(t, t.Context(), l, lock.Request{MaxHold: time.Second})
		check("bounded by MaxHold", h, time.Second)
		time.Sleep(2 * time.Second)
		check("lost", h, 0)
		h = acquire(t, t.Context(), l, lock.Request{})
		check("without end", h, math.MaxInt64)
		release(t, h)
		check("released", h, 0)
	})
}

func TestExtendOfTheEnded(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		extends := func(h lock.Hold, want error) {
			t.Helper()
			if err := h.(extender).Extend(t.Context(), time.Hour); !errors.Is(err, want) {
				t.Errorf("Extend() = %v, want %v", err, want)
			}
		}
		lost := acquire(t, t.Context(), l, lock.Request{Lease: time.Second})
		<-lost.Context().Done()
		extends(lost, lock.ErrLost)
		extends(lost, errLease)
		if err := lost.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release() = %v, want ErrLost", err)
		}
		extends(lost, lock.ErrNotHeld)

		h := acquire(t, t.Context(), l, lock.Request{Lease: time.Second})
		release(t, h)
		extends(h, lock.ErrNotHeld)
		h = acquire(t, t.Context(), l, lock.Request{Lease: time.Second})
		if err := h.(keeper).Keep(t.Context(), 2*time.Second); err != nil {
			t.Errorf("Keep() = %v", err)
		}
		extends(h, lock.ErrNotHeld)
		busy(t, t.Context(), l, lock.Request{}, 0, 2*time.Second)
		time.Sleep(2 * time.Second)
	})
}

// The lease ends and is extended at the same time: either may win, but what Extend says is true.
func TestExtendMeetsTheEnd(t *testing.T) {
	for range 200 {
		bubble(t, func(t *testing.T, l *Locker) {
			h := acquire(t, t.Context(), l, lock.Request{Lease: time.Second})
			time.Sleep(time.Second)
			err := h.(extender).Extend(t.Context(), time.Second)
			synctest.Wait()
			if lost := context.Cause(h.Context()); (err == nil) != (lost == nil) || err != nil && !errors.Is(err, errLease) {
				t.Errorf("Extend() = %v, and the hold ends with %v", err, lost)
			}
			time.Sleep(2 * time.Second)
		})
	}
}

// What one hold of a stay keeps, the release of the others does not free.
func TestNestedKeep(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		outer := acquire(t, t.Context(), l, lock.Request{})
		inner := acquire(t, outer.Context(), l, lock.Request{})
		if err := inner.(keeper).Keep(t.Context(), 5*time.Second); err != nil {
			t.Errorf("Keep() = %v", err)
		}
		release(t, acquire(t, outer.Context(), l, lock.Request{})) // it is still ours
		ctx := context.WithoutCancel(outer.Context())
		release(t, outer)
		start := time.Now()
		busy(t, ctx, l, lock.Request{}, 0, 5*time.Second)
		release(t, acquire(t, ctx, l, lock.Request{Wait: -1}))
		if got := time.Since(start); got != 5*time.Second {
			t.Errorf("kept for %v, want 5s", got)
		}
	})
}
