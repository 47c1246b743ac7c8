package redisson_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// Answers that are lost and requests that arrive late.

// numberChange is something that must happen once, whatever Redis answers and whatever arrives late.
type numberChange struct {
	name    string
	prepare func(c *redisson.Client, key string) error
	do      func(c *redisson.Client, key string) error
	free    func(c *redisson.Client, key string) (int64, error) // how many permits there are
	done    int64                                               // of them after do
	again   int64                                               // after another prepare
}

func freeIDs(c *redisson.Client, key string) (int64, error) {
	n, err := c.PermitExpirableSemaphore(key).AvailablePermits(context.Background())
	return int64(n), err
}

func freeRate(c *redisson.Client, key string) (int64, error) {
	n, err := c.RateLimiter(key).AvailablePermits(context.Background())
	if errors.Is(err, redisson.ErrNoRate) {
		return 0, nil
	}
	return n, err
}

func free(c *redisson.Client, key string) (int64, error) {
	n, err := c.Semaphore(key).AvailablePermits(context.Background())
	return int64(n), err
}

func numberChanges(ctx context.Context) []numberChange {
	hour := redisson.Rate{Permits: 9, Interval: time.Hour}
	five := func(c *redisson.Client, key string) error {
		return second(c.PermitExpirableSemaphore(key).TrySetPermits(ctx, 5))
	}
	var ids []string
	takeFour := func(c *redisson.Client, key string) (err error) {
		err = five(c, key)
		if err == nil {
			ids, err = c.PermitExpirableSemaphore(key).AcquireN(ctx, 4, 0)
		}
		return err
	}
	takeEight := func(c *redisson.Client, key string) error {
		return errors.Join(c.RateLimiter(key).SetRate(ctx, hour), c.RateLimiter(key).Acquire(ctx, 8))
	}
	return []numberChange{
		{"AcquireN", five, func(c *redisson.Client, key string) error {
			return second(c.PermitExpirableSemaphore(key).AcquireN(ctx, 2, 0))
		}, freeIDs, 3, 3},
		{"PermitExpirableSemaphore.Release", takeFour, func(c *redisson.Client, key string) error {
			return c.PermitExpirableSemaphore(key).Release(ctx, ids[:3]...)
		}, freeIDs, 4, 0},
		{"SetPermits", func(c *redisson.Client, key string) error {
			return c.PermitExpirableSemaphore(key).SetPermits(ctx, 5)
		}, func(c *redisson.Client, key string) error {
			return c.PermitExpirableSemaphore(key).SetPermits(ctx, 7)
		}, freeIDs, 7, 5},
		{"PermitExpirableSemaphore.Delete", five, func(c *redisson.Client, key string) error {
			return deleted(c.PermitExpirableSemaphore(key).Delete(ctx))
		}, freeIDs, 0, 5},
		{"Semaphore.Delete", five, func(c *redisson.Client, key string) error {
			return deleted(c.Semaphore(key).Delete(ctx))
		}, free, 0, 5},
		{"CountDownLatch.Delete", five, func(c *redisson.Client, key string) error {
			return deleted(c.CountDownLatch(key).Delete(ctx))
		}, free, 0, 5},
		{"RateLimiter.Delete", takeEight, func(c *redisson.Client, key string) error {
			return deleted(c.RateLimiter(key).Delete(ctx))
		}, freeRate, 0, 1},
		{"RateLimiter.Release", takeEight, func(c *redisson.Client, key string) error {
			return c.RateLimiter(key).Release(ctx, 2)
		}, freeRate, 3, 1},
		{"RateLimiter.UpdateRate", takeEight, func(c *redisson.Client, key string) error {
			return c.RateLimiter(key).UpdateRate(ctx, redisson.Rate{Permits: 20, Interval: time.Hour}, true)
		}, freeRate, 12, 1},
	}
}

// deleted is an error also where nothing was there.
func deleted(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("nothing was there")
	}
	return err
}

func TestChangeAnswerLost(t *testing.T) {
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		srv := redistest.Any(t)
		direct, p := newClient(t, srv), srv.Front(t)
		c := onClient(t, srv.Client(t, change, func(o *redis.Options) { o.Addr = p.Addr }), redisson.Timeout(10*time.Second)) // which nothing is to wait for
		for _, tt := range numberChanges(t.Context()) {
			check(t, errors.Join(tt.prepare(direct, "w"+tt.name), tt.do(direct, "w"+tt.name))) // loads the script
			check(t, tt.prepare(direct, tt.name))
			p.CutReply(naming(tt.name), 2)
			if err := tt.do(c, tt.name); err != nil || p.Cuts() != 0 {
				t.Errorf("%s = %v, with %d answers still to be lost", tt.name, err, p.Cuts())
			}
			must(t, tt.done)(tt.free(direct, tt.name))
		}
	})
}

