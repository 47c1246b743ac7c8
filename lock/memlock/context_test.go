package memlock

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

var errOwn = errors.New("own")

// contextEnds are the ways in which the context of a hold can end.
var contextEnds = []struct {
	name       string
	end        func(l *Locker, h lock.Hold, cancel context.CancelCauseFunc)
	err, cause error
}{
	{"goes on", func(*Locker, lock.Hold, context.CancelCauseFunc) {}, nil, nil},
	{"released", func(_ *Locker, h lock.Hold, _ context.CancelCauseFunc) { _ = h.Release(context.Background()) }, context.Canceled, context.Canceled},
	{"lost", func(l *Locker, _ lock.Hold, _ context.CancelCauseFunc) { l.ForceUnlock(key) }, context.Canceled, lock.ErrLost},
	{"lease", func(*Locker, lock.Hold, context.CancelCauseFunc) { time.Sleep(time.Minute) }, context.Canceled, lock.ErrLost},
	{"parent", func(_ *Locker, _ lock.Hold, cancel context.CancelCauseFunc) { cancel(errOwn) }, context.Canceled, errOwn},
	{"parent, then lost", func(l *Locker, _ lock.Hold, cancel context.CancelCauseFunc) { cancel(errOwn); l.ForceUnlock(key) }, context.Canceled, errOwn},
	{"lost, then parent", func(l *Locker, _ lock.Hold, cancel context.CancelCauseFunc) { l.ForceUnlock(key); cancel(errOwn) }, context.Canceled, lock.ErrLost},
	{"deadline of the parent, then released", func(_ *Locker, h lock.Hold, _ context.CancelCauseFunc) {
		time.Sleep(31 * time.Second)
		_ = h.Release(context.Background())
	}, context.DeadlineExceeded, context.DeadlineExceeded},
}

// TestContextOfHold holds the context to what one of package context does, whether it was asked for Done or not, before
// its end or after.
func TestContextOfHold(t *testing.T) {
	for _, tt := range contextEnds {
		for _, asked := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				l := New()
				parent, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				parent, stop := context.WithTimeout(parent, 30*time.Second)
				defer stop()
				if tt.name == "lease" {
					parent = context.WithoutCancel(parent)
				}
				h := acquire(t, parent, l, lock.Request{Lease: 45 * time.Second})
				ctx := h.Context()
				if asked {
					if ctx.Err() != nil {
						t.Errorf("%s: ended at the start: %v", tt.name, ctx.Err())
					}
					_ = ctx.Done()
				}
				tt.end(l, h, cancel)
				synctest.Wait()
				for range 2 {
					if ctx.Err() != tt.err || !errors.Is(context.Cause(ctx), tt.cause) {
						t.Errorf("%s, asked %v: ended with %v, cause %v, want %v, %v", tt.name, asked, ctx.Err(), context.Cause(ctx), tt.err, tt.cause)
					}
					select {
					case <-ctx.Done():
						if tt.err == nil {
							t.Errorf("%s: Done is closed", tt.name)
						}
					default:
						if tt.err != nil {
							t.Errorf("%s, asked %v: Done is open", tt.name, asked)
						}
					}
					derived, cancelDerived := context.WithCancel(ctx)
					if derived.Err() != nil && tt.err == nil || !errors.Is(context.Cause(derived), tt.cause) {
						t.Errorf("%s, asked %v: a derived context ended with %v, want %v", tt.name, asked, context.Cause(derived), tt.cause)
					}
					cancelDerived()
				}
				_ = h.Release(context.Background())
			})
		}
	}
}

// What derives from the context of a hold hears of its end without a goroutine each.
func TestDerivedContextsCostNoGoroutine(t *testing.T) {
	l := New()
	h := acquire(t, t.Context(), l, lock.Request{})
	before := runtime.NumGoroutine()
	var derived []context.Context
	for range 100 {
		ctx, cancel := context.WithCancel(h.Context())
		defer cancel()
		derived = append(derived, ctx)
	}
	if got := runtime.NumGoroutine() - before; got > 10 {
		t.Errorf("%d goroutines for 100 contexts", got)
	}
	l.ForceUnlock(key)
	for _, ctx := range derived {
		if !errors.Is(context.Cause(ctx), lock.ErrLost) {
			t.Fatalf("ended with %v, want ErrLost", context.Cause(ctx))
		}
	}
}

// A lock that nobody else wants costs one allocation.
func TestAllocations(t *testing.T) {
	l := New()
	got := testing.AllocsPerRun(100, func() {
		h, err := l.Acquire(t.Context(), lock.Request{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	if got > 1 {
		t.Errorf("%v allocations, want 1", got)
	}
}
