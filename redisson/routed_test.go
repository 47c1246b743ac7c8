package redisson_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/locktest"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// A redis.ClusterClient need not talk to a Redis Cluster: go-redis has one for the replicas that sentinels name, and one for a map that a
// program makes by itself.

// routed is such a client's servers, with the clients of two processes.
type routed struct {
	servers []*redistest.Server
	client  func(opts ...redisson.Option) *redisson.Client                            // by the map
	plain   func(t *testing.T, name string, opts ...redisson.Option) *redisson.Client // of the one server that has the name
}

// mapped is servers under a map that gives each the same number of slots.
func mapped(tb testing.TB, n int) *routed {
	tb.Helper()
	r := &routed{}
	for range n {
		r.servers = append(r.servers, redistest.Start(tb))
	}
	slots := func(context.Context) (all []redis.ClusterSlot, err error) {
		for i, s := range r.servers {
			all = append(all, redis.ClusterSlot{Start: i * 16384 / n, End: (i+1)*16384/n - 1, Nodes: []redis.ClusterNode{{Addr: s.Addr}}})
		}
		return all, nil
	}
	byMap := func() *redis.ClusterClient {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: slots, ContextTimeoutEnabled: true})
		tb.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}
	r.client = func(opts ...redisson.Option) *redisson.Client { return onClient(tb, byMap(), opts...) }
	r.plain = func(t *testing.T, name string, opts ...redisson.Option) *redisson.Client {
		node, err := byMap().MasterForKey(t.Context(), name)
		check(t, err)
		return onClient(t, redis.NewClient(node.Options()), opts...)
	}
	return r
}

// sentinels is what three sentinels name, by a client that sends what only reads to replicas as well.
func sentinels(tb testing.TB, s *redistest.Sentinels, client func() redis.UniversalClient) *routed {
	return &routed{
		servers: []*redistest.Server{s.Master, s.Replica},
		client: func(opts ...redisson.Option) *redisson.Client {
			rdb := client()
			tb.Cleanup(func() { _ = rdb.Close() })
			return onClient(tb, rdb, opts...)
		},
		plain: func(t *testing.T, _ string, opts ...redisson.Option) *redisson.Client {
			return onClient(t, s.Client(t, func(o *redis.FailoverOptions) { o.ContextTimeoutEnabled, o.DialerRetries = true, 1 }), opts...)
		},
	}
}

// sentinelClients are the clients that go-redis has for sentinels and replicas.
func sentinelClients(s *redistest.Sentinels) map[string]func() redis.UniversalClient {
	return map[string]func() redis.UniversalClient{
		"RouteByLatency": func() redis.UniversalClient {
			return redis.NewFailoverClusterClient(&redis.FailoverOptions{MasterName: s.Name, SentinelAddrs: s.Addrs, RouteByLatency: true,
				ContextTimeoutEnabled: true, DialerRetries: 1})
		},
		"RouteRandomly": func() redis.UniversalClient {
			return redis.NewUniversalClient(&redis.UniversalOptions{MasterName: s.Name, Addrs: s.Addrs, RouteRandomly: true,
				ContextTimeoutEnabled: true, DialerRetries: 1})
		},
	}
}

func TestRoutedBySentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	for name, client := range sentinelClients(s) {
		t.Run(name, func(t *testing.T) { testRouted(t, sentinels(t, s, client)) })
	}
}

func TestRoutedByAMap(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			testRouted(t, mapped(t, n))
		})
	}
}

func testRouted(t *testing.T, r *routed) {
	t.Run("hand-over", func(t *testing.T) { testRoutedHandOver(t, r) })
	t.Run("names", func(t *testing.T) { testRoutedNames(t, r) })
	t.Run("synchronizers", func(t *testing.T) { testRoutedSynchronizers(t, r) })
	t.Run("force", func(t *testing.T) { testRoutedForce(t, r) })
	t.Run("objects", func(t *testing.T) { testRoutedObjects(t, r) })
	t.Run("conformance", func(t *testing.T) {
		var n atomic.Int64
		locktest.Run(t, func(t *testing.T) lock.Locker {
			prefix := fmt.Sprintf("{%d}:", n.Add(1))
			return r.client(redisson.WatchdogTimeout(2*time.Second), redisson.NameMapper(func(name string) string { return prefix + name }))
		}, locktest.Kinds(lock.Exclusive, lock.Fair, lock.Read, lock.Write, lock.Fenced, lock.Spin, lock.Permit))
	})
}

// A release wakes the other process at once, whether it has the same client or a plain one, on the server of each name.
func testRoutedHandOver(t *testing.T, r *routed) {
	for i := range 6 {
		name := fmt.Sprint("wake", i)
		one, other, plain := r.client(), r.client(), r.plain(t, name)
		for _, pair := range [][2]*redisson.Client{{one, other}, {one, plain}, {plain, one}} {
			holder, waiter := pair[0].Lock(name), pair[1].Lock(name)
			held := mustLock(t, holder)
			got := lockAsync(waiter)
			eventually(t, "waiter subscribes", func() bool {
				n := 0
				for _, s := range r.servers {
					n += len(subscriptions(t, s.Client(t)))
				}
				return n > 0
			})
			<-time.After(50 * time.Millisecond) // for the try that follows a confirmed subscription
			start := time.Now()
			mustUnlock(t, holder, held)
			expectHeldWithin(t, waiter, got, waits/4)
			t.Logf("%s: woken after %v", name, time.Since(start))
			eventually(t, "nothing is left", func() bool {
				for _, s := range r.servers {
					if len(subscriptions(t, s.Client(t))) > 0 {
						return false
					}
				}
				return true
			})
		}
	}
}

