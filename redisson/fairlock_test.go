package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

const (
	queueKey    = "redisson_lock_queue:{k}"
	deadlineKey = "redisson_lock_timeout:{k}"
)

// expectQueue waits until n holders are in the queue, and in the set of deadlines.
func expectQueue(t *testing.T, rdb *redis.Client, n int64) {
	t.Helper()
	eventually(t, fmt.Sprint(n, " in the queue"), func() bool {
		return rdb.LLen(context.Background(), queueKey).Val() == n && rdb.ZCard(context.Background(), deadlineKey).Val() == n
	})
}

// Waiters of two clients, which come one after another, are served in that order.
func TestFairOrder(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	locks := []*redisson.Lock{newClient(t, s).FairLock("k"), newClient(t, s).FairLock("k")}
	held := mustLock(t, locks[0])
	var order []int // guarded by the lock under test
	var all sync.WaitGroup
	const waiters = 16
	for i := range waiters {
		l := locks[i%2]
		all.Go(func() {
			held, err := l.Lock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			order = append(order, i)
			mustUnlock(t, l, held)
		})
		expectQueue(t, rdb, int64(i+1))
	}
	mustUnlock(t, locks[0], held)
	all.Wait()
	for i, got := range order {
		if got != i {
			t.Fatalf("served in the order %v", order)
		}
	}
	if left := keys(t, rdb); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
	eventually(t, "no subscription is left", func() bool { return len(subscriptions(t, rdb)) == 0 })
}

// The deadline of a waiter counts from the one before it, or from the end of the lease; who leaves takes its share along.
func TestFairDeadlines(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	c := newClient(t, s)
	l := c.FairLock("k")
	held := mustLock(t, l)
	now := time.Now()
	leaving, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _, _, _ = l.TryLock(leaving, 20*time.Second, 0) })
	expectQueue(t, rdb, 1)
	staying, stop := context.WithCancel(t.Context())
	all.Go(func() { _, _ = l.Lock(staying) })
	expectQueue(t, rdb, 2)
	deadlines := func() (d []time.Duration) {
		for _, z := range rdb.ZRangeWithScores(t.Context(), deadlineKey, 0, -1).Val() {
			d = append(d, time.UnixMilli(int64(z.Score)).Sub(now))
		}
		return d
	}
	about := func(got, want time.Duration) bool { return got > want-2*time.Second && got < want+2*time.Second }
	patience := redisson.DefaultFairLockWaitTimeout
	if d := deadlines(); !about(d[0], 20*time.Second) || !about(d[1], 20*time.Second+patience) {
		t.Errorf("deadlines in %v, want %v and %v", d, 20*time.Second, 20*time.Second+patience)
	}
	leave()
	expectQueue(t, rdb, 1)
	if d := deadlines(); !about(d[0], patience) {
		t.Errorf("deadline in %v, want the time of the one that left taken off", d)
	}
	stop()
	all.Wait()
	expectQueue(t, rdb, 0)
	mustUnlock(t, l, held)
	if left := keys(t, rdb); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}

// A waiter whose process died keeps its place until its deadline, and no longer.
func TestFairDeadWaiterIsPassedOver(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	l := newClient(t, s).FairLock("k")
	rdb.RPush(t.Context(), queueKey, "dead:1")
	rdb.ZAdd(t.Context(), deadlineKey, redis.Z{Score: float64(time.Now().Add(700 * time.Millisecond).UnixMilli()), Member: "dead:1"})
	if _, ok, err := l.TryLock(t.Context(), 0, 0); ok || err != nil {
		t.Errorf("TryLock without a wait = %v, %v; want false: somebody is in line", ok, err)
	}
	start := time.Now()
	held := mustLock(t, l)
	if d := ran(start); d > 5*time.Second {
		t.Errorf("waited %v for a dead waiter", d)
	}
	mustUnlock(t, l, held)
	if left := keys(t, rdb); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}

// A live waiter that was taken for dead joins again, at the end.
func TestFairWaiterRejoins(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	l := newClient(t, s, redisson.WatchdogTimeout(900*time.Millisecond)).FairLock("k")
	held := mustLock(t, l)
	got := lockAsync(t, l)
	expectQueue(t, rdb, 1)
	rdb.Del(t.Context(), queueKey, deadlineKey)
	expectQueue(t, rdb, 1)
	mustUnlock(t, l, held)
	expectHeld(t, l, got)
}

