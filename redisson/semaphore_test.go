package redisson_test

import (
	"context"
	"errors"
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

// redissonKeys are the keys that Redisson knows too: all but receipts.
func redissonKeys(tb testing.TB, rdb *redis.Client) []string {
	tb.Helper()
	all := slices.DeleteFunc(keys(tb, rdb), func(k string) bool { return strings.HasPrefix(k, "latchkey_receipt:") })
	slices.Sort(all)
	return all
}

// listen returns a function that returns the payloads that came on a channel since.
func listen(t *testing.T, rdb *redis.Client, channel string) func() []string {
	t.Helper()
	ps := rdb.Subscribe(t.Context(), channel)
	t.Cleanup(func() { _ = ps.Close() })
	if _, err := ps.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	return func() []string {
		t.Helper()
		const end = "end of the test's messages"
		if err := rdb.Publish(t.Context(), channel, end).Err(); err != nil {
			t.Fatal(err)
		}
		var payloads []string
		for {
			m, err := ps.ReceiveMessage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if m.Payload == end {
				return payloads
			}
			payloads = append(payloads, m.Payload)
		}
	}
}

func expectMessages(t *testing.T, got func() []string, want ...string) {
	t.Helper()
	if payloads := got(); !slices.Equal(payloads, want) {
		t.Errorf("messages %q, want %q", payloads, want)
	}
}

// must fails the test unless the operation was successful and answered want.
func must[T comparable](tb testing.TB, want T) func(got T, err error) {
	return func(got T, err error) {
		tb.Helper()
		if err != nil || got != want {
			tb.Fatalf("got %v, %v, want %v", got, err, want)
		}
	}
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// newSemaphore returns a semaphore with permits.
func newSemaphore(tb testing.TB, c *redisson.Client, permits int) *redisson.Semaphore {
	tb.Helper()
	s := c.Semaphore("s")
	eventually(tb, "the permits are set", func() bool { // a machine that stands still may leave the first question in doubt
		_, err := s.TrySetPermits(tb.Context(), permits)
		return err == nil
	})
	return s
}

func TestSemaphoreLayout(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	sem := newClient(t, srv, redisson.NameMapper(func(n string) string { return "app:" + n })).Semaphore("s")
	messages := listen(t, rdb, "redisson_sc:{app:s}")
	value := func(want string) {
		t.Helper()
		must(t, want)(rdb.Get(ctx, "app:s").Result())
	}
	must(t, false)(sem.TryAcquire(ctx, 1, 0))
	must(t, 0)(sem.AvailablePermits(ctx))
	must(t, 0)(sem.DrainPermits(ctx))
	must(t, false)(sem.ReleaseIfExists(ctx, 1))
	if got := redissonKeys(t, rdb); len(got) != 0 {
		t.Errorf("keys %q for a semaphore that does not exist", got)
	}
	must(t, true)(sem.TrySetPermits(ctx, 3))
	must(t, false)(sem.TrySetPermits(ctx, 9))
	value("3")
	must(t, true)(sem.TryAcquire(ctx, 2, 0))
	must(t, false)(sem.TryAcquire(ctx, 2, 0))
	value("1")
	expectMessages(t, messages, "3")
	check(t, sem.Release(ctx, 2))
	must(t, true)(sem.ReleaseIfExists(ctx, 1))
	value("4")
	check(t, sem.AddPermits(ctx, -6))
	value("-2")
	check(t, sem.AddPermits(ctx, 12))
	expectMessages(t, messages, "3", "4", "0", "10")
	must(t, 10)(sem.DrainPermits(ctx))
	value("0")
	expectMessages(t, messages)
	if got := redissonKeys(t, rdb); !slices.Equal(got, []string{"app:s"}) || sem.Name() != "s" {
		t.Errorf("keys %q of the semaphore %q", got, sem.Name())
	}
	if n := len(keys(t, rdb)); n != 2 {
		t.Errorf("%d keys, want the semaphore and one receipt", n)
	}
	rdb.Del(ctx, "app:s")
	must(t, true)(sem.TrySetPermitsFor(ctx, 1, time.Minute))
	if ttl := rdb.PTTL(ctx, "app:s").Val(); ttl < 50*time.Second || ttl > time.Minute {
		t.Errorf("TTL = %v, want a minute", ttl)
	}
	for _, k := range keys(t, rdb) {
		if ttl := rdb.PTTL(ctx, k).Val(); ttl <= 0 || ttl > 2*time.Minute {
			t.Errorf("TTL of %q = %v", k, ttl)
		}
	}
}

func TestSemaphoreRefuses(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx, c := srv.Client(t), t.Context(), newClient(t, srv)
	s := newSemaphore(t, c, 2)
	before := keys(t, rdb)
	for name, err := range map[string]error{
		"-2 permits": s.Acquire(ctx, -2),
		"-1 permits": func() error {
			_, err := s.TryAcquire(ctx, -1, time.Second)
			return err
		}(),
		"-3 permits":             s.Release(ctx, -3),
		"between 0":              func() error { _, err := s.TrySetPermits(ctx, -1); return err }(),
		"and 2147483647":         s.AddPermits(ctx, math.MaxInt32+1),
		"want at least 1ms":      func() error { _, err := s.TrySetPermitsFor(ctx, 1, time.Microsecond); return err }(),
		"without a key":          c.Semaphore("").Acquire(ctx, 1),
		context.Canceled.Error(): s.Acquire(canceled(), 1),
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one with %q", err, name)
		}
	}
	must(t, 2)(s.AvailablePermits(ctx))
	if got := keys(t, rdb); len(got) != len(before) {
		t.Errorf("keys %q after refusals", got)
	}
}

func TestSynchronizersWrongType(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx, c := srv.Client(t), t.Context(), newClient(t, srv)
	check(t, rdb.RPush(ctx, "k", "x").Err())
	check(t, rdb.Set(ctx, "junk", "x", 0).Err())
	second := func(_ any, err error) error { return err }
	_, _, permitErr := c.PermitExpirableSemaphore("k").TryAcquire(ctx, 0, time.Second)
	for name, err := range map[string]error{
		"TryAcquire":           second(c.Semaphore("k").TryAcquire(ctx, 1, 0)),
		"Acquire":              c.Semaphore("k").Acquire(ctx, 1),
		"Release":              c.Semaphore("k").Release(ctx, 1),
		"AddPermits":           c.Semaphore("k").AddPermits(ctx, 1),
		"DrainPermits":         second(c.Semaphore("k").DrainPermits(ctx)),
		"AvailablePermits":     second(c.Semaphore("k").AvailablePermits(ctx)),
		"permit":               permitErr,
		"Permits":              second(c.PermitExpirableSemaphore("k").Permits(ctx)),
		"SetPermits":           c.PermitExpirableSemaphore("k").SetPermits(ctx, 1),
		"permit's Release":     c.PermitExpirableSemaphore("k").Release(ctx, "00"),
		"permit's UpdateLease": c.PermitExpirableSemaphore("k").UpdateLease(ctx, "00", 0),
		"AcquireN":             second(c.PermitExpirableSemaphore("k").AcquireN(ctx, 2, 0)),
		"permits' Release":     c.PermitExpirableSemaphore("k").Release(ctx, "00", "01"),
		"CountDown":            c.CountDownLatch("k").CountDown(ctx),
		"Await":                c.CountDownLatch("k").Await(ctx),
		"Count":                second(c.CountDownLatch("k").Count(ctx)),
		"rate TryAcquire":      second(c.RateLimiter("k").TryAcquire(ctx, 1, 0)),
		"rate TrySetRate":      second(c.RateLimiter("k").TrySetRate(ctx, redisson.Rate{Permits: 1, Interval: time.Second})),
		"rate SetRate":         c.RateLimiter("k").SetRate(ctx, redisson.Rate{Permits: 1, Interval: time.Second}),
		"rate Rate":            second(c.RateLimiter("k").Rate(ctx)),
		"rate UpdateRate":      c.RateLimiter("k").UpdateRate(ctx, redisson.Rate{Permits: 1, Interval: time.Second}, true),
		"rate Release":         c.RateLimiter("k").Release(ctx, 1),
		"junk TryAcquire":      second(c.Semaphore("junk").TryAcquire(ctx, 1, 0)),
		"junk Release":         c.Semaphore("junk").Release(ctx, 1),
		"junk CountDown":       c.CountDownLatch("junk").CountDown(ctx),
		"junk permits Permits": second(c.PermitExpirableSemaphore("junk").Permits(ctx)),
	} {
		if err == nil || errors.Is(err, redisson.ErrPending) ||
			!strings.HasPrefix(name, "junk") && !strings.Contains(err.Error(), "WRONGTYPE") ||
			strings.HasPrefix(name, "junk") && !strings.Contains(err.Error(), "not a number") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := keys(t, rdb); len(got) != 2 || rdb.LLen(ctx, "k").Val() != 1 || rdb.Get(ctx, "junk").Val() != "x" {
		t.Errorf("keys %q", got)
	}
}

// acquireAsync waits for permits in a goroutine.
func acquireAsync(s *redisson.Semaphore, n int) <-chan error {
	got := make(chan error, 1)
	go func() { got <- s.Acquire(context.Background(), n) }()
	return got
}

func expectDone(t *testing.T, got <-chan error) {
	t.Helper()
	select {
	case err := <-got:
		check(t, err)
	case <-time.After(waits / 2):
		t.Fatalf("the waiter was not served within %v", waits/2)
	}
}

func TestSemaphoreWakesAnotherClient(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	giver := newSemaphore(t, newClient(t, srv), 0)
	got := acquireAsync(newClient(t, srv).Semaphore("s"), 2)
	eventually(t, "waiter subscribes", func() bool { return slices.Contains(subscriptions(t, rdb), "redisson_sc:{s}") })
	check(t, giver.Release(ctx, 1))
	select {
	case err := <-got:
		t.Fatalf("two permits out of one: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	check(t, giver.Release(ctx, 1))
	expectDone(t, got)
	must(t, 0)(giver.AvailablePermits(ctx))
	eventually(t, "nothing is subscribed", func() bool { return len(subscriptions(t, rdb)) == 0 })
}

// One message about many permits serves as many waiters, in each of the clients.
func TestSemaphoreServesManyWaiters(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	giver := newSemaphore(t, newClient(t, srv), 0)
	const each = 20
	var served sync.WaitGroup
	for range 2 {
		s := newClient(t, srv).Semaphore("s")
		for range each {
			served.Go(func() {
				if err := s.Acquire(ctx, 1); err != nil {
					t.Error(err)
				}
			})
		}
	}
	eventually(t, "both subscribe", func() bool { return rdb.PubSubNumSub(ctx, "redisson_sc:{s}").Val()["redisson_sc:{s}"] == 2 })
	start := time.Now()
	check(t, giver.Release(ctx, 2*each))
	served.Wait()
	if d := ran(start); d > waits/2 {
		t.Errorf("served after %v", d)
	}
	must(t, 0)(giver.AvailablePermits(ctx))
}

// Permits come without a message: somebody set the number by hand, or the message was lost.
func TestSemaphoreLostMessage(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	s := newSemaphore(t, newClient(t, srv, redisson.WatchdogTimeout(900*time.Millisecond)), 0)
	got := acquireAsync(s, 1)
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, rdb)) == 1 })
	check(t, rdb.Set(ctx, "s", 1, 0).Err())
	expectDone(t, got)
}

