package etcdlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/etcdlock"
	"github.com/latchkey-go/latchkey/lock/etcdlock/etcdtest"
)

// leader returns the member that leads, and another one.
func leader(tb testing.TB, client *clientv3.Client, c *etcdtest.Cluster) (leads, follows *etcdtest.Member) {
	tb.Helper()
	for _, m := range c.Members {
		status, err := client.Status(tb.Context(), m.Endpoint)
		if err != nil {
			tb.Fatal(err)
		}
		if status.Leader == status.Header.MemberId {
			leads = m
		} else {
			follows = m
		}
	}
	if leads == nil {
		tb.Fatal("nobody leads")
	}
	return leads, follows
}

// scene is a cluster of three with a holder and a line of three waiters, two of them in other processes.
type scene struct {
	c       *etcdtest.Cluster
	client  *clientv3.Client
	locker  *etcdlock.Locker
	hold    lock.Hold
	next    <-chan outcome
	workers []*worker
}

func newScene(t *testing.T) *scene {
	t.Helper()
	c := start(t, etcdtest.Options{Members: 3})
	client := dial(t, c.Endpoints()...)
	s := &scene{c: c, client: client, locker: locker(t, client, etcdlock.Watchdog(20*time.Second), etcdlock.Timeout(10*time.Second))}
	s.hold = acquire(t, s.locker, lock.Request{Key: "line", Kind: lock.Fenced})
	s.next = background(t.Context(), s.locker, lock.Request{Key: "line", Kind: lock.Fenced, Wait: -1})
	waiting(t, client, "line", 2)
	for i := range 2 {
		w := startWorker(t, c.Endpoints()...)
		w.send("lock line")
		waiting(t, client, "line", 3+i)
		s.workers = append(s.workers, w)
	}
	return s
}

// plays lets all have their turn, in order, and with tokens that rise.
func (s *scene) plays(t *testing.T) {
	t.Helper()
	if err := s.hold.Context().Err(); err != nil {
		t.Fatalf("the lock was lost: %v", context.Cause(s.hold.Context()))
	}
	last := s.hold.(interface{ Token() int64 }).Token()
	release(t, s.hold)
	h := held(t, s.next)
	if now := h.(interface{ Token() int64 }).Token(); now <= last {
		t.Errorf("token %d does not follow %d", now, last)
	} else {
		last = now
	}
	for _, w := range s.workers {
		w.silent()
	}
	release(t, h)
	for _, w := range s.workers {
		now := token(t, w.says("held"))
		if now <= last {
			t.Errorf("token %d does not follow %d", now, last)
		}
		last = now
		w.does("unlock line", "released")
	}
	waiting(t, s.client, "line", 0)
}

// written waits until the cluster takes writes again.
func (s *scene) written(t *testing.T) {
	t.Helper()
	eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(t.Context()), time.Second)
		defer cancel()
		_, err := s.client.Put(ctx, "written", "")
		return err == nil
	})
}

func TestHolderAndLineSurviveTheDeathOfTheLeader(t *testing.T) {
	parallel(t)
	s := newScene(t)
	leads, _ := leader(t, s.client, s.c)
	leads.Kill()
	s.written(t)
	s.plays(t)
}

// Connections to a paused member stay open, and it says nothing.
func TestHolderAndLineSurviveAPausedLeader(t *testing.T) {
	parallel(t)
	s := newScene(t)
	leads, _ := leader(t, s.client, s.c)
	if err := leads.Pause(); err != nil {
		t.Fatal(err)
	}
	s.written(t)
	s.plays(t)
}

func TestHolderAndLineSurviveALeaderThatIsCutOff(t *testing.T) {
	parallel(t)
	s := newScene(t)
	leads, _ := leader(t, s.client, s.c)
	leads.Cut()
	s.written(t)
	s.plays(t)
}

// The watches at that member hear nothing anymore.
func TestHolderAndLineSurviveAFollowerThatIsCutOff(t *testing.T) {
	parallel(t)
	s := newScene(t)
	_, follows := leader(t, s.client, s.c)
	follows.Cut()
	s.plays(t)
}

