package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/locktest"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// quick has go-redis stop at the deadlines that it is given, and give up a dead node soon.
func quick(o *redis.ClusterOptions) { o.ContextTimeoutEnabled, o.DialerRetries = true, 1 }

// member is one process of several in a cluster.
func member(tb testing.TB, c *redistest.Cluster, opts ...redisson.Option) *redisson.Client {
	tb.Helper()
	return onClient(tb, c.Client(tb, quick), opts...)
}

// listeners counts the subscriptions to channels of both kinds on all nodes.
func listeners(tb testing.TB, c *redistest.Cluster) (sharded, classic int) {
	tb.Helper()
	for _, n := range slices.Concat(c.Masters, c.Replicas) {
		if c.Sharded {
			sharded += len(n.Do(tb, "pubsub", "shardchannels", "redisson*").([]any))
		}
		classic += len(n.Do(tb, "pubsub", "channels", "redisson*").([]any))
	}
	return sharded, classic
}

// channels counts the subscriptions on all nodes.
func channels(tb testing.TB, c *redistest.Cluster) int {
	tb.Helper()
	sharded, classic := listeners(tb, c)
	return sharded + classic
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	t.Run("conformance", func(t *testing.T) {
		var n atomic.Int64
		locktest.Run(t, func(t *testing.T) lock.Locker { // names of its own for each, and room for braces in them
			prefix := fmt.Sprintf("{%d}:", n.Add(1))
			return steady{member(t, c, redisson.WatchdogTimeout(2*time.Second),
				redisson.NameMapper(func(name string) string { return prefix + name }))}
		}, locktest.Kinds(lock.Exclusive, lock.Fair, lock.Read, lock.Write, lock.Fenced, lock.Spin, lock.Permit))
	})
	t.Run("wake", func(t *testing.T) { testClusterWake(t, c) })
	t.Run("levels", func(t *testing.T) { testClusterLevels(t, c) })
	t.Run("sharded on", func(t *testing.T) { testShardedOn(t, c) })
	t.Run("lost connections", func(t *testing.T) { testLostShardConnections(t, c) })
	t.Run("mismatched modes", func(t *testing.T) { testMismatchedModes(t, c) })
	t.Run("batch", func(t *testing.T) { testClusterBatch(t, c) })
	t.Run("names", func(t *testing.T) { testClusterNames(t, c) })
	t.Run("synchronizers", func(t *testing.T) { testClusterSynchronizers(t, c) })
	t.Run("replace", func(t *testing.T) { testClusterReplace(t, c) })
	t.Run("release all", func(t *testing.T) { testClusterReleaseAll(t, c) })
	t.Run("slot moves", func(t *testing.T) { testSlotMoves(t, c) })
	t.Run("counter", func(t *testing.T) { testClusterCounter(t, c) })
	t.Run("silent node", func(t *testing.T) { testSilentNode(t, c) })
}

// Scenarios 3 and 4: a release wakes the other process, on the kind of channels that both have, from each of the masters.
func testClusterWake(t *testing.T, c *redistest.Cluster) {
	for _, tt := range []struct {
		name    string
		mode    redisson.ShardedMode
		sharded bool
	}{
		{"auto", redisson.ShardedAuto, c.Sharded},
		{"on", redisson.ShardedOn, true},
		{"off", redisson.ShardedOff, false},
	} {
		if tt.sharded && !c.Sharded {
			continue // see testShardedOn
		}
		t.Run(tt.name, func(t *testing.T) {
			holder, waiter := member(t, c, redisson.ShardedPubSub(tt.mode)), member(t, c, redisson.ShardedPubSub(tt.mode))
			var held []context.Context
			var got []<-chan context.Context
			for i := range 9 {
				held = append(held, mustLock(t, holder.Lock(fmt.Sprint("wake", i))))
				got = append(got, lockAsync(t, waiter.Lock(fmt.Sprint("wake", i))))
			}
			eventually(t, "waiters subscribe", func() bool {
				sharded, classic := listeners(t, c)
				return tt.sharded && sharded == 9 && classic == 0 || !tt.sharded && sharded == 0 && classic == 9
			})
			<-time.After(50 * time.Millisecond) // for the try that follows a confirmed subscription
			var slowest time.Duration
			for i := range held {
				start := time.Now()
				mustUnlock(t, holder.Lock(fmt.Sprint("wake", i)), held[i])
				expectHeld(t, waiter.Lock(fmt.Sprint("wake", i)), got[i])
				slowest = max(slowest, time.Since(start))
			}
			t.Logf("release to acquire and release by the waiter took up to %v", slowest)
			if slowest > time.Second { // who is not woken looks again after 10 s; benchmarks measure how long it takes
				t.Errorf("a waiter woke after %v, want 1s at most", slowest)
			}
			eventually(t, "nothing is left", func() bool { return channels(t, c) == 0 })
		})
	}
}

