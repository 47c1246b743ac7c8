package redisson_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
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

func multiLock(tb testing.TB, locks ...redisson.Member) *redisson.MultiLock {
	tb.Helper()
	m, err := redisson.NewMultiLock(locks...)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// namedLocks returns c's locks of these names.
func namedLocks(c *redisson.Client, names ...string) []redisson.Member {
	var locks []redisson.Member
	for _, name := range names {
		locks = append(locks, c.Lock(name))
	}
	return locks
}

// compound is what MultiLock and RedLock have in common.
type compound interface {
	Lock(context.Context) (context.Context, error)
	TryLock(ctx context.Context, wait, lease time.Duration) (context.Context, bool, error)
	Unlock(context.Context) error
}

func mustTake(tb testing.TB, l compound) context.Context {
	tb.Helper()
	held, err := l.Lock(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return held
}

func mustGive(tb testing.TB, held context.Context, l locker) {
	tb.Helper()
	if err := l.Unlock(held); err != nil {
		tb.Errorf("Unlock: %v", err)
	}
}

func expectBusy(tb testing.TB, l compound, wait time.Duration) {
	tb.Helper()
	if held, ok, err := l.TryLock(context.Background(), wait, 0); held != nil || ok || err != nil {
		tb.Errorf("TryLock = %v, %v, %v, want false", held, ok, err)
	}
}

func expectKeys(tb testing.TB, rdb *redis.Client, want ...string) {
	tb.Helper()
	got := keys(tb, rdb)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		tb.Errorf("keys = %q, want %q", got, want)
	}
}

func TestMultiLockIsAllOrNone(t *testing.T) {
	t.Parallel()
	s1, s2 := redistest.Start(t), redistest.Start(t)
	rdb1, rdb2 := s1.Client(t), s2.Client(t)
	c1, c2 := newClient(t, s1), newClient(t, s2)
	m := multiLock(t, c1.Lock("a"), c2.Lock("b"), c1.Lock("c"))
	for _, other := range []*redisson.Lock{newClient(t, s1).Lock("a"), newClient(t, s2).Lock("b"), newClient(t, s1).Lock("c")} {
		held := mustLock(t, other)
		expectBusy(t, m, 0)
		expectBusy(t, m, 100*time.Millisecond)
		eventually(t, "nothing is left but what another one holds", func() bool {
			return slices.Equal(slices.Concat(keys(t, rdb1), keys(t, rdb2)), []string{other.Name()})
		})
		mustUnlock(t, other, held)
	}
	held := mustTake(t, m)
	expectKeys(t, rdb1, "a", "c")
	expectKeys(t, rdb2, "b")
	mustGive(t, held, m)
	expectKeys(t, rdb1)
	expectKeys(t, rdb2)
	if !errors.Is(context.Cause(held), context.Canceled) {
		t.Errorf("after Unlock the context ended with %v", context.Cause(held))
	}
	if err := m.Unlock(held); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("second Unlock = %v, want ErrNotHeld", err)
	}
	if err := m.Unlock(t.Context()); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("Unlock without a hold = %v, want ErrNotHeld", err)
	}
}

func TestMultiLockReenters(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	c := newClient(t, s)
	m := multiLock(t, namedLocks(c, "a", "b", "a")...)
	outer := mustTake(t, m)
	if _, n := hash(t, rdb, "a"); n != "2" {
		t.Errorf("a lock that is given twice is held %s times", n)
	}
	// In another order it is the same lock.
	inner, ok, err := multiLock(t, namedLocks(c, "b", "a", "a")...).TryLock(outer, 0, 0)
	if !ok || err != nil {
		t.Fatalf("TryLock under a hold = %v, %v", ok, err)
	}
	mustGive(t, inner, m)
	if _, n := hash(t, rdb, "b"); n == "" || outer.Err() != nil {
		t.Errorf("after the inner Unlock b is held %q times, and the outer context: %v", n, outer.Err())
	}
	mustGive(t, outer, m)
	expectKeys(t, rdb)
}

