package redisson

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/redis/go-redis/v9"
)

// These tests force an order of events that real networks produce now and then: a script or an answer is held up on its
// way while something else happens.

// slowScript holds up each run of a script: before it is sent, or its answer.
type slowScript struct {
	script        *script
	before, after func()
}

func (h slowScript) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h slowScript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		if len(args) < 2 || args[1] != h.script.SHA {
			return next(ctx, cmd)
		}
		if h.before != nil {
			h.before()
		}
		err := next(ctx, cmd)
		if h.after != nil {
			h.after()
		}
		return err
	}
}
func (h slowScript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func clientOn(t *testing.T, rdb *redis.Client, opts ...Option) *Client {
	t.Helper()
	c, err := New(rdb, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func mustAcquire(ctx context.Context, t *testing.T, c *Client, r lock.Request) lock.Hold {
	t.Helper()
	h, err := c.Acquire(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// expectUnused checks that the client keeps nothing for anybody.
func expectUnused(t *testing.T, c *Client) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; <-time.After(5 * time.Millisecond) {
		c.registry.mu.Lock()
		locks, scheduled := len(c.registry.holders), len(c.registry.schedule)
		c.registry.mu.Unlock()
		c.queues.mu.Lock()
		lines := len(c.queues.byID)
		c.queues.mu.Unlock()
		if locks+scheduled+lines == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left: %d locks, %d scheduled, %d lines", locks, scheduled, lines)
		}
	}
}

// The answer to a re-entry comes when the outer hold is over and its key removed: there is nothing to re-enter any more.
func TestLateReentryRevivesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	rdb := s.Client(t)
	var slow atomic.Bool
	rdb.AddHook(slowScript{script: lockUpdate, after: func() {
		if slow.Load() {
			<-time.After(400 * time.Millisecond)
		}
	}})
	c, rival := clientOn(t, rdb), clientOn(t, s.Client(t))
	outer := mustAcquire(t.Context(), t, c, lock.Request{Key: "k", Lease: 200 * time.Millisecond})
	ctx := context.WithoutCancel(outer.Context())
	slow.Store(true)
	type result struct {
		hold lock.Hold
		err  error
	}
	inner := make(chan result)
	go func() {
		h, err := c.Acquire(ctx, lock.Request{Key: "k", Lease: 10 * time.Second})
		inner <- result{h, err}
	}()
	<-outer.Context().Done()
	if err := outer.Release(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release of the outer hold = %v, want ErrLost", err)
	}
	got := <-inner
	_, err := rival.Acquire(t.Context(), lock.Request{Key: "k"})
	if got.err == nil && got.hold.Context().Err() == nil && err == nil {
		t.Error("the inner hold and a rival have the lock at once")
	}
}

// An attempt is not answered and repeated; the repetition is refused, because the lock is busy, or gets the lock for a caller that has left. The lock
// is free then, and only now the first attempt arrives: it must not keep the lock for nobody.
func TestLateAttemptIsRemoved(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	admin := s.Client(t)
	c := clientOn(t, s.Client(t), Timeout(time.Second))
	free := func(what string) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Second); admin.Exists(t.Context(), "k").Val() != 0; <-time.After(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s keeps the lock", what)
			}
		}
	}
	for _, answered := range []bool{false, true} {
		ho := &holder{id: c.nextHolder(lock.Exclusive), keys: [1]string{"k"}, family: plain{}, asked: 30 * time.Second}
		enter := func() answer {
			t.Helper()
			a := c.road.AskSoon(t.Context(), plain{}.enter(ho, ho.asked))
			if !a.Yes() {
				t.Fatalf("an attempt: %+v", a)
			}
			return a
		}
		c.registry.tried(ho, answer{Err: context.DeadlineExceeded, Doubts: 1})
		if answered {
			var h hold
			gone, leave := context.WithCancel(t.Context())
			leave()
			h.prepare(gone, c, ho, lock.Request{Key: "k", Lease: ho.asked})
			ho.begin(&h)
			a := enter()
			if err := h.enter(0, &a); err == nil {
				t.Fatal("a caller that has left has a hold")
			}
		}
		removed := c.registry.discard(ho, false)
		free("who has left")
		enter()
		free("the late attempt")
		<-removed
	}
	expectUnused(t, c)
}

