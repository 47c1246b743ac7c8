package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// What an outage of a part of Redis, or of all of it for a while, does to those who hold and to those who wait.

// One master of a cluster stands still. The locks on the others are renewed as if nothing had happened.
func TestFrozenMasterLosesOnlyItsOwnLocks(t *testing.T) {
	t.Parallel()
	const watchdog = 3 * time.Second
	c := redistest.StartCluster(t, 0, "--cluster-require-full-coverage", "no")
	clients := map[string]*redisson.Client{}
	for name, change := range map[string]func(*redis.ClusterOptions){"default": func(*redis.ClusterOptions) {}, "context timeouts": quick} {
		clients[name] = onClient(t, c.Client(t, change), redisson.WatchdogTimeout(watchdog), redisson.Timeout(watchdog/3))
	}
	holds := map[string]lock.Hold{}
	for name, client := range clients {
		for i := range 24 {
			key := fmt.Sprintf("%s %d", name, i)
			if owner, _ := c.Owner(t, key); owner != 0 {
				holds[key] = acquire(t.Context(), t, client, lock.Request{Key: key})
			} else {
				acquire(t.Context(), t, client, lock.Request{Key: key})
			}
		}
	}
	c.Masters[0].Pause(t)
	<-time.After(watchdog + watchdog/3)
	lost := 0
	for _, h := range holds {
		if h.Context().Err() != nil {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of the %d locks on healthy masters were lost", lost, len(holds))
	}
	c.Masters[0].Resume(t)
}

// waitsThrough is a way to wait for something that others have, and how these give it back.
type waitsThrough struct {
	name string
	wait func(context.Context, *redisson.Client) error
	give func(context.Context, *redisson.Client) error
}

// prepareWaits has giver hold what there is to wait for.
func prepareWaits(t *testing.T, giver *redisson.Client) []waitsThrough {
	t.Helper()
	ctx := t.Context()
	var ways []waitsThrough
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Fair, lock.Read, lock.Permit} {
		r := lock.Request{Key: kind.String(), Kind: kind, Limit: 1, Wait: -1}
		taken := r
		if kind == lock.Read {
			taken.Kind = lock.Write
		}
		h := acquire(ctx, t, giver, taken)
		ways = append(ways, waitsThrough{
			"Acquire " + kind.String(),
			func(ctx context.Context, c *redisson.Client) error { return second(c.Acquire(ctx, r)) },
			func(ctx context.Context, _ *redisson.Client) error { return h.Release(ctx) },
		})
	}
	must(t, true)(giver.Semaphore("s").TrySetPermits(ctx, 0))
	permits := giver.PermitExpirableSemaphore("p")
	must(t, true)(permits.TrySetPermits(ctx, 1))
	id := mustPermit(t, permits, time.Hour)
	must(t, true)(giver.CountDownLatch("l").TrySetCount(ctx, 1))
	rate := giver.RateLimiter("r")
	must(t, true)(rate.TrySetRate(ctx, redisson.Rate{Permits: 1, Interval: 1500 * time.Millisecond}))
	must(t, true)(rate.TryAcquire(ctx, 1, 0))
	return append(ways, waitsThrough{
		"Semaphore.Acquire",
		func(ctx context.Context, c *redisson.Client) error { return c.Semaphore("s").Acquire(ctx, 1) },
		func(ctx context.Context, c *redisson.Client) error { return c.Semaphore("s").Release(ctx, 1) },
	}, waitsThrough{
		"PermitExpirableSemaphore.Acquire",
		func(ctx context.Context, c *redisson.Client) error {
			return second(c.PermitExpirableSemaphore("p").Acquire(ctx, time.Minute))
		},
		func(ctx context.Context, c *redisson.Client) error {
			return c.PermitExpirableSemaphore("p").Release(ctx, id)
		},
	}, waitsThrough{
		"CountDownLatch.Await",
		func(ctx context.Context, c *redisson.Client) error { return c.CountDownLatch("l").Await(ctx) },
		func(ctx context.Context, c *redisson.Client) error { return c.CountDownLatch("l").CountDown(ctx) },
	}, waitsThrough{
		"RateLimiter.Acquire",
		func(ctx context.Context, c *redisson.Client) error { return c.RateLimiter("r").Acquire(ctx, 1) },
		func(context.Context, *redisson.Client) error { return nil },
	})
}