// Where there are no sharded channels, a client that was told to use them says so when it can't announce a release.
func testShardedOn(t *testing.T, c *redistest.Cluster) {
	l := member(t, c, redisson.ShardedPubSub(redisson.ShardedOn)).Lock("on")
	err := l.Unlock(mustLock(t, l))
	if c.Sharded && err != nil || !c.Sharded && !errors.Is(err, lock.ErrRefused) {
		t.Errorf("Unlock = %v; the cluster has sharded channels: %v", err, c.Sharded)
	}
}

// Scenario 18: the connections on which a waiter listens are killed.
func testLostShardConnections(t *testing.T, c *redistest.Cluster) {
	holder, waiter := member(t, c).Lock("killed"), member(t, c).Lock("killed")
	held := mustLock(t, holder)
	got := lockAsync(t, waiter)
	subscribed := func() bool { return channels(t, c) == 1 }
	eventually(t, "waiter subscribes", subscribed)
	for _, n := range c.Masters {
		n.Do(t, "client", "kill", "type", "pubsub")
	}
	eventually(t, "the connection is gone", func() bool { return !subscribed() })
	eventually(t, "waiter subscribes again", subscribed)
	mustUnlock(t, holder, held)
	expectHeld(t, waiter, got)
}

// Peers that disagree about the kind of channels are not woken, and progress by their cap.
func testMismatchedModes(t *testing.T, c *redistest.Cluster) {
	if !c.Sharded {
		t.Skip("this server has no sharded channels: there is one mode, and nobody to differ from")
	}
	const watchdog = 3 * time.Second
	holder := member(t, c, redisson.ShardedPubSub(redisson.ShardedOff), redisson.WatchdogTimeout(watchdog)).Lock("mismatch")
	waiter := member(t, c, redisson.ShardedPubSub(redisson.ShardedOn), redisson.WatchdogTimeout(watchdog)).Lock("mismatch")
	held := mustLock(t, holder)
	got := lockAsync(t, waiter)
	eventually(t, "waiter subscribes", func() bool { sharded, _ := listeners(t, c); return sharded == 1 })
	<-time.After(50 * time.Millisecond) // for the try that follows a confirmed subscription
	start := time.Now()
	mustUnlock(t, holder, held)
	expectHeldWithin(t, waiter, got, watchdog/3+500*time.Millisecond)
	if d := time.Since(start); d < watchdog/6 {
		t.Errorf("the waiter got the lock after %v: was it woken?", d)
	}
}

// Renewals and removals of locks in all slots share a batch and not a script.
func testClusterBatch(t *testing.T, c *redistest.Cluster) {
	m := member(t, c, redisson.WatchdogTimeout(900*time.Millisecond))
	var held []context.Context
	for i := range 60 {
		held = append(held, mustLock(t, m.Lock(fmt.Sprint("batch", i))))
	}
	<-time.After(1500 * time.Millisecond)
	for i, ctx := range held {
		if ctx.Err() != nil {
			t.Fatalf("lock %d: %v", i, context.Cause(ctx))
		}
		mustUnlock(t, m.Lock(fmt.Sprint("batch", i)), ctx)
	}
}

// Names whose braces split the slots are refused before anything is sent.
func testClusterNames(t *testing.T, c *redistest.Cluster) {
	nobody := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer nobody.Close()
	refusing := onClient(t, nobody)
	for _, name := range []string{"a{b", "a}b", "{}x", "x{}{y}", ""} {
		l := refusing.Lock(name)
		_, lockErr := l.Lock(t.Context())
		_, forceErr := l.ForceUnlock(t.Context())
		_, isErr := l.IsLocked(t.Context())
		_, acquireErr := refusing.Acquire(t.Context(), lock.Request{Key: name})
		for _, err := range []error{lockErr, forceErr, isErr, acquireErr} {
			if err == nil || name != "" && !strings.Contains(err.Error(), "different slots") {
				t.Errorf("name %q: %v, want a refusal because of the slots", name, err)
			}
		}
	}
	m := member(t, c)
	for _, name := range []string{"a", "order:1", "{a}b", "x{y}z", "{tag}:x{", "ключ"} {
		mustUnlock(t, m.Lock(name), mustLock(t, m.Lock(name)))
	}
	// One server has no slots, and these names are Redisson's there, too.
	single := newClient(t, redistest.Any(t))
	for _, name := range []string{"a{b", "a}b", "{}x"} {
		mustUnlock(t, single.Lock(name), mustLock(t, single.Lock(name)))
	}
}

