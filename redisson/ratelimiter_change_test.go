package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
)

// Rates that change, and permits that are given back.

func TestRateIsRead(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx, l := srv.Client(t), t.Context(), newClient(t, srv).RateLimiter("r")
	for name, err := range map[string]error{
		"Rate":       second(l.Rate(ctx)),
		"Release":    l.Release(ctx, 1),
		"UpdateRate": l.UpdateRate(ctx, redisson.Rate{Permits: 1, Interval: time.Second}, true),
	} {
		if !errors.Is(err, redisson.ErrNoRate) {
			t.Errorf("%s without a rate = %v, want ErrNoRate", name, err)
		}
	}
	if got := redissonKeys(t, rdb); len(got) != 0 {
		t.Errorf("keys %q without a rate", got)
	}
	for _, r := range []redisson.Rate{
		{Permits: 1 << 53, Interval: time.Hour},
		{Permits: 3, Interval: 1500 * time.Millisecond, PerClient: true, KeepAlive: time.Minute},
	} {
		check(t, l.SetRate(ctx, r))
		must(t, r)(l.Rate(ctx))
	}
	rdb.HDel(ctx, "r", "keepAliveTime") // as Redisson before 3.38 leaves it
	must(t, redisson.Rate{Permits: 3, Interval: 1500 * time.Millisecond, PerClient: true})(l.Rate(ctx))
}

// What is given back is there at once, and not once more when its interval is over.
func TestRateRelease(t *testing.T) {
	for _, perClient := range []bool{false, true} {
		t.Run(fmt.Sprintf("perClient=%v", perClient), func(t *testing.T) {
			srv := redistest.Any(t)
			rdb, ctx, c := srv.Client(t), t.Context(), newClient(t, srv)
			l := newRate(t, c, redisson.Rate{Permits: 70000, Interval: time.Minute, PerClient: perClient})
			value, taken := "{r}:value", "{r}:permits"
			if perClient {
				value, taken = value+":"+c.ID(), taken+":"+c.ID()
			}
			check(t, l.Release(ctx, 5)) // nothing was taken
			must(t, "70000")(rdb.Get(ctx, value).Result())
			for _, n := range []int64{66051, 2, 7} {
				check(t, l.Acquire(ctx, n))
				<-time.After(2 * time.Millisecond) // for a time of its own
			}
			check(t, l.Release(ctx, 50))
			must(t, "3990")(rdb.Get(ctx, value).Result())
			expectTaken(t, rdb, taken, 2, 7, 66001)
			check(t, l.Release(ctx, 66002))
			expectTaken(t, rdb, taken, 1, 7)
			must(t, int64(69992))(l.AvailablePermits(ctx))
			check(t, l.Release(ctx, 1<<53))
			must(t, int64(70000))(l.AvailablePermits(ctx))
			expectTaken(t, rdb, taken)
		})
	}
}

func TestReleasedPermitsComeBackOnce(t *testing.T) {
	srv := redistest.Any(t)
	ctx := t.Context()
	const interval = 400 * time.Millisecond
	l := newRate(t, newClient(t, srv), redisson.Rate{Permits: 2, Interval: interval})
	check(t, l.Acquire(ctx, 2))
	<-time.After(interval / 2)
	check(t, l.Release(ctx, 2))
	check(t, l.Acquire(ctx, 2))
	again := time.Now()
	check(t, l.Acquire(ctx, 1))
	if d := time.Since(again); d < interval-20*time.Millisecond {
		t.Errorf("a third permit within %v, want %v", d, interval)
	}
}

// A large release takes many members away, in steps.
func TestRateReleaseOfManyMembers(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	l := newRate(t, newClient(t, srv), redisson.Rate{Permits: 3000, Interval: time.Hour})
	for range 1205 {
		must(t, true)(l.TryAcquire(ctx, 2, 0))
	}
	check(t, l.Release(ctx, 2401))
	must(t, int64(2991))(l.AvailablePermits(ctx))
	expectTaken(t, rdb, "{r}:permits", 1, 2, 2, 2, 2)
}

// Release is a use like the others: what is to be kept alive lives on.
func TestRateReleaseKeepsAlive(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	l := newRate(t, newClient(t, srv), redisson.Rate{Permits: 5, Interval: time.Second, KeepAlive: time.Hour})
	check(t, l.Acquire(ctx, 2))
	for _, k := range redissonKeys(t, rdb) {
		rdb.PExpire(ctx, k, time.Minute)
	}
	check(t, l.Release(ctx, 1))
	for _, k := range redissonKeys(t, rdb) {
		if ttl := rdb.PTTL(ctx, k).Val(); ttl < 59*time.Minute {
			t.Errorf("TTL of %q = %v, want an hour", k, ttl)
		}
	}
}

