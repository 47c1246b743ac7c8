package redisson_test

import (
	"context"
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

// pair is a master with its replica, and a client that reaches the master by an address that can lead to the replica, and leaves the
// connections that it has alone: as a load balancer does, a Kubernetes Service, the endpoint of a managed Redis.
type pair struct {
	*redistest.Proxy
	old, new *redistest.Server
	rdb      *redis.Client
	meters
	*redisson.Client
}

func newPair(t *testing.T, connections int, opts ...redisson.Option) *pair {
	t.Helper()
	p := &pair{old: redistest.Start(t), new: redistest.Start(t), meters: newMeters()}
	follow(t, p.new, p.old)
	p.Proxy = p.old.Front(t)
	p.rdb = redis.NewClient(&redis.Options{Addr: p.Addr, PoolSize: connections, ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { p.rdb.Close() })
	c, err := redisson.New(p.rdb, append(opts, p.option)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	p.Client = c
	p.fill(t, connections)
	return p
}

// repeats is how often a pause came before a question was asked again.
func (p *pair) repeats(t *testing.T) (n int64) {
	t.Helper()
	for _, one := range p.points(t, "repeats") {
		n += one
	}
	return n
}

// fill has go-redis make all of its connections.
func (p *pair) fill(t *testing.T, n int) {
	t.Helper()
	check(t, p.rdb.Ping(t.Context()).Err()) // go-redis writes to its options for the first one
	conns := make([]*redis.Conn, n)
	var all sync.WaitGroup
	for i := range conns {
		conns[i] = p.rdb.Conn()
		all.Go(func() {
			if err := conns[i].Ping(t.Context()).Err(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, c := range conns {
		c.Close()
	}
}

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

// failover has the replica take the master's place. Connections to the old master stay.
func (p *pair) failover(t *testing.T) {
	t.Helper()
	p.promote(t)
	p.demote(t)
}

func (p *pair) promote(t *testing.T) {
	t.Helper()
	eventually(t, "the replica has all", func() bool {
		return offset(t, p.old, "master_repl_offset:") == offset(t, p.new, "slave_repl_offset:")
	})
	if err := p.new.Client(t).Do(t.Context(), "replicaof", "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
}

func (p *pair) demote(t *testing.T) {
	t.Helper()
	host, port := p.new.HostPort()
	if err := p.old.Client(t).Do(t.Context(), "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
}

func offset(t *testing.T, s *redistest.Server, name string) (n int64) {
	t.Helper()
	_, rest, _ := strings.Cut(s.Client(t).Info(t.Context(), "replication").Val(), name)
	_, _ = fmt.Sscan(rest, &n)
	return n
}

// A demoted master keeps its connections, and the address leads to the new one. Whoever asks comes through at once, however many old
// connections there are: nobody pauses, as no fresh connection leads to the old master. A hold goes on.
func TestDemotedMasterKeepsItsConnections(t *testing.T) {
	t.Parallel()
	for _, connections := range []int{10, 60, 160} {
		t.Run(fmt.Sprint(connections), func(t *testing.T) {
			t.Parallel()
			p := newPair(t, connections, redisson.WatchdogTimeout(3*time.Second), redisson.Timeout(time.Second), redisson.SyncReplicas(0, 0))
			held := acquire(t.Context(), t, p.Client, lock.Request{Key: "held"})
			p.fill(t, connections)
			p.promote(t)
			p.Point(p.new.Addr) // before the old one refuses to renew
			p.demote(t)
			_, before := p.Connections()
			start := time.Now()
			h := acquire(t.Context(), t, p.Client, lock.Request{Key: "other", Wait: -1}) // the count decides, not the time
			took := time.Since(start)
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
			_, after := p.Connections()
			t.Logf("took %v, %d connections were made", took, after-before)
			if n := p.repeats(t); n > 2 { // on a busy machine, a fresh connection may not be there in time
				t.Errorf("%d pauses before a fresh connection led to the new master", n)
			}
			select {
			case <-held.Context().Done():
				t.Errorf("the hold ended: %v", held.Context().Err())
			case <-time.After(4 * time.Second): // more than its lease
			}
			if err := held.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A demoted master knows of no more than what was: of a lock that somebody has now, and of nobody's that it is held. A script that finds
// nothing to write there must not say so.
func TestDemotedMasterKnowsOldThings(t *testing.T) {
	t.Parallel()
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Spin, lock.Fenced, lock.Fair, lock.Read, lock.Write, lock.Permit} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			p := newPair(t, 10, redisson.WatchdogTimeout(2*time.Second), redisson.SyncReplicas(0, 0))
			var renewed []lock.Hold // together
			for i := range 3 {
				renewed = append(renewed, acquire(t.Context(), t, p.Client, lock.Request{Key: fmt.Sprint("renewed", i), Kind: kind, Limit: 1, Wait: -1}))
			}
			held := acquire(t.Context(), t, p.Client, lock.Request{Key: "held", Kind: kind, Limit: 1, Lease: time.Minute, Wait: -1})
			p.failover(t)
			old := p.old.Client(t)
			p.Freeze() // no question comes while it can be written to
			for _, args := range [][]any{
				{"config", "set", "replica-read-only", "no"},
				{"replicaof", "127.0.0.1", redistest.FreePort(t)}, // what it does not get to know
				{"flushall"},
				{"config", "set", "replica-read-only", "yes"},
			} {
				check(t, old.Do(t.Context(), args...).Err())
			}
			p.Thaw()
			p.Point(p.new.Addr)
			check(t, held.Release(t.Context()))
			<-time.After(3 * time.Second) // more than their lease
			for _, h := range renewed {
				if err := context.Cause(h.Context()); err != nil {
					t.Errorf("the hold ended: %v", err)
				}
				check(t, h.Release(t.Context()))
			}
		})
		t.Run(kind.String()+" released", func(t *testing.T) {
			t.Parallel()
			p := newPair(t, 10, redisson.SyncReplicas(0, 0))
			other, err := redisson.New(p.old.Client(t))
			check(t, err)
			defer other.Close()
			held := lock.Request{Key: "k", Kind: lock.Write, Lease: time.Minute, Wait: -1}
			if kind != lock.Read && kind != lock.Write {
				held.Kind, held.Limit = kind, 1
			}
			acquire(t.Context(), t, other, held)
			p.failover(t)
			check(t, p.old.Client(t).Do(t.Context(), "replicaof", "127.0.0.1", redistest.FreePort(t)).Err())
			check(t, p.new.Client(t).FlushAll(t.Context()).Err())
			p.Point(p.new.Addr)
			check(t, acquire(t.Context(), t, p.Client, lock.Request{Key: "k", Kind: kind, Limit: 1, Wait: 10 * time.Second}).Release(t.Context()))
		})
	}
	t.Run("force", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, 10, redisson.SyncReplicas(0, 0))
		p.failover(t)
		check(t, p.old.Client(t).Do(t.Context(), "replicaof", "127.0.0.1", redistest.FreePort(t)).Err())
		now, err := redisson.New(p.new.Client(t))
		check(t, err)
		defer now.Close()
		acquire(t.Context(), t, now, lock.Request{Key: "k"})
		p.Point(p.new.Addr)
		if freed, err := p.ForceUnlock(t.Context(), "k"); !freed || err != nil {
			t.Errorf("ForceUnlock = %v, %v", freed, err)
		}
	})
}

// Where fresh connections lead to the old master, too, there is a pause between two questions, and the first one that leads to the new
// master ends that.
func TestFailoverThatTakesItsTime(t *testing.T) {
	t.Parallel()
	p := newPair(t, 10, redisson.Timeout(3*time.Second))
	p.failover(t)
	time.AfterFunc(500*time.Millisecond, func() { p.Point(p.new.Addr) })
	_, before := p.Connections()
	start := time.Now()
	h := acquire(t.Context(), t, p.Client, lock.Request{Key: "k", Wait: 2 * time.Second})
	if took := time.Since(start); took < 400*time.Millisecond || took > 1500*time.Millisecond {
		t.Errorf("took %v, want about 500ms", took)
	}
	if _, after := p.Connections(); after-before > 30 {
		t.Errorf("%d connections were made in half a second", after-before)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if n := p.repeats(t); n < 2 || n > 20 {
		t.Errorf("%d pauses", n)
	}
}

// A server ends all connections, as in a failover, and go-redis can't see that before it writes, as with TLS. Whoever asks comes through at
// once, however many connections there are.
func TestBrokenConnectionsAreNoOutage(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const connections = 60
	rdb := s.Client(t, func(o *redis.Options) {
		o.PoolSize, o.MaxRetries, o.ContextTimeoutEnabled = connections, -1, true
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return struct{ net.Conn }{conn}, err
		}
	})
	p := &pair{rdb: rdb, meters: newMeters()}
	c := onClient(t, rdb, p.option)
	h := acquire(t.Context(), t, c, lock.Request{Key: "held"})
	p.fill(t, connections)
	check(t, s.Client(t).Do(t.Context(), "client", "kill", "type", "normal").Err())
	expectSoon(t, "an acquire", 400*time.Millisecond, func() { release(t, acquire(t.Context(), t, c, lock.Request{Key: "free"})) })
	release(t, h)
	if n := p.repeats(t); n > 0 {
		t.Errorf("%d pauses", n)
	}
}
