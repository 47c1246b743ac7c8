package redisson_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// rated asks for nothing but a permit of a rate.
func rated(n int, per time.Duration) lock.Request {
	return lock.Request{Key: "k", Kind: lock.Permit, Rate: lock.Rate{Permits: n, Interval: per}}
}

// checkUsedUp fails t unless the rate of r gives no permit, and the next one in about so long.
func checkUsedUp(t *testing.T, c *redisson.Client, r lock.Request, within time.Duration) {
	t.Helper()
	_, err := c.Acquire(t.Context(), r)
	busy, ok := errors.AsType[*lock.BusyError](err)
	if !ok || !busy.Rate || busy.Level != "" || busy.Remaining <= 0 || busy.Remaining > within {
		t.Errorf("Acquire: %v, want a rate that is used up for %v at most", err, within)
	}
	if peeked, ok := errors.AsType[*lock.BusyError](c.Peek(t.Context(), r)); !ok || !peeked.Rate {
		t.Errorf("Peek: %v, want a rate that is used up", peeked)
	}
}

// So many calls begin within an interval, and giving back changes nothing. Nothing is held, and nothing is left when the interval has passed.
func TestRate(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	c, other := newClient(t, s), newClient(t, s)
	const per = 700 * time.Millisecond
	r, start := rated(2, per), time.Now()
	h := acquire(t.Context(), t, c, r)
	if err := c.Peek(t.Context(), r); err != nil {
		t.Errorf("Peek: %v", err)
	}
	nested := acquire(h.Context(), t, other, r) // each call counts
	release(t, nested)
	checkUsedUp(t, c, r, per)
	checkUsedUp(t, other, rated(1, per), per)
	release(t, h)
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrNotHeld) || h.Context().Err() == nil {
		t.Errorf("released twice: %v, context %v", err, h.Context().Err())
	}
	acquire(t.Context(), t, c, rated(3, per)) // each goes by its own rate
	r.Wait = waits
	acquire(t.Context(), t, other, r)
	if took := time.Since(start); took < per {
		t.Errorf("the third permit after %v", took)
	}
	for end := time.Now().Add(waits); len(keys(t, s.Client(t))) > 0; <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("keys %q are left", keys(t, s.Client(t)))
		}
	}
}

// A call that the limit refuses takes nothing from the rate, and one that the rate refuses holds no permit.
func TestRateIsTakenLast(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	c, other := newClient(t, s), newClient(t, s)
	r := rated(2, time.Minute)
	r.Limit = 1
	h := acquire(t.Context(), t, c, r)
	for range 3 {
		expectHeldByOthers(t.Context(), t, "refused by the limit", other, r)
	}
	under := acquire(h.Context(), t, c, r) // re-enters
	release(t, under)
	release(t, h)
	release(t, acquire(t.Context(), t, other, r))
	checkUsedUp(t, c, r, time.Minute)
	r.Rate = lock.Rate{}
	release(t, acquire(t.Context(), t, c, r))
}

// A rate that somebody else has set keeps its own numbers, and counts what they take.
func TestRateOfOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	c := newClient(t, s)
	limiter := c.RateLimiter("{k}:rate")
	check(t, limiter.SetRate(t.Context(), redisson.Rate{Permits: 2, Interval: time.Minute}))
	check(t, limiter.Acquire(t.Context(), 1))
	acquire(t.Context(), t, c, rated(100, time.Second))
	checkUsedUp(t, c, rated(100, time.Second), time.Minute)
	if rate, err := limiter.Rate(t.Context()); err != nil || rate.Permits != 2 {
		t.Errorf("rate %v, %v", rate, err)
	}
}

// Where others have set a rate for each client, each has its own.
func TestRateOfEachClient(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	a, b := newClient(t, s), newClient(t, s)
	check(t, a.RateLimiter("{k}:rate").SetRate(t.Context(), redisson.Rate{Permits: 1, Interval: time.Minute, PerClient: true}))
	for _, c := range []*redisson.Client{a, b} {
		acquire(t.Context(), t, c, rated(9, time.Second))
		checkUsedUp(t, c, rated(9, time.Second), time.Minute)
		if n, err := c.RateLimiter("{k}:rate").AvailablePermits(t.Context()); n != 0 || err != nil {
			t.Errorf("%d permits are left, %v", n, err)
		}
	}
}

// Each who waits gets a permit when it is due, and no interval sees more than there are.
func TestRateOfManyWaiters(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	var mu sync.Mutex
	var begun []time.Time
	var all sync.WaitGroup
	const per = 300 * time.Millisecond
	for range 10 {
		c := newClient(t, s)
		all.Go(func() {
			r := rated(3, per)
			r.Wait = waits
			h := acquire(t.Context(), t, c, r)
			mu.Lock()
			defer mu.Unlock()
			begun = append(begun, time.Now())
			if err := h.Release(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	start := time.Now()
	all.Wait()
	if took := time.Since(start); len(begun) != 10 || took < 3*per-20*time.Millisecond || took > 8*per {
		t.Errorf("%d have begun within %v", len(begun), took)
	}
}

// An attempt whose answer is lost takes one permit of the rate, however often it is repeated. MaxHold ends the work.
func TestRateIsTakenOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := behind(t, s)
	late := p.KeepBack(naming("{k}:rate"), 0)
	r := rated(2, time.Minute)
	r.MaxHold = 50 * time.Millisecond
	h := acquire(t.Context(), t, c, r)
	late.Deliver(t)
	<-h.Context().Done()
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrMaxHold) || !errors.Is(context.Cause(h.Context()), lock.ErrMaxHold) {
		t.Errorf("release after MaxHold: %v", err)
	}
	acquire(t.Context(), t, c, r)
	checkUsedUp(t, c, r, time.Minute)
}
