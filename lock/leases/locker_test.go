package leases_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// script is a memory whose calls are replaced by those that are set.
type script struct {
	*memory
	take   func(context.Context, *leases.Entry, time.Duration) (leases.Grant, error)
	extend func(context.Context, *leases.Entry, time.Duration) (time.Duration, error)
	watch  chan struct{}
	asked  atomic.Int64
}

func (s *script) Take(ctx context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
	s.asked.Add(1)
	if s.take != nil {
		return s.take(ctx, e, d)
	}
	return s.memory.Take(ctx, e, d)
}

func (s *script) Extend(ctx context.Context, e *leases.Entry, d time.Duration) (time.Duration, error) {
	if s.extend != nil {
		return s.extend(ctx, e, d)
	}
	return s.memory.Extend(ctx, e, d)
}

func (s *script) Watch(context.Context, string) (<-chan struct{}, func(), error) {
	if s.watch == nil {
		return nil, nil, errors.New("nothing to listen to")
	}
	return s.watch, func() {}, nil
}

// The pause is so long that only what is tested can be the reason that a waiter asks.
var rarely = leases.Poll(time.Hour, 0)

func acquire(t *testing.T, l *leases.Locker, r lock.Request) lock.Hold {
	t.Helper()
	r.Key = "k"
	h, err := l.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("Acquire() = %v", err)
	}
	return h
}

// waiting starts an Acquire, releases what it gets, and then returns the time that the Acquire took.
func waiting(t *testing.T, l *leases.Locker, r lock.Request) <-chan time.Duration {
	took := make(chan time.Duration, 1)
	go func() {
		start := time.Now()
		h := acquire(t, l, r)
		d := time.Since(start)
		_ = h.Release(t.Context())
		took <- d
	}()
	synctest.Wait()
	return took
}

func TestReleaseWakesTheNextOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newMemory(), rarely)
		h := acquire(t, l, lock.Request{})
		first, second := waiting(t, l, lock.Request{Wait: -1}), waiting(t, l, lock.Request{Wait: -1})
		time.Sleep(time.Second)
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if a, b := <-first, <-second; a != time.Second || b != time.Second {
			t.Errorf("those in line had it after %v and %v, want 1s", a, b)
		}
	})
}

func TestWatcherIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{memory: newMemory(), watch: make(chan struct{})}
		other, l := newLocker(t, s), newLocker(t, s, rarely)
		h := acquire(t, other, lock.Request{})
		next := waiting(t, l, lock.Request{Wait: -1})
		s.asked.Store(0)
		time.Sleep(time.Second)
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.watch <- struct{}{}
		if took := <-next; took != time.Second || s.asked.Load() != 1 {
			t.Errorf("the waiter had it after %v and %d questions, want 1s and 1", took, s.asked.Load())
		}
	})
}

func TestPollingGoesOnWithoutMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{memory: newMemory()}
		other, l := newLocker(t, s), newLocker(t, s, leases.Poll(time.Second, 0))
		h := acquire(t, other, lock.Request{})
		next := waiting(t, l, lock.Request{Wait: -1})
		time.Sleep(2500 * time.Millisecond)
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := <-next; took != 3*time.Second {
			t.Errorf("the waiter had it after %v, want 3s", took)
		}
	})
}

func TestRefusalEndsTheWait(t *testing.T) {
	for _, refusal := range []error{lock.ErrRefused, lock.ErrUnsupported} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{memory: newMemory()}
			s.take = func(context.Context, *leases.Entry, time.Duration) (leases.Grant, error) {
				return leases.Grant{}, refusal
			}
			start := time.Now()
			_, err := newLocker(t, s).Acquire(t.Context(), lock.Request{Key: "k", Wait: -1})
			if !errors.Is(err, refusal) || time.Since(start) != 0 || s.asked.Load() != 1 {
				t.Errorf("Acquire() = %v after %v and %d questions, want %v at once", err, time.Since(start), s.asked.Load(), refusal)
			}
		})
	}
}

// The second in line asks nothing, and knows all the same that the lock is held.
func TestBusyIsKnownToAllInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		other, l := newLocker(t, m), newLocker(t, m, rarely)
		h := acquire(t, other, lock.Request{Lease: 2 * time.Hour})
		next := waiting(t, l, lock.Request{Wait: -1})
		start := time.Now()
		_, err := l.Acquire(t.Context(), lock.Request{Key: "k", Wait: time.Second})
		if !errors.Is(err, lock.ErrBusy) || time.Since(start) != time.Second {
			t.Errorf("Acquire() = %v after %v, want ErrBusy after 1s", err, time.Since(start))
		}
		_ = h.Release(t.Context())
		<-next
	})
}

// A hold is told of an entry that is gone by the next renewal.
func TestLossIsNoticedByTheWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := newLocker(t, m, leases.Watchdog(30*time.Second))
		h := acquire(t, l, lock.Request{})
		start := time.Now()
		if err := m.Free(t.Context(), leases.EntryOf(h), 0); err != nil {
			t.Fatal(err)
		}
		<-h.Context().Done()
		if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrLost) || time.Since(start) != 10*time.Second {
			t.Errorf("ended after %v with cause %v, want ErrLost after 10s", time.Since(start), cause)
		}
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release() = %v, want ErrLost", err)
		}
	})
}

