package redisson_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// lacking is a server that has too few replicas for a while, as min-replicas-to-write wants, and two clients of it.
type lacking struct {
	*testing.T
	servers []*redistest.Server
	a, b    *redisson.Client
}

func (s *lacking) replicas(n int) {
	s.Helper()
	for _, one := range s.servers {
		check(s, one.Client(s).ConfigSet(s.Context(), "min-replicas-to-write", string(rune('0'+n))).Err())
	}
}

// use has b wait for what a has, and a give it back while there are too few replicas. Both come through once there are enough.
func (s *lacking) use(wait func(context.Context) error, giveBack func(context.Context) error) {
	s.Helper()
	got, gave := make(chan error, 1), make(chan error, 1)
	go func() { got <- wait(s.Context()) }()
	time.Sleep(100 * time.Millisecond) // it has asked once
	s.replicas(1)
	go func() { gave <- giveBack(s.Context()) }()
	select {
	case err := <-got:
		s.Errorf("the waiter did not wait: %v", err)
	case err := <-gave:
		s.Errorf("giving back ended while there were too few replicas: %v", err)
	case <-time.After(time.Second):
	}
	s.replicas(0)
	for _, end := range []chan error{gave, got} {
		select {
		case err := <-end:
			check(s, err)
		case <-time.After(5 * time.Second):
			s.Fatal("not within 5s")
		}
	}
}

func (s *lacking) kind(k lock.Kind) {
	r := lock.Request{Key: "k", Kind: k, Limit: 1, Wait: 20 * time.Second}
	first := r
	if k == lock.Read {
		first.Kind = lock.Write // readers do not wait for each other
	}
	h, err := s.a.Acquire(s.Context(), first)
	check(s, err)
	var next lock.Hold
	s.use(func(ctx context.Context) (err error) {
		next, err = s.b.Acquire(ctx, r)
		return err
	}, h.Release)
	// A call that waits for nobody.
	s.replicas(1)
	time.AfterFunc(300*time.Millisecond, func() { s.replicas(0) })
	again, err := s.b.Acquire(next.Context(), r)
	check(s, err)
	check(s, errors.Join(again.Release(s.Context()), next.Release(s.Context())))
}

func (s *lacking) semaphore() {
	a, b := s.a.Semaphore("s"), s.b.Semaphore("s")
	check(s, second(a.TrySetPermits(s.Context(), 1)))
	check(s, a.Acquire(s.Context(), 1))
	s.use(func(ctx context.Context) error { return b.Acquire(ctx, 1) }, func(ctx context.Context) error { return a.Release(ctx, 1) })
}

func (s *lacking) expirable() {
	a, b := s.a.PermitExpirableSemaphore("s"), s.b.PermitExpirableSemaphore("s")
	check(s, second(a.TrySetPermits(s.Context(), 1)))
	id, err := a.Acquire(s.Context(), time.Minute)
	check(s, err)
	s.use(func(ctx context.Context) error { return second(b.Acquire(ctx, time.Minute)) }, func(ctx context.Context) error { return a.Release(ctx, id) })
}

func (s *lacking) latch() {
	a, b := s.a.CountDownLatch("l"), s.b.CountDownLatch("l")
	check(s, second(a.TrySetCount(s.Context(), 1)))
	s.use(b.Await, a.CountDown)
}

// What a limiter gives back wakes nobody: it is time that brings the next permit.
func (s *lacking) rate() {
	a, b := s.a.RateLimiter("r"), s.b.RateLimiter("r")
	check(s, second(a.TrySetRate(s.Context(), redisson.Rate{Permits: 1, Interval: 2 * time.Second})))
	check(s, a.Acquire(s.Context(), 1))
	s.use(func(ctx context.Context) error { return b.Acquire(ctx, 1) }, func(ctx context.Context) error { return a.Release(ctx, 1) })
}

func (s *lacking) multi() {
	make2 := func(c *redisson.Client) *redisson.MultiLock {
		m, err := redisson.NewMultiLock(c.Lock("a"), c.Lock("b"))
		check(s, err)
		return m
	}
	a, b := make2(s.a), make2(s.b)
	held, err := a.Lock(s.Context())
	check(s, err)
	s.use(func(ctx context.Context) error { return second(b.Lock(ctx)) }, func(context.Context) error { return a.Unlock(held) })
}

func (s *lacking) red() {
	s.servers = append(s.servers, redistest.Start(s.T), redistest.Start(s.T))
	make3 := func() *redisson.RedLock {
		var members []redisson.Member
		for _, one := range s.servers {
			members = append(members, newClient(s, one).Lock("k"))
		}
		r, err := redisson.NewRedLock(members...)
		check(s, err)
		return r
	}
	a, b := make3(), make3()
	held, err := a.Lock(s.Context())
	check(s, err)
	s.use(func(ctx context.Context) error { return second(b.Lock(ctx)) }, func(context.Context) error { return a.Unlock(held) })
}

// A server that has too few replicas for some moments is asked again, as one that is read-only is: whoever waits goes on to wait, and
// what is given back is given back.
func TestTooFewReplicasForAWhile(t *testing.T) {
	t.Parallel()
	uses := map[string]func(*lacking){
		"semaphore": (*lacking).semaphore, "expirable": (*lacking).expirable, "latch": (*lacking).latch, "rate": (*lacking).rate, "multi": (*lacking).multi, "red": (*lacking).red,
	}
	for k := lock.Exclusive; k <= lock.Permit; k++ {
		uses[k.String()] = func(s *lacking) { s.kind(k) }
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := redistest.Start(t)
			use(&lacking{t, []*redistest.Server{one}, newClient(t, one), newClient(t, one)})
		})
	}
}

// The bounds are those of any outage: whoever waits for nobody hears of it after the client's timeout.
func TestTooFewReplicasForLong(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, redisson.Timeout(500*time.Millisecond))
	h := acquire(t.Context(), t, c, lock.Request{Key: "held"})
	check(t, s.Client(t).ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
	for what, ask := range map[string]func() error{
		"Acquire": func() error { return second(c.Acquire(t.Context(), lock.Request{Key: "k"})) },
		"Release": func() error { return h.Release(t.Context()) },
	} {
		start := time.Now()
		err := ask()
		if err == nil || errors.Is(err, lock.ErrBusy) || errors.Is(err, lock.ErrRefused) || errors.Is(err, lock.ErrLost) {
			t.Errorf("%s: %v, want an outage", what, err)
		}
		if took := time.Since(start); took < 100*time.Millisecond || took > 1500*time.Millisecond {
			t.Errorf("%s took %v, want about 500ms", what, took)
		}
	}
}
