package redisson_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// patience is a client's timeout that outlasts the failovers of these tests.
const patience = 15 * time.Second

// lockUntil waits for the lock in a goroutine and passes on what comes of it.
func lockUntil(ctx context.Context, l *redisson.Lock) (<-chan context.Context, <-chan error) {
	got, failed := make(chan context.Context, 1), make(chan error, 1)
	go func() {
		held, err := l.Lock(ctx)
		if err != nil {
			failed <- err
			return
		}
		got <- held
	}()
	return got, failed
}

func expectWaiter(t *testing.T, l *redisson.Lock, got <-chan context.Context, failed <-chan error) {
	t.Helper()
	select {
	case held := <-got:
		mustUnlock(t, l, held)
	case err := <-failed:
		t.Fatalf("the waiter failed: %v", err)
	case <-time.After(waits / 2):
		t.Fatalf("the waiter did not get the lock within %v", waits/2)
	}
}

// Scenario 48: masters change while one process holds a lock and another one waits.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 1)
	const name = "failover"
	i, _ := c.Owner(t, name)
	holder := member(t, c, redisson.Timeout(patience)).Lock(name)
	waiter := member(t, c, redisson.Timeout(patience)).Lock(name)
	wait := func() (<-chan context.Context, <-chan error) {
		got, failed := lockUntil(t.Context(), waiter)
		eventually(t, "waiter subscribes", func() bool { return channels(t, c) >= 1 })
		<-time.After(50 * time.Millisecond)
		return got, failed
	}

	t.Run("confirmation", func(t *testing.T) { testSyncReplicasInACluster(t, c) })
	t.Run("by an operator", func(t *testing.T) {
		held := mustLock(t, holder)
		got, failed := wait()
		c.Failover(t, i)
		mustUnlock(t, holder, held)
		expectWaiter(t, waiter, got, failed)
	})
	t.Run("by death", func(t *testing.T) {
		held := mustLock(t, holder)
		got, failed := wait()
		<-time.After(500 * time.Millisecond) // for the write to reach the old master, a replica now
		c.AwaitReplica(t, c.Masters[i])
		c.Replicas[i].Kill(t)
		c.AwaitMaster(t, c.Masters[i])
		if held.Err() != nil {
			t.Errorf("the hold ended: %v", context.Cause(held))
		}
		unlockDuringFailover(t, holder, held)
		expectWaiter(t, waiter, got, failed)
	})
}

// unlockDuringFailover accepts that the old master was asked in vain: the release is then repeated in the background.
func unlockDuringFailover(t *testing.T, l locker, held context.Context) {
	t.Helper()
	if err := l.Unlock(held); err != nil {
		t.Logf("Unlock: %v", err)
	}
	if err := l.Unlock(held); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("second Unlock = %v, want ErrNotHeld", err)
	}
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	process := func() *redisson.Client {
		return onClient(t, s.Client(t, func(o *redis.FailoverOptions) { o.ContextTimeoutEnabled, o.DialerRetries = true, 1 }), redisson.Timeout(patience))
	}
	hc := process()
	holder, waiter := hc.Lock("kept"), process().Lock("kept")
	held := mustLock(t, holder)
	got, failed := lockUntil(t.Context(), waiter)
	admin := s.Master.Client(t)
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, admin)) == 1 })

	// A lock that never reached the replica is lost with its master, and its holder learns of that when it next renews it.
	unreplicated := onClient(t, s.Client(t), redisson.Timeout(9*time.Second), redisson.WatchdogTimeout(9*time.Second)).Lock("lost")
	replica := s.Replica.Client(t)
	replica.Do(t.Context(), "replicaof", "127.0.0.1", "1")
	lost := mustLock(t, unreplicated)
	s.Master.Kill(t)
	s.AwaitReplicaLeads(t)
	if held.Err() != nil {
		t.Errorf("the replicated hold ended: %v", context.Cause(held))
	}
	unlockDuringFailover(t, holder, held)
	expectWaiter(t, waiter, got, failed)
	if err := awaitEnd(t, lost, 9*time.Second); !errors.Is(err, lock.ErrLost) {
		t.Errorf("the hold that was not replicated ended with %v", err)
	}
}

// Locks are confirmed by a replica, or given back.
func TestSyncReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	host, port := master.HostPort()
	replica := redistest.Start(t, "--replicaof", host, port, "--repl-diskless-sync-delay", "0")
	rdb := master.Client(t)
	eventually(t, "the replica is there", func() bool { return rdb.Wait(t.Context(), 1, time.Millisecond).Val() == 1 })
	const within = time.Second
	c := newClient(t, master, redisson.SyncReplicas(1, within))
	l := c.Lock("k")
	held := mustLock(t, l)
	if n := replica.Client(t).Exists(t.Context(), "k").Val(); n != 1 {
		t.Error("the lock was not at the replica when it was confirmed")
	}
	if _, ok, err := newClient(t, master, redisson.SyncReplicas(1, within)).Lock("k").TryLock(t.Context(), 0, 0); ok || err != nil {
		t.Errorf("TryLock of a held lock = %v, %v", ok, err)
	}
	mustUnlock(t, l, held)

	replica.Pause(t)
	start := time.Now()
	_, err := l.Lock(t.Context())
	if d := time.Since(start); !errors.Is(err, redisson.ErrNotReplicated) || d < within || d > 10*within {
		t.Errorf("Lock with a silent replica = %v after %v, want ErrNotReplicated after %v", err, d, within)
	}
	eventually(t, "the lock is given back", func() bool { return len(keys(t, rdb)) == 0 })
	if err := ignoring(newClient(t, master, redisson.SyncReplicas(0, 0)).Lock("k").Lock(t.Context())); err != nil {
		t.Errorf("Lock without confirmation: %v", err)
	}
	replica.Resume(t)
}

func ignoring(_ context.Context, err error) error { return err }

// In a cluster, the master of the lock's slot is the one whose replicas count.
func testSyncReplicasInACluster(t *testing.T, c *redistest.Cluster) {
	m := member(t, c, redisson.SyncReplicas(1, 300*time.Millisecond))
	for _, name := range []string{"a", "b", "c", "d"} {
		l := m.Lock(name)
		mustUnlock(t, l, mustLock(t, l))
	}
	const name = "failover 2"
	i, _ := c.Owner(t, name)
	if j, _ := c.Owner(t, "failover"); i == j {
		t.Fatal("this is the master of another test")
	}
	c.Replicas[i].Pause(t)
	if err := ignoring(m.Lock(name).Lock(t.Context())); !errors.Is(err, redisson.ErrNotReplicated) {
		t.Errorf("Lock with a silent replica = %v, want ErrNotReplicated", err)
	}
	c.Replicas[i].Resume(t)
	c.Failover(t, i)
	eventually(t, "the new master confirms", func() bool {
		held, err := m.Lock(name).Lock(t.Context())
		return err == nil && m.Lock(name).Unlock(held) == nil
	})
}