func TestMultiLockRefuses(t *testing.T) {
	c := newClient(t, redistest.Any(t))
	for _, tt := range []struct {
		locks []redisson.Member
		want  string
	}{
		{nil, "no locks"},
		{[]redisson.Member{c.Lock("a"), nil}, "is nil"},
	} {
		if _, err := redisson.NewMultiLock(tt.locks...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("NewMultiLock(%v) = %v, want an error with %q", tt.locks, err, tt.want)
		}
	}
	if _, err := multiLock(t, c.Lock("a"), c.Lock("")).Lock(t.Context()); err == nil {
		t.Error("Lock with an empty name succeeded")
	}
}

// Several programs take the same locks in all orders, with nothing but the locks to keep them apart.
func TestMultiLocksExclude(t *testing.T) {
	s := redistest.Any(t)
	var counter, entered atomic.Int64
	var workers sync.WaitGroup
	orders := [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "a"}, {"c", "a"}}
	const rounds = 25
	for _, names := range orders {
		c := newClient(t, s)
		for range 2 {
			workers.Go(func() {
				m := multiLock(t, namedLocks(c, names...)...)
				for range rounds {
					held := mustTake(t, m)
					if entered.Add(1) != 1 {
						t.Error("two holders")
					}
					n := counter.Load()
					runtime.Gosched()
					counter.Store(n + 1)
					entered.Add(-1)
					mustGive(t, held, m)
				}
			})
		}
	}
	workers.Wait()
	if got, want := counter.Load(), int64(len(orders)*2*rounds); got != want {
		t.Errorf("counter = %d, want %d", got, want)
	}
	expectKeys(t, s.Client(t))
	eventually(t, "nothing is subscribed", func() bool { return len(subscriptions(t, s.Client(t))) == 0 })
}

// A peer takes the locks in the order of its list, the reverse of ours, and gives back all when it has not got the rest
// within its patience, as Redisson does.
func TestMultiLockAgainstListOrder(t *testing.T) {
	s := redistest.Any(t)
	const rounds, patience = 25, 3 * 1500 * time.Millisecond
	peer, ours := newClient(t, s), newClient(t, s)
	start := time.Now()
	var sides sync.WaitGroup
	sides.Go(func() {
		for range rounds {
			takeInOrder(t, patience, peer.Lock("c"), peer.Lock("b"), peer.Lock("a"))
		}
	})
	sides.Go(func() {
		m := multiLock(t, namedLocks(ours, "c", "b", "a")...)
		for range rounds {
			mustGive(t, mustTake(t, m), m)
		}
	})
	sides.Wait()
	// One deadlock that only the peer resolved would take half of this.
	if d := ran(start); d > 2*patience {
		t.Errorf("%d rounds of both took %v", rounds, d)
	}
	expectKeys(t, s.Client(t))
}

func takeInOrder(t *testing.T, patience time.Duration, locks ...*redisson.Lock) {
	for {
		held := make([]context.Context, 0, len(locks))
		for end := time.Now().Add(patience); len(held) < len(locks); {
			ctx, ok, err := locks[len(held)].TryLock(context.Background(), time.Until(end), 0)
			if err != nil {
				t.Error(err)
			}
			if !ok {
				break
			}
			held = append(held, ctx)
		}
		for i, ctx := range held {
			mustUnlock(t, locks[i], ctx)
		}
		if len(held) == len(locks) {
			return
		}
	}
}

// Who waits for one lock for long does not keep the others from those who want only them.
func TestMultiLockWaitsWithoutHolding(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	c, other := newClient(t, s), newClient(t, s)
	b := mustLock(t, other.Lock("b"))
	got := make(chan context.Context)
	m := multiLock(t, namedLocks(c, "a", "b")...)
	go func() { got <- mustTake(t, m) }()
	eventually(t, "the waiter gave a back and waits for b", func() bool {
		return slices.Equal(slices.Sorted(slices.Values(keys(t, rdb))), []string{"b", "latchkey_wake:{b}"}) && len(subscriptions(t, rdb)) == 1
	})
	a := mustLock(t, other.Lock("a"))
	mustUnlock(t, other.Lock("b"), b)
	<-time.After(300 * time.Millisecond) // now it waits for a
	select {
	case <-got:
		t.Fatal("got a while another holds it")
	default:
	}
	start := time.Now()
	mustUnlock(t, other.Lock("a"), a)
	mustGive(t, <-got, m)
	if d := ran(start); d > time.Second {
		t.Errorf("woken %v after the release", d)
	}
}

