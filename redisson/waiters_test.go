package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// MaxWaiters: who has to wait beyond the bound fails at once, and nobody else does.

// waiting is something that can be waited for.
type waiting struct {
	name string
	// occupy takes all there is, by another client, and returns what gives it back.
	occupy func(t *testing.T, c *redisson.Client) (free func())
	// wait waits for it as long as ctx, and gives back what it got.
	wait func(ctx context.Context, c *redisson.Client) error
}

// waitings are all sorts of objects that can be waited for, each of the same name.
func waitings(t *testing.T) (all []waiting) {
	t.Helper()
	for _, r := range allKinds() {
		r.Wait = -1
		all = append(all, waiting{r.Kind.String(), func(t *testing.T, c *redisson.Client) func() {
			taken := r
			if r.Kind == lock.Read {
				taken.Kind = lock.Write
			}
			h := acquire(t.Context(), t, c, taken)
			return func() { release(t, h) }
		}, func(ctx context.Context, c *redisson.Client) error {
			h, err := c.Acquire(ctx, r)
			if err != nil {
				return err
			}
			return h.Release(context.WithoutCancel(ctx))
		}})
	}
	return append(all, waitingsOfSynchronizers()...)
}

func waitingsOfSynchronizers() []waiting {
	return []waiting{
		{"semaphore", func(t *testing.T, c *redisson.Client) func() {
			return func() { check(t, c.Semaphore("k").Release(t.Context(), 1)) }
		}, func(ctx context.Context, c *redisson.Client) error {
			if err := c.Semaphore("k").Acquire(ctx, 1); err != nil {
				return err
			}
			return c.Semaphore("k").Release(context.WithoutCancel(ctx), 1)
		}},
		{"permits that expire", func(t *testing.T, c *redisson.Client) func() {
			return func() {
				_, err := c.PermitExpirableSemaphore("k").TrySetPermits(t.Context(), 1)
				check(t, err)
			}
		}, func(ctx context.Context, c *redisson.Client) error {
			id, err := c.PermitExpirableSemaphore("k").Acquire(ctx, time.Minute)
			if err != nil {
				return err
			}
			return c.PermitExpirableSemaphore("k").Release(context.WithoutCancel(ctx), id)
		}},
		{"latch", func(t *testing.T, c *redisson.Client) func() {
			_, err := c.CountDownLatch("k").TrySetCount(t.Context(), 1)
			check(t, err)
			return func() { check(t, c.CountDownLatch("k").CountDown(t.Context())) }
		}, func(ctx context.Context, c *redisson.Client) error { return c.CountDownLatch("k").Await(ctx) }},
		{"rate limiter", func(t *testing.T, c *redisson.Client) func() {
			check(t, c.RateLimiter("k").SetRate(t.Context(), redisson.Rate{Permits: 1, Interval: time.Minute}))
			check(t, c.RateLimiter("k").Acquire(t.Context(), 1))
			return func() {
				check(t, c.RateLimiter("k").SetRate(t.Context(), redisson.Rate{Permits: 100, Interval: time.Second}))
			}
		}, func(ctx context.Context, c *redisson.Client) error { return c.RateLimiter("k").Acquire(ctx, 1) }},
		{"multi-lock", func(t *testing.T, c *redisson.Client) func() {
			held := mustLock(t, c.Lock("k"))
			return func() { mustUnlock(t, c.Lock("k"), held) }
		}, func(ctx context.Context, c *redisson.Client) error {
			m, err := redisson.NewMultiLock(c.Lock("k"), c.Lock("other"))
			if err != nil {
				return err
			}
			held, err := m.Lock(ctx)
			if err != nil {
				return err
			}
			return m.Unlock(held)
		}},
	}
}

// callers wait, each with a context of its own.
type callers struct {
	waiting  atomic.Int64
	tooMany  atomic.Int64
	entered  atomic.Int64
	left     atomic.Int64
	strange  atomic.Pointer[error]
	goes     sync.WaitGroup
	departed []context.CancelFunc
}

// come has n callers wait.
func (cr *callers) come(ctx context.Context, n int, wait func(context.Context) error) {
	for range n {
		ctx, cancel := context.WithCancel(ctx)
		cr.departed = append(cr.departed, cancel)
		cr.waiting.Add(1)
		cr.goes.Go(func() {
			defer cr.waiting.Add(-1)
			switch err := wait(ctx); {
			case err == nil:
				cr.entered.Add(1)
			case errors.Is(err, redisson.ErrTooManyWaiters) && errors.Is(err, lock.ErrBusy):
				cr.tooMany.Add(1)
			case errors.Is(err, context.Canceled):
				cr.left.Add(1)
			default:
				cr.strange.Store(&err)
			}
		})
	}
}

