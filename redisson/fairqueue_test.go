package redisson_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// backInTime returns what puts the queue of k back to what it is now, as a failover to a replica that is behind does.
func backInTime(t *testing.T, rdb *redis.Client) func() {
	t.Helper()
	dumps := map[string]string{}
	for _, key := range []string{queueKey, deadlineKey} {
		dumps[key] = rdb.Dump(t.Context(), key).Val()
	}
	return func() {
		t.Helper()
		_, err := rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error { // a client may look at the queue meanwhile
			for key, dump := range dumps {
				p.RestoreReplace(t.Context(), key, 0, dump)
			}
			return nil
		})
		check(t, err)
	}
}

// inLine has n callers wait for the fair lock k, one after the other, and returns what waits for them all.
func inLine(t *testing.T, clients []*redisson.Client, n int) (all *sync.WaitGroup) {
	t.Helper()
	all = new(sync.WaitGroup)
	for i := range n {
		all.Go(func() {
			release(t, acquire(t.Context(), t, clients[i%len(clients)], lock.Request{Key: "k", Kind: lock.Fair, Wait: -1}))
		})
	}
	return all
}

// Waiters that were served are in the queue again. They are of clients that live, most of which are idle, and keep nobody waiting.
func TestServedWaitersComeBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		clients int
		held    bool // when they come back, by somebody who has another one wait
	}{{1, false}, {3, false}, {3, true}} {
		t.Run(fmt.Sprintf("%+v", tt), func(t *testing.T) {
			t.Parallel()
			const patience = 9 * time.Second
			s := redistest.Start(t)
			rdb := s.Client(t)
			var clients []*redisson.Client
			for range tt.clients {
				clients = append(clients, newClient(t, s, redisson.FairLockWaitTimeout(patience)))
			}
			fair := lock.Request{Key: "k", Kind: lock.Fair, Wait: -1}
			h := acquire(t.Context(), t, clients[0], fair)
			all := inLine(t, clients, 18)
			expectQueue(t, rdb, 18)
			again := backInTime(t, rdb)
			release(t, h)
			all.Wait()
			for _, c := range clients {
				hears(t, c)
			}
			if tt.held {
				h = acquire(t.Context(), t, clients[0], fair)
				all = inLine(t, clients[:1], 1)
				expectQueue(t, rdb, 1)
			}
			again()
			start := time.Now()
			if tt.held {
				release(t, h)
			} else {
				all = inLine(t, clients[:1], 1)
			}
			all.Wait()
			if took := ran(start); took > patience/2 {
				t.Errorf("a free lock was shut for %v", took)
			}
			expectQueue(t, rdb, 0)
		})
	}
}

// Who has lost the connection to Redis looks after the queues in which it has stood: others may not be able to tell it, such as Java.
func TestClientsLeaveQueuesAfterAFailover(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	clients := []*redisson.Client{newClient(t, s), newClient(t, s), newClient(t, s)}
	h := acquire(t.Context(), t, clients[0], lock.Request{Key: "k", Kind: lock.Fair, Wait: -1})
	all := inLine(t, clients, 6)
	expectQueue(t, rdb, 6)
	again := backInTime(t, rdb)
	release(t, h)
	all.Wait()
	for _, c := range clients {
		hears(t, c)
	}
	again()
	check(t, rdb.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err())
	expectQueue(t, rdb, 0)
}

