package redisson_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

const tokenKey = "redisson_lock_token:{k}"

// expectTokenTTL expects the counter to live for so long.
func expectTokenTTL(t *testing.T, rdb *redis.Client, want time.Duration) {
	t.Helper()
	if ttl := rdb.PTTL(t.Context(), tokenKey).Val(); ttl > want || ttl < want-5*time.Second {
		t.Errorf("the counter lives for %v, want %v", ttl, want)
	}
}

// The counter is kept for a time on top of each lease: that of an acquire, a re-entry, and a longer one of another client.
func TestFencingTokenTTL(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	c := newClient(t, srv, redisson.FencingTokenTTL(2*time.Hour))
	outer := acquire(ctx, t, c, lock.Request{Key: "k", Kind: lock.Fenced, Lease: time.Minute})
	expectTokenTTL(t, rdb, 2*time.Hour+time.Minute)
	inner := acquire(outer.Context(), t, c, lock.Request{Key: "k", Kind: lock.Fenced, Lease: time.Hour})
	expectTokenTTL(t, rdb, 3*time.Hour)
	if token := inner.(interface{ Token() int64 }).Token(); token != 2 {
		t.Errorf("token %d, want 2", token)
	}
	release(t, inner)
	release(t, outer)
	rdb.PExpire(ctx, tokenKey, time.Minute)
	release(t, acquire(ctx, t, c, lock.Request{Key: "k", Kind: lock.Fenced, Lease: time.Hour}))
	expectTokenTTL(t, rdb, 3*time.Hour)

	release(t, acquire(ctx, t, newClient(t, srv, redisson.FencingTokenTTL(time.Hour)), lock.Request{Key: "k", Kind: lock.Fenced}))
	expectTokenTTL(t, rdb, 3*time.Hour)
	release(t, acquire(ctx, t, newClient(t, srv), lock.Request{Key: "k", Kind: lock.Fenced}))
	expectTokenTTL(t, rdb, 3*time.Hour)
	must(t, int64(5))(c.FencedLock("k").LastToken(ctx))

	rdb.PExpire(ctx, tokenKey, time.Millisecond)
	eventually(t, "the counter is gone", func() bool { return rdb.Exists(ctx, tokenKey).Val() == 0 })
	held := mustLock(t, c.FencedLock("k"))
	if token, ok := c.FencedLock("k").Token(held); token != 1 || !ok {
		t.Errorf("token %d, %v after the counter has gone, want 1", token, ok)
	}
}

// A hold may last longer than the counter is kept: renewals keep it, also those of a hold of another kind that it re-entered.
func TestRenewalKeepsTheTokenCounter(t *testing.T) {
	srv := redistest.Any(t)
	rdb := srv.Client(t)
	c := newClient(t, srv, redisson.FencingTokenTTL(time.Hour), redisson.WatchdogTimeout(600*time.Millisecond))
	for _, kind := range []lock.Kind{lock.Fenced, lock.Exclusive, lock.Spin, lock.Fair} {
		outer := acquire(t.Context(), t, c, lock.Request{Key: "k", Kind: kind})
		inner := acquire(outer.Context(), t, c, lock.Request{Key: "k", Kind: lock.Fenced})
		rdb.PExpire(t.Context(), tokenKey, time.Minute)
		eventually(t, "the counter is kept", func() bool { return rdb.PTTL(t.Context(), tokenKey).Val() > 59*time.Minute })
		release(t, inner)
		release(t, outer)
	}
}

// As in Redisson, only a fenced lock counts, whatever it re-enters and whatever re-enters it.
func TestOnlyFencedHoldsAreNumbered(t *testing.T) {
	srv := redistest.Any(t)
	c := newClient(t, srv)
	counter := func(want int64) {
		t.Helper()
		must(t, want)(c.FencedLock("k").LastToken(t.Context()))
	}
	outer := acquire(t.Context(), t, c, lock.Request{Key: "k", Kind: lock.Fenced})
	counter(1)
	for i, kind := range []lock.Kind{lock.Exclusive, lock.Spin, lock.Fair} {
		inner := acquire(outer.Context(), t, c, lock.Request{Key: "k", Kind: kind})
		counter(int64(i + 1))
		again := acquire(inner.Context(), t, c, lock.Request{Key: "k", Kind: lock.Fenced})
		if token := again.(interface{ Token() int64 }).Token(); token != int64(i+2) {
			t.Errorf("under %v: token %d, want %d", kind, token, i+2)
		}
		release(t, again)
		release(t, inner)
		counter(int64(i + 2))
	}
	release(t, outer)
	counter(4)
}

// Without the option Redis keeps the counter for ever, as Redisson has it. Locks of other kinds leave it alone.
func TestTokenCounterStays(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	renewed := func(c *redisson.Client, r lock.Request) {
		h := acquire(ctx, t, c, r)
		release(t, acquire(h.Context(), t, c, r))
		eventually(t, "the lock is renewed", func() bool { return rdb.PTTL(ctx, "k").Val() < 500*time.Millisecond })
		eventually(t, "the lock is renewed", func() bool { return rdb.PTTL(ctx, "k").Val() > 550*time.Millisecond })
		release(t, h)
	}
	rdb.Set(ctx, tokenKey, 7, time.Minute)
	renewed(newClient(t, srv, redisson.FencingTokenTTL(time.Hour), redisson.WatchdogTimeout(600*time.Millisecond)), lock.Request{Key: "k"})
	expectTokenTTL(t, rdb, time.Minute)
	rdb.Del(ctx, tokenKey)
	renewed(newClient(t, srv, redisson.WatchdogTimeout(600*time.Millisecond)), lock.Request{Key: "k", Kind: lock.Fenced})
	if ttl := rdb.PTTL(ctx, tokenKey).Val(); ttl != -1 {
		t.Errorf("TTL of the counter = %v, want none", ttl)
	}
	must(t, "2")(rdb.Get(ctx, tokenKey).Result())
}

func TestShortFencingTokenTTLIsRefused(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	for _, d := range []time.Duration{-1, time.Millisecond, time.Hour - 1} {
		if _, err := redisson.New(rdb, redisson.FencingTokenTTL(d)); err == nil {
			t.Errorf("FencingTokenTTL(%v) was not refused", d)
		}
	}
}

// What is no counter, or one that is at its end, fails the acquire, which leaves nothing behind.
func TestTokenCounterThatDoesNotCount(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx, c := srv.Client(t), t.Context(), newClient(t, srv)
	fails := func(ctx context.Context) {
		t.Helper()
		if _, err := c.Acquire(ctx, lock.Request{Key: "k", Kind: lock.Fenced}); err == nil {
			t.Error("Acquire succeeded without a counter")
		}
	}
	check(t, rdb.RPush(ctx, tokenKey, "x").Err())
	fails(ctx)
	must(t, int64(0))(rdb.Exists(ctx, "k").Result())
	check(t, errors.Join(rdb.Del(ctx, tokenKey).Err(), rdb.Set(ctx, tokenKey, int64(math.MaxInt64), 0).Err()))
	fails(ctx)
	must(t, int64(0))(rdb.Exists(ctx, "k").Result())
	outer := acquire(ctx, t, c, lock.Request{Key: "k"})
	fails(outer.Context())
	if got := rdb.HVals(ctx, "k").Val(); !slices.Equal(got, []string{"1"}) {
		t.Errorf("counts %q after a re-entry in vain, want 1", got)
	}
	release(t, outer)
}