// want waits until the numbers are these.
func (cr *callers) want(t *testing.T, when string, waiting, tooMany, entered, left int64) {
	t.Helper()
	got := func() [4]int64 {
		return [4]int64{cr.waiting.Load(), cr.tooMany.Load(), cr.entered.Load(), cr.left.Load()}
	}
	want := [4]int64{waiting, tooMany, entered, left}
	for end := time.Now().Add(30 * time.Second); got() != want; time.Sleep(2 * time.Millisecond) {
		if err := cr.strange.Load(); err != nil {
			t.Fatalf("%s: %v", when, *err)
		}
		if time.Now().After(end) {
			t.Fatalf("%s: waiting, refused, entered, left = %d, want %d", when, got(), want)
		}
	}
}

// Whatever is waited for, as many wait as may. One more fails at once, and takes the place of one that has left. All who wait
// get in at the end, and leave nothing in the count.
func TestMaxWaiters(t *testing.T) {
	t.Parallel()
	for _, w := range waitings(t) {
		for _, bound := range [][2]int{{3, 0}, {0, 3}, {3, 3}} {
			t.Run(fmt.Sprint(w.name, bound), func(t *testing.T) {
				t.Parallel()
				s := redistest.Start(t)
				free := w.occupy(t, newClient(t, s))
				c := newClient(t, s, redisson.MaxWaiters(bound[0], bound[1]), redisson.WatchdogTimeout(3*time.Second)) // waiters for a rate look once a second
				var cr callers
				wait := func(ctx context.Context) error { return w.wait(ctx, c) }
				cr.come(t.Context(), 7, wait)
				cr.want(t, "seven came", 3, 4, 0, 0)
				for _, leave := range cr.departed {
					leave()
				}
				cr.want(t, "all left", 0, 4, 0, 3)
				cr.come(t.Context(), 3, wait)
				time.Sleep(20 * time.Millisecond) // they could be refused
				cr.want(t, "three came", 3, 4, 0, 3)
				free()
				cr.want(t, "it is free", 0, 4, 3, 3)
				cr.goes.Wait()
				if all, ofKey := redisson.Waiting(c); all != 0 || ofKey != 0 {
					t.Errorf("%d waiters of %d keys are left in the count", all, ofKey)
				}
			})
		}
	}
}

// A RedLock waits by itself, and is counted at the first of its clients.
func TestMaxWaitersOfRedLock(t *testing.T) {
	t.Parallel()
	var clients []*redisson.Client
	var locks, others []redisson.Member
	for i := range 3 {
		s := redistest.Start(t)
		clients = append(clients, newClient(t, s, redisson.MaxWaiters(2, 0)))
		locks = append(locks, clients[i].Lock("k"))
		others = append(others, newClient(t, s).Lock("k"))
	}
	red, err := redisson.NewRedLock(locks...)
	check(t, err)
	holder, err := redisson.NewRedLock(others...)
	check(t, err)
	held := mustLock(t, holder)
	var cr callers
	cr.come(t.Context(), 5, func(ctx context.Context) error {
		held, err := red.Lock(ctx)
		if err != nil {
			return err
		}
		return red.Unlock(held)
	})
	cr.want(t, "five came", 2, 3, 0, 0)
	mustUnlock(t, holder, held)
	cr.want(t, "it is free", 0, 3, 2, 0)
	for _, c := range clients {
		if n, _ := redisson.Waiting(c); n != 0 {
			t.Errorf("%d waiters are left in the count", n)
		}
	}
}

