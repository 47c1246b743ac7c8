package redisson_test

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// newPermits returns an expirable semaphore with permits.
func newPermits(tb testing.TB, c *redisson.Client, permits int) *redisson.PermitExpirableSemaphore {
	tb.Helper()
	s := c.PermitExpirableSemaphore("s")
	must(tb, true)(s.TrySetPermits(tb.Context(), permits))
	return s
}

func mustPermit(tb testing.TB, s *redisson.PermitExpirableSemaphore, lease time.Duration) string {
	tb.Helper()
	id, err := s.Acquire(context.Background(), lease)
	check(tb, err)
	return id
}

// never is what Redisson has for a permit without end.
const never = 922337203685477

func TestPermitLayout(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	s := newClient(t, srv, redisson.NameMapper(func(n string) string { return "app:" + n })).PermitExpirableSemaphore("s")
	messages := listen(t, rdb, "redisson_sc:{app:s}")
	must(t, true)(s.TrySetPermits(ctx, 2))
	must(t, false)(s.TrySetPermits(ctx, 9))
	expectMessages(t, messages, "2")

	now := time.Now()
	leased, endless := mustPermit(t, s, time.Minute), mustPermit(t, s, 0)
	if got := redissonKeys(t, rdb); !slices.Equal(got, []string{"app:s", "{app:s}:timeout"}) || s.Name() != "s" {
		t.Errorf("keys %q of the semaphore %q", got, s.Name())
	}
	must(t, "0")(rdb.Get(ctx, "app:s").Result())
	taken, err := rdb.ZRangeWithScores(ctx, "{app:s}:timeout", 0, -1).Result()
	check(t, err)
	if len(taken) != 2 || hex.EncodeToString([]byte(taken[0].Member.(string))) != leased || hex.EncodeToString([]byte(taken[1].Member.(string))) != endless {
		t.Fatalf("taken permits %v, want the bytes of %s and %s", taken, leased, endless)
	}
	if at := time.UnixMilli(int64(taken[0].Score)).Sub(now); at < 59*time.Second || at > 62*time.Second || taken[1].Score != never {
		t.Errorf("scores %v (in %v) and %v, want in a minute and %d", taken[0].Score, at, taken[1].Score, never)
	}
	if _, ok, err := s.TryAcquire(ctx, 0, time.Second); ok || err != nil {
		t.Errorf("a third permit: %v, %v", ok, err)
	}
	expectMessages(t, messages)
	check(t, s.Release(ctx, strings.ToUpper(leased)))
	expectMessages(t, messages, "1")
	if err := s.Release(ctx, leased); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("second Release = %v, want ErrNotHeld", err)
	}
	check(t, s.AddPermits(ctx, 3))
	check(t, s.AddPermits(ctx, -1))
	check(t, s.SetPermits(ctx, 4))
	check(t, s.SetPermits(ctx, 7))
	expectMessages(t, messages, "3", "7")
	must(t, 6)(s.AvailablePermits(ctx))
	must(t, 1)(s.AcquiredPermits(ctx))
	check(t, s.SetPermits(ctx, 0))
	must(t, -1)(s.AvailablePermits(ctx))
	must(t, 0)(s.Permits(ctx))
	expectMessages(t, messages, "0")
	check(t, s.Release(ctx, endless))
	expectMessages(t, messages, "0")
	if got := redissonKeys(t, rdb); !slices.Equal(got, []string{"app:s"}) {
		t.Errorf("keys %q after the last release", got)
	}
}

func TestPermitLeaseTimes(t *testing.T) {
	srv := redistest.Any(t)
	ctx := t.Context()
	s := newPermits(t, newClient(t, srv), 2)
	leased, endless := mustPermit(t, s, time.Minute), mustPermit(t, s, 0)
	expect := func(id string, from, to time.Duration) {
		t.Helper()
		if d, err := s.LeaseTime(ctx, id); err != nil || d < from || d > to {
			t.Errorf("LeaseTime = %v, %v, want between %v and %v", d, err, from, to)
		}
	}
	expect(leased, 50*time.Second, time.Minute)
	expect(endless, -time.Millisecond, -1)
	check(t, s.UpdateLease(ctx, leased, time.Hour))
	expect(leased, 59*time.Minute, time.Hour)
	check(t, s.UpdateLease(ctx, leased, 0))
	expect(leased, -time.Millisecond, -1)
	check(t, s.UpdateLease(ctx, leased, 20*time.Millisecond))
	eventually(t, "the lease is over", func() bool { n, err := s.AvailablePermits(ctx); return n == 1 && err == nil })
	for name, err := range map[string]error{
		"Release":     s.Release(ctx, leased),
		"UpdateLease": s.UpdateLease(ctx, leased, time.Second),
		"LeaseTime":   func() error { _, err := s.LeaseTime(ctx, leased); return err }(),
	} {
		if !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("%s after the lease = %v, want ErrNotHeld", name, err)
		}
	}
	must(t, 2)(s.Permits(ctx))
	must(t, 1)(s.AcquiredPermits(ctx))
}

