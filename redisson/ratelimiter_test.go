package redisson_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// newRate returns a rate limiter with a rate.
func newRate(tb testing.TB, c *redisson.Client, r redisson.Rate) *redisson.RateLimiter {
	tb.Helper()
	l := c.RateLimiter("r")
	must(tb, true)(l.TrySetRate(tb.Context(), r))
	return l
}

func TestRateLayout(t *testing.T) {
	for _, perClient := range []bool{false, true} {
		t.Run(fmt.Sprintf("perClient=%v", perClient), func(t *testing.T) {
			srv := redistest.Any(t)
			rdb, ctx := srv.Client(t), t.Context()
			c := newClient(t, srv, redisson.NameMapper(func(n string) string { return "app:" + n }))
			l := newRate(t, c, redisson.Rate{Permits: 70000, Interval: time.Minute, PerClient: perClient})
			must(t, int64(70000))(l.AvailablePermits(ctx))
			want := map[string]string{"rate": "70000", "interval": "60000", "type": fmt.Sprint(btoi(perClient)), "keepAliveTime": "0"}
			if got := rdb.HGetAll(ctx, "app:r").Val(); !maps.Equal(got, want) {
				t.Errorf("settings %v, want %v", got, want)
			}
			must(t, false)(l.TrySetRate(ctx, redisson.Rate{Permits: 1, Interval: time.Second}))
			must(t, true)(l.TryAcquire(ctx, 3, 0))
			must(t, true)(l.TryAcquire(ctx, 66051, 0)) // 0x010203
			must(t, false)(l.TryAcquire(ctx, 69000, 0))
			must(t, int64(3946))(l.AvailablePermits(ctx))
			value, permits := "{app:r}:value", "{app:r}:permits"
			if perClient {
				value, permits = value+":"+c.ID(), permits+":"+c.ID()
			}
			if got := redissonKeys(t, rdb); !slices.Equal(got, []string{"app:r", permits, value}) {
				t.Errorf("keys %q", got)
			}
			must(t, "3946")(rdb.Get(ctx, value).Result())
			expectTaken(t, rdb, permits, 3, 66051)
			check(t, l.SetRate(ctx, redisson.Rate{Permits: 5, Interval: time.Second, PerClient: perClient}))
			if got := redissonKeys(t, rdb); !slices.Equal(got, []string{"app:r"}) {
				t.Errorf("keys %q after SetRate", got)
			}
			must(t, int64(5))(l.AvailablePermits(ctx))
			must(t, true)(l.TryAcquire(ctx, 5, 0))
			must(t, true)(l.Delete(ctx))
			must(t, false)(l.Delete(ctx))
			if got := redissonKeys(t, rdb); len(got) != 0 || l.Name() != "r" {
				t.Errorf("keys %q of %q after Delete", got, l.Name())
			}
		})
	}
}

// expectTaken checks the members: a length of 16, as many bytes, and the permits in 4 bytes.
func expectTaken(t *testing.T, rdb *redis.Client, key string, want ...uint32) {
	t.Helper()
	members, err := rdb.ZRangeWithScores(t.Context(), key, 0, -1).Result()
	check(t, err)
	var got []uint32
	for _, m := range members {
		b := []byte(m.Member.(string))
		if len(b) != 21 || b[0] != 16 || time.Since(time.UnixMilli(int64(m.Score))).Abs() > 10*time.Second {
			t.Fatalf("member %q at %v", b, m.Score)
		}
		got = append(got, binary.LittleEndian.Uint32(b[17:]))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("taken permits %v, want %v", got, want)
	}
}

// A limiter with KeepAlive lives that long after its last use, and one with a time to live has it for all of its keys.
func TestRateLives(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx, c := srv.Client(t), t.Context(), newClient(t, srv)
	l := newRate(t, c, redisson.Rate{Permits: 5, Interval: time.Second, KeepAlive: time.Hour})
	expect := func(want time.Duration, n int) {
		t.Helper()
		got := redissonKeys(t, rdb)
		if len(got) != n {
			t.Errorf("keys %q, want %d", got, n)
		}
		for _, k := range got {
			if ttl := rdb.PTTL(ctx, k).Val(); ttl > want || ttl < want-time.Minute {
				t.Errorf("TTL of %q = %v, want %v", k, ttl, want)
			}
		}
	}
	expect(time.Hour, 1)
	rdb.PExpire(ctx, "r", time.Minute)
	check(t, l.Acquire(ctx, 1))
	expect(time.Hour, 3)
	check(t, l.SetRate(ctx, redisson.Rate{Permits: 5, Interval: time.Second}))
	if ttl := rdb.PTTL(ctx, "r").Val(); ttl != -1 {
		t.Errorf("TTL = %v after SetRate without KeepAlive", ttl)
	}
	rdb.PExpire(ctx, "r", 2*time.Hour)
	check(t, l.Acquire(ctx, 1))
	expect(2*time.Hour, 3)
}

