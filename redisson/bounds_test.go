package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// How long a caller stays while Redis is silent: no longer than its context, its wait and the client's timeout allow, in
// whatever way go-redis is set up.

// modes are the ways in which go-redis bounds a question.
var modes = []struct {
	name   string
	change func(*redis.Options)
}{
	{"default", func(*redis.Options) {}},
	{"no read timeout", func(o *redis.Options) { o.ReadTimeout = -1 }},
	{"context timeouts", func(o *redis.Options) { o.ContextTimeoutEnabled = true }},
	{"context timeouts only", func(o *redis.Options) { o.ContextTimeoutEnabled, o.ReadTimeout = true, -1 }},
	{"small pool", func(o *redis.Options) { o.PoolSize = 2 }},
}

// eachMode runs a test with each of them, on a client behind a proxy.
func eachMode(t *testing.T, timeout time.Duration, test func(*testing.T, *redistest.Server, *redisson.Client, *redistest.Proxy), opts ...redisson.Option) {
	for _, tt := range modes {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := s.Front(t)
			c := onClient(t, s.Client(t, tt.change, func(o *redis.Options) { o.Addr = p.Addr }), append(opts, redisson.Timeout(timeout), redisson.Prompt)...)
			t.Cleanup(p.Thaw) // so that Close is not what the test waits for
			test(t, s, c, p)
		})
	}
}

// operation is something that asks Redis. Its context derives from base.
type operation struct {
	name string
	base context.Context
	do   func(ctx context.Context) error
}

// operations prepares one of each sort, all for names of their own.
func operations(t *testing.T, s *redistest.Server, c *redisson.Client) []operation {
	t.Helper()
	ctx, direct := t.Context(), newClient(t, s) // which has more time
	held := acquire(ctx, t, c, lock.Request{Key: "held"})
	writing := acquire(ctx, t, c, lock.Request{Key: "written", Kind: lock.Write})
	inner := acquire(writing.Context(), t, c, lock.Request{Key: "written", Kind: lock.Write}) // others would not ask Redis
	other := acquire(ctx, t, c, lock.Request{Key: "other", Kind: lock.Read})
	sem, permits, latch, rate := c.Semaphore("s"), c.PermitExpirableSemaphore("p"), c.CountDownLatch("l"), c.RateLimiter("r")
	must(t, true)(direct.PermitExpirableSemaphore("p").TrySetPermits(ctx, 2))
	id := mustPermit(t, direct.PermitExpirableSemaphore("p"), time.Minute)
	must(t, true)(direct.CountDownLatch("l").TrySetCount(ctx, 2))
	must(t, true)(direct.RateLimiter("r").TrySetRate(ctx, redisson.Rate{Permits: 9, Interval: time.Second}))
	ops := []operation{
		{"re-entry", held.Context(), func(ctx context.Context) error {
			return second(c.Acquire(ctx, lock.Request{Key: "held", Wait: -1}))
		}},
		{"partial Release", ctx, inner.Release},
		{"Release", ctx, other.Release},
		{"TryLock", ctx, func(ctx context.Context) error { return second2(c.Lock("tried").TryLock(ctx, 10*time.Second, 0)) }},
		{"ForceUnlock", ctx, func(ctx context.Context) error { return second(c.Lock("forced").ForceUnlock(ctx)) }},
		{"IsLocked", ctx, func(ctx context.Context) error { return second(c.Lock("k").IsLocked(ctx)) }},
		{"IsLocked for reading", ctx, func(ctx context.Context) error { return second(c.ReadWriteLock("rw").ReadLock().IsLocked(ctx)) }},
		{"TTL", ctx, func(ctx context.Context) error { return second(c.Lock("k").TTL(ctx)) }},
		{"LastToken", ctx, func(ctx context.Context) error { return second(c.FencedLock("f").LastToken(ctx)) }},
		{"MultiLock", ctx, func(ctx context.Context) error {
			return ignoring(multiLock(t, c.Lock("m1"), c.Lock("m2")).Lock(ctx))
		}},
		{"Semaphore.Acquire", ctx, func(ctx context.Context) error { return sem.Acquire(ctx, 1) }},
		{"Semaphore.Release", ctx, func(ctx context.Context) error { return sem.Release(ctx, 1) }},
		{"Semaphore.AvailablePermits", ctx, func(ctx context.Context) error { return second(sem.AvailablePermits(ctx)) }},
		{"Semaphore.Delete", ctx, func(ctx context.Context) error { return second(c.Semaphore("deleted").Delete(ctx)) }},
		{"Semaphore.DrainPermits", ctx, func(ctx context.Context) error { return second(sem.DrainPermits(ctx)) }},
		{"PermitExpirableSemaphore.Acquire", ctx, func(ctx context.Context) error { return second(permits.Acquire(ctx, time.Minute)) }},
		{"PermitExpirableSemaphore.Release", ctx, func(ctx context.Context) error { return permits.Release(ctx, id) }},
		{"PermitExpirableSemaphore.AvailablePermits", ctx, func(ctx context.Context) error { return second(permits.AvailablePermits(ctx)) }},
		{"PermitExpirableSemaphore.LeaseTime", ctx, func(ctx context.Context) error { return second(permits.LeaseTime(ctx, id)) }},
		{"CountDownLatch.Await", ctx, latch.Await},
		{"CountDownLatch.CountDown", ctx, latch.CountDown},
		{"CountDownLatch.Count", ctx, func(ctx context.Context) error { return second(latch.Count(ctx)) }},
		{"RateLimiter.Acquire", ctx, func(ctx context.Context) error { return rate.Acquire(ctx, 1) }},
		{"RateLimiter.AvailablePermits", ctx, func(ctx context.Context) error { return second(rate.AvailablePermits(ctx)) }},
		{"RateLimiter.Release", ctx, func(ctx context.Context) error { return rate.Release(ctx, 1) }},
		{"RateLimiter.Rate", ctx, func(ctx context.Context) error { return second(rate.Rate(ctx)) }},
		{"RateLimiter.UpdateRate", ctx, func(ctx context.Context) error {
			return rate.UpdateRate(ctx, redisson.Rate{Permits: 8, Interval: time.Second}, true)
		}},
		{"RateLimiter.Delete", ctx, func(ctx context.Context) error { return second(rate.Delete(ctx)) }},
	}
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Fair, lock.Fenced, lock.Spin, lock.Read, lock.Write, lock.Permit} {
		ops = append(ops, operation{"Acquire " + kind.String(), ctx, func(ctx context.Context) error {
			return second(c.Acquire(ctx, lock.Request{Key: "acquired " + kind.String(), Kind: kind, Limit: 1, Wait: -1}))
		}})
	}
	return ops
}