// The semaphore's own time to live is also that of its taken permits.
func TestPermitsOfExpiringSemaphore(t *testing.T) {
	srv := redistest.Any(t)
	rdb := srv.Client(t)
	s := newPermits(t, newClient(t, srv), 2)
	rdb.PExpire(t.Context(), "s", time.Minute)
	mustPermit(t, s, time.Hour)
	if ttl := rdb.PTTL(t.Context(), "{s}:timeout").Val(); ttl < 50*time.Second || ttl > time.Minute {
		t.Errorf("TTL of the taken permits = %v, want a minute", ttl)
	}
}

// When the time to live of the semaphore ends, that of its taken permits does: they would be neither free nor taken.
func TestPermitsOutliveATimeToLiveThatHasEnded(t *testing.T) {
	t.Parallel()
	srv := redistest.Any(t)
	rdb, ctx, c := srv.Client(t), t.Context(), newClient(t, srv)
	for name, end := range map[string]func(s *redisson.PermitExpirableSemaphore) error{
		"AddPermits": func(s *redisson.PermitExpirableSemaphore) error { return s.AddPermits(ctx, 1) },
		"Acquire after PERSIST": func(s *redisson.PermitExpirableSemaphore) error {
			_, err := s.Acquire(ctx, 300*time.Millisecond)
			return errors.Join(rdb.Persist(ctx, s.Name()).Err(), err, second(s.Acquire(ctx, 300*time.Millisecond)))
		},
		"Acquire of kind Permit after PERSIST": func(s *redisson.PermitExpirableSemaphore) error {
			check(t, rdb.Persist(ctx, s.Name()).Err())
			return acquire(ctx, t, c, lock.Request{Key: s.Name(), Kind: lock.Permit, Limit: 3}).Release(ctx)
		},
	} {
		s := c.PermitExpirableSemaphore(name)
		must(t, true)(s.TrySetPermits(ctx, 3))
		rdb.PExpire(ctx, name, 500*time.Millisecond)
		id := mustPermit(t, s, 0)
		check(t, end(s))
		want, err := s.Permits(ctx)
		check(t, err)
		<-time.After(600 * time.Millisecond)
		must(t, want)(s.Permits(ctx))
		if err := s.Release(ctx, id); err != nil {
			t.Errorf("Release after %s = %v", name, err)
		}
		must(t, want)(s.AvailablePermits(ctx))
	}
}

func TestPermitsRefuse(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx, c := srv.Client(t), t.Context(), newClient(t, srv)
	s := c.PermitExpirableSemaphore("s")
	id := func(_ string, err error) error { return err }
	for want, err := range map[string]error{
		"lease 1µs of a permit is under 1ms": id(s.Acquire(ctx, time.Microsecond)),
		"lease -1s of a permit is under 1ms": s.UpdateLease(ctx, "00", -time.Second),
		"-1 permits are not between 0":       s.SetPermits(ctx, -1),
		"-2 permits are not between 0":       func() error { _, err := s.TrySetPermits(ctx, -2); return err }(),
		"not hexadecimal":                    s.Release(ctx, "xyz"),
		"of a permit is not hex":             s.Release(ctx, ""),
		"without a key":                      id(c.PermitExpirableSemaphore("").Acquire(ctx, time.Second)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if got := keys(t, rdb); len(got) != 0 {
		t.Errorf("keys %q after refusals", got)
	}
}

func permitAsync(s *redisson.PermitExpirableSemaphore) <-chan error {
	got := make(chan error, 1)
	go func() {
		_, err := s.Acquire(context.Background(), time.Minute)
		got <- err
	}()
	return got
}

func TestPermitWakesAnotherClient(t *testing.T) {
	srv := redistest.Any(t)
	rdb := srv.Client(t)
	s := newPermits(t, newClient(t, srv), 1)
	id := mustPermit(t, s, 0)
	got := permitAsync(newClient(t, srv).PermitExpirableSemaphore("s"))
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, rdb)) == 1 })
	check(t, s.Release(t.Context(), id))
	expectDone(t, got)
	eventually(t, "nothing is subscribed", func() bool { return len(subscriptions(t, rdb)) == 0 })
}

