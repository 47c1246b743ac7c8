package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// Close ends what is under way, waits until it has left nothing in Redis, and does not wait for ever.

func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	const timeout = 700 * time.Millisecond
	eachMode(t, timeout, func(t *testing.T, s *redistest.Server, c *redisson.Client, p *redistest.Proxy) {
		released := acquire(t.Context(), t, c, lock.Request{Key: "released"})
		acquire(t.Context(), t, c, lock.Request{Key: "held"})
		all := waitInVain(t.Context(), t, s, c, p, -1)
		p.Freeze()
		all.start("Release", func() error { return released.Release(t.Context()) })
		all.start("Acquire", func() error { return second(c.Acquire(t.Context(), lock.Request{Key: "k", Wait: -1})) })
		all.start("Semaphore.Acquire", func() error { return c.Semaphore("s").Acquire(t.Context(), 1) })
		<-time.After(50 * time.Millisecond) // for them to be under way
		const bound = timeout + 500*time.Millisecond
		start := time.Now()
		all.start("Close", c.Close)
		for _, o := range all.await(t, bound+4*soon, p.Thaw) {
			if o.after(start.Add(bound)) {
				t.Errorf("%s ended %v after Close was called, with a timeout of %v", o.name, o.ended.Sub(start), timeout)
			}
			if o.name != "Close" && o.err == nil {
				t.Errorf("%s succeeded", o.name)
			}
		}
	})
}

// Who asks after a Close leaves with its context as before it.
func TestCallersLeaveAfterClose(t *testing.T) {
	t.Parallel()
	eachMode(t, 2*time.Second, func(t *testing.T, _ *redistest.Server, c *redisson.Client, p *redistest.Proxy) {
		for start := time.Now(); time.Since(start) < 100*time.Millisecond; {
			release(t, acquire(t.Context(), t, c, lock.Request{Key: "k"}))
		}
		check(t, c.Close())
		<-time.After(1100 * time.Millisecond) // for all timers that were set before to be over
		p.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		for _, o := range callAll(t, 50*time.Millisecond+4*soon, p.Thaw, map[string]func() error{
			"ForceUnlock": func() error { return second(c.Lock("k").ForceUnlock(ctx)) },
		}) {
			if o.tooLong(50 * time.Millisecond) {
				t.Errorf("%s left %v after the end of its context", o.name, o.took()-50*time.Millisecond)
			}
		}
	})
}

// A program closes both clients at its end, with locks that it unlocks in between.
func TestUnlockAfterCloseIsSynchronous(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := s.Front(t)
	rdb := s.Client(t, func(o *redis.Options) { o.Addr = p.Addr })
	c := onClient(t, rdb)
	type taken struct {
		locker
		held context.Context
	}
	var all []taken
	for i := range 10 {
		rw := c.ReadWriteLock(fmt.Sprint("rw", i))
		for _, l := range []locker{c.Lock(fmt.Sprint("k", i)), c.FairLock(fmt.Sprint("fair", i)), rw.WriteLock(),
			c.ReadWriteLock(fmt.Sprint("r", i)).ReadLock(), multiLock(t, namedLocks(c, fmt.Sprint("m1 ", i), fmt.Sprint("m2 ", i))...)} {
			all = append(all, taken{l, mustLock(t, l)})
		}
	}
	p.Delay(2 * time.Millisecond) // so that who does not wait for the answer is too early
	check(t, c.Close())
	for _, l := range all {
		if err := l.Unlock(l.held); err != nil && !errors.Is(err, lock.ErrLost) {
			t.Errorf("Unlock after Close = %v, want ErrLost at most", err)
		}
	}
	check(t, rdb.Close())
	if left := keys(t, s.Client(t)); len(left) != 0 {
		t.Errorf("of %d locks that were unlocked, %d are left: %q", len(all), len(left), left)
	}
}