func TestUpdateRate(t *testing.T) {
	for _, perClient := range []bool{false, true} {
		t.Run(fmt.Sprintf("perClient=%v", perClient), func(t *testing.T) {
			srv := redistest.Any(t)
			rdb, ctx := srv.Client(t), t.Context()
			rate := redisson.Rate{Permits: 5, Interval: time.Minute, PerClient: perClient, KeepAlive: time.Hour}
			l := newRate(t, newClient(t, srv), rate)
			check(t, l.Acquire(ctx, 3))
			update := func(permits int64, keepState bool, want int64) {
				t.Helper()
				rate.Permits = permits
				check(t, l.UpdateRate(ctx, rate, keepState))
				must(t, rate)(l.Rate(ctx))
				must(t, want)(l.AvailablePermits(ctx))
			}
			update(10, true, 7)
			update(2, true, 0)
			must(t, false)(l.TryAcquire(ctx, 1, 0))
			update(4, true, 1)
			update(4, false, 4)
			check(t, l.Acquire(ctx, 4))
			rate.KeepAlive = 0
			update(9, true, 5)
			for _, k := range redissonKeys(t, rdb) {
				if ttl := rdb.PTTL(ctx, k).Val(); ttl != -1 {
					t.Errorf("TTL of %q = %v after KeepAlive has gone", k, ttl)
				}
			}
			rdb.PExpire(ctx, "r", time.Minute)
			update(8, true, 4)
			for _, k := range redissonKeys(t, rdb) {
				if ttl := rdb.PTTL(ctx, k).Val(); ttl < 50*time.Second || ttl > time.Minute {
					t.Errorf("TTL of %q = %v, want what somebody set", k, ttl)
				}
			}
			rate.PerClient = !rate.PerClient
			update(6, true, 6)
			if got := redissonKeys(t, rdb); !slices.Equal(got, []string{"r"}) {
				t.Errorf("keys %q when PerClient has changed", got)
			}
		})
	}
}

// The new rate is kept at once: what was taken under a higher one does not come back permit by permit. Redis has given a permit
// after the question was sent and before its answer came, so a slow machine makes times longer and never shorter.
func TestLowerRateHolds(t *testing.T) {
	srv := redistest.Any(t)
	ctx := t.Context()
	const interval, before, after = 600 * time.Millisecond, 6, 5
	l := newRate(t, newClient(t, srv), redisson.Rate{Permits: before, Interval: interval})
	var asked, answered []time.Time
	take := func() bool {
		at := time.Now()
		ok, err := l.TryAcquire(ctx, 1, 0)
		check(t, err)
		if ok {
			asked, answered = append(asked, at), append(answered, time.Now())
		}
		return ok
	}
	for range before {
		must(t, true)(take(), nil)
		<-time.After(interval / 12)
	}
	check(t, l.UpdateRate(ctx, redisson.Rate{Permits: 2, Interval: interval}, true))
	for range after {
		eventually(t, "a permit is free", take)
	}
	for i := before; i < len(asked); i++ {
		if d := answered[i].Sub(asked[i-2]); d < interval-5*time.Millisecond { // Redis counts in milliseconds
			t.Errorf("permits %d to %d within %v, want two in %v", i-2, i, d, interval)
		}
	}
}

// An update that is shorter in time forgets what is older.
func TestUpdateRateShortensTheInterval(t *testing.T) {
	srv := redistest.Any(t)
	ctx := t.Context()
	l := newRate(t, newClient(t, srv), redisson.Rate{Permits: 3, Interval: time.Hour})
	check(t, l.Acquire(ctx, 2))
	<-time.After(20 * time.Millisecond)
	check(t, l.Acquire(ctx, 1))
	check(t, l.UpdateRate(ctx, redisson.Rate{Permits: 3, Interval: 10 * time.Millisecond}, true))
	eventually(t, "all are there", func() bool { n, err := l.AvailablePermits(ctx); return n == 3 && err == nil })
}

// A copy of an acquire arrives when its interval is over, and with it all that Redis knew of the request.
func TestLateRateAcquireAfterItsInterval(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx := t.Context()
	direct := newRate(t, newClient(t, srv), redisson.Rate{Permits: 5, Interval: 500 * time.Millisecond})
	must(t, true)(direct.TryAcquire(ctx, 1, 0))
	c, p := behind(t, srv)
	late := p.KeepBack(naming(direct.Name()), 0)
	check(t, c.RateLimiter(direct.Name()).Acquire(ctx, 3))
	late.Await(t)
	check(t, c.Close()) // waits for what goes on
	eventually(t, "the permits are back", func() bool { n, err := direct.AvailablePermits(ctx); return n == 5 && err == nil })
	check(t, direct.Acquire(ctx, 1)) // tidies up
	late.Deliver(t)
	must(t, int64(4))(direct.AvailablePermits(ctx))
}

// What a caller took who has gone comes back by itself after the interval, so the undo that arrives later gives nothing back.
func TestLateRateCancelGivesNothingTwice(t *testing.T) {
	t.Parallel()
	const interval = 2 * time.Second
	srv := redistest.Start(t)
	direct := newRate(t, newClient(t, srv), redisson.Rate{Permits: 3, Interval: interval})
	c, p := behind(t, srv)
	answer := p.KeepBackReply(naming(direct.Name()), 1) // behind the one that says that the script is not known
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan error, 1)
	go func() { gone <- c.RateLimiter(direct.Name()).Acquire(ctx, 2) }()
	answer.Await(t)
	taken := time.Now()
	p.Freeze()
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire = %v, want canceled", err)
	}
	<-time.After(interval * 7 / 10)
	must(t, true)(direct.TryAcquire(t.Context(), 1, 0))
	<-time.After(time.Until(taken.Add(interval * 11 / 10)))
	p.Thaw()
	check(t, c.Close()) // waits for the undo
	must(t, int64(2))(direct.AvailablePermits(t.Context()))
}

// Waiters are not notified that permits were given back, but they look by themselves.
func TestRateReleaseServesWaiters(t *testing.T) {
	srv := redistest.Any(t)
	ctx := t.Context()
	l := newRate(t, newClient(t, srv, redisson.WatchdogTimeout(600*time.Millisecond)), redisson.Rate{Permits: 1, Interval: time.Hour})
	check(t, l.Acquire(ctx, 1))
	got := make(chan error, 1)
	go func() { got <- l.Acquire(context.WithoutCancel(ctx), 1) }()
	check(t, l.Release(ctx, 1))
	expectDone(t, got)
	must(t, int64(0))(l.AvailablePermits(ctx))
}
