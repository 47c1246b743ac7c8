package setnxlock_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
	"github.com/redis/go-redis/v9"
)

// follow makes one server the replica of another, and waits until it has all of its data.
func follow(t *testing.T, replica, master *redistest.Server) {
	t.Helper()
	host, port := master.HostPort()
	rdb := replica.Client(t)
	if err := rdb.Do(t.Context(), "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica is up", func() bool {
		return strings.Contains(rdb.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
}

// reach waits until a replica has so many keys.
func reach(t *testing.T, replica *redistest.Server, keys int64) {
	t.Helper()
	rdb := replica.Client(t)
	eventually(t, "the writes reach the replica", func() bool { return rdb.DBSize(t.Context()).Val() == keys })
}

// fill has go-redis make n connections, so that its pool has as many.
func fill(t *testing.T, rdb *redis.Client, n int) {
	t.Helper()
	if err := rdb.Ping(t.Context()).Err(); err != nil { // go-redis writes to its options for the first one
		t.Fatal(err)
	}
	var all sync.WaitGroup
	conns := make([]*redis.Conn, n)
	for i := range conns {
		conns[i] = rdb.Conn()
		all.Go(func() { _ = conns[i].Ping(t.Context()).Err() })
	}
	all.Wait()
	for _, c := range conns {
		_ = c.Close()
	}
}

// A demoted master keeps its connections, and the address leads to the new one, as behind a load balancer. Nobody pauses between the old
// connections, however many there are: no fresh one leads to the old master. Nor does a hold end.
func TestDemotedMasterKeepsItsConnections(t *testing.T) {
	t.Parallel()
	const connections = 60
	before, after := redistest.Start(t), redistest.Start(t)
	follow(t, after, before)
	p := before.Front(t)
	rdb := before.Client(t, func(o *redis.Options) {
		o.Addr, o.PoolSize, o.ContextTimeoutEnabled, o.MaxRetries = p.Addr, connections, true, -1
	})
	fill(t, rdb, connections)
	l := newLocker(t, rdb, setnxlock.Watchdog(2*time.Second))
	h := acquire(t, l, lock.Request{Key: "k"})
	reach(t, after, 1)
	if err := after.Client(t).Do(t.Context(), "replicaof", "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
	follow(t, before, after)
	p.Point(after.Addr)
	start := time.Now()
	release(t, acquire(t, l, lock.Request{Key: "other"}))
	if took := time.Since(start); took > time.Second {
		t.Errorf("acquire and release took %v", took)
	} else {
		t.Logf("took %v", took)
	}
	<-time.After(2500 * time.Millisecond) // more than the lease
	release(t, h)
}

// A demoted master knows of no more than what was. It says neither that a lock is gone that the new master has, nor that one is held that is
// free there.
func TestDemotedMasterKnowsOldThings(t *testing.T) {
	t.Parallel()
	before, after := redistest.Start(t), redistest.Start(t)
	follow(t, after, before)
	p := before.Front(t)
	rdb := before.Client(t, func(o *redis.Options) { o.Addr, o.ContextTimeoutEnabled, o.MaxRetries = p.Addr, true, -1 })
	fill(t, rdb, 10)
	l := newLocker(t, rdb, setnxlock.Watchdog(2*time.Second))
	renewed, held := acquire(t, l, lock.Request{Key: "renewed"}), acquire(t, l, lock.Request{Key: "held", Lease: time.Minute})
	reach(t, after, 2)
	for _, args := range [][]any{
		{"replicaof", "127.0.0.1", redistest.FreePort(t)},
		{"config", "set", "replica-read-only", "no"},
		{"del", "renewed", "held"},
		{"set", "free", "x"},
		{"config", "set", "replica-read-only", "yes"},
	} {
		if err := before.Client(t).Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := after.Client(t).Do(t.Context(), "replicaof", "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
	p.Point(after.Addr)
	release(t, held)
	fill(t, rdb, 10)
	release(t, acquire(t, l, lock.Request{Key: "free"}))
	<-time.After(2500 * time.Millisecond) // more than the lease
	release(t, renewed)
}

// Fresh connections lead to the old master, too, for half a second: it is asked now and then, not all the time.
func TestFailoverThatTakesItsTime(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l, p := behind(t, s)
	if err := s.Client(t).Do(t.Context(), "replicaof", "127.0.0.1", redistest.FreePort(t)).Err(); err != nil {
		t.Fatal(err)
	}
	admin := s.Client(t)
	time.AfterFunc(500*time.Millisecond, func() { _ = admin.Do(t.Context(), "replicaof", "no", "one").Err() })
	start := time.Now()
	release(t, acquire(t, l, lock.Request{Key: "k"}))
	if took := time.Since(start); took < 400*time.Millisecond || took > 1500*time.Millisecond {
		t.Errorf("took %v, want about 500ms", took)
	}
	if _, made := p.Connections(); made > 30 {
		t.Errorf("%d connections were made in half a second", made)
	}
}