func TestRateRefuses(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx, c := srv.Client(t), t.Context(), newClient(t, srv)
	l := c.RateLimiter("r")
	set := func(r redisson.Rate) error { return l.SetRate(ctx, r) }
	for want, err := range map[string]error{
		"rate of 0 permits":      set(redisson.Rate{Interval: time.Second}),
		"rate of -1 permits":     set(redisson.Rate{Permits: -1, Interval: time.Second}),
		"interval 0s":            set(redisson.Rate{Permits: 1}),
		"interval 1µs":           set(redisson.Rate{Permits: 1, Interval: time.Microsecond}),
		"can't be kept for -1s":  set(redisson.Rate{Permits: 1, Interval: time.Second, KeepAlive: -time.Second}),
		"-1 permits are not":     l.Acquire(ctx, -1),
		"-2 permits are not":     l.Release(ctx, -2),
		"and 4294967295":         l.Acquire(ctx, 1<<32),
		"without a key":          c.RateLimiter("").Acquire(ctx, 1),
		context.Canceled.Error(): l.Acquire(canceled(), 1),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if err := l.Acquire(ctx, 1); !errors.Is(err, redisson.ErrNoRate) {
		t.Errorf("Acquire = %v, want ErrNoRate", err)
	}
	if _, err := l.AvailablePermits(ctx); !errors.Is(err, redisson.ErrNoRate) {
		t.Errorf("AvailablePermits = %v, want ErrNoRate", err)
	}
	if got := redissonKeys(t, rdb); len(got) != 0 {
		t.Errorf("keys %q after refusals", got)
	}
	check(t, set(redisson.Rate{Permits: 2, Interval: time.Minute}))
	if err := l.Acquire(ctx, 3); err == nil || !strings.Contains(err.Error(), "more than the rate of 2") {
		t.Errorf("Acquire of more than the rate = %v", err)
	}
	must(t, int64(2))(l.AvailablePermits(ctx))
}

// Permits come back an interval after they were taken, each at its own time.
func TestRateWaits(t *testing.T) {
	t.Parallel()
	srv := redistest.Any(t)
	ctx := t.Context()
	const interval = 500 * time.Millisecond
	l := newRate(t, newClient(t, srv), redisson.Rate{Permits: 2, Interval: interval})
	other := newClient(t, srv).RateLimiter("r")
	start := time.Now()
	for i := range 6 {
		limiter := []*redisson.RateLimiter{l, other}[i%2]
		must(t, true)(limiter.TryAcquire(ctx, 1, time.Minute))
		if d := time.Since(start); d < time.Duration(i/2)*interval {
			t.Errorf("permit %d after %v", i, d)
		}
	}
	if d := ran(start); d > 10*interval {
		t.Errorf("6 permits took %v, want %v", d, 2*interval)
	}
	before := time.Now()
	must(t, false)(l.TryAcquire(ctx, 2, time.Millisecond))
	if d := time.Since(before); d > interval {
		t.Errorf("a hopeless wait took %v", d)
	}
	eventually(t, "all are back", func() bool { n, err := l.AvailablePermits(ctx); return n == 2 && err == nil })
}

func TestRateWaitEnds(t *testing.T) {
	srv := redistest.Any(t)
	c := newClient(t, srv)
	l := newRate(t, c, redisson.Rate{Permits: 1, Interval: time.Hour})
	check(t, l.Acquire(t.Context(), 1))
	gone := errors.New("client hung up")
	ctx, cancel := context.WithCancelCause(t.Context())
	got := make(chan error)
	go func() { got <- l.Acquire(ctx, 1) }()
	cancel(gone)
	if err := <-got; !errors.Is(err, gone) {
		t.Errorf("Acquire = %v, want the cause of the context", err)
	}
	go func() { got <- l.Acquire(t.Context(), 1) }()
	check(t, c.Close())
	if err := <-got; !errors.Is(err, redisson.ErrClosed) {
		t.Errorf("Acquire = %v, want ErrClosed", err)
	}
}

func TestRateAnswerLost(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		srv := redistest.Any(t)
		ctx, p := t.Context(), srv.Front(t)
		l := onClient(t, srv.Client(t, change, func(o *redis.Options) { o.Addr = p.Addr }), redisson.Timeout(3*time.Second)).RateLimiter("r")
		for range 2 { // the first time loads the scripts
			check(t, second(l.Delete(ctx)))
			p.CutReply("evalsha", 2)
			must(t, true)(l.TrySetRate(ctx, redisson.Rate{Permits: 9, Interval: time.Hour}))
			p.CutReply("evalsha", 2)
			must(t, true)(l.TryAcquire(ctx, 2, 10*time.Second))
			must(t, int64(7))(l.AvailablePermits(ctx))
		}
		p.CutReply("evalsha", 1000)
		if err := l.Acquire(ctx, 3); err == nil {
			t.Error("Acquire succeeded without an answer")
		}
		p.CutReply("", 0)
		within(t, 15*time.Second, "the permits are back", func() bool { n, err := l.AvailablePermits(ctx); return n == 7 && err == nil })
	})
}

