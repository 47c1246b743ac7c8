package redisson_test

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// Requests for several permits, and for none, beside others of the same client; and semaphores that are deleted.

// Somebody waits for more permits than are free, or than there are in all. Those who want fewer are served meanwhile, as
// they are in Redisson.
func TestSmallerRequestsPassALargerOne(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, rdb := t.Context(), srv.Client(t)
	s := newSemaphore(t, newClient(t, srv), 3)
	check(t, s.Acquire(ctx, 1))
	large := acquireAsync(s, 3)
	endless, cancel := context.WithCancel(ctx)
	never := make(chan error, 1)
	go func() { never <- s.Acquire(endless, 4) }()
	eventually(t, "the large requests wait", func() bool { return len(subscriptions(t, rdb)) == 1 })
	<-time.After(50 * time.Millisecond)
	for range 3 {
		small, stop := context.WithTimeout(ctx, time.Second)
		if err := s.Acquire(small, 1); err != nil {
			t.Fatalf("Acquire of a permit that is free = %v", err)
		}
		stop()
		must(t, true)(s.TryAcquire(ctx, 1, -1))
		check(t, s.Release(ctx, 2))
	}
	check(t, s.Release(ctx, 1))
	expectDone(t, large)
	cancel()
	if err := <-never; !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire of more permits than there are = %v, want canceled", err)
	}
	must(t, 0)(s.AvailablePermits(ctx))
}

// So is it with permits that have ids.
func TestSmallerRequestsPassALargerOneForPermitsWithIDs(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, rdb := t.Context(), srv.Client(t)
	s := newPermits(t, newClient(t, srv), 3)
	outer := mustPermit(t, s, time.Hour)
	large := make(chan []string, 1)
	go func() {
		ids, err := s.AcquireN(ctx, 3, time.Hour)
		if err != nil {
			t.Error(err)
		}
		large <- ids
	}()
	eventually(t, "the large request waits", func() bool { return len(subscriptions(t, rdb)) == 1 })
	small, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	ids, err := s.AcquireN(small, 2, time.Hour)
	if err != nil {
		t.Fatalf("AcquireN of two permits that are free = %v", err)
	}
	check(t, s.Release(ctx, append(ids, outer)...))
	if got := <-large; len(got) != 3 {
		t.Errorf("the large request got %q", got)
	}
	must(t, 0)(s.AvailablePermits(ctx))
}

// Several permits are taken in one step, and given back in one, or none of them is.
func TestPermitsAtOnce(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	s := newPermits(t, newClient(t, srv), 3)
	messages := listen(t, rdb, "redisson_sc:{s}")
	now := time.Now()
	ids, err := s.AcquireN(ctx, 3, time.Minute)
	check(t, err)
	taken := map[string]float64{}
	for _, z := range rdb.ZRangeWithScores(ctx, "{s}:timeout", 0, -1).Val() {
		taken[hex.EncodeToString([]byte(z.Member.(string)))] = z.Score
	}
	must(t, "0")(rdb.Get(ctx, "s").Result())
	for _, id := range ids {
		if at := time.UnixMilli(int64(taken[id])).Sub(now); len(id) != 32 || at < 59*time.Second || at > 62*time.Second {
			t.Errorf("permit %q ends in %v, want in a minute", id, at)
		}
	}
	if got := redissonKeys(t, rdb); len(taken) != 3 || !slices.Equal(got, []string{"s", "{s}:timeout"}) {
		t.Errorf("taken permits %v, keys %q", taken, got)
	}
	if _, ok, err := s.TryAcquireN(ctx, 1, 0, 0); ok || err != nil {
		t.Errorf("a fourth permit: %v, %v", ok, err)
	}
	check(t, s.Release(ctx, ids[0]))
	if _, ok, err := s.TryAcquireN(ctx, 2, 10*time.Millisecond, 0); ok || err != nil {
		t.Errorf("two permits where one is free: %v, %v", ok, err)
	}
	expectMessages(t, messages, "1")
	for what, refused := range map[string][]string{
		"one that was given back": ids,
		"one that is named twice": {ids[1], ids[2], strings.ToUpper(ids[1])},
		"one that never was":      {ids[1], strings.Repeat("0", 32)},
	} {
		if err := s.Release(ctx, refused...); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("Release with %s = %v, want ErrNotHeld", what, err)
		}
	}
	must(t, 2)(s.AcquiredPermits(ctx))
	must(t, 1)(s.AvailablePermits(ctx))
	check(t, s.Release(ctx, ids[1:]...))
	must(t, 3)(s.AvailablePermits(ctx))
	ids, ok, err := s.TryAcquireN(ctx, 1, 0, 0)
	if !ok || err != nil {
		t.Fatalf("TryAcquireN = %v, %v", ok, err)
	}
	check(t, s.Release(ctx, ids...))
	expectMessages(t, messages, "2", "3") // for several how many they were, for one how many there are, as in Redisson
}

// As many as one call may have, which is what the scripts of Redisson can bear as well.
func TestMostPermitsAtOnce(t *testing.T) {
	srv := redistest.Any(t)
	ctx, s := t.Context(), newPermits(t, newClient(t, srv), 4097)
	ids, err := s.AcquireN(ctx, 4096, time.Hour)
	check(t, err)
	must(t, 1)(s.AvailablePermits(ctx))
	check(t, s.Release(ctx, ids...))
	must(t, 4097)(s.AvailablePermits(ctx))
}