// Questions are under way when Close is called, and are answered while it waits.
func TestCloseLeavesNothingOfWhatItEnded(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, admin := s.Front(t), s.Client(t)
	rdb := s.Client(t, func(o *redis.Options) { o.Addr, o.PoolSize = p.Addr, 100 })
	c := onClient(t, rdb)
	sem := newSemaphore(t, newClient(t, s), 50)
	release(t, acquire(t.Context(), t, c, lock.Request{Key: "loads the script"}))
	var all sync.WaitGroup
	expectClosed := func(what string, acquire func() error) {
		all.Go(func() {
			if err := acquire(); !errors.Is(err, redisson.ErrClosed) {
				t.Errorf("%s = %v, want ErrClosed", what, err)
			}
		})
	}
	_, before := p.Connections()
	p.Freeze()
	for i := range 25 {
		expectClosed("Acquire", func() error {
			return second(c.Acquire(context.Background(), lock.Request{Key: fmt.Sprint("k", i), Wait: -1}))
		})
		expectClosed("Semaphore.Acquire", func() error { return c.Semaphore("s").Acquire(context.Background(), 1) })
	}
	eventually(t, "questions are under way", func() bool { _, made := p.Connections(); return made >= before+20 })
	p.Delay(10 * time.Millisecond) // so that an undoing that nobody waits for comes too late
	timer := time.AfterFunc(200*time.Millisecond, p.Thaw)
	defer timer.Stop()
	check(t, c.Close())
	left := redissonKeys(t, admin)
	check(t, rdb.Close()) // as a program does that does not wait for its goroutines
	all.Wait()
	if !slices.Equal(left, []string{"s"}) {
		t.Errorf("Close has left %d keys: %q", len(left)-1, left)
	}
	must(t, 50)(sem.AvailablePermits(t.Context()))
}

// Nothing else is under way that a Close would wait for, and what was taken has no end of its own.
func TestCloseWaitsForWhoTakesPermits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, take := range map[string]func(c *redisson.Client) error{
		"Semaphore.Acquire":                func(c *redisson.Client) error { return c.Semaphore("s").Acquire(ctx, 2) },
		"Semaphore.TryAcquire":             func(c *redisson.Client) error { return second(c.Semaphore("s").TryAcquire(ctx, 2, 10*time.Second)) },
		"Semaphore.DrainPermits":           func(c *redisson.Client) error { return second(c.Semaphore("s").DrainPermits(ctx)) },
		"PermitExpirableSemaphore.Acquire": func(c *redisson.Client) error { return second(c.PermitExpirableSemaphore("x").Acquire(ctx, 0)) },
		"RateLimiter.Acquire":              func(c *redisson.Client) error { return c.RateLimiter("r").Acquire(ctx, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			c, p := behind(t, s)
			direct := newClient(t, s)
			sem := newSemaphore(t, direct, 5)
			permits, rate := direct.PermitExpirableSemaphore("x"), newRate(t, direct, redisson.Rate{Permits: 5, Interval: time.Hour})
			must(t, true)(permits.TrySetPermits(t.Context(), 5))
			check(t, c.Ping(t.Context()))
			p.Freeze()
			taken := make(chan error, 1)
			go func() { taken <- take(c) }()
			<-time.After(50 * time.Millisecond) // for it to be under way
			timer := time.AfterFunc(200*time.Millisecond, p.Thaw)
			defer timer.Stop()
			check(t, c.Close())
			if err := <-taken; !errors.Is(err, redisson.ErrClosed) {
				t.Errorf("%s = %v, want ErrClosed", name, err)
			}
			must(t, 5)(sem.AvailablePermits(t.Context()))
			must(t, 5)(permits.AvailablePermits(t.Context()))
			must(t, int64(5))(rate.AvailablePermits(t.Context()))
		})
	}
}