// The lease of an inner hold does not endanger an outer one that is renewed.
func TestShortInnerLease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := clientOn(t, s.Client(t))
	outer := mustAcquire(t.Context(), t, c, lock.Request{Key: "k"})
	inner := mustAcquire(outer.Context(), t, c, lock.Request{Key: "k", Lease: 100 * time.Millisecond})
	s.Pause(t)
	<-time.After(500 * time.Millisecond)
	s.Resume(t)
	if !errors.Is(context.Cause(inner.Context()), lock.ErrLost) || outer.Context().Err() != nil {
		t.Errorf("inner %v, outer %v; want the inner hold lost and the outer one alive", context.Cause(inner.Context()), outer.Context().Err())
	}
}

func TestExtremeLeases(t *testing.T) {
	s := redistest.Start(t) // miniredis overflows
	for _, r := range []lock.Request{
		{Key: "lease", Lease: math.MaxInt64},
		{Key: "max hold", MaxHold: math.MaxInt64},
		{Key: "millisecond", Lease: time.Millisecond},
		{Key: "odd", Lease: 1500 * time.Microsecond},
	} {
		c, rival := clientOn(t, s.Client(t)), clientOn(t, s.Client(t))
		h, err := c.Acquire(t.Context(), r)
		if err != nil && r.Lease > 0 && r.Lease < 10*time.Millisecond {
			continue // the answer may take longer than that
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = rival.Acquire(t.Context(), lock.Request{Key: r.Key})
		if err == nil && h.Context().Err() == nil {
			t.Errorf("%+v: two holders", r)
		}
		if err := h.Release(t.Context()); err != nil && !errors.Is(err, lock.ErrLost) {
			t.Errorf("%+v: Release = %v", r, err)
		}
		expectUnused(t, c)
	}
	big := clientOn(t, s.Client(t), WatchdogTimeout(math.MaxInt64))
	h := mustAcquire(t.Context(), t, big, lock.Request{Key: "watchdog"})
	if err := h.Release(t.Context()); err != nil {
		t.Errorf("watchdog timeout of MaxInt64: Release = %v", err)
	}
}

// Holds that are lost in the moment in which they are made leave nothing behind.
func TestManyTinyLeases(t *testing.T) {
	s := redistest.Any(t)
	c := clientOn(t, s.Client(t))
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			ctx := t.Context()
			for range 100 {
				h, err := c.Acquire(ctx, lock.Request{Key: fmt.Sprint("k", i), Lease: time.Millisecond, Wait: -1})
				if err == nil && i%2 == 0 {
					_ = h.Release(ctx)
				}
			}
		})
	}
	all.Wait()
	expectUnused(t, c)
}

// The watch over a nested release must not outlast MaxHold.
func TestMaxHoldAfterPartialRelease(t *testing.T) {
	s := redistest.Any(t)
	c := clientOn(t, s.Client(t))
	outer := mustAcquire(t.Context(), t, c, lock.Request{Key: "k", MaxHold: 500 * time.Millisecond})
	inner := mustAcquire(outer.Context(), t, c, lock.Request{Key: "k"})
	if err := inner.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	h := mustAcquire(t.Context(), t, clientOn(t, s.Client(t)), lock.Request{Key: "k", Wait: 10 * time.Second})
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("the lock was free after %v, want MaxHold", d)
	}
	if cause := context.Cause(outer.Context()); !errors.Is(cause, lock.ErrMaxHold) {
		t.Errorf("outer hold: %v, want ErrMaxHold", cause)
	}
	_ = h.Release(t.Context())
}

