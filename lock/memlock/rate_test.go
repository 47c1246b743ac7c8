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

// rated is a request for so many permits of the key a within the interval. A limit of 0 holds nothing.
func rated(limit, permits int, interval time.Duration) lock.Request {
	return lock.Request{Key: "a", Kind: lock.Permit, Limit: limit, Rate: lock.Rate{Permits: permits, Interval: interval}}
}

// usedUp checks that r is refused for its rate, with the time until the next permit.
func usedUp(t *testing.T, l *Locker, r lock.Request, remaining time.Duration) {
	t.Helper()
	if e := refusedFor(t, t.Context(), l, r, ""); e.Remaining != remaining || e.Here {
		t.Errorf("Acquire(%+v) = %+v, want %v remaining, and nobody here", r, e, remaining)
	}
}

// rates runs f in a bubble, and looks whether rates are forgotten after a day.
func rates(t *testing.T, f func(t *testing.T, l *Locker)) {
	bubble(t, func(t *testing.T, l *Locker) {
		f(t, l)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if r := l.rate("a"); r != nil {
			t.Errorf("left behind: %+v", r)
		}
	})
}

func (l *Locker) rate(key string) *rate {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rates[key]
}

// The window slides: it is not that of a clock, and what was given comes back one by one.
func TestRate(t *testing.T) {
	rates(t, func(t *testing.T, l *Locker) {
		r := rated(0, 3, time.Minute)
		for range 3 {
			release(t, get(t, t.Context(), l, r)) // which gives nothing back
			time.Sleep(10 * time.Second)
		}
		usedUp(t, l, r, 30*time.Second)
		time.Sleep(30*time.Second - time.Nanosecond)
		usedUp(t, l, r, time.Nanosecond)
		time.Sleep(time.Nanosecond)
		release(t, get(t, t.Context(), l, r))
		usedUp(t, l, r, 10*time.Second)
		other := r
		other.Key = "b"
		release(t, get(t, t.Context(), l, other))
		time.Sleep(time.Minute)
		for range 3 {
			release(t, get(t, t.Context(), l, r))
		}
		usedUp(t, l, r, time.Minute)
	})
}

// A call that does not get its slot takes nothing from the rate, and one that the rate refuses has no slot.
func TestRateIsCheckedLast(t *testing.T) {
	rates(t, func(t *testing.T, l *Locker) {
		r := rated(1, 2, time.Minute)
		r.Levels = []lock.Level{{Key: "b", Limit: 1}}
		h := get(t, t.Context(), l, r)
		refusedFor(t, t.Context(), l, r, "a")
		release(t, h)
		b := get(t, t.Context(), l, levels("b1", 0))
		refusedFor(t, t.Context(), l, r, "b")
		release(t, b)
		release(t, get(t, t.Context(), l, r))
		usedUp(t, l, r, time.Minute)
		release(t, get(t, t.Context(), l, levels("a1 b1", 0)))
	})
}

// Without a limit there is nothing to hold, and so nothing to re-enter.
func TestRateWithoutLimit(t *testing.T) {
	rates(t, func(t *testing.T, l *Locker) {
		exclusive := get(t, t.Context(), l, lock.Request{Key: "a"})
		r := rated(0, 3, time.Minute)
		h := get(t, t.Context(), l, r)
		inner := get(t, h.Context(), l, r)
		release(t, inner)
		if h.Context().Err() != nil {
			t.Errorf("the context has ended: %v", context.Cause(h.Context()))
		}
		release(t, h)
		if cause := context.Cause(h.Context()); cause != context.Canceled {
			t.Errorf("released with cause %v", cause)
		}
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("a second Release() = %v, want ErrNotHeld", err)
		}
		r.MaxHold = time.Second
		h = get(t, exclusive.Context(), l, r)
		<-h.Context().Done()
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrMaxHold) {
			t.Errorf("Release() = %v, want ErrMaxHold", err)
		}
		usedUp(t, l, r, 59*time.Second)
		if !l.ForceUnlock("a") || exclusive.Context().Err() == nil {
			t.Error("the exclusive lock is not held")
		}
		usedUp(t, l, r, 59*time.Second)
	})
}

func TestReentryTakesNothingFromTheRate(t *testing.T) {
	rates(t, func(t *testing.T, l *Locker) {
		r := rated(1, 1, time.Minute)
		h := get(t, t.Context(), l, r)
		release(t, get(t, h.Context(), l, r))
		release(t, get(t, h.Context(), l, r))
		release(t, h)
		usedUp(t, l, r, time.Minute)
	})
}