// The master dies, and for a second or two nobody answers. All who wait go on waiting, and get what they wait for.
func TestWaitersOutlastAFailover(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	process := func() *redisson.Client {
		return onClient(t, s.Client(t, func(o *redis.FailoverOptions) { o.ContextTimeoutEnabled, o.DialerRetries = true, 1 }), redisson.Timeout(patience))
	}
	giver, waiter := process(), process()
	all := prepareWaits(t, giver)
	admin, replica := s.Master.Client(t), s.Replica.Client(t)
	type result struct {
		name string
		err  error
	}
	ended := make(chan result, len(all))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, w := range all {
		go func() { ended <- result{w.name, w.wait(ctx, waiter)} }()
	}
	eventually(t, "the waiters subscribe", func() bool { return len(subscriptions(t, admin)) == 7 })
	eventually(t, "the replica has what they wait for", func() bool {
		return len(redissonKeys(t, replica)) == len(redissonKeys(t, admin))
	})
	s.Master.Kill(t)
	s.AwaitReplicaLeads(t)
	for _, w := range all {
		if err := w.give(ctx, giver); err != nil {
			t.Logf("%s: the end of what it waits for: %v", w.name, err) // it goes on in the background
		}
	}
	served := time.Now()
	for range all {
		r := <-ended
		if r.err != nil {
			t.Errorf("%s = %v, want the waiter to outlast the failover", r.name, r.err)
		} else if d := time.Since(served); d > waits/2 {
			t.Errorf("%s was served %v after its time", r.name, d)
		}
	}
}

// The slot of what is asked for moves to another master. Questions that name keys which are there and others which are
// not have to wait for the end of that; those whose keys are all there do not.
func TestQuestionsOutlastAMoveOfTheirSlot(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 0)
	c := member(t, cluster)
	ctx := t.Context()
	const tag = "{moving}"
	i, slot := cluster.Owner(t, tag)
	from, to := cluster.Masters[i], cluster.Masters[(i+1)%3]
	sem, latch, rate := c.Semaphore(tag+"s"), c.CountDownLatch("moving"), c.RateLimiter(tag+"r")
	untaken, taken := c.PermitExpirableSemaphore(tag+"untaken"), c.PermitExpirableSemaphore(tag+"taken")
	must(t, true)(sem.TrySetPermits(ctx, 1))
	must(t, true)(untaken.TrySetPermits(ctx, 1))
	must(t, true)(taken.TrySetPermits(ctx, 5))
	id := mustPermit(t, taken, time.Minute)
	must(t, true)(latch.TrySetCount(ctx, 1))
	must(t, true)(rate.TrySetRate(ctx, redisson.Rate{Permits: 1, Interval: time.Minute}))
	fair := acquire(ctx, t, c, lock.Request{Key: tag + "fair", Kind: lock.Fair})
	cluster.OpenSlot(t, slot, from, to)

	for _, o := range callAll(t, time.Minute, func() {}, map[string]func() error{
		"PermitExpirableSemaphore.AvailablePermits": func() error { return second(taken.AvailablePermits(ctx)) },
		"PermitExpirableSemaphore.UpdateLease": func() (err error) {
			for range 5 { // one without an answer on a busy machine needs a receipt, which has to wait
				if err = taken.UpdateLease(ctx, id, time.Hour); !errors.Is(err, redisson.ErrPending) {
					break
				}
			}
			return err
		},
		"Semaphore.AvailablePermits": func() error { return second(sem.AvailablePermits(ctx)) },
		"CountDownLatch.Count":       func() error { return second(latch.Count(ctx)) },
	}) {
		if o.err != nil {
			t.Errorf("%s while the slot is open: %v", o.name, o.err)
		}
	}
	for _, o := range callAll(t, 800*time.Millisecond, func() { cluster.CloseSlot(t, slot, from, to) }, map[string]func() error{
		"Release fair":                     func() error { return fair.Release(ctx) },
		"PermitExpirableSemaphore.Acquire": func() error { return second(untaken.Acquire(ctx, time.Minute)) },
		"RateLimiter.Acquire":              func() error { return rate.Acquire(ctx, 1) },
		"Semaphore.Release":                func() error { return sem.Release(ctx, 1) },
		"CountDownLatch.CountDown":         func() error { return latch.CountDown(ctx) },
	}) {
		if o.err != nil {
			t.Errorf("%s = %v after %v, want it to outlast the move", o.name, o.err, o.took())
		}
	}
	must(t, 2)(sem.AvailablePermits(ctx))
	must(t, int64(0))(latch.Count(ctx))
}

