package redisson_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// A redis.ClusterClient need not talk to a Redis Cluster: go-redis has one for the replicas that sentinels name, and one for a map that a
// program makes by itself.

// routed is such a client's masters, with clients of two processes.
type routed struct {
	masters      []*redistest.Server
	mapped, twin *redisson.Client
	plain        func(name string) *redisson.Client // of the master that has the name
}

// newRouted has two mapped clients.
func newRouted(t *testing.T, client func() *redis.ClusterClient, masters ...*redistest.Server) *routed {
	rdb, twin := client(), client()
	t.Cleanup(func() { _, _ = rdb.Close(), twin.Close() })
	for _, c := range []*redis.ClusterClient{rdb, twin} { // which takes a quarter of a second with sentinels, and is no part of a call's time
		check(t, c.ForEachShard(t.Context(), func(ctx context.Context, node *redis.Client) error { return node.Ping(ctx).Err() }))
	}
	plain := map[string]*redisson.Client{}
	for _, s := range masters {
		_, port := s.HostPort()
		plain[port] = onClient(t, s.Client(t))
	}
	return &routed{masters: masters, mapped: onClient(t, rdb), twin: onClient(t, twin), plain: func(name string) *redisson.Client {
		node, err := rdb.MasterForKey(t.Context(), name)
		check(t, err)
		_, port, _ := strings.Cut(node.Options().Addr, ":") // go-redis leaves out loopback hosts
		return plain[port]
	}}
}

// sentinelClient sends what only reads to replicas as well.
func sentinelClient(s *redistest.Sentinels, latency bool) *redis.ClusterClient {
	o := &redis.FailoverOptions{MasterName: s.Name, SentinelAddrs: s.Addrs, RouteByLatency: latency, RouteRandomly: !latency, ContextTimeoutEnabled: true, DialerRetries: 1}
	if latency { // go-redis begins to measure a node before it has set the node up: a quick connection is a race
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			<-time.After(50 * time.Millisecond)
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	}
	return redis.NewFailoverClusterClient(o)
}

func TestRoutedBySentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	for _, latency := range []bool{true, false} {
		r := newRouted(t, func() *redis.ClusterClient { return sentinelClient(s, latency) }, s.Master)
		testRouted(t, fmt.Sprint("latency=", latency), r)
	}
	// What only reads is a script, too, and so it goes to the master.
	if said := s.Replica.Client(t).Info(t.Context(), "commandstats").Val(); strings.Contains(said, "cmdstat_eval") {
		t.Errorf("a replica was asked: %s", said)
	}
}

func TestRoutedByAMap(t *testing.T) {
	t.Parallel()
	masters := []*redistest.Server{redistest.Start(t), redistest.Start(t), redistest.Start(t)}
	testRouted(t, "map", newRouted(t, func() *redis.ClusterClient { return mappedTo(masters...) }, masters...))
}

// mappedTo is a client by a map that gives each server as many slots.
func mappedTo(servers ...*redistest.Server) *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{ContextTimeoutEnabled: true, ClusterSlots: func(context.Context) (all []redis.ClusterSlot, err error) {
		for i, s := range servers {
			all = append(all, redis.ClusterSlot{Start: i * 16384 / len(servers), End: (i+1)*16384/len(servers) - 1, Nodes: []redis.ClusterNode{{Addr: s.Addr}}})
		}
		return all, nil
	}})
}

func testRouted(t *testing.T, prefix string, r *routed) {
	testRoutedNames(t, r)
	for i, kind := range []lock.Kind{lock.Exclusive, lock.Fair, lock.Read, lock.Write, lock.Fenced, lock.Permit} {
		name := fmt.Sprint(prefix, kind, i)
		testRoutedHandOver(t, lock.Request{Key: name, Kind: kind, Limit: 1}, r.mapped, r.plain(name))
		testRoutedHandOver(t, lock.Request{Key: name, Kind: kind, Limit: 1}, r.plain(name), r.mapped)
	}
	testRoutedSemaphore(t, prefix+":permits", r)
	testRoutedObjects(t, prefix, r)
	testRoutedTogether(t, prefix, r)
}

// A release wakes the other process at once.
func testRoutedHandOver(t *testing.T, want lock.Request, from, to *redisson.Client) {
	t.Helper()
	first := want
	if want.Kind == lock.Read {
		first.Kind = lock.Write // which readers wait for
	}
	held := acquire(t.Context(), t, from, first)
	want.Wait = time.Minute
	got := make(chan lock.Hold, 1)
	go func() {
		h, err := to.Acquire(t.Context(), want)
		if err != nil {
			t.Errorf("%v: %v", want.Kind, err)
		}
		got <- h
	}()
	<-time.After(300 * time.Millisecond) // it subscribes, and tries once more
	start := time.Now()
	check(t, held.Release(t.Context()))
	h := <-got
	if took := ran(start); took > waits/4 {
		t.Errorf("%v: woken after %v", want.Kind, took)
	}
	if h != nil {
		check(t, h.Release(t.Context()))
	}
}