// One lock could not be had for a while, so that many wait for either of them first. They must not go on giving up what they hold
// for each other when both are free again, which once took them minutes.
func TestMultiLockManyAfterAHoldUp(t *testing.T) {
	s := redistest.Any(t)
	const clients, rounds = 4, 3
	holder := newClient(t, s)
	var everybody sync.WaitGroup
	b := mustLock(t, holder.Lock("b"))
	for range clients {
		c := newClient(t, s)
		for range 3 {
			everybody.Go(func() {
				m := multiLock(t, namedLocks(c, "a", "b")...)
				for range rounds {
					mustGive(t, mustTake(t, m), m)
				}
			})
		}
	}
	<-time.After(time.Second) // several have given up waiting for b under a
	start := time.Now()
	mustUnlock(t, holder.Lock("b"), b)
	everybody.Wait()
	if d := ran(start); d > 5*time.Second {
		t.Errorf("%d rounds of %d clients took %v", rounds, clients, d)
	}
	expectKeys(t, s.Client(t))
}

// A server that falls silent while one member is held keeps a bounded call no longer than any other: what was taken is given back in
// the background.
func TestMultiLockGivesBackInTime(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder, c := newClient(t, s), newClient(t, s, redisson.Timeout(10*time.Second))
	b := mustLock(t, holder.Lock("b"))
	m := multiLock(t, namedLocks(c, "a", "b")...)
	const wait = 100 * time.Millisecond
	rdb, over := s.Client(t), make(chan struct{})
	var pausing sync.WaitGroup
	pausing.Go(func() {
		for rdb.Exists(t.Context(), "a").Val() == 0 {
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
			}
		}
		s.Pause(t)
	})
	start := time.Now()
	_, ok, err := m.TryLock(t.Context(), wait, 0)
	d := time.Since(start)
	close(over)
	pausing.Wait()
	s.Resume(t)
	if ok || d > wait+5*time.Second {
		t.Errorf("TryLock(%v) = %v, %v after %v", wait, ok, err, d)
	}
	mustUnlock(t, holder.Lock("b"), b)
	eventually(t, "nothing is left", func() bool { return len(keys(t, s.Client(t))) == 0 })
}

func TestMultiLockCanceled(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	rdb := s.Client(t)
	b := mustLock(t, newClient(t, s).Lock("b"))
	_ = b
	errGone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Duration(rand.IntN(300))*time.Millisecond, func() { cancel(errGone) })
	start := time.Now()
	_, err := multiLock(t, namedLocks(newClient(t, s), "a", "b")...).Lock(ctx)
	if !errors.Is(err, errGone) {
		t.Errorf("Lock = %v, want the cause of its context", err)
	}
	if d := ran(start); d > time.Second {
		t.Errorf("cancelled after %v", d)
	}
	eventually(t, "only b is left", func() bool { return slices.Equal(keys(t, rdb), []string{"b"}) })
	if left := subscriptions(t, rdb); len(left) != 0 {
		eventually(t, "no subscription is left", func() bool { return len(subscriptions(t, rdb)) == 0 })
	}
}

// The context ends when any of the locks is lost, first, last or in between.
func TestMultiLockLosesOne(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	c := newClient(t, s)
	m := multiLock(t, namedLocks(c, "a", "b", "c")...)
	for _, name := range []string{"a", "b", "c"} {
		held := mustTake(t, m)
		if ok, err := c.Lock(name).ForceUnlock(t.Context()); !ok || err != nil {
			t.Fatalf("ForceUnlock = %v, %v", ok, err)
		}
		if cause := awaitEnd(t, held, time.Second); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("%s lost: context ended with %v, want ErrLost", name, cause)
		}
		if err := m.Unlock(held); !errors.Is(err, lock.ErrLost) {
			t.Errorf("%s lost: Unlock = %v, want ErrLost", name, err)
		}
		eventually(t, "the others are given back", func() bool { return len(redissonKeys(t, rdb)) == 0 })
	}
}

