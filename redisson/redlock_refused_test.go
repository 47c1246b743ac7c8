package redisson_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// redLockOf returns the RedLock of what f makes of each client.
func redLockOf(tb testing.TB, clients []*redisson.Client, f func(*redisson.Client) redisson.Member) *redisson.RedLock {
	tb.Helper()
	var members []redisson.Member
	for _, c := range clients {
		members = append(members, f(c))
	}
	l, err := redisson.NewRedLock(members...)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// Who is refused by a majority fails at once with what these have said. It was told that the servers had not answered, and only after the
// clients' timeout.
func TestRedLockThatIsRefusedFailsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRedTrio(t, redisson.Timeout(20*time.Second))
	for _, s := range r.servers[:2] {
		s.Client(t).Set(t.Context(), "text", "of somebody else", 0)
	}
	reads := redLockOf(t, r.clients, func(c *redisson.Client) redisson.Member { return c.ReadWriteLock("rw").ReadLock() })
	once := redLockOf(t, r.clients, func(c *redisson.Client) redisson.Member { return c.NonReentrantLock("once") })
	reading, inside := mustTake(t, reads), mustTake(t, once)
	for _, c := range []struct {
		name  string
		under context.Context
		of    func(*redisson.Client) redisson.Member
		want  error
	}{
		{"another type", t.Context(), func(c *redisson.Client) redisson.Member { return c.Lock("text") }, lock.ErrRefused},
		{"no name", t.Context(), func(c *redisson.Client) redisson.Member { return c.Lock("") }, nil},
		{"a reader writes", reading, func(c *redisson.Client) redisson.Member { return c.ReadWriteLock("rw").WriteLock() }, lock.ErrUnsupported},
		{"not re-entrant", inside, func(c *redisson.Client) redisson.Member { return c.NonReentrantLock("once") }, lock.ErrUnsupported},
	} {
		l := redLockOf(t, r.clients, c.of)
		expectSoon(t, c.name, 5*time.Second, func() {
			if _, err := l.Lock(c.under); err == nil || !errors.Is(err, c.want) && c.want != nil {
				t.Errorf("%s: Lock = %v, want %v", c.name, err, c.want)
			}
		})
	}
	write := redLockOf(t, r.clients, func(c *redisson.Client) redisson.Member { return c.ReadWriteLock("rw").WriteLock() })
	if _, ok, err := write.TryLock(reading, time.Minute, 0); ok || err != nil {
		t.Errorf("TryLock of a reader that wants to write = %v, %v", ok, err)
	}
}

// A RedLock does without a minority whose clients are closed, and its waiters leave when too few are left.
func TestRedLockWaitersLeaveAfterClose(t *testing.T) {
	t.Parallel()
	r := newRedTrio(t)
	theirs := redLock(t, newRedClients(t, r)...)
	held := mustTake(t, theirs)
	l := redLock(t, r.clients...)
	done := make(chan error, 1)
	go func() { done <- second(l.Lock(t.Context())) }()
	for _, c := range r.clients[:2] {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	expectSoon(t, "to leave", time.Second, func() {
		if err := <-done; !errors.Is(err, redisson.ErrClosed) {
			t.Errorf("Lock of clients that are closed = %v, want ErrClosed", err)
		}
	})
	mustGive(t, held, theirs)
	clients := slices.Concat(newRedClients(t, r)[:2], r.clients[:1])
	l = redLock(t, clients...)
	mustGive(t, mustTake(t, l), l)
}

// newRedClients returns the clients of one more program.
func newRedClients(tb testing.TB, r redTrio) (clients []*redisson.Client) {
	for _, s := range r.servers {
		clients = append(clients, onClient(tb, s.Client(tb, impatient)))
	}
	return clients
}
