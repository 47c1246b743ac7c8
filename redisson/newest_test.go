package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// newestKey is what Redis has for a lock without braces in its name.
func newestKey(name string) string { return "latchkey_newest:{" + name + "}" }

// newcomer is a call that was announced, for a lock that it does not have yet.
type newcomer struct {
	ctx   context.Context
	leave func()
}

func announce(tb testing.TB, c *redisson.Client, key string) newcomer {
	tb.Helper()
	ctx, leave, err := c.Replace(context.Background(), lock.Request{Key: key, Wait: -1})
	if err != nil {
		tb.Fatalf("Replace: %v", err)
	}
	tb.Cleanup(leave)
	return newcomer{ctx, leave}
}

func (n newcomer) expectReplaced(tb testing.TB, limit time.Duration) {
	tb.Helper()
	if cause := awaitEnd(tb, n.ctx, limit); !errors.Is(cause, lock.ErrReplaced) || errors.Is(cause, lock.ErrLost) {
		tb.Errorf("the turn ended with %v, want ErrReplaced", cause)
	}
}

func (n newcomer) expectStays(tb testing.TB, d time.Duration) {
	tb.Helper()
	select {
	case <-n.ctx.Done():
		tb.Errorf("the newest turn ended with %v", context.Cause(n.ctx))
	case <-time.After(d):
	}
}

// listening waits until a client hears of newcomers at a key.
func listening(tb testing.TB, rdb *redis.Client, key string) {
	tb.Helper()
	eventually(tb, "a client listens", func() bool {
		n, err := rdb.PubSubNumSub(context.Background(), newestKey(key)).Result()
		return err == nil && n[newestKey(key)] == 1
	})
}

// A call of another process is told, keeps its lock until it releases it, and then the newer one has it.
func TestReplaceInAnotherProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	mapper := redisson.NameMapper(func(name string) string { return "app:" + name })
	older, newer := newClient(t, s, mapper), newClient(t, s, mapper)
	first := announce(t, older, "k")
	h := acquire(first.ctx, t, older, lock.Request{Key: "k"})
	listening(t, s.Client(t), "app:k")
	second := announce(t, newer, "k")
	first.expectReplaced(t, time.Second)
	if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrReplaced) || errors.Is(cause, lock.ErrLost) {
		t.Errorf("the hold ended with %v, want ErrReplaced", cause)
	}
	expectHeldByOthers(second.ctx, t, "beside the older call", newer, lock.Request{Key: "k"})
	release(t, h)
	first.leave()
	release(t, acquire(second.ctx, t, newer, lock.Request{Key: "k"}))
	second.expectStays(t, 50*time.Millisecond)
	second.leave()
	got := redissonKeys(t, s.Client(t))
	if !slices.Equal(got, []string{newestKey("app:k")}) {
		t.Errorf("keys afterwards: %q", got)
	}
	if ttl := s.Client(t).PTTL(t.Context(), newestKey("app:k")).Val(); ttl <= time.Minute || ttl > 2*time.Minute {
		t.Errorf("who was the newest is kept for %v, want two minutes", ttl)
	}
}

// Of many that come at once, one stays, the others leave, and nobody has the lock beside another.
func TestReplaceOfMany(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	clients := []*redisson.Client{newClient(t, s), newClient(t, s), newClient(t, s)}
	for round := range 10 {
		key := fmt.Sprint("k", round)
		var holding, stayed, replaced atomic.Int64
		var calls sync.WaitGroup
		done := make(chan struct{})
		for i := range 12 {
			c := clients[i%len(clients)]
			calls.Go(func() {
				turn, leave, err := c.Replace(t.Context(), lock.Request{Key: key})
				if err != nil {
					t.Errorf("Replace: %v", err)
					return
				}
				defer leave()
				h, err := c.Acquire(turn, lock.Request{Key: key, Wait: -1})
				if err == nil {
					if holding.Add(1) != 1 {
						t.Error("two at once")
					}
					select {
					case <-h.Context().Done():
					case <-done:
						stayed.Add(1)
					}
					holding.Add(-1)
					err = errors.Join(h.Release(context.Background()), context.Cause(turn))
				}
				switch {
				case errors.Is(err, lock.ErrReplaced):
					replaced.Add(1)
				case err != nil:
					t.Errorf("neither the newest nor replaced: %v", err)
				}
			})
		}
		eventually(t, "all but one are replaced", func() bool { return replaced.Load() == 11 })
		close(done)
		calls.Wait()
		if stayed.Load() != 1 {
			t.Errorf("round %d: %d stayed to the end, want the newest", round, stayed.Load())
		}
	}
}