func TestMultiLockLease(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	const lease = 600 * time.Millisecond
	m := multiLock(t, namedLocks(newClient(t, s), "a", "b")...)
	start := time.Now()
	held, ok, err := m.TryLock(t.Context(), 0, lease)
	if !ok || err != nil {
		t.Fatalf("TryLock = %v, %v", ok, err)
	}
	expectTTL(t, rdb, "a", lease)
	expectTTL(t, rdb, "b", lease)
	cause := awaitEnd(t, held, 10*time.Second)
	if d := ran(start); !errors.Is(cause, lock.ErrLost) || time.Since(start) < lease/2 || d > lease+soon {
		t.Errorf("ended with %v after %v, want ErrLost by the end of %v", cause, d, lease)
	}
	eventually(t, "nothing is left", func() bool { return len(keys(t, rdb)) == 0 })
	if err := m.Unlock(held); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Unlock = %v, want ErrLost", err)
	}
}

// faultyPair returns two clients, the second of them behind a proxy.
func faultyPair(t *testing.T) (m *redisson.MultiLock, p *redistest.Proxy, s2 *redistest.Server, rdb1, rdb2 *redis.Client) {
	s1, s2 := redistest.Start(t), redistest.Start(t)
	p = s2.Front(t)
	c1 := newClient(t, s1)
	c2 := onClient(t, s2.Client(t, func(o *redis.Options) { o.Addr = p.Addr }), redisson.Timeout(time.Second))
	return multiLock(t, c1.Lock("a"), c2.Lock("b")), p, s2, s1.Client(t), s2.Client(t)
}

func TestMultiLockAnswerLost(t *testing.T) {
	t.Parallel()
	m, p, _, rdb1, rdb2 := faultyPair(t)
	mustGive(t, mustTake(t, m), m) // the scripts are known now
	p.CutReply("evalsha", 1)
	held := mustTake(t, m)
	p.CutReply("evalsha", 1)
	mustGive(t, held, m)
	p.CutReply("evalsha", 100)
	if _, ok, err := m.TryLock(t.Context(), 0, 0); ok || err == nil {
		t.Errorf("TryLock without answers = %v, %v, want an error", ok, err)
	}
	eventually(t, "the other server's lock is given back", func() bool { return len(keys(t, rdb1)) == 0 }) // while this one is silent
	p.CutReply("", 0)
	eventually(t, "nothing is left", func() bool { return len(keys(t, rdb2)) == 0 })
}

// One server stops for a while, and is killed in the end: no call takes much longer than the client's timeout, and the
// other server's lock is given back each time.
func TestMultiLockServerGone(t *testing.T) {
	t.Parallel()
	m, _, s2, rdb1, rdb2 := faultyPair(t)
	bounded := func(what string, f func() error) {
		t.Helper()
		start := time.Now()
		err := f()
		if d := ran(start); d > 4*time.Second {
			t.Errorf("%s took %v", what, d)
		}
		if err == nil {
			t.Errorf("%s succeeded without the server", what)
		}
		eventually(t, "the other server's lock is given back", func() bool { return len(keys(t, rdb1)) == 0 })
	}
	s2.Pause(t)
	bounded("TryLock", func() error { return second2(m.TryLock(t.Context(), 0, 0)) })
	s2.Resume(t)
	eventually(t, "nothing is left", func() bool { return len(keys(t, rdb2)) == 0 })
	held := mustTake(t, m)
	s2.Pause(t)
	bounded("Unlock", func() error { return m.Unlock(held) })
	s2.Resume(t)
	eventually(t, "nothing is left", func() bool { return len(keys(t, rdb2)) == 0 })
	held = mustTake(t, m)
	s2.Kill(t)
	bounded("Unlock", func() error { return m.Unlock(held) })
	bounded("Lock", func() error { return second(m.Lock(t.Context())) })
}

func second2[T, U any](_ T, _ U, err error) error { return err }