// The keys of a slot move one after the other, and what is counted comes before its receipts. Who asks at the new master meanwhile waits for
// the receipt: without it a request would be counted twice, and another receipt would keep the first from moving.
func TestReceiptsMoveWithTheirSlot(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 0)
	ctx := t.Context()
	for name, tt := range map[string]struct {
		prepare, do func(c *redisson.Client, key string) error
		free        func(c *redisson.Client, key string) (int64, error)
		want        int64
	}{
		"Semaphore.Release": {
			func(c *redisson.Client, key string) error { return second(c.Semaphore(key).TrySetPermits(ctx, 5)) },
			func(c *redisson.Client, key string) error { return c.Semaphore(key).Release(ctx, 1) }, free, 6,
		},
		"Semaphore.Acquire": {
			func(c *redisson.Client, key string) error { return second(c.Semaphore(key).TrySetPermits(ctx, 5)) },
			func(c *redisson.Client, key string) error { return c.Semaphore(key).Acquire(ctx, 1) }, free, 4,
		},
		"CountDownLatch.CountDown": {
			func(c *redisson.Client, key string) error { return second(c.CountDownLatch(key).TrySetCount(ctx, 5)) },
			func(c *redisson.Client, key string) error { return c.CountDownLatch(key).CountDown(ctx) }, free, 4,
		},
	} {
		for _, lost := range []bool{false, true} {
			key := fmt.Sprintf("%s %v", name, lost)
			i, slot := cluster.Owner(t, key)
			from, to := cluster.Masters[i], cluster.Masters[(i+1)%3]
			move := func() {
				host, port := to.HostPort()
				from.Do(t, "migrate", host, port, key, 0, 5000)
			}
			rdb, losing := cluster.Client(t, quick), &loser{then: move}
			rdb.AddHook(losing)
			c := onClient(t, rdb)
			check(t, tt.prepare(c, key))
			cluster.OpenSlot(t, slot, from, to)
			if losing.armed.Store(lost); !lost {
				move()
			}
			done := make(chan error, 1)
			go func() { done <- tt.do(c, key) }()
			<-time.After(300 * time.Millisecond)
			cluster.CloseSlot(t, slot, from, to) // fails if a receipt is in the way of another
			if err := <-done; err != nil {
				t.Errorf("%s = %v", key, err)
			}
			must(t, tt.want)(tt.free(c, key))
		}
	}
}

// loser loses the answer to the first script after it was armed, and then does something.
type loser struct {
	armed atomic.Bool
	then  func()
}

func (l *loser) DialHook(next redis.DialHook) redis.DialHook { return next }
func (l *loser) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if strings.HasPrefix(cmd.Name(), "eval") && err == nil && l.armed.CompareAndSwap(true, false) {
			l.then()
			err = errLost
			cmd.SetErr(err)
		}
		return err
	}
}
func (l *loser) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A reader leaves at the new master of a slot to which only the lock has moved, and not the key that says how long another one reads.
func TestReaderLeavesWhileTheSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 0)
	c := member(t, cluster)
	const key = "read"
	i, slot := cluster.Owner(t, key)
	from, to := cluster.Masters[i], cluster.Masters[(i+1)%3]
	rw := c.ReadWriteLock(key)
	stays, leaves := mustLock(t, rw.ReadLock()), mustLock(t, rw.ReadLock())
	cluster.OpenSlot(t, slot, from, to)
	host, port := to.HostPort()
	from.Do(t, "migrate", host, port, key, 0, 5000)
	left := make(chan error, 1)
	go func() { left <- rw.ReadLock().Unlock(leaves) }()
	<-time.After(300 * time.Millisecond)
	if _, ok, err := member(t, cluster).ReadWriteLock(key).WriteLock().TryLock(t.Context(), 0, 0); ok || err != nil {
		t.Fatalf("TryLock of a writer beside a reader = %v, %v", ok, err)
	}
	cluster.CloseSlot(t, slot, from, to)
	check(t, <-left)
	if _, ok, err := member(t, cluster).ReadWriteLock(key).WriteLock().TryLock(t.Context(), 0, 0); ok || err != nil {
		t.Fatalf("TryLock of a writer beside a reader after the move = %v, %v", ok, err)
	}
	mustUnlock(t, rw.ReadLock(), stays)
	mustUnlock(t, rw.WriteLock(), mustLock(t, rw.WriteLock()))
}