func TestRateIsWaitedForInOrder(t *testing.T) {
	rates(t, func(t *testing.T, l *Locker) {
		n := line{t: t, l: l}
		r := rated(1, 2, time.Minute)
		for range 2 {
			release(t, get(t, t.Context(), l, r))
			time.Sleep(20 * time.Second)
		}
		n.wait("first", r, 0)
		n.wait("second", r, 0)
		more := r
		more.Rate.Permits = 3
		usedUp(t, l, more, 20*time.Second) // it is behind those who wait
		n.wait("third", more, 0)
		n.order()
		time.Sleep(20 * time.Second)
		n.order("first")
		time.Sleep(20 * time.Second)
		n.order("first", "second", "third") // the last one has a permit more
		n.wg.Wait()
	})
}

// A wait for the rate holds no slot. When a permit comes back and there is no slot, that is waited for.
func TestWaiterMovesBetweenRateAndLevel(t *testing.T) {
	rates(t, func(t *testing.T, l *Locker) {
		n := line{t: t, l: l}
		r := rated(1, 1, time.Minute)
		release(t, get(t, t.Context(), l, r))
		n.wait("rate", r, 0)
		h := get(t, t.Context(), l, levels("a1", 0))
		time.Sleep(time.Minute)
		n.order()
		refusedFor(t, t.Context(), l, r, "a")
		other := rated(0, 1, time.Minute)
		release(t, get(t, t.Context(), l, other)) // takes the permit meanwhile
		release(t, h)
		n.order()
		time.Sleep(time.Minute)
		n.order("rate")
		n.wg.Wait()
	})
}

// Who goes away lets in those behind it that can do with more.
func TestLeavingTheLineOfARate(t *testing.T) {
	rates(t, func(t *testing.T, l *Locker) {
		n := line{t: t, l: l}
		release(t, get(t, t.Context(), l, rated(0, 1, time.Minute)))
		n.wg.Go(func() {
			r := rated(0, 1, time.Minute)
			r.Wait = time.Second
			_, err := l.Acquire(t.Context(), r)
			if e, ok := errors.AsType[*lock.BusyError](err); !ok || !e.Rate || e.Waited != time.Second || e.Remaining != 59*time.Second {
				t.Errorf("Acquire() = %v, want busy after 1s and for 59s more", err)
			}
		})
		synctest.Wait()
		n.wait("behind", rated(0, 2, time.Minute), 0)
		n.order()
		time.Sleep(time.Second)
		n.order("behind")
		n.wg.Wait()
	})
}

// Each request goes by its own rate, and a longer interval is remembered from when it was first named.
func TestRatesChange(t *testing.T) {
	rates(t, func(t *testing.T, l *Locker) {
		short, long := rated(0, 1, time.Second), rated(0, 2, time.Hour)
		release(t, get(t, t.Context(), l, short))
		release(t, get(t, t.Context(), l, long))
		usedUp(t, l, short, time.Second)
		time.Sleep(time.Second)
		release(t, get(t, t.Context(), l, short))
		usedUp(t, l, long, time.Hour-time.Second)
		usedUp(t, l, rated(0, 1, time.Hour), time.Hour)
		release(t, get(t, t.Context(), l, rated(0, 4, time.Hour)))
		time.Sleep(2 * time.Hour)
		release(t, get(t, t.Context(), l, short))
		usedUp(t, l, rated(0, 1, time.Hour), time.Hour) // which is from now on to be remembered
		time.Sleep(2 * time.Second)
		usedUp(t, l, rated(0, 1, time.Hour), time.Hour-2*time.Second)
	})
}

// The longest interval that there is does not run over.
func TestLongestInterval(t *testing.T) {
	l := New()
	r := rated(0, 1, math.MaxInt64)
	release(t, get(t, t.Context(), l, r))
	if e, ok := errors.AsType[*lock.BusyError](l.Peek(t.Context(), r)); !ok || e.Remaining < math.MaxInt64/2 {
		t.Errorf("Peek() = %v, want busy for ever", e)
	}
}

// The timer of a rate goes off while its key is forgotten for another reason and remembered anew.
func TestForgottenRateIsLeftAlone(t *testing.T) {
	rates(t, func(t *testing.T, l *Locker) {
		r := rated(0, 1, time.Minute)
		release(t, get(t, t.Context(), l, r))
		old := l.rate("a")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		release(t, get(t, t.Context(), l, r))
		l.timed(old)
		usedUp(t, l, r, time.Minute)
	})
}