func TestLateCopyOfAChange(t *testing.T) {
	srv := redistest.Start(t)
	direct := newClient(t, srv)
	c, p := behind(t, srv)
	for _, tt := range numberChanges(t.Context()) {
		check(t, errors.Join(tt.prepare(direct, "w"+tt.name), tt.do(direct, "w"+tt.name))) // loads the script
		check(t, tt.prepare(direct, tt.name))
		late := p.KeepBack(naming(tt.name), 0)
		check(t, tt.do(c, tt.name))
		must(t, tt.done)(tt.free(direct, tt.name))
		check(t, tt.prepare(direct, tt.name))
		late.Deliver(t)
		if n, err := tt.free(direct, tt.name); n != tt.again || err != nil {
			t.Errorf("%s: a late copy leaves %d permits, %v; want %d", tt.name, n, err, tt.again)
		}
	}
}

// A copy of a change of a lease arrives after a later one. The permit would become free under its holder.
func TestLateUpdateLeaseShortensNothing(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, direct := t.Context(), newPermits(t, newClient(t, srv), 1)
	id := mustPermit(t, direct, time.Hour)
	check(t, direct.UpdateLease(ctx, id, time.Hour)) // loads the script
	c, p := behind(t, srv)
	late := p.KeepBack(naming(direct.Name()), 0)
	check(t, c.PermitExpirableSemaphore(direct.Name()).UpdateLease(ctx, id, time.Minute))
	check(t, direct.UpdateLease(ctx, id, time.Hour))
	late.Deliver(t)
	if left, err := direct.LeaseTime(ctx, id); left < 59*time.Minute || err != nil {
		t.Errorf("the permit lasts for %v, %v; want an hour", left, err)
	}
}

// The first attempt to give permits back does not arrive, and meanwhile one of them is over. That is no success, and the others
// are still taken.
func TestReleaseInDoubtIsNoSuccess(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, direct := t.Context(), newPermits(t, newClient(t, srv), 2)
	check(t, direct.Release(ctx, mustPermit(t, direct, 0))) // loads the script
	c, p := behind(t, srv)
	for _, others := range []int{0, 1} {
		short := mustPermit(t, direct, time.Hour)
		long, err := direct.AcquireN(ctx, others, 0)
		check(t, err)
		late := p.KeepBack(naming(direct.Name()), 0)
		check(t, direct.UpdateLease(ctx, short, 20*time.Millisecond))
		eventually(t, "the lease is over", func() bool { n, err := direct.AvailablePermits(ctx); return n == 2-others && err == nil })
		if err := c.PermitExpirableSemaphore(direct.Name()).Release(ctx, append(long, short)...); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("Release with %d others = %v, want ErrNotHeld", others, err)
		}
		late.Deliver(t)
		must(t, others)(direct.AcquiredPermits(ctx))
	}
}

// The answer to an acquire is lost, and somebody gives back what it took before it is asked for again. It takes no more then.
func TestRateReleaseBetweenTwoAttempts(t *testing.T) {
	srv := redistest.Any(t)
	ctx, p := t.Context(), srv.Front(t)
	direct := newRate(t, newClient(t, srv), redisson.Rate{Permits: 5, Interval: time.Hour})
	must(t, true)(direct.TryAcquire(ctx, 1, 0)) // loads the scripts
	check(t, direct.Release(ctx, 1))
	rdb := srv.Client(t, func(o *redis.Options) { o.Addr = p.Addr })
	var first sync.Once
	rdb.AddHook(hook{func(cmd redis.Cmder) {
		if strings.HasPrefix(cmd.Name(), "eval") {
			first.Do(func() { check(t, direct.Release(ctx, 3)) })
		}
	}})
	p.CutReply(naming(direct.Name()), 1)
	must(t, true)(onClient(t, rdb).RateLimiter(direct.Name()).TryAcquire(ctx, 3, 10*time.Second))
	must(t, int64(5))(direct.AvailablePermits(ctx))
}

// The first attempt takes a permit, and only one after a pause is answered, when the lease is over. The permit may be another one's then.
func TestPermitOfALostAnswerEndsInTime(t *testing.T) {
	srv := redistest.Any(t)
	ctx, p := t.Context(), srv.Front(t)
	direct := newPermits(t, newClient(t, srv), 1)
	check(t, direct.Release(ctx, mustPermit(t, direct, 0))) // loads the scripts
	c := onClient(t, srv.Client(t, func(o *redis.Options) { o.Addr = p.Addr }))
	p.CutReply(naming(direct.Name()), 2)
	const lease = 5 * time.Millisecond // sooner over than the call is repeated
	if id, err := c.PermitExpirableSemaphore(direct.Name()).Acquire(ctx, lease); err == nil {
		t.Errorf("Acquire = %q, which has ended", id)
	}
	must(t, 1)(direct.AvailablePermits(ctx))
}

// refuseInDoubt has a try of c for the object of that name refused whose first attempt is on its way, and returns that.
func refuseInDoubt(t *testing.T, srv *redistest.Server, c *redisson.Client, p *redistest.Proxy, name string, try func() (bool, error)) *redistest.Late {
	t.Helper()
	late, rdb := p.KeepBack(naming(name), 0), srv.Client(t)
	eventually(t, "an answer within the 500ms that a try without a wait has", func() bool {
		ok, err := try()
		if ok {
			t.Fatalf("%s: taken, want a refusal", name)
		}
		return err == nil
	})
	late.Await(t)
	if !slices.ContainsFunc(keys(t, rdb), func(k string) bool { return strings.HasPrefix(k, "latchkey_receipt:{"+name+"}:"+c.ID()) }) {
		t.Errorf("the refusal for %s has left no receipt", name)
	}
	return late
}