// After a Close nobody goes on in the background with what its caller does not wait for.
func TestChangesAfterClose(t *testing.T) {
	t.Parallel()
	eachMode(t, 2*time.Second, func(t *testing.T, s *redistest.Server, c *redisson.Client, p *redistest.Proxy) {
		direct := newClient(t, s)
		sem, latch := newSemaphore(t, direct, 5), direct.CountDownLatch("l")
		must(t, true)(latch.TrySetCount(t.Context(), 5))
		var holds []lock.Hold
		for _, key := range []string{"a", "b", "c"} {
			holds = append(holds, acquire(t.Context(), t, c, lock.Request{Key: key}))
		}
		check(t, c.Close())
		begun := time.Now()
		for _, err := range []error{holds[0].Release(canceled()), c.ReleaseAll(canceled(), holds[1:])} {
			if !errors.Is(err, lock.ErrLost) {
				t.Errorf("release after Close = %v, want ErrLost", err)
			}
		}
		// A caller who has gone stays for 50 ms, which a busy machine may need.
		if left := redissonKeys(t, s.Client(t)); !slices.Equal(left, []string{"l", "s"}) && time.Since(begun) < 50*time.Millisecond {
			t.Errorf("keys %q are left after the releases", left)
		}
		doubts := 0
		for _, ctx := range []context.Context{canceled(), t.Context()} {
			for _, err := range []error{c.Semaphore("s").Release(ctx, 1), c.CountDownLatch("l").CountDown(ctx)} {
				if err != nil && ctx.Err() != nil && errors.Is(err, redisson.ErrClosed) {
					doubts++
				} else if err != nil {
					t.Error(err)
				}
			}
		}
		permits, err := sem.AvailablePermits(t.Context())
		check(t, err)
		count, err := latch.Count(t.Context())
		check(t, err)
		if made := permits - int(count); made > 4 || made < 4-doubts {
			t.Errorf("%d permits, and a count of %d", permits, count)
		}
		p.Freeze()
		for _, o := range callAll(t, 50*time.Millisecond+4*soon, p.Thaw, map[string]func() error{
			"Release": func() error { return c.Semaphore("s").Release(canceled(), 1) },
		}) {
			if !errors.Is(o.err, redisson.ErrClosed) || !errors.Is(o.err, context.Canceled) || o.tooLong(50*time.Millisecond) {
				t.Errorf("%s without an answer = %v after %v, want ErrClosed and the end of its context", o.name, o.err, o.took())
			}
		}
	})
}

// The waiters of a fair lock leave the queue in Redis, where their places would keep others out.
func TestCloseLeavesNobodyInAQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, admin := s.Front(t), s.Client(t)
	rdb := s.Client(t, func(o *redis.Options) { o.Addr = p.Addr })
	c, other := onClient(t, rdb), newClient(t, s)
	queues := func() int { return len(admin.Keys(t.Context(), "redisson_lock_queue:*").Val()) }
	var all sync.WaitGroup
	const locks = 25
	for i := range locks {
		r := lock.Request{Key: fmt.Sprint("k", i), Kind: lock.Fair, Wait: -1}
		acquire(t.Context(), t, other, r)
		all.Go(func() {
			if _, err := c.Acquire(context.Background(), r); !errors.Is(err, redisson.ErrClosed) {
				t.Errorf("Acquire = %v, want ErrClosed", err)
			}
		})
	}
	eventually(t, "there is somebody in each queue", func() bool { return queues() == locks })
	p.Delay(10 * time.Millisecond)
	check(t, c.Close())
	left := queues()
	check(t, rdb.Close())
	all.Wait()
	if left > 0 {
		t.Errorf("Close has left a waiter in %d of %d queues", left, locks)
	}
}

// Those who wait have nothing of their own to end for: no deadline, and no message that would come soon.
func TestCloseEndsAllWaitsAtOnce(t *testing.T) {
	t.Parallel()
	for _, w := range waitings(t) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			c := newClient(t, s)
			free := w.occupy(t, newClient(t, s))
			waits := newCalls()
			for range 4 {
				waits.start(w.name, func() error { return w.wait(context.Background(), c) })
			}
			<-time.After(200 * time.Millisecond) // for them to have been refused
			closed := time.Now()
			check(t, c.Close())
			for _, o := range waits.await(t, time.Minute, func() {}) {
				if !errors.Is(o.err, redisson.ErrClosed) || o.after(closed) {
					t.Errorf("a wait ended with %v, %v after the Close began, want ErrClosed at once", o.err, o.ended.Sub(closed))
				}
			}
			free()
		})
	}
}