func TestCallersLeaveASilentRedisWithTheirContext(t *testing.T) {
	t.Parallel()
	gone := errors.New("client hung up")
	for how, ending := range map[string]func(context.Context, time.Duration) (context.Context, func()){
		"cancel": func(ctx context.Context, d time.Duration) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			timer := time.AfterFunc(d, func() { cancel(gone) })
			return ctx, func() { timer.Stop(); cancel(nil) }
		},
		"deadline": func(ctx context.Context, d time.Duration) (context.Context, func()) {
			ctx, cancel := context.WithTimeoutCause(ctx, d, gone)
			return ctx, cancel
		},
	} {
		t.Run(how, func(t *testing.T) {
			eachMode(t, 2*time.Second, func(t *testing.T, s *redistest.Server, c *redisson.Client, p *redistest.Proxy) {
				const after = 100 * time.Millisecond
				todo := map[string]func() error{}
				for _, op := range operations(t, s, c) {
					todo[op.name] = func() error {
						ctx, stop := ending(op.base, after)
						defer stop()
						return op.do(ctx)
					}
				}
				p.Freeze()
				for _, o := range callAll(t, after+4*soon, p.Thaw, todo) {
					if o.tooLong(after) {
						t.Errorf("%s left %v after the end of its context", o.name, o.took()-after)
					}
					if !errors.Is(o.err, gone) {
						t.Errorf("%s = %v, want the cause of its context", o.name, o.err)
					}
				}
			})
		})
	}
}

func TestCallersLeaveASilentRedisAfterTheTimeout(t *testing.T) {
	t.Parallel()
	const timeout = 700 * time.Millisecond
	eachMode(t, timeout, func(t *testing.T, s *redistest.Server, c *redisson.Client, p *redistest.Proxy) {
		todo := map[string]func() error{}
		for _, op := range operations(t, s, c) {
			todo[op.name] = func() error { return op.do(op.base) }
		}
		l := c.Lock("unlocked")
		held := mustLock(t, l)
		todo["Unlock"] = func() error { return l.Unlock(held) }
		p.Freeze()
		for _, o := range callAll(t, timeout+4*soon, p.Thaw, todo) {
			if o.tooLong(timeout) {
				t.Errorf("%s stayed for %v with a timeout of %v", o.name, o.took(), timeout)
			}
			if o.err == nil || errors.Is(o.err, lock.ErrBusy) {
				t.Errorf("%s = %v, want an outage", o.name, o.err)
			}
		}
	})
}