// No permits can always be had and given back, without a question. Fewer can't.
func TestNoPermits(t *testing.T) {
	srv := redistest.Any(t)
	ctx, c := t.Context(), newClient(t, srv)
	s, x, r := c.Semaphore("s"), c.PermitExpirableSemaphore("x"), c.RateLimiter("r")
	calls := map[string]func(n int) (bool, error){
		"Semaphore.Acquire":    func(n int) (bool, error) { return true, s.Acquire(ctx, n) },
		"Semaphore.TryAcquire": func(n int) (bool, error) { return s.TryAcquire(ctx, n, 0) },
		"Semaphore.Release":    func(n int) (bool, error) { return true, s.Release(ctx, n) },
		"Semaphore.ReleaseIfExists": func(n int) (bool, error) { // nothing was given back
			done, err := s.ReleaseIfExists(ctx, n)
			return !done, err
		},
		"PermitExpirableSemaphore.AcquireN": func(n int) (bool, error) {
			ids, err := x.AcquireN(ctx, n, 0)
			return len(ids) == 0, err
		},
		"PermitExpirableSemaphore.TryAcquireN": func(n int) (bool, error) {
			ids, ok, err := x.TryAcquireN(ctx, n, time.Second, 0)
			return ok && len(ids) == 0, err
		},
		"RateLimiter.Acquire":    func(n int) (bool, error) { return true, r.Acquire(ctx, int64(n)) },
		"RateLimiter.TryAcquire": func(n int) (bool, error) { return r.TryAcquire(ctx, int64(n), 0) },
		"RateLimiter.Release":    func(n int) (bool, error) { return true, r.Release(ctx, int64(n)) },
	}
	for name, call := range calls {
		if ok, err := call(0); !ok || err != nil {
			t.Errorf("%s of no permits = %v, %v", name, ok, err)
		}
		if _, err := call(-1); err == nil || !strings.Contains(err.Error(), "not between 0 and") {
			t.Errorf("%s of -1 permits = %v, want a refusal", name, err)
		}
	}
	check(t, x.Release(ctx))
	if _, err := x.AcquireN(ctx, 4097, 0); err == nil {
		t.Error("AcquireN of 4,097 permits was not refused")
	}
	if err := x.Release(ctx, make([]string, 4097)...); err == nil || !strings.Contains(err.Error(), "4097 permits are not between 0 and 4096") {
		t.Errorf("Release of 4,097 permits = %v, want a refusal", err)
	}
	if got := keys(t, srv.Client(t)); len(got) != 0 {
		t.Errorf("keys %q", got)
	}
}

// A deleted semaphore takes its permits with it. Its waiters wait for the next one of that name.
func TestDeletedSemaphores(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx, c := srv.Client(t), t.Context(), newClient(t, srv)
	s, x := newSemaphore(t, c, 0), c.PermitExpirableSemaphore("x")
	must(t, true)(x.TrySetPermits(ctx, 1))
	id := mustPermit(t, x, 0)
	silent := []func() []string{listen(t, rdb, "redisson_sc:{s}"), listen(t, rdb, "redisson_sc:{x}")}
	waiter := acquireAsync(s, 1)
	eventually(t, "the waiter subscribes", func() bool { return rdb.PubSubNumSub(ctx, "redisson_sc:{s}").Val()["redisson_sc:{s}"] == 2 })
	for _, tt := range []interface {
		Delete(ctx context.Context) (bool, error)
	}{s, x} {
		must(t, true)(tt.Delete(ctx))
		must(t, false)(tt.Delete(ctx))
	}
	for _, messages := range silent {
		expectMessages(t, messages)
	}
	if got := redissonKeys(t, rdb); len(got) != 0 {
		t.Errorf("keys %q after Delete", got)
	}
	if err := x.Release(ctx, id); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("Release of a permit of a deleted semaphore = %v, want ErrNotHeld", err)
	}
	must(t, true)(s.TrySetPermits(ctx, 1))
	expectDone(t, waiter)
}

// So do the waiters for permits with ids. Those of a rate limiter learn that there is no rate.
func TestDeletedUnderAWaiter(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	rdb, ctx := srv.Client(t), t.Context()
	c := newClient(t, srv, redisson.WatchdogTimeout(600*time.Millisecond))
	x, r := newPermits(t, c, 1), newRate(t, c, redisson.Rate{Permits: 1, Interval: time.Hour})
	permits, rate := make(chan error, 1), make(chan error, 1)
	go func() { permits <- second(x.AcquireN(ctx, 2, 0)) }()
	check(t, r.Acquire(ctx, 1))
	before, _ := commands(t, rdb)
	go func() { rate <- r.Acquire(ctx, 1) }()
	eventually(t, "both wait", func() bool {
		n, _ := commands(t, rdb)
		return n > before && len(subscriptions(t, rdb)) == 1
	})
	must(t, true)(x.Delete(ctx))
	must(t, true)(r.Delete(ctx))
	if err := <-rate; !errors.Is(err, redisson.ErrNoRate) {
		t.Errorf("Acquire of a rate limiter that was deleted = %v, want ErrNoRate", err)
	}
	must(t, true)(x.TrySetPermits(ctx, 3))
	expectDone(t, permits)
	must(t, 1)(x.AvailablePermits(ctx))
}

// One that was made by an Acquire of kind Permit goes as well, and its holders learn of it.
func TestDeletedSemaphoreEndsItsHolds(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx, c := srv.Client(t), t.Context(), newClient(t, srv)
	h := acquire(ctx, t, c, lock.Request{Key: "k", Kind: lock.Permit, Limit: 2})
	must(t, true)(c.PermitExpirableSemaphore("k").Delete(ctx))
	if cause := awaitEnd(t, h.Context(), 5*time.Second); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("the hold ended with %v, want ErrLost", cause)
	}
	if got := redissonKeys(t, rdb); len(got) != 0 {
		t.Errorf("keys %q after Delete", got)
	}
}