// A member that is cut off can't give a lock to its clients, and a holder behind it is told before others can have the lock.
func TestClientsOfAMemberThatIsCutOffLoseTheirLocks(t *testing.T) {
	parallel(t)
	c := start(t, etcdtest.Options{Members: 3})
	client := dial(t, c.Endpoints()...)
	_, follows := leader(t, client, c)
	lonely := locker(t, dial(t, follows.Endpoint), etcdlock.Watchdog(4*time.Second), etcdlock.Timeout(2*time.Second))
	h := acquire(t, lonely, lock.Request{Key: "lonely"})
	follows.Cut()
	next := background(t.Context(), locker(t, dial(t, others(c, follows)...)), lock.Request{Key: "lonely", Wait: -1})
	second := held(t, next)
	if h.Context().Err() == nil {
		t.Error("two hold the lock")
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release() = %v, want ErrLost", err)
	}
	start := time.Now()
	_, err := lonely.Acquire(t.Context(), lock.Request{Key: "other", Wait: -1})
	if outage(err) == nil || time.Since(start) > 4*time.Second {
		t.Errorf("Acquire() = %v after %v, want an outage after 2s", err, time.Since(start))
	}
	follows.Heal()
	eventually(t, func() bool {
		_, err := lonely.Acquire(t.Context(), lock.Request{Key: "other"})
		return err == nil
	})
	release(t, second)
}

func others(c *etcdtest.Cluster, without *etcdtest.Member) (endpoints []string) {
	for _, m := range c.Members {
		if m != without {
			endpoints = append(endpoints, m.Endpoint)
		}
	}
	return endpoints
}

// outage returns err if it is one, and nil for all that has a meaning.
func outage(err error) error {
	for _, other := range []error{lock.ErrBusy, lock.ErrLost, lock.ErrNotHeld, lock.ErrRefused, lock.ErrUnsupported, context.Canceled,
		context.DeadlineExceeded} {
		if errors.Is(err, other) {
			return nil
		}
	}
	return err
}

// A minority takes no writes, so nobody gets a lock, and the holder keeps it until its lease is over by its own clock.
func TestNoMajorityIsAnOutage(t *testing.T) {
	parallel(t)
	c := start(t, etcdtest.Options{Members: 3})
	l := locker(t, dial(t, c.Endpoints()...), etcdlock.Watchdog(6*time.Second), etcdlock.Timeout(2*time.Second))
	h := acquire(t, l, lock.Request{Key: "majority"})
	c.Members[0].Kill()
	c.Members[1].Kill()
	for _, wait := range []time.Duration{0, -1} {
		if _, err := l.Acquire(t.Context(), lock.Request{Key: "another", Wait: wait}); outage(err) == nil {
			t.Errorf("Acquire() = %v, want an outage", err)
		}
	}
	select {
	case <-h.Context().Done():
	case <-time.After(patience):
		t.Fatal("the lock never ends")
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release() = %v, want ErrLost", err)
	}
	for _, m := range c.Members[:2] {
		if err := m.Run(); err == nil {
			break // two are a majority
		}
	}
	eventually(t, func() bool {
		h, err := l.Acquire(t.Context(), lock.Request{Key: "majority"})
		return err == nil && h.Release(t.Context()) == nil
	})
}

// The data is on the disk, and leases begin again.
func TestLockSurvivesTheRestartOfItsOnlyServer(t *testing.T) {
	parallel(t)
	c := start(t, etcdtest.Options{})
	client := dial(t, c.Endpoints()...)
	l := locker(t, client, etcdlock.Watchdog(20*time.Second), etcdlock.Timeout(10*time.Second))
	h := acquire(t, l, lock.Request{Key: "restart"})
	next := background(t.Context(), l, lock.Request{Key: "restart", Wait: -1})
	waiting(t, client, "restart", 2)
	c.Members[0].Kill()
	if err := c.Members[0].Run(); err != nil {
		t.Fatal(err)
	}
	fails(t, locker(t, client), lock.Request{Key: "restart"}, lock.ErrBusy)
	release(t, h)
	release(t, held(t, next))
}