func TestSemaphoreWaitEnds(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	c := newClient(t, srv)
	s := newSemaphore(t, c, 1)
	start := time.Now()
	must(t, false)(s.TryAcquire(ctx, 2, 100*time.Millisecond))
	if d := time.Since(start); d < 100*time.Millisecond || d > 2*time.Second {
		t.Errorf("waited %v, want 100ms", d)
	}
	gone := errors.New("client hung up")
	canceling, cancel := context.WithCancelCause(ctx)
	got := make(chan error)
	go func() { got <- s.Acquire(canceling, 2) }()
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, rdb)) == 1 })
	cancel(gone)
	if err := <-got; !errors.Is(err, gone) {
		t.Errorf("Acquire = %v, want the cause of the context", err)
	}
	eventually(t, "nothing is subscribed", func() bool { return len(subscriptions(t, rdb)) == 0 })
	go func() { got <- s.Acquire(ctx, 2) }()
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, rdb)) == 1 })
	check(t, c.Close())
	if err := <-got; !errors.Is(err, redisson.ErrClosed) {
		t.Errorf("Acquire = %v, want ErrClosed", err)
	}
	must(t, 1)(s.AvailablePermits(ctx))
	check(t, s.Release(ctx, 1)) // works after Close
	must(t, 2)(s.AvailablePermits(ctx))
}