// The owner of a lost hold waits for the lock again, in line; its release of the lost hold must not wait with it.
func TestReleaseOfLostHoldDoesNotWait(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	c := clientOn(t, rdb)
	ctx, cancel := context.WithCancel(t.Context())
	h := mustAcquire(ctx, t, c, lock.Request{Key: "k", Lease: 100 * time.Millisecond})
	rival := mustAcquire(t.Context(), t, clientOn(t, s.Client(t)), lock.Request{Key: "k", Wait: -1})
	var waiting sync.WaitGroup
	waiting.Go(func() { _, _ = c.Acquire(ctx, lock.Request{Key: "k", Wait: -1}) })
	for len(rdb.PubSubChannels(t.Context(), "redisson_lock__channel:{k}:*").Val()) == 0 {
		<-time.After(time.Millisecond)
	}
	start := time.Now()
	if err := h.Release(context.Background()); !errors.Is(err, lock.ErrLost) || time.Since(start) > time.Second {
		t.Errorf("Release = %v after %v, want ErrLost at once", err, time.Since(start))
	}
	cancel()
	waiting.Wait()
	_ = rival.Release(t.Context())
	expectUnused(t, c)
}

// All in line learn of an outage as what it is.
func TestOutageIsToldToTheWholeLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fault func(*testing.T, *redistest.Server)
		limit time.Duration
	}{
		{"paused", func(t *testing.T, s *redistest.Server) { s.Pause(t) }, 4 * time.Second},
		{"killed", func(t *testing.T, s *redistest.Server) { s.Kill(t) }, 4 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := redistest.Start(t)
			c := clientOn(t, s.Client(t), Timeout(2*time.Second))
			tt.fault(t, s)
			start := time.Now()
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					_, err := c.Acquire(t.Context(), lock.Request{Key: "k", Wait: 500 * time.Millisecond})
					if err == nil || errors.Is(err, lock.ErrBusy) {
						t.Errorf("Acquire = %v, want an outage", err)
					}
				})
			}
			all.Wait()
			if d := time.Since(start); d > tt.limit {
				t.Errorf("the last waiter learned of it after %v", d)
			}
		})
	}
}

// Who looks and finds the lock free takes those out of the wake list who stand in front and have not come. Who has just come, or asks again because an
// answer was lost, takes out nobody.
func TestOnlyALookTakesOthersOut(t *testing.T) {
	s := redistest.Start(t)
	rdb, c := s.Client(t), clientOn(t, s.Client(t))
	const list = "latchkey_wake:{k}"
	for _, looks := range []bool{false, true} {
		rdb.ZAdd(t.Context(), list, redis.Z{Score: 1, Member: "ahead:1:1"})
		own := standing{member: "own:1:1"}
		if looks {
			own.since = 2
			rdb.ZAdd(t.Context(), list, redis.Z{Score: 2, Member: own.member})
		}
		ho := &holder{id: c.nextHolder(lock.Exclusive), keys: [1]string{"k"}, family: plain{}}
		w := &waiter{own: ho, standing: own, place: place{queue: &localQueue{id: ho.queueID()}}}
		for range 2 { // the first answer is lost
			if a := c.road.AskSoon(t.Context(), c.waitCall(w, plain{}.enter(ho, time.Minute))); !a.Yes() {
				t.Fatalf("answered %v, %v", a.Values, a.Err)
			}
		}
		if left := rdb.ZCard(t.Context(), list).Val() == 1; left == looks {
			t.Errorf("looks: %v; who was ahead is left: %v", looks, left)
		}
		if a := c.road.AskSoon(t.Context(), plain{}.exit(ho, "", 0)); !a.Yes() {
			t.Fatalf("release: %v, %v", a.Values, a.Err)
		}
		rdb.Del(t.Context(), list)
	}
}