// One server takes all names, and several take those whose keys are at one of them.
func testRoutedNames(t *testing.T, r *routed) {
	t.Helper()
	apart := 0
	for _, name := range []string{"a{b", "a}b", "{}x", "x{}{y}"} {
		for _, kind := range []lock.Kind{lock.Exclusive, lock.Fair, lock.Write, lock.Permit} {
			h, err := r.mapped.Acquire(t.Context(), lock.Request{Key: name, Kind: kind, Limit: 1})
			switch {
			case err == nil:
				check(t, h.Release(t.Context()))
			case len(r.masters) > 1 && strings.Contains(err.Error(), "braces"):
				apart++
			default:
				t.Errorf("%v of %q: %v", kind, name, err)
			}
		}
	}
	if len(r.masters) > 1 && apart == 0 {
		t.Error("no name was refused")
	}
	if _, err := r.mapped.CountDownLatch("{numbers}:1").Delete(t.Context()); (err == nil) != (len(r.masters) == 1) {
		t.Errorf("Delete of a latch with a hash tag: %v", err)
	}
}

// Who waits for permits is woken as well, and who holds a lock that is freed by hand.
func testRoutedSemaphore(t *testing.T, name string, r *routed) {
	t.Helper()
	plain := r.plain(name)
	must(t, true)(plain.Semaphore(name).TrySetPermits(t.Context(), 1))
	for _, pair := range [][2]*redisson.Client{{plain, r.mapped}, {r.mapped, plain}} {
		from, to := pair[0].Semaphore(name), pair[1].Semaphore(name)
		check(t, from.Acquire(t.Context(), 1))
		got := acquireAsync(to, 1)
		eventually(t, "waiter subscribes", func() bool { return inspect(t, plain, name).Listeners > 0 })
		start := time.Now()
		check(t, from.Release(t.Context(), 1))
		expectDone(t, got)
		if took := ran(start); took > waits/4 {
			t.Errorf("permits: woken after %v", took)
		}
		check(t, to.Release(t.Context(), 1))
	}
	h := acquire(t.Context(), t, r.mapped, lock.Request{Key: name + ":forced"})
	hears(t, r.mapped)
	start := time.Now()
	must(t, true)(r.twin.ForceUnlock(t.Context(), name+":forced"))
	expectForced(t, name, h.Context(), start)
}

// Locks that are wanted together are taken where each of them belongs, and a MultiLock's too.
func testRoutedTogether(t *testing.T, prefix string, r *routed) {
	t.Helper()
	for _, wait := range []time.Duration{0, time.Second} {
		rs := list(prefix+"together", 20, lock.Request{Wait: wait})
		holds := takeList(t.Context(), t, r.mapped, rs)
		for _, one := range rs {
			one.Wait = 0
			expectHeldByOthers(t.Context(), t, one.Key, r.plain(one.Key), one)
		}
		check(t, r.mapped.ReleaseAll(t.Context(), holds))
	}
}

// Locks at all masters are found, and given back together.
func testRoutedObjects(t *testing.T, prefix string, r *routed) {
	t.Helper()
	var holds []lock.Hold
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprint(prefix, "found", i))
		holds = append(holds, acquire(t.Context(), t, r.mapped, lock.Request{Key: names[i]}))
	}
	expectObjects(t, objects(t, r.mapped, prefix+"found*"), names...)
	check(t, r.mapped.ReleaseAll(t.Context(), holds))
	expectObjects(t, objects(t, r.mapped, prefix+"found*"))
}

// A client with replicas follows the master that sentinels name, as a plain one does.
func TestRoutedFailover(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	rdb := sentinelClient(s, false)
	t.Cleanup(func() { _ = rdb.Close() })
	other, err := redisson.Open("redis://"+s.Addrs[0]+"?master_name="+s.Name+"&addr="+s.Addrs[1], redisson.Timeout(patience))
	check(t, err)
	t.Cleanup(func() { _ = other.Close() })
	mapped, plain := onClient(t, rdb, redisson.Timeout(patience)).Lock("kept"), other.Lock("kept")
	held := mustLock(t, mapped)
	s.Failover(t)
	if err := context.Cause(held); err != nil {
		t.Errorf("the hold ended: %v", err)
	}
	unlockDuringFailover(t, mapped, held)

	held = mustLock(t, plain) // the other way round, at the new master
	got, failed := lockUntil(t.Context(), mapped)
	eventually(t, "waiter subscribes at the new master", func() bool { return len(subscriptions(t, s.Replica.Client(t))) == 1 })
	<-time.After(50 * time.Millisecond)
	start := time.Now()
	mustUnlock(t, plain, held)
	expectWaiter(t, mapped, got, failed)
	if took := ran(start); took > waits/4 {
		t.Errorf("woken after %v", took)
	}
}

// In a cluster, too, replicas are asked nothing about locks, whatever is routed to them.
func TestRoutedInACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 1)
	client := onClient(t, c.Client(t, func(o *redis.ClusterOptions) { o.RouteRandomly, o.ContextTimeoutEnabled = true, true }))
	for i := range 20 {
		l := client.Lock(fmt.Sprint("read", i))
		held := mustLock(t, l)
		must(t, true)(l.IsLocked(t.Context()))
		mustUnlock(t, l, held)
		check(t, client.CountDownLatch(fmt.Sprint("latch", i)).Await(t.Context()))
	}
	for _, n := range c.Replicas {
		if said := n.Do(t, "info", "commandstats").(string); strings.Contains(said, "cmdstat_eval") {
			t.Errorf("a replica was asked: %s", said)
		}
	}
}