// outage cuts everything off for a while. What was sent meanwhile is lost.
func outage(p *redistest.Proxy, d time.Duration, meanwhile func()) {
	p.Freeze()
	meanwhile()
	<-time.After(d)
	p.Drop()
	p.Thaw()
}

// A waiter gives up in an outage that is longer than its watchdog's timeout: its place in the queue must not outlast it.
func TestFairWaiterThatLeftInAnOutageKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	p := s.Front(t)
	brief := func(o *redis.Options) { o.Addr, o.ReadTimeout, o.MaxRetries = p.Addr, 300*time.Millisecond, -1 } // nothing of it outlasts the outage
	c := onClient(t, s.Client(t, brief), redisson.WatchdogTimeout(900*time.Millisecond), redisson.Timeout(500*time.Millisecond))
	holder, other := newClient(t, s), newClient(t, s)
	held := acquire(t.Context(), t, holder, lock.Request{Key: "k", Kind: lock.Fair})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- second(c.Acquire(ctx, lock.Request{Key: "k", Kind: lock.Fair, Wait: -1})) }()
	expectQueue(t, rdb, 1)
	outage(p, 2200*time.Millisecond, func() {
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the waiter left with %v", err)
		}
	})
	release(t, held)
	start := time.Now()
	h, err := other.Acquire(t.Context(), lock.Request{Key: "k", Kind: lock.Fair, Wait: 4 * time.Second})
	if err != nil {
		t.Fatalf("the free lock: %v", err)
	}
	if d := ran(start); d > 2*time.Second+soon {
		t.Errorf("the free lock was had after %v", d)
	}
	release(t, h)
	expectQueue(t, rdb, 0)
}

// The processes of two waiters died. Their own patience is what they may cost the others, and not the lease that the holder
// had.
func TestDeadFairWaitersCostTheirPatience(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	held := acquire(t.Context(), t, newClient(t, s), lock.Request{Key: "k", Kind: lock.Fair})
	const patience = time.Second
	for i := range 2 {
		dead, p := behind(t, s)
		go func() { _, _ = dead.Acquire(t.Context(), lock.Request{Key: "k", Kind: lock.Fair, Wait: patience}) }()
		expectQueue(t, rdb, int64(i+1))
		p.Freeze()
		defer p.Thaw()
	}
	release(t, held)
	start := time.Now()
	h, err := newClient(t, s).Acquire(t.Context(), lock.Request{Key: "k", Kind: lock.Fair, Wait: 2*patience + 5*time.Second})
	if err != nil {
		t.Fatalf("the free lock after %v: %v", time.Since(start), err)
	}
	release(t, h)
}

// A head of the queue without a deadline, as Redisson can leave one, is asked about now and then.
func TestFairHeadWithoutADeadlineIsNotPolledHard(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	check(t, rdb.RPush(t.Context(), queueKey, "dead:1").Err())
	c := newClient(t, s)
	before, _ := commands(t, rdb)
	_, err := c.Acquire(t.Context(), lock.Request{Key: "k", Kind: lock.Fair, Wait: time.Second})
	if err != nil && !errors.Is(err, lock.ErrBusy) {
		t.Errorf("Acquire = %v", err)
	}
	if after, byName := commands(t, rdb); after-before > 30 {
		t.Errorf("%d commands in a second of waiting: %v", after-before, byName)
	}
}