// Only the head is notified, on its own channel; and re-entry does not queue.
func TestFairMessages(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	l := newClient(t, s).FairLock("k")
	held := mustLock(t, l)
	rdb.RPush(t.Context(), queueKey, "peer:1")
	rdb.ZAdd(t.Context(), deadlineKey, redis.Z{Score: float64(time.Now().Add(time.Minute).UnixMilli()), Member: "peer:1"})
	own, common := observe(t, rdb, "redisson_lock__channel:{k}:peer:1"), observe(t, rdb, "redisson_lock__channel:{k}")
	inner, err := l.Lock(held)
	if err != nil {
		t.Fatal(err)
	}
	mustUnlock(t, l, inner)
	expectSilence(t, rdb, "redisson_lock__channel:{k}:peer:1", own)
	mustUnlock(t, l, held)
	expectMessage(t, own, "0")
	expectSilence(t, rdb, "redisson_lock__channel:{k}", common)
	if freed, err := l.ForceUnlock(t.Context()); freed || err != nil {
		t.Errorf("ForceUnlock of a free lock = %v, %v", freed, err)
	}
}

// All answers are lost, once or for good: nobody is queued twice or for ever.
func TestFairAnswerLost(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		c, p, rdb := fragile(t, change)
		other := newClient(t, &redistest.Server{Addr: rdb.Options().Addr}).FairLock("k")
		l := c.FairLock("k")
		mustUnlock(t, l, mustLock(t, l))
		p.CutReply("evalsha", 1)
		held := mustLock(t, l)
		p.CutReply("evalsha", 1)
		mustUnlock(t, l, held)

		held = mustLock(t, other)
		p.CutReply("evalsha", 1)
		got := lockAsync(t, l)
		expectQueue(t, rdb, 1)
		mustUnlock(t, other, held)
		expectHeld(t, l, got)

		held = mustLock(t, other)
		p.CutReply("evalsha", 1000)
		if _, ok, err := l.TryLock(t.Context(), time.Minute, 0); ok || err == nil {
			t.Errorf("TryLock = %v, %v; want an error of the connection", ok, err)
		}
		p.CutReply("evalsha", 0)
		expectQueue(t, rdb, 0)
		mustUnlock(t, other, held)
	})
}

func TestFairHolderIsNotifiedOfItsLoss(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	l := newClient(t, s).FairLock("k")
	held := mustLock(t, l)
	rdb.Del(t.Context(), "k")
	if err := l.Unlock(held); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Unlock of a lock that had gone = %v, want ErrLost", err)
	}
}

func TestSpinLockPolls(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	c := newClient(t, s)
	holder, l := c.SpinLock("k"), newClient(t, s, redisson.SpinBackoff(5*time.Millisecond, 50*time.Millisecond)).SpinLock("k")
	messages := observe(t, rdb, "redisson_lock__channel:{k}")
	held := mustLock(t, holder)
	before, _ := commands(t, rdb)
	got := lockAsync(t, l)
	<-time.After(time.Second)
	after, byName := commands(t, rdb)
	if n := after - before; n < 10 || n > 60 || byName["subscribe"] != 2 { // the test's own, and that of the holder, to be told
		t.Errorf("%d commands in a second of waiting, want one each 50 to 100ms and no subscription: %v", n, byName)
	}
	mustUnlock(t, holder, held)
	expectHeld(t, l, got)
	expectSilence(t, rdb, "redisson_lock__channel:{k}", messages)
}

func TestFencingTokens(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	a, b := newClient(t, s).FencedLock("k"), newClient(t, s).FencedLock("k")
	var last int64
	for range 3 {
		for _, l := range []*redisson.FencedLock{a, b} {
			held, err := l.Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			inner, err := l.Lock(held)
			if err != nil {
				t.Fatal(err)
			}
			outer, _ := l.Token(held)
			token, ok := l.Token(inner)
			if !ok || outer <= last || token <= outer {
				t.Errorf("tokens %d and %d do not follow %d", outer, token, last)
			}
			last = token
			if err := errors.Join(l.Unlock(inner), l.Unlock(held)); err != nil {
				t.Error(err)
			}
		}
	}
	if n, err := a.LastToken(t.Context()); n != last || err != nil {
		t.Errorf("LastToken = %d, %v; want %d", n, err, last)
	}
	if got := rdb.Get(t.Context(), "redisson_lock_token:{k}").Val(); got != fmt.Sprint(last) {
		t.Errorf("the counter is %q", got)
	}
	if _, ok := a.Token(t.Context()); ok {
		t.Error("a context without a hold has a token")
	}
	if n, err := newClient(t, s).FencedLock("other").LastToken(t.Context()); n != 0 || err != nil {
		t.Errorf("LastToken of an unused lock = %d, %v", n, err)
	}
	if got := strings.Join(keys(t, rdb), " "); got != "redisson_lock_token:{k}" {
		t.Errorf("keys = %q, want the counter alone", got)
	}
}