// After a suspension of the machine the lease may be over, though the monotonic clock does not say so. A hold of a fixed lease, which
// is never renewed, is asked for as well.
func TestSuspensionIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := newLocker(t, m)
		fixed := acquire(t, l, lock.Request{Lease: time.Hour})
		nested, err := l.Acquire(context.WithoutCancel(fixed.Context()), lock.Request{Key: "k", Lease: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		l.Sleep(2 * time.Hour)
		if err := m.Free(t.Context(), leases.EntryOf(fixed), 0); err != nil { // as the service did meanwhile
			t.Fatal(err)
		}
		<-nested.Context().Done() // the next that is due
		time.Sleep(time.Millisecond)
		if cause := context.Cause(fixed.Context()); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("the context ends with cause %v, want ErrLost", cause)
		}
	})
}

// A Store that hears of a loss need not wait to be asked. It may hear of it before the Acquire has returned.
func TestStoreTellsOfALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("the session expired")
		s := &script{memory: newMemory()}
		l := newLocker(t, s)
		h := acquire(t, l, lock.Request{})
		leases.EntryOf(h).Lost(reason)
		if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrLost) || !errors.Is(cause, reason) {
			t.Errorf("the context ends with cause %v, want ErrLost and the reason", cause)
		}
		leases.EntryOf(h).Lost(reason) // once more, as several callbacks may
		s.take = func(ctx context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
			e.Lost(reason)
			return leases.Grant{}, nil
		}
		if _, err := l.Acquire(t.Context(), lock.Request{Key: "k2"}); err == nil {
			t.Error("Acquire gives a hold whose entry is gone")
		}
	})
}

// An outage ends in an error at the bound, whoever in line hears of it.
func TestOutageIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name       string
		wait, want time.Duration
	}{
		{"one try", 0, 3 * time.Second},
		{"a short wait", time.Second, 1500 * time.Millisecond},
		{"a long wait", time.Minute, 3 * time.Second},
		{"no bound", -1, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{memory: newMemory()}
			s.take = func(ctx context.Context, _ *leases.Entry, _ time.Duration) (leases.Grant, error) {
				<-ctx.Done()
				return leases.Grant{}, ctx.Err()
			}
			l := newLocker(t, s)
			var callers sync.WaitGroup
			for range 3 {
				callers.Go(func() {
					start := time.Now()
					_, err := l.Acquire(t.Context(), lock.Request{Key: "k", Wait: tt.wait})
					over := time.Since(start) - tt.want
					if err == nil || errors.Is(err, lock.ErrBusy) || errors.Is(err, context.DeadlineExceeded) || over < 0 || over > 100*time.Millisecond {
						t.Errorf("%s: Acquire() = %v after %v, want an outage after %v", tt.name, err, time.Since(start), tt.want)
					}
				})
			}
			callers.Wait()
			time.Sleep(time.Minute) // what was asked last ends, too
		})
	}
}

func TestPanicOfTheStoreIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{memory: newMemory()}
		s.take = func(context.Context, *leases.Entry, time.Duration) (leases.Grant, error) { panic("index out of range") }
		if _, err := newLocker(t, s).Acquire(t.Context(), lock.Request{Key: "k"}); err == nil || !strings.Contains(err.Error(), "index out of range") {
			t.Errorf("Acquire() = %v, want the panic", err)
		}
	})
}

// A longer nested hold is asked for at once, and not when the outer one is due.
func TestNestedHoldIsExtendedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := newLocker(t, m)
		outer := acquire(t, l, lock.Request{Lease: time.Second})
		inner, err := l.Acquire(context.WithoutCancel(outer.Context()), lock.Request{Key: "k", Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		var busy *lock.BusyError
		if err := l.Peek(t.Context(), lock.Request{Key: "k"}); !errors.As(err, &busy) || busy.Remaining < 59*time.Second {
			t.Errorf("Peek() = %v, want busy for a minute", err)
		}
		_ = inner.Release(t.Context())
		_ = outer.Release(t.Context())
	})
}

func TestMistakesOfOptionsAreRefused(t *testing.T) {
	for _, tt := range []struct {
		opts []leases.Option
		want string
	}{
		{[]leases.Option{leases.Watchdog(time.Millisecond)}, "under 30ms"},
		{[]leases.Option{leases.Timeout(time.Microsecond)}, "under 1ms"},
		{[]leases.Option{leases.Timeout(time.Minute)}, "more than the watchdog's"},
		{[]leases.Option{leases.Poll(0, 0)}, "under 1ms"},
		{[]leases.Option{leases.Poll(time.Second, -1)}, "negative"},
	} {
		if _, err := leases.New(newMemory(), tt.opts...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New() = %v, want an error with %q", err, tt.want)
		}
	}
	if _, err := leases.New(nil); err == nil {
		t.Error("New(nil) has no error")
	}
	if _, err := leases.New(newMemory(), nil, leases.Watchdog(time.Second)); err != nil {
		t.Errorf("New() = %v: a nil option means nothing, and the timeout follows the watchdog", err)
	}
}

func TestReasonOfUnsupportedKinds(t *testing.T) {
	l := newLocker(t, newMemory(), leases.Kinds("the table has one row a key", lock.Exclusive))
	_, err := l.Acquire(t.Context(), lock.Request{Key: "k", Kind: lock.Permit, Limit: 1})
	if !errors.Is(err, lock.ErrUnsupported) || !strings.Contains(err.Error(), "permit: the table has one row a key") {
		t.Errorf("Acquire() = %v, want the kind and the reason", err)
	}
}
