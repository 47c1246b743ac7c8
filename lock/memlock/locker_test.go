package memlock

import (
	"context"
	"errors"
	"slices"
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
		var readers []lock.Hold
		for _, lease := range []time.Duration{5 * time.Second, 9 * time.Second, 7 * time.Second} {
			readers = append(readers, acquire(t, t.Context(), l, lock.Request{Kind: lock.Read, Lease: lease}))
		}
		busy(t, t.Context(), l, lock.Request{Kind: lock.Write}, 0, 9*time.Second)
		release(t, readers[1])
		busy(t, t.Context(), l, lock.Request{Kind: lock.Write}, 0, 7*time.Second)
		release(t, readers[0])
		release(t, readers[2])
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

// Readers who came after a writer wait for it, also when one of the readers before it goes.
func TestReadersDoNotPassAWriter(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		first := acquire(t, t.Context(), l, lock.Request{Kind: lock.Read})
		second := acquire(t, t.Context(), l, lock.Request{Kind: lock.Read})
		var order []lock.Kind
		var wg sync.WaitGroup
		for _, kind := range []lock.Kind{lock.Write, lock.Read} {
			wg.Go(func() {
				h, err := l.Acquire(t.Context(), lock.Request{Key: key, Kind: kind, Wait: -1})
				if err != nil {
					t.Errorf("Acquire() = %v", err)
					return
				}
				order = append(order, kind) // the lock guards it: the writer excludes the reader
				release(t, h)
			})
			synctest.Wait()
		}
		release(t, first)
		synctest.Wait()
		if len(order) != 0 {
			t.Errorf("%v is served beside a reader", order)
		}
		release(t, second)
		wg.Wait()
		if want := []lock.Kind{lock.Write, lock.Read}; !slices.Equal(order, want) {
			t.Errorf("order of service = %v, want %v", order, want)
		}
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

// A caller that went away before its turn does not get the lock, however close the two are.
func TestGrantComesTooLate(t *testing.T) {
	for range 50 {
		bubble(t, func(t *testing.T, l *Locker) {
			errGone := errors.New("gone")
			h := acquire(t, t.Context(), l, lock.Request{})
			ctx, cancel := context.WithCancelCause(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := l.Acquire(ctx, lock.Request{Key: key, Wait: -1}); err != errGone {
					t.Errorf("Acquire() = %v, want the cause", err)
				}
			})
			synctest.Wait()
			cancel(errGone)
			release(t, h)
			wg.Wait()
			release(t, acquire(t, t.Context(), l, lock.Request{}))
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

func TestPermitsCountStays(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		r := lock.Request{Kind: lock.Permit, Limit: 2}
		first := acquire(t, t.Context(), l, r)
		again := acquire(t, first.Context(), l, r)
		second := acquire(t, t.Context(), l, r)
		busy(t, t.Context(), l, r, 0, 0)
		release(t, first)
		busy(t, t.Context(), l, r, 0, 0) // the stay is not over
		release(t, again)
		release(t, acquire(t, t.Context(), l, r))
		release(t, second)
	})
}