// Who misses the message finds out when it next looks, in a third of the watchdog's timeout.
func TestReplaceWithoutTheMessage(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	c := newClient(t, s, redisson.WatchdogTimeout(3*time.Second))
	turn := announce(t, c, "k")
	listening(t, rdb, "k")
	turn.expectStays(t, 100*time.Millisecond)
	check(t, rdb.Set(t.Context(), newestKey("k"), "somebody else", time.Minute).Err())
	expectSoon(t, "to be told, which takes a second,", 1500*time.Millisecond, func() { turn.expectReplaced(t, 3*time.Second) })
}

// Where messages can't be had at all, it looks every quarter of a second.
func TestReplaceWithoutPubSub(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Client(t).ACLSetUser(t.Context(), "default", "-subscribe")
	older, newer := announce(t, newClient(t, s), "k"), announce(t, newClient(t, s), "k")
	older.expectReplaced(t, 3*time.Second)
	newer.expectStays(t, 600*time.Millisecond)
}

// A connection for messages that breaks is made anew, and what was missed meanwhile is found.
func TestReplaceWhileTheConnectionIsDown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	older := announce(t, newClient(t, s), "k")
	listening(t, rdb, "k")
	_, err := rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.ClientKillByFilter(t.Context(), "TYPE", "pubsub")
		p.Set(t.Context(), newestKey("k"), "somebody else", time.Minute)
		return nil
	})
	check(t, err)
	older.expectReplaced(t, 3*time.Second)
}

// An announcement that is repeated, because its answer was lost, counts from when it first ran: who came later stays.
func TestReplaceWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	slow, p := behind(t, s)
	quick := newClient(t, s)
	acquire(t.Context(), t, slow, lock.Request{Key: "warm"}) // so that its scripts and connections are there
	warm := announce(t, slow, "warm")
	answer := p.KeepBackReply(naming(newestKey("k")), 0)
	announced := make(chan newcomer)
	go func() { announced <- announce(t, slow, "k") }()
	answer.Await(t)
	later := announce(t, quick, "k")
	p.Drop() // the first attempt is repeated
	earlier := <-announced
	earlier.expectReplaced(t, 3*time.Second)
	later.expectStays(t, 300*time.Millisecond)
	warm.leave()
}

// A copy that arrives late replaces nobody.
func TestReplaceThatArrivesLate(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	slow, p := behind(t, s)
	announce(t, slow, "warm")
	late := p.KeepBack(naming(newestKey("k")), 0)
	earlier := announce(t, slow, "k") // by a second attempt
	late.Await(t)
	later := announce(t, newClient(t, s), "k")
	earlier.expectReplaced(t, 3*time.Second)
	late.Deliver(t)
	later.expectStays(t, 300*time.Millisecond)
}

// Redis forgets who is the newest. Of two that would be, one stays.
func TestReplaceAfterALossOfData(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	slow, p := behind(t, s, redisson.WatchdogTimeout(3*time.Second))
	older := announce(t, slow, "k")
	listening(t, rdb, "k")
	p.Freeze()
	newer := announce(t, newClient(t, s, redisson.WatchdogTimeout(3*time.Second)), "k")
	check(t, rdb.Del(t.Context(), newestKey("k")).Err())
	p.Thaw()
	eventually(t, "one of them is replaced", func() bool { return older.ctx.Err() != nil || newer.ctx.Err() != nil })
	time.Sleep(1500 * time.Millisecond)
	if older.ctx.Err() != nil && newer.ctx.Err() != nil {
		t.Error("both were replaced")
	}
}

// Redis does not answer: a newcomer fails in time, and nobody is replaced who need not be.
func TestReplaceDuringAnOutage(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	older, newer := newClient(t, s), newClient(t, s, redisson.Timeout(time.Second), redisson.Prompt)
	turn := announce(t, older, "k")
	h := acquire(turn.ctx, t, older, lock.Request{Key: "k"})
	announce(t, newer, "warm")
	s.Pause(t)
	for _, tt := range []struct{ wait, limit time.Duration }{{0, 500 * time.Millisecond}, {-1, time.Second}} {
		start := time.Now()
		_, _, err := newer.Replace(t.Context(), lock.Request{Key: "k", Wait: tt.wait})
		if took := time.Since(start); err == nil || errors.Is(err, lock.ErrRefused) || took > tt.limit+300*time.Millisecond {
			t.Errorf("wait %v: %v after %v, want the error of an outage after %v", tt.wait, err, took, tt.limit)
		}
	}
	turn.expectStays(t, 100*time.Millisecond)
	s.Resume(t)
	turn.expectReplaced(t, 5*time.Second) // the announcements were on their way, and a newcomer replaces from then on
	release(t, h)
}