// Members that Redisson left are understood, whatever the length of their random part.
func TestRateReadsRedisson(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	l := newRate(t, newClient(t, srv), redisson.Rate{Permits: 400, Interval: time.Minute})
	now := time.Now()
	rdb.Set(ctx, "{r}:value", "40", 0)
	rdb.ZAdd(ctx, "{r}:permits",
		redis.Z{Score: float64(now.Add(-2 * time.Minute).UnixMilli()), Member: "\x03abc\x2c\x01\x00\x00"},                         // 300, over
		redis.Z{Score: float64(now.Add(-time.Second).UnixMilli()), Member: "\x10" + strings.Repeat("r", 16) + "\x3c\x00\x00\x00"}, // 60
	)
	must(t, int64(340))(l.AvailablePermits(ctx))
	must(t, true)(l.TryAcquire(ctx, 340, 0))
	must(t, false)(l.TryAcquire(ctx, 1, 0))
	must(t, "0")(rdb.Get(ctx, "{r}:value").Result())
	must(t, int64(2))(rdb.ZCard(ctx, "{r}:permits").Result())
}

// In Java, the greatest long means no limit. What is left stays a number that Redis can count with.
func TestRateWithoutALimit(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	l := newClient(t, srv).RateLimiter("r")
	check(t, rdb.HSet(ctx, "r", "rate", math.MaxInt64, "interval", 60000, "type", 0).Err())
	must(t, redisson.Rate{Permits: 1 << 53, Interval: time.Minute})(l.Rate(ctx))
	must(t, int64(1<<53))(l.AvailablePermits(ctx))
	check(t, l.Acquire(ctx, 3))
	check(t, l.Release(ctx, 1))
	check(t, l.Acquire(ctx, 2))
	must(t, int64(1<<53-5))(rdb.DecrBy(ctx, "{r}:value", 1).Result())
	check(t, rdb.Set(ctx, "{r}:value", math.MaxInt64-2, 0).Err()) // as Java leaves it
	must(t, int64(1<<53-4))(l.AvailablePermits(ctx))
	check(t, l.Acquire(ctx, 1))
	must(t, int64(1<<53-6))(rdb.DecrBy(ctx, "{r}:value", 1).Result())
}

// A rate that is forgotten before its interval is over would let more through than it says. Redisson refuses it, too.
func TestRateIsKeptForItsIntervalAtLeast(t *testing.T) {
	srv := redistest.Any(t)
	ctx, l := t.Context(), newClient(t, srv).RateLimiter("r")
	r := redisson.Rate{Permits: 1, Interval: time.Minute, KeepAlive: time.Minute - time.Millisecond}
	if err := l.SetRate(ctx, r); err == nil {
		t.Error("SetRate was not refused")
	}
	if _, err := l.TrySetRate(ctx, r); err == nil {
		t.Error("TrySetRate was not refused")
	}
	if got := redissonKeys(t, srv.Client(t)); len(got) != 0 {
		t.Errorf("keys %q after refusals", got)
	}
	r.KeepAlive = r.Interval
	check(t, l.SetRate(ctx, r))
}

// The first copy of an acquire arrives when its caller has gone, all that it did was undone, and the client is closed.
func TestLateRateAcquireTakesNothing(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	direct := newRate(t, newClient(t, srv), redisson.Rate{Permits: 5, Interval: time.Hour})
	must(t, true)(direct.TryAcquire(t.Context(), 1, 0))
	p := srv.Front(t)
	c := onClient(t, srv.Client(t, func(o *redis.Options) { o.Addr, o.ReadTimeout = p.Addr, 200*time.Millisecond }))
	late := p.KeepBackSilently(naming(direct.Name()), 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan error, 1)
	go func() { gone <- c.RateLimiter(direct.Name()).Acquire(ctx, 3) }()
	late.Await(t)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire = %v, want canceled", err)
	}
	check(t, c.Close()) // waits for what goes on
	must(t, int64(4))(direct.AvailablePermits(t.Context()))
	late.Deliver(t)
	must(t, int64(4))(direct.AvailablePermits(t.Context()))
}

// However many callers of one client wait, one of them asks.
func TestRateLimiterWaitersStandInLine(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	l := newRate(t, newClient(t, srv), redisson.Rate{Permits: 1, Interval: 50 * time.Millisecond})
	must(t, true)(l.TryAcquire(t.Context(), 1, 0))
	before, _ := commands(t, rdb)
	const waiters = 20
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			if err := l.Acquire(t.Context(), 1); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if after, byName := commands(t, rdb); after-before > 4*waiters {
		t.Errorf("%d commands for %d waiters: %v", after-before, waiters, byName)
	}
}