// A process has died with many waiters in the queue. The others wait for it once, and keep their order.
func TestDeadProcessCostsOnePatience(t *testing.T) {
	t.Parallel()
	const patience = 3 * time.Second
	s := redistest.Start(t)
	rdb := s.Client(t)
	living := newClient(t, s, redisson.FairLockWaitTimeout(patience))
	p := s.Front(t)
	dead := onClient(t, s.Client(t, func(o *redis.Options) { o.Addr = p.Addr }), redisson.FairLockWaitTimeout(patience))
	fair := lock.Request{Key: "k", Kind: lock.Fair, Wait: -1}
	h := acquire(t.Context(), t, living, fair)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all, alive sync.WaitGroup
	for i := range 18 {
		if i%6 == 5 {
			alive.Go(func() {
				if h, err := living.Acquire(ctx, fair); err != nil {
					t.Error(err)
				} else if err := h.Release(ctx); err != nil {
					t.Error(err)
				}
			})
		} else {
			all.Go(func() { _, _ = dead.Acquire(ctx, fair) })
		}
		expectQueue(t, rdb, int64(i+1))
	}
	order := rdb.LRange(t.Context(), queueKey, 0, -1).Val()
	p.Freeze()
	release(t, h)
	start := time.Now()
	eventually(t, "the living are served", func() bool {
		left := rdb.LRange(t.Context(), queueKey, 0, -1).Val()
		if !slices.IsSortedFunc(left, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) }) {
			t.Errorf("the order was %q, and is %q", order, left)
		}
		return len(left) == 0
	})
	if took := ran(start); took > patience*3/2 {
		t.Errorf("18 waiters, of which 15 are dead: %v, want one patience", took)
	}
	alive.Wait()
	cancel()
	p.Thaw()
	all.Wait()
}

// To get in line behind many takes Redis hardly longer than behind few.
func TestJoinBehindMany(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	c := newClient(t, s)
	release(t, acquire(t.Context(), t, c, lock.Request{Key: "k", Kind: lock.Fair, Wait: -1}))
	cost := func(n int) time.Duration {
		check(t, rdb.FlushDB(t.Context()).Err())
		check(t, rdb.HSet(t.Context(), "k", "somebody:1", 1).Err())
		now := time.Now().Add(time.Hour).UnixMilli()
		pipe := rdb.Pipeline()
		for i := range n {
			id := fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012d:1", i)
			pipe.RPush(t.Context(), queueKey, id)
			pipe.ZAdd(t.Context(), deadlineKey, redis.Z{Score: float64(now + int64(i)), Member: id})
		}
		_, err := pipe.Exec(t.Context())
		check(t, err)
		check(t, rdb.ConfigResetStat(t.Context()).Err())
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 300 {
			all.Go(func() { _, _ = c.Acquire(ctx, lock.Request{Key: "k", Kind: lock.Fair, Wait: -1}) })
		}
		expectQueue(t, rdb, int64(n+300))
		info := rdb.Info(t.Context(), "commandstats").Val()
		cancel()
		all.Wait()
		_, rest, _ := strings.Cut(info, "cmdstat_evalsha:calls=")
		var calls, usec int64
		_, _ = fmt.Sscanf(rest, "%d,usec=%d", &calls, &usec)
		return time.Duration(usec) * time.Microsecond / time.Duration(calls)
	}
	var few, many []time.Duration
	for len(few) < 10 { // other programs can only make it slower
		few, many = append(few, cost(10)), append(many, cost(10_000))
		if len(few) > 1 && slices.Min(many) <= slices.Min(few)*3/2 {
			break
		}
	}
	t.Logf("behind 10: %v, behind 10,000: %v", few, many)
	if slices.Min(many) > slices.Min(few)*3/2 {
		t.Errorf("behind 10: %v, behind 10,000: %v", few, many)
	}
}

// A try that ends at once does not keep its caller.
func TestFairTryLockIsShort(t *testing.T) {
	s := redistest.Start(t)
	c, other := newClient(t, s).FairLock("k"), newClient(t, s).FairLock("k")
	mustLock(t, c)
	var took []time.Duration
	for range 20 {
		start := time.Now()
		if _, ok, err := other.TryLock(t.Context(), time.Millisecond, 0); ok || err != nil {
			t.Fatalf("TryLock = %v, %v", ok, err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	t.Log(took)
	if took[5] > 60*time.Millisecond { // others may have the machine for most of the time
		t.Errorf("most of the tries took more than %v", took[5])
	}
}