// waitsForOutage calls acquires with several waits for a lock about which Redis says nothing. Each of them must hear of
// the outage 500ms after its wait, and at the timeout at the latest.
func waitsForOutage(t *testing.T, c *redisson.Client, timeout time.Duration, thaw func()) {
	t.Helper()
	ctx := t.Context()
	todo, bounds := map[string]func() error{}, map[string]time.Duration{}
	for _, wait := range []time.Duration{0, 200 * time.Millisecond, time.Minute, -1} {
		add := func(what string, call func() error) {
			name := fmt.Sprintf("%s with wait %v", what, wait)
			todo[name], bounds[name] = call, timeout
			if wait >= 0 {
				bounds[name] = min(timeout, wait+500*time.Millisecond)
			}
		}
		for _, kind := range []lock.Kind{lock.Exclusive, lock.Fair, lock.Read, lock.Permit} {
			r := lock.Request{Key: kind.String(), Kind: kind, Limit: 1, Wait: wait} // one key for all waits: they stand in line
			add("Acquire "+kind.String(), func() error { return second(c.Acquire(ctx, r)) })
		}
		add("Semaphore.TryAcquire", func() error {
			if wait < 0 {
				return c.Semaphore("s").Acquire(ctx, 1)
			}
			return second(c.Semaphore("s").TryAcquire(ctx, 1, wait))
		})
		add("PermitExpirableSemaphore.TryAcquire", func() error {
			if wait < 0 {
				return second(c.PermitExpirableSemaphore("p").Acquire(ctx, 0))
			}
			return second2(c.PermitExpirableSemaphore("p").TryAcquire(ctx, wait, 0))
		})
	}
	for _, o := range callAll(t, timeout+4*soon, thaw, todo) {
		if bound := bounds[o.name]; o.tooLong(bound) || o.took() < bound-50*time.Millisecond {
			t.Errorf("%s ended after %v, want %v", o.name, o.took(), bound)
		}
		if o.err == nil || errors.Is(o.err, lock.ErrBusy) {
			t.Errorf("%s = %v, want an outage", o.name, o.err)
		}
	}
}

func TestUnansweredAcquireHearsOfTheOutage(t *testing.T) {
	t.Parallel()
	const timeout = 1200 * time.Millisecond
	eachMode(t, timeout, func(t *testing.T, _ *redistest.Server, c *redisson.Client, p *redistest.Proxy) {
		mustUnlock(t, c.Lock("k"), mustLock(t, c.Lock("k")))
		p.Freeze()
		waitsForOutage(t, c, timeout, p.Thaw)
	})
}

// Nothing is connected yet: the handshake is not answered, or the connection is never made.
func TestDiallingCountsAsSilence(t *testing.T) {
	t.Parallel()
	const timeout = 1200 * time.Millisecond
	t.Run("handshake", func(t *testing.T) {
		eachMode(t, timeout, func(t *testing.T, _ *redistest.Server, c *redisson.Client, p *redistest.Proxy) {
			p.Freeze()
			waitsForOutage(t, c, timeout, p.Thaw)
		})
	})
	t.Run("connection", func(t *testing.T) {
		t.Parallel()
		stop := make(chan struct{})
		rdb := redis.NewClient(&redis.Options{PoolSize: 4, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-stop:
				return nil, errors.New("the test is over")
			}
		}})
		defer rdb.Close()
		c := onClient(t, rdb, redisson.Timeout(timeout), redisson.Prompt)
		thaw := sync.OnceFunc(func() { close(stop) })
		t.Cleanup(thaw)
		waitsForOutage(t, c, timeout, thaw)
	})
}

func TestRefusedConnectionIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	todo := map[string]func() error{}
	for _, tt := range modes[:4] { // in a small pool, a caller also waits for those before it
		// By default go-redis tries for 400 ms, most of what the answer may take.
		opts := &redis.Options{Addr: net.JoinHostPort("127.0.0.1", redistest.FreePort(t)), DialerRetryTimeout: 5 * time.Millisecond}
		tt.change(opts)
		rdb := redis.NewClient(opts)
		defer rdb.Close()
		c := onClient(t, rdb)
		for _, wait := range []time.Duration{0, time.Second, -1} {
			todo[fmt.Sprintf("Acquire with wait %v and %s", wait, tt.name)] = func() error {
				return second(c.Acquire(t.Context(), lock.Request{Key: fmt.Sprint(wait), Wait: wait}))
			}
		}
	}
	for _, o := range callAll(t, time.Minute, func() {}, todo) {
		if o.err == nil || errors.Is(o.err, lock.ErrBusy) || !strings.Contains(o.err.Error(), "refused") {
			t.Errorf("%s = %v, want connection refused", o.name, o.err)
		}
		if o.tooLong(500 * time.Millisecond) {
			t.Errorf("%s took %v", o.name, o.took())
		}
	}
}

// waitInVain waits for locks that others hold, and returns when Redis has said so.
func waitInVain(ctx context.Context, t *testing.T, s *redistest.Server, c *redisson.Client, p *redistest.Proxy, wait time.Duration) *calls {
	t.Helper()
	other := newClient(t, s)
	requests := []lock.Request{{Key: "exclusive"}, {Key: "fair", Kind: lock.Fair}, {Key: "spin", Kind: lock.Spin},
		{Key: "read", Kind: lock.Read}, {Key: "permit", Kind: lock.Permit, Limit: 1}}
	release(t, acquire(t.Context(), t, other, lock.Request{Key: "loads the script", Kind: lock.Read}))
	for _, r := range requests {
		if r.Kind == lock.Read {
			r.Kind = lock.Write
		}
		acquire(t.Context(), t, other, r)
	}
	waiting, rdb := newCalls(), s.Client(t)
	polled := p.KeepBackReply(naming("spin"), 1) // the second question comes after the first answer
	for _, r := range requests {
		r.Wait = wait
		answer := p.KeepBackReply(naming(r.Key), 0)
		for i := range 3 { // the second and the third are in line behind the first
			waiting.start(fmt.Sprintf("Acquire %v, waiter %d", r.Kind, i), func() error { return second(c.Acquire(ctx, r)) })
			if i == 0 {
				answer.Await(t)
			}
			if r.Kind == lock.Fair || r.Kind == lock.Spin {
				break // there may be no line
			}
		}
		answer.Deliver(t)
	}
	polled.Await(t)
	polled.Deliver(t)
	eventually(t, "the waiters listen", func() bool { return len(subscriptions(t, rdb)) == 4 })
	return waiting
}

// Redis has said that the lock is busy, so that it is busy at the end of the wait, whether or not Redis says so again.
func TestWaiterGetsBusyAlthoughRedisIsSilent(t *testing.T) {
	t.Parallel()
	const timeout, wait = 2900 * time.Millisecond, 2700 * time.Millisecond // so that all listen at once, also on a busy machine
	eachMode(t, timeout, func(t *testing.T, s *redistest.Server, c *redisson.Client, p *redistest.Proxy) {
		waiting := waitInVain(t.Context(), t, s, c, p, wait)
		p.Freeze()
		for _, o := range waiting.await(t, wait+4*soon, p.Thaw) {
			if !errors.Is(o.err, lock.ErrBusy) || o.tooLong(wait) || o.took() < wait {
				t.Errorf("%s = %v after %v, want ErrBusy after %v", o.name, o.err, o.took(), wait)
			}
		}
	}, redisson.WatchdogTimeout(timeout)) // has a waiter ask each third of it
}

func TestWaiterHearsOfTheOutageAfterTheTimeout(t *testing.T) {
	t.Parallel()
	const timeout, asks = 900 * time.Millisecond, 300 * time.Millisecond
	eachMode(t, timeout, func(t *testing.T, s *redistest.Server, c *redisson.Client, p *redistest.Proxy) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		waiting := waitInVain(ctx, t, s, c, p, -1)
		p.Freeze()
		silent := time.Now()
		for _, o := range waiting.await(t, timeout+asks+4*soon, cancel) {
			if d := o.ended.Sub(silent); o.after(silent.Add(timeout+asks)) || d < timeout-2*soon {
				t.Errorf("%s ended after %v of silence, want %v to %v", o.name, d, timeout, timeout+asks)
			}
			if o.err == nil || errors.Is(o.err, lock.ErrBusy) {
				t.Errorf("%s = %v, want an outage", o.name, o.err)
			}
		}
	}, redisson.WatchdogTimeout(3*asks))
}