// An answer that there is nothing to be had is not about the attempt before it, which may arrive when there is.
func TestAttemptBeforeARefusalTakesNothing(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, direct := t.Context(), newClient(t, srv)
	sem, permits, rate := direct.Semaphore("sem"), direct.PermitExpirableSemaphore("permits"), direct.RateLimiter("rate")
	check(t, rate.SetRate(ctx, redisson.Rate{Permits: 1, Interval: time.Hour}))
	check(t, rate.Acquire(ctx, 1))
	for _, try := range []func() (bool, error){ // loads the scripts
		func() (bool, error) { return sem.TryAcquire(ctx, 1, 0) },
		func() (bool, error) { _, ok, err := permits.TryAcquire(ctx, 0, 0); return ok, err },
	} {
		must(t, false)(try())
	}
	c, p := behind(t, srv)
	lates := []*redistest.Late{
		refuseInDoubt(t, srv, c, p, "sem", func() (bool, error) { return c.Semaphore("sem").TryAcquire(ctx, 1, 0) }),
		refuseInDoubt(t, srv, c, p, "permits", func() (bool, error) {
			_, ok, err := c.PermitExpirableSemaphore("permits").TryAcquireN(ctx, 2, 0, 0)
			return ok, err
		}),
		refuseInDoubt(t, srv, c, p, "rate", func() (bool, error) { return c.RateLimiter("rate").TryAcquire(ctx, 1, 0) }),
	}
	check(t, sem.Release(ctx, 1))
	check(t, permits.AddPermits(ctx, 2))
	check(t, rate.Release(ctx, 1))
	for _, l := range lates {
		l.Deliver(t)
	}
	must(t, 1)(sem.AvailablePermits(ctx))
	must(t, 2)(permits.AvailablePermits(ctx))
	must(t, int64(1))(rate.AvailablePermits(ctx))
}

// asked is what a client has asked last for the object of that name.
type asked struct {
	name string
	args atomic.Pointer[[]any]
}

func (a *asked) note(cmd redis.Cmder) {
	if slices.Contains(cmd.Args(), any(a.name)) {
		args := slices.Clone(cmd.Args())
		a.args.Store(&args)
	}
}

func (a *asked) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *asked) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { a.note(cmd); return next(ctx, cmd) }
}

func (a *asked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			a.note(cmd)
		}
		return next(ctx, cmds)
	}
}

// The network makes a copy of a question that has been answered with a refusal, and the copy arrives when there is something to be had.
func TestCopyOfARefusalTakesNothing(t *testing.T) {
	t.Parallel()
	srv := redistest.Any(t)
	ctx, direct := t.Context(), newClient(t, srv)
	for _, tt := range []struct {
		name string
		try  func(*redisson.Client) (bool, error)
		give func() error
		free func() (int64, error)
	}{
		{"sem", func(c *redisson.Client) (bool, error) { return c.Semaphore("sem").TryAcquire(ctx, 1, 0) },
			func() error { return direct.Semaphore("sem").Release(ctx, 1) },
			func() (int64, error) { n, err := direct.Semaphore("sem").AvailablePermits(ctx); return int64(n), err }},
		{"drained", func(c *redisson.Client) (bool, error) {
			n, err := c.Semaphore("drained").DrainPermits(ctx)
			return n > 0, err
		},
			func() error { return direct.Semaphore("drained").Release(ctx, 1) },
			func() (int64, error) {
				n, err := direct.Semaphore("drained").AvailablePermits(ctx)
				return int64(n), err
			}},
		{"permits", func(c *redisson.Client) (bool, error) {
			_, ok, err := c.PermitExpirableSemaphore("permits").TryAcquire(ctx, 0, 0)
			return ok, err
		}, func() error { return direct.PermitExpirableSemaphore("permits").AddPermits(ctx, 1) },
			func() (int64, error) {
				n, err := direct.PermitExpirableSemaphore("permits").AvailablePermits(ctx)
				return int64(n), err
			}},
		{"rate", func(c *redisson.Client) (bool, error) { return c.RateLimiter("rate").TryAcquire(ctx, 1, 0) },
			func() error { return direct.RateLimiter("rate").Release(ctx, 1) },
			func() (int64, error) { return direct.RateLimiter("rate").AvailablePermits(ctx) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "rate" {
				check(t, direct.RateLimiter("rate").SetRate(ctx, redisson.Rate{Permits: 1, Interval: time.Hour}))
				check(t, direct.RateLimiter("rate").Acquire(ctx, 1))
			}
			last, rdb := &asked{name: tt.name}, srv.Client(t)
			rdb.AddHook(last)
			must(t, false)(tt.try(onClient(t, rdb)))
			check(t, tt.give())
			check(t, srv.Client(t).Do(ctx, *last.args.Load()...).Err())
			must(t, int64(1))(tt.free())
		})
	}
}