// All keys of a synchronizer are in one slot, those of its receipts as well.
func testClusterSynchronizers(t *testing.T, c *redistest.Cluster) {
	m, ctx := member(t, c, redisson.FencingTokenTTL(time.Hour)), t.Context()
	for _, name := range []string{"numbers", "{numbers}:1", "numbers:{2}"} {
		s, x, r := m.Semaphore(name), m.PermitExpirableSemaphore(name), m.RateLimiter(name)
		must(t, true)(s.TrySetPermits(ctx, 2))
		check(t, s.Acquire(ctx, 2))
		check(t, s.Release(ctx, 1))
		must(t, true)(s.Delete(ctx))
		check(t, x.SetPermits(ctx, 3))
		ids, err := x.AcquireN(ctx, 3, 0)
		check(t, err)
		check(t, x.UpdateLease(ctx, ids[0], time.Minute))
		check(t, x.Release(ctx, ids...))
		must(t, true)(x.Delete(ctx))
		for _, perClient := range []bool{false, true} {
			check(t, r.SetRate(ctx, redisson.Rate{Permits: 3, Interval: time.Minute, PerClient: perClient}))
			check(t, r.Acquire(ctx, 3))
			check(t, r.Release(ctx, 1))
			check(t, r.UpdateRate(ctx, redisson.Rate{Permits: 4, Interval: time.Minute, PerClient: perClient}, true))
			must(t, int64(2))(r.AvailablePermits(ctx))
			check(t, second(r.Rate(ctx)))
			must(t, true)(r.Delete(ctx))
		}
		fenced := m.FencedLock(name)
		held := mustLock(t, fenced)
		inner, err := fenced.Lock(held)
		check(t, err)
		check(t, errors.Join(fenced.Unlock(inner), fenced.Unlock(held)))
		must(t, int64(2))(fenced.LastToken(ctx))
	}
	// Redisson's channel of a latch is in another slot when its name has a hash tag.
	must(t, true)(m.CountDownLatch("numbers").TrySetCount(ctx, 2))
	must(t, true)(m.CountDownLatch("numbers").Delete(ctx))
	if _, err := m.CountDownLatch("{numbers}:1").Delete(ctx); err == nil {
		t.Error("Delete of a latch with a hash tag was not refused")
	}
	for _, tt := range []interface {
		Delete(ctx context.Context) (bool, error)
	}{m.Semaphore("a{b"), m.PermitExpirableSemaphore("a{b"), m.RateLimiter("a{b"), m.CountDownLatch("a{b")} {
		if _, err := tt.Delete(ctx); err == nil || !strings.Contains(err.Error(), "different slots") {
			t.Errorf("Delete of %T = %v, want a refusal because of the slots", tt, err)
		}
	}
}

// The slot of a lock moves while one process holds it and another one waits.
func testSlotMoves(t *testing.T, c *redistest.Cluster) {
	const name = "moving"
	i, slot := c.Owner(t, name)
	from, to := c.Masters[i], c.Masters[(i+1)%3]
	hm := member(t, c, redisson.WatchdogTimeout(3*waits))
	listening := func(n *redistest.Node) bool { // at its slot's master if the channel is sharded, and else anywhere
		return c.Sharded && len(n.Do(t, "pubsub", "shardchannels", "redisson*").([]any)) > 0 || !c.Sharded && channels(t, c) > 0
	}
	holder, waiter := hm.Lock(name), member(t, c).Lock(name)
	held := mustLock(t, holder)
	got, failed := lockUntil(t.Context(), waiter)
	eventually(t, "waiter subscribes", func() bool { return listening(from) })

	c.OpenSlot(t, slot, from, to)
	again := mustLock(t, hm.Lock("{"+name+"}new")) // a free lock in an open slot is taken at the new master
	mustUnlock(t, hm.Lock("{"+name+"}new"), again)
	mustUnlock(t, holder, held) // while the slot is open
	expectWaiter(t, waiter, got, failed)

	held = mustLock(t, holder) // this one at the new master
	got, failed = lockUntil(t.Context(), waiter)
	eventually(t, "waiter subscribes", func() bool { return listening(from) })
	c.CloseSlot(t, slot, from, to)
	eventually(t, "waiter follows the slot", func() bool { return listening(to) })
	<-time.After(100 * time.Millisecond)
	start := time.Now()
	mustUnlock(t, holder, held)
	expectWaiter(t, waiter, got, failed)
	t.Logf("woken at the new master after %v", time.Since(start))
	if n := channels(t, c); n > 2 { // its own, and while the slot moved Redisson's
		t.Errorf("%d channels are subscribed, want the old ones gone", n)
	}
}

// Scenario 8, with two clients of one process and three locks.
func testClusterCounter(t *testing.T, c *redistest.Cluster) {
	a, b := member(t, c), member(t, c)
	var count [3]int
	var all sync.WaitGroup
	for _, m := range []*redisson.Client{a, b} {
		for range 4 {
			all.Go(func() {
				for i := range 60 {
					l := m.Lock(fmt.Sprint("count", i%3))
					held := mustLock(t, l)
					count[i%3]++
					mustUnlock(t, l, held)
				}
			})
		}
	}
	all.Wait()
	if want := [3]int{160, 160, 160}; count != want {
		t.Errorf("counts = %v, want %v", count, want)
	}
	eventually(t, "nothing is left", func() bool { return channels(t, c) == 0 })
}

// A node that answers nothing keeps no caller longer than its deadline, and the locks of others not at all.
func testSilentNode(t *testing.T, c *redistest.Cluster) {
	const name = "silent"
	m := member(t, c)
	mustUnlock(t, m.Lock(name), mustLock(t, m.Lock(name)))
	i, _ := c.Owner(t, name)
	c.Masters[i].Pause(t)
	defer c.Masters[i].Resume(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	expectSoon(t, "Lock at a silent node", 700*time.Millisecond, func() {
		if _, err := m.Lock(name).Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock at a silent node = %v", err)
		}
	})
}