// Nothing announces the end of a lease, but the waiters know when it is.
func TestPermitWaiterFollowsTheLease(t *testing.T) {
	srv := redistest.Any(t)
	s := newPermits(t, newClient(t, srv), 1)
	start := time.Now()
	late := mustPermit(t, s, 400*time.Millisecond)
	expectDone(t, permitAsync(newClient(t, srv).PermitExpirableSemaphore("s")))
	if d := time.Since(start); d < 400*time.Millisecond || d > 2*time.Second {
		t.Errorf("got the permit after %v, want 400ms", d)
	}
	if err := s.Release(t.Context(), late); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("late Release = %v, want ErrNotHeld", err)
	}
	must(t, 1)(s.AcquiredPermits(t.Context()))
	must(t, 0)(s.AvailablePermits(t.Context()))
}

func TestPermitWaitEnds(t *testing.T) {
	srv := redistest.Any(t)
	rdb := srv.Client(t)
	s := newPermits(t, newClient(t, srv), 0)
	if _, ok, err := s.TryAcquire(t.Context(), 50*time.Millisecond, 0); ok || err != nil {
		t.Errorf("TryAcquire = %v, %v", ok, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() {
		_, err := s.Acquire(ctx, 0)
		got <- err
	}()
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, rdb)) == 1 })
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire = %v, want canceled", err)
	}
	eventually(t, "nothing is subscribed", func() bool { return len(subscriptions(t, rdb)) == 0 })
}

func TestPermitAnswerLost(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		c, direct, p := brittle(t, change, time.Second)
		s, ctx := newPermits(t, direct, 3), t.Context()
		behind := c.PermitExpirableSemaphore("s")
		p.CutReply("evalsha", 2)
		id := mustPermit(t, behind, time.Minute)
		must(t, 1)(s.AcquiredPermits(ctx))
		p.CutReply("evalsha", 2)
		check(t, behind.Release(ctx, id))
		must(t, 3)(s.AvailablePermits(ctx))
		p.CutReply("evalsha", 1000)
		if _, err := behind.Acquire(ctx, 0); err == nil {
			t.Error("Acquire succeeded without an answer")
		}
		p.CutReply("", 0)
		within(t, 5*time.Second, "the permit is back", func() bool { n, _ := s.AvailablePermits(ctx); return n == 3 })
		must(t, 3)(s.Permits(ctx))
	})
}

// A waiter's try in doubt is undone, and a copy of what undoes it arrives when a later try of the same acquire has taken the permit. The
// copy of the try that was in doubt comes late, too.
func TestLateUndoTakesNoPermitAway(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, rdb := t.Context(), srv.Client(t)
	direct := newPermits(t, newClient(t, srv), 1)
	id := mustPermit(t, direct, time.Hour)
	p, down, refused := srv.Front(t), atomic.Bool{}, atomic.Int32{}
	c := onClient(t, srv.Client(t, func(o *redis.Options) {
		o.Addr, o.PoolSize, o.DialerRetries = p.Addr, 1, 1
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if down.Load() {
				refused.Add(1)
				return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	}))
	got := permitAsync(c.PermitExpirableSemaphore(direct.Name()))
	eventually(t, "it waits", func() bool { return len(subscriptions(t, rdb)) == 1 })
	down.Store(true) // so nobody answers the repetition of the try
	try, undo := p.KeepBack(naming(direct.Name()), 0), p.KeepBack(redisson.DigestOfPermitsRelease, 0)
	eventually(t, "it tries again", func() bool {
		check(t, rdb.Publish(ctx, subscriptions(t, rdb)[0], "1").Err())
		return try.Taken()
	})
	eventually(t, "it is refused", func() bool { return refused.Load() > 0 })
	down.Store(false)
	undo.Await(t)
	eventually(t, "the try is undone", func() bool { return rdb.ScriptExists(ctx, redisson.DigestOfPermitsRelease).Val()[0] })
	check(t, direct.Release(ctx, id))
	expectDone(t, got)
	try.Deliver(t)
	undo.Deliver(t)
	must(t, 1)(direct.AcquiredPermits(ctx))
	must(t, 0)(direct.AvailablePermits(ctx))
}