// Who may not wait for servers that are silent is busy, too.
func TestMaxWaitersOfRedLockOfSilentServers(t *testing.T) {
	t.Parallel()
	var servers []*redistest.Server
	var locks []redisson.Member
	var first *redisson.Client
	for i := range 3 {
		s := redistest.Start(t)
		c := newClient(t, s, redisson.MaxWaiters(1, 0), redisson.Timeout(20*time.Second))
		if i == 0 {
			first = c
		} else {
			servers = append(servers, s)
		}
		locks = append(locks, c.Lock("k"))
	}
	red, err := redisson.NewRedLock(locks...)
	check(t, err)
	for _, s := range servers {
		s.Pause(t)
	}
	var cr callers
	cr.come(t.Context(), 2, func(ctx context.Context) error {
		held, err := red.Lock(ctx)
		if err != nil {
			return err
		}
		return red.Unlock(held)
	})
	cr.want(t, "two came", 1, 1, 0, 0)
	for _, s := range servers {
		s.Resume(t)
	}
	cr.want(t, "the servers answer", 0, 1, 1, 0)
	if n, _ := redisson.Waiting(first); n != 0 {
		t.Errorf("%d waiters are left in the count", n)
	}
}

// The bound is for those who wait: any number of calls can have free locks at the same time.
func TestMaxWaitersOfFreeLocks(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), redisson.MaxWaiters(1, 1))
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			release(t, acquire(t.Context(), t, c, lock.Request{Key: fmt.Sprint("k", i), Wait: time.Minute}))
		})
	}
	all.Wait()
}

// A bound for all keys leaves room for any key, and one for a key leaves room for the others.
func TestMaxWaitersOfManyKeys(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder, c := newClient(t, s), newClient(t, s, redisson.MaxWaiters(2, 5))
	var cr callers
	for i := range 4 {
		l := c.Lock(fmt.Sprint("k", i))
		mustLock(t, holder.Lock(l.Name()))
		cr.come(t.Context(), 3, func(ctx context.Context) error {
			_, err := l.Lock(ctx)
			return err
		})
		cr.want(t, fmt.Sprint("key ", i), int64(min(2*i+2, 5)), int64(3*i+3-min(2*i+2, 5)), 0, 0)
	}
	check(t, c.Close())
	cr.goes.Wait()
	if all, ofKey := redisson.Waiting(c); all != 0 || ofKey != 0 {
		t.Errorf("%d waiters of %d keys are left in the count of a client that is closed", all, ofKey)
	}
}

// Callers come and go as they like: their waits end by time, cancel and success. The count never exceeds the bound, and is zero when
// they are gone.
func TestMaxWaitersCounts(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, redisson.MaxWaiters(3, 8))
	var served, refused atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	over := func() bool { // on a busy machine it takes longer until some are served
		d := time.Since(start)
		return d > 1500*time.Millisecond && served.Load() > 0 && refused.Load() > 0 || d > 20*time.Second
	}
	for i := range 60 {
		all.Go(func() {
			for !over() {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(40*time.Millisecond+time.Since(start)/20))
				r := lock.Request{Key: fmt.Sprint("k", i%5), Kind: lock.Kind(i % 2), Wait: rand.N(30 * time.Millisecond)}
				switch h, err := c.Acquire(ctx, r); {
				case err == nil:
					served.Add(1)
					time.Sleep(rand.N(3 * time.Millisecond))
					_ = h.Release(t.Context())
				case errors.Is(err, redisson.ErrTooManyWaiters):
					refused.Add(1)
				}
				cancel()
			}
		})
	}
	for !over() {
		if n, _ := redisson.Waiting(c); n > 8 {
			t.Fatalf("%d calls wait", n)
		}
		time.Sleep(time.Millisecond)
	}
	all.Wait()
	if served.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d calls were served and %d refused: want some of both", served.Load(), refused.Load())
	}
	if n, ofKey := redisson.Waiting(c); n != 0 || ofKey != 0 {
		t.Errorf("%d waiters of %d keys are left in the count", n, ofKey)
	}
}

// Methods that say by a bool that something can't be had do so here, too.
func TestMaxWaitersOfTries(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, redisson.MaxWaiters(1, 0))
	mustLock(t, newClient(t, s).Lock("k"))
	var cr callers
	cr.come(t.Context(), 1, func(ctx context.Context) error { _, err := c.Lock("k").Lock(ctx); return err })
	eventually(t, "one waits", func() bool { n, _ := redisson.Waiting(c); return n == 1 })
	start := time.Now()
	if _, ok, err := c.Lock("k").TryLock(t.Context(), time.Minute, 0); ok || err != nil {
		t.Errorf("TryLock = %v, %v", ok, err)
	}
	if took := ran(start); took > 5*time.Second {
		t.Errorf("TryLock took %v", took)
	}
	check(t, c.Close())
	cr.goes.Wait()
}