// splitting are names whose braces put what belongs to them elsewhere where there are slots.
var splitting = []string{"a{b", "a}b", "{}x", "x{}{y}"}

// One server takes all names, and several take those whose keys are at one of them.
func testRoutedNames(t *testing.T, r *routed) {
	single := len(r.servers) < 3
	for _, name := range splitting {
		l := r.client().Lock(name)
		held, err := l.Lock(t.Context())
		switch {
		case err == nil:
			mustUnlock(t, l, held)
		case single || !strings.Contains(err.Error(), "braces"):
			t.Errorf("Lock of %q: %v", name, err)
		}
		if err == nil && !single {
			t.Logf("%q is whole by chance", name)
		}
	}
	if _, err := r.client().CountDownLatch("{numbers}:1").Delete(t.Context()); (err == nil) != single {
		t.Errorf("Delete of a latch with a hash tag: %v", err)
	}
}

// What waits for permits is woken as well, and a latch's end is heard.
func testRoutedSynchronizers(t *testing.T, r *routed) {
	for i := range 3 {
		name := fmt.Sprint("permits", i)
		plain, byMap := r.plain(t, name), r.client()
		must(t, true)(plain.Semaphore(name).TrySetPermits(t.Context(), 1))
		for _, pair := range [][2]*redisson.Client{{plain, byMap}, {byMap, plain}} {
			check(t, pair[0].Semaphore(name).Acquire(t.Context(), 1))
			got := acquireAsync(pair[1].Semaphore(name), 1)
			eventually(t, "waiter subscribes", func() bool { return inspect(t, plain, name).Listeners == 1 })
			start := time.Now()
			check(t, pair[0].Semaphore(name).Release(t.Context(), 1))
			expectDone(t, got)
			if took := time.Since(start); took > waits/4 {
				t.Errorf("woken after %v", took)
			}
			check(t, pair[1].Semaphore(name).Release(t.Context(), 1))
		}
	}
}

// The holders of locks that are freed by hand are told, whoever frees them.
func testRoutedForce(t *testing.T, r *routed) {
	for i := range 3 {
		name := fmt.Sprint("forced", i)
		hand, holder := r.client(), r.client()
		h := acquire(t.Context(), t, holder, lock.Request{Key: name})
		hears(t, holder)
		start := time.Now()
		must(t, true)(hand.ForceUnlock(t.Context(), name))
		expectForced(t, name, h.Context(), start)
	}
}

// Locks at all servers are found, renewed and given back together.
func testRoutedObjects(t *testing.T, r *routed) {
	holder := r.client(redisson.WatchdogTimeout(900 * time.Millisecond))
	var holds []lock.Hold
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprint("found", i))
		holds = append(holds, acquire(t.Context(), t, holder, lock.Request{Key: names[i]}))
	}
	<-time.After(1500 * time.Millisecond)
	expectObjects(t, objects(t, r.client(), "found*"), names...)
	for i, h := range holds {
		if err := context.Cause(h.Context()); err != nil {
			t.Fatalf("%s: %v", names[i], err)
		}
	}
	check(t, holder.ReleaseAll(t.Context(), holds))
	expectObjects(t, objects(t, r.client(), "found*"))
}

// A client with replicas follows the master that sentinels name, as a plain one does.
func TestRoutedFailover(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"RouteByLatency", "RouteRandomly"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.StartSentinels(t)
			r := sentinels(t, s, sentinelClients(s)[name])
			holder, waiter := r.client(redisson.Timeout(patience)).Lock("kept"), r.plain(t, "kept", redisson.Timeout(patience)).Lock("kept")
			held := mustLock(t, holder)
			got, failed := lockUntil(t.Context(), waiter)
			eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, s.Master.Client(t))) == 1 })
			s.Failover(t)
			if err := context.Cause(held); err != nil {
				t.Errorf("the hold ended: %v", err)
			}
			unlockDuringFailover(t, holder, held)
			expectWaiter(t, waiter, got, failed)

			admin := s.Replica.Client(t)
			held = mustLock(t, waiter) // now the other way round, at the new master
			got, failed = lockUntil(t.Context(), holder)
			eventually(t, "waiter subscribes at the new master", func() bool { return len(subscriptions(t, admin)) == 1 })
			<-time.After(50 * time.Millisecond)
			start := time.Now()
			mustUnlock(t, waiter, held)
			expectWaiter(t, holder, got, failed)
			if took := time.Since(start); took > waits/4 {
				t.Errorf("woken after %v", took)
			}
		})
	}
}