// Many goroutines of two clients take and give back permits. There are never too many, and none is lost.
func TestSemaphoreLimits(t *testing.T) {
	srv := redistest.Any(t)
	ctx := t.Context()
	const permits = 5
	s := newSemaphore(t, newClient(t, srv), permits)
	inside := make(chan struct{}, permits) // a buffer that must never be full
	var all sync.WaitGroup
	for range 2 {
		s := newClient(t, srv).Semaphore("s")
		for i := range 40 {
			all.Go(func() {
				n := i%2 + 1
				for range 10 {
					if err := s.Acquire(ctx, n); err != nil {
						t.Error(err)
						return
					}
					for range n {
						select {
						case inside <- struct{}{}:
						default:
							t.Error("more permits than there are")
						}
					}
					for range n {
						<-inside
					}
					if err := s.Release(ctx, n); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	must(t, permits)(s.AvailablePermits(ctx))
}

// Without contention, each object asks Redis once an operation.
func TestSynchronizerCommands(t *testing.T) {
	srv := redistest.Start(t)
	rdb, ctx, c := srv.Client(t), t.Context(), newClient(t, srv)
	sem, permit, latch, rate := c.Semaphore("s"), c.PermitExpirableSemaphore("p"), c.CountDownLatch("l"), c.RateLimiter("r")
	round := map[string]func(){
		"Semaphore": func() { check(t, sem.Acquire(ctx, 1)); check(t, sem.Release(ctx, 1)) },
		"PermitExpirableSemaphore": func() {
			id, err := permit.Acquire(ctx, time.Minute)
			check(t, err)
			check(t, permit.Release(ctx, id))
		},
		"CountDownLatch": func() { must(t, true)(latch.TrySetCount(ctx, 1)); check(t, latch.CountDown(ctx)) },
		"RateLimiter":    func() { check(t, rate.Acquire(ctx, 1)); check(t, rate.Acquire(ctx, 1)) },
	}
	must(t, true)(sem.TrySetPermits(ctx, 1))
	must(t, true)(permit.TrySetPermits(ctx, 1))
	must(t, true)(rate.TrySetRate(ctx, redisson.Rate{Permits: 1000, Interval: time.Hour}))
	for name, do := range round {
		do() // loads the scripts
		before, _ := commands(t, rdb)
		const rounds = 20
		for range rounds {
			do()
		}
		if after, byName := commands(t, rdb); after-before != 2*rounds {
			t.Errorf("%s: %d commands for %d rounds, want 2 each: %v", name, after-before, rounds, byName)
		}
	}
	if n := len(keys(t, rdb)) - len(redissonKeys(t, rdb)); n > 4 {
		t.Errorf("%d receipts for four objects used one after another", n)
	}
}