// In a cluster, messages reach those who hold or wait for a lock on any of the masters, on the kinds of channels that there are.
func testClusterReplace(t *testing.T, c *redistest.Cluster) {
	for _, mode := range []redisson.ShardedMode{redisson.ShardedAuto, redisson.ShardedOff} {
		older, newer := member(t, c, redisson.ShardedPubSub(mode)), member(t, c, redisson.ShardedPubSub(mode))
		for _, name := range []string{"replace0", "replace1", "replace2", "{replace}:3", "replace:{4}"} {
			first := announce(t, older, name)
			h := acquire(first.ctx, t, older, lock.Request{Key: name})
			first.expectStays(t, 300*time.Millisecond) // long enough to listen
			second := announce(t, newer, name)
			first.expectReplaced(t, 3*time.Second)
			release(t, h)
			release(t, acquire(second.ctx, t, newer, lock.Request{Key: name}))
			first.leave()
			second.leave()
		}
	}
	if _, _, err := member(t, c).Replace(t.Context(), lock.Request{Key: "a{b"}); err == nil {
		t.Error("Replace of a name whose keys are in different slots succeeded")
	}
}

// A holder that was not announced, such as one of Redisson, is not told.
func TestReplaceWaitsForRedisson(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	check(t, rdb.HSet(t.Context(), "k", "6f0829ed-bfd3-4e6f-bba3-6f3d66cd1765:1", 1).Err())
	check(t, rdb.PExpire(t.Context(), "k", 700*time.Millisecond).Err())
	c := newClient(t, s)
	turn := announce(t, c, "k")
	start := time.Now()
	release(t, acquire(turn.ctx, t, c, lock.Request{Key: "k", Wait: -1}))
	if took := time.Since(start); took < 500*time.Millisecond {
		t.Errorf("had the lock after %v, beside its holder", took)
	}
}

func TestReplaceRefuses(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s)
	if _, _, err := c.Replace(t.Context(), lock.Request{}); err == nil {
		t.Error("Replace without a key succeeded")
	}
	s.Client(t).RPush(t.Context(), newestKey("typed"), "mine")
	turn := announce(t, c, "typed") // which writes over it
	turn.leave()
	s.Client(t).ACLSetUser(t.Context(), "default", "resetkeys", "~k")
	if _, _, err := c.Replace(t.Context(), lock.Request{Key: "k", Wait: -1}); !errors.Is(err, lock.ErrRefused) {
		t.Errorf("Replace without permission: %v, want ErrRefused", err)
	}
}

// Close ends neither sooner nor later for calls that were announced, and takes no new ones.
func TestReplaceAndClose(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s)
	turn := announce(t, c, "k")
	start := time.Now()
	check(t, c.Close())
	if took := ran(start); took > time.Second {
		t.Errorf("Close took %v", took)
	}
	if _, _, err := c.Replace(t.Context(), lock.Request{Key: "k"}); !errors.Is(err, redisson.ErrClosed) {
		t.Errorf("Replace after Close = %v, want ErrClosed", err)
	}
	turn.leave()
	if cause := context.Cause(turn.ctx); !errors.Is(cause, context.Canceled) {
		t.Errorf("a turn that was left ended with %v", cause)
	}
}

// What Redis is asked: one command for each newcomer, and a look or two in the background.
func TestReplaceCommands(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	c := newClient(t, s)
	announce(t, c, "warm")
	listening(t, rdb, "warm")
	eventually(t, "both scripts are loaded", func() bool { return commandCalls(t, rdb)["eval"] == 2 })
	check(t, rdb.ConfigResetStat(t.Context()).Err())
	turn := announce(t, c, "k")
	listening(t, rdb, "k")
	turn.expectStays(t, 100*time.Millisecond)
	if n := commandCalls(t, rdb)["evalsha"]; n < 2 || n > 4 {
		t.Errorf("%d scripts for one newcomer, want the announcement and a look or two", n)
	}
}
