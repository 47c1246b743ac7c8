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

// Each hold of a stay has its own lease, and the last one to end frees the lock.
func TestNestedLeases(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		start := time.Now()
		outer := acquire(t, t.Context(), l, lock.Request{Lease: 4 * time.Second})
		ctx := context.WithoutCancel(outer.Context())
		short := acquire(t, ctx, l, lock.Request{Lease: 2 * time.Second})
		long := acquire(t, ctx, l, lock.Request{Lease: 6 * time.Second})
		for _, tt := range []struct {
			hold  lock.Hold
			after time.Duration
		}{{short, 2 * time.Second}, {outer, 4 * time.Second}} {
			<-tt.hold.Context().Done()
			if got := time.Since(start); got != tt.after || long.Context().Err() != nil {
				t.Errorf("a lease ends after %v, want %v; the longest: %v", got, tt.after, long.Context().Err())
			}
			if err := tt.hold.Release(t.Context()); !errors.Is(err, errLease) {
				t.Errorf("Release() = %v, want %v", err, errLease)
			}
		}
		busy(t, ctx, l, lock.Request{}, 0, 2*time.Second)
		next := acquire(t, t.Context(), l, lock.Request{Wait: -1})
		if got := time.Since(start); got != 6*time.Second {
			t.Errorf("served the next after %v, want 6s", got)
		}
		release(t, next)
	})
}

// The remaining time is that of the whole stay.
func TestRemainingOfNested(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		outer := acquire(t, t.Context(), l, lock.Request{Lease: 8 * time.Second})
		inner := acquire(t, outer.Context(), l, lock.Request{Lease: 2 * time.Second})
		busy(t, t.Context(), l, lock.Request{}, 0, 8*time.Second)
		release(t, outer)
		busy(t, t.Context(), l, lock.Request{}, 0, 2*time.Second)
		release(t, inner)
	})
}

func TestReentryPassesTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		for _, kind := range []lock.Kind{lock.Exclusive, lock.Read} {
			outer := acquire(t, t.Context(), l, lock.Request{Kind: kind})
			var wg sync.WaitGroup
			wg.Go(func() {
				h, err := l.Acquire(t.Context(), lock.Request{Key: key, Kind: kind.Family(), Wait: -1})
				if err != nil {
					t.Errorf("Acquire() = %v", err)
					return
				}
				release(t, h)
			})
			synctest.Wait()
			inner := acquire(t, outer.Context(), l, lock.Request{Kind: kind})
			busy(t, t.Context(), l, lock.Request{Kind: kind}, 0, 0)
			release(t, inner)
			release(t, outer)
			wg.Wait()
		}
	})
}

// A refused request waits for nothing and leaves nothing.
func TestKindErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		held   lock.Kind
		nested bool
		wanted lock.Kind
	}{
		{"Upgrade", lock.Read, true, lock.Write},
		{"NestedFamily", lock.Fair, true, lock.Read},
		{"NestedPermit", lock.Write, true, lock.Permit},
		{"StrangeReader", lock.Exclusive, false, lock.Read},
		{"StrangeWriter", lock.Spin, false, lock.Write},
		{"StrangeLock", lock.Permit, false, lock.Fenced},
		{"StrangePermit", lock.Read, false, lock.Permit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, l *Locker) {
				h := acquire(t, t.Context(), l, lock.Request{Kind: tt.held, Limit: 2})
				ctx := t.Context()
				if tt.nested {
					ctx = h.Context()
				}
				start := time.Now()
				_, err := l.Acquire(ctx, lock.Request{Key: key, Kind: tt.wanted, Limit: 2, Wait: -1})
				e, ok := errors.AsType[*lock.KindError](err)
				if !ok || *e != (lock.KindError{Held: tt.held, Wanted: tt.wanted}) || time.Since(start) != 0 {
					t.Errorf("Acquire() = %v after %v, want a KindError at once", err, time.Since(start))
				}
				release(t, h)
			})
		})
	}
}

// What was kept is of its family until it ends, but nobody can re-enter it.
func TestKeptLockHasItsFamily(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		h := acquire(t, t.Context(), l, lock.Request{Kind: lock.Read})
		ctx := context.WithoutCancel(h.Context())
		if err := h.(keeper).Keep(t.Context(), time.Second); err != nil {
			t.Errorf("Keep() = %v", err)
		}
		busy(t, ctx, l, lock.Request{Kind: lock.Write}, 0, time.Second)
		release(t, acquire(t, ctx, l, lock.Request{Kind: lock.Read}))
		if _, err := l.Acquire(ctx, lock.Request{Key: key, Wait: -1}); !errors.Is(err, lock.ErrUnsupported) {
			t.Errorf("Acquire() = %v, want ErrUnsupported", err)
		}
		time.Sleep(time.Second)
	})
}

// Holds of another Locker, or of another key, are nothing to re-enter.
func TestOnlyOwnHoldsAreReentered(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		other := New()
		theirs := acquire(t, t.Context(), other, lock.Request{})
		h := acquire(t, t.Context(), l, lock.Request{})
		busy(t, theirs.Context(), l, lock.Request{}, 0, 0)
		release(t, h)
		release(t, acquire(t, theirs.Context(), l, lock.Request{}))
		release(t, theirs)
	})
}

// A hold of a Fenced lock is found above its context with all its methods.
func TestAncestorHasItsToken(t *testing.T) {
	l := New()
	h := acquire(t, t.Context(), l, lock.Request{Kind: lock.Fenced})
	for a := range lock.Ancestors(h.Context()) {
		if a != h {
			t.Errorf("the ancestor %v is not the hold %v", a, h)
		}
	}
	release(t, h)
}

// A hold that ends while somebody arrives under it is either re-entered or left alone, and the lock comes free.
func TestReleaseMeetsReentry(t *testing.T) {
	for range 500 {
		bubble(t, func(t *testing.T, l *Locker) {
			outer := acquire(t, t.Context(), l, lock.Request{})
			var inner lock.Hold
			var err error
			together := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				<-together
				release(t, outer)
			})
			wg.Go(func() {
				<-together
				inner, err = l.Acquire(context.WithoutCancel(outer.Context()), lock.Request{Key: key})
			})
			synctest.Wait()
			close(together)
			wg.Wait()
			if err == nil {
				busy(t, t.Context(), l, lock.Request{}, 0, 0)
				release(t, inner)
			} else if !errors.Is(err, lock.ErrBusy) {
				t.Errorf("Acquire() = %v", err)
			}
		})
	}
}

// Between finding an ancestor and entering, the ancestor may be released and the lock go to a stranger.
func TestAncestorIsReleasedOnTheWay(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		var h, stranger lock.Hold
		arriving := false
		ctx := lock.WithHold(t.Context(), nil, func() bool { // the last one that Acquire asks
			if arriving {
				arriving = false
				release(t, h)
				stranger = acquire(t, context.Background(), l, lock.Request{})
			}
			return true
		})
		h = acquire(t, ctx, l, lock.Request{})
		arriving = true
		busy(t, context.WithoutCancel(h.Context()), l, lock.Request{}, 0, 0)
		release(t, stranger)
	})
}
