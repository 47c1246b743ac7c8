package setnxlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
	"github.com/redis/go-redis/v9"
)

// Redis stands still. The hold ends before the lease that Redis has granted, and so before anybody else can have the lock.
func TestHoldEndsBeforeItsLeaseWhenRedisIsSilent(t *testing.T) {
	t.Parallel()
	const watchdog = time.Second
	s := redistest.Start(t)
	l := newLocker(t, s.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true }), setnxlock.Watchdog(watchdog))
	h := acquire(t, l, lock.Request{Key: "k"})
	taken := time.Now()
	s.Pause(t)
	defer s.Resume(t)
	expectLost(t, h, 5*watchdog)
	if d := time.Since(taken); d >= watchdog {
		t.Errorf("the hold ended after %v, and its lease of %v was over by then", d, watchdog)
	}
}

// The server forgets everything. The holder is told with its next renewal, and the next one gets the lock.
func TestHoldIsLostWithTheServersMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := newLocker(t, s.Client(t), setnxlock.Watchdog(time.Second))
	h := acquire(t, l, lock.Request{Key: "k"})
	s.Kill(t)
	s.Restart(t)
	next := acquire(t, newLocker(t, s.Client(t)), lock.Request{Key: "k"})
	expectLost(t, h, 3*time.Second)
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release = %v, want ErrLost", err)
	}
	release(t, next)
}

// A server that writes everything to its disk is killed and comes back: who held the lock holds it, and who waits goes on waiting.
func TestHoldOutlivesAServerThatPersists(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	h := acquire(t, newLocker(t, s.Client(t)), lock.Request{Key: "k"})
	other := newLocker(t, s.Client(t))
	got := make(chan lock.Hold, 1)
	go func() { got <- acquire(t, other, lock.Request{Key: "k", Wait: -1}) }()
	<-time.After(100 * time.Millisecond)
	s.Kill(t)
	<-time.After(200 * time.Millisecond)
	s.Restart(t)
	expectBusy(t, newLocker(t, s.Client(t)))
	if err := context.Cause(h.Context()); err != nil {
		t.Errorf("the hold has ended: %v", err)
	}
	release(t, h)
	release(t, <-got)
}

// The network is cut for longer than the lease. Each side knows what it may rely on, and the cut heals.
func TestNetworkCut(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l, p := behind(t, s, setnxlock.Watchdog(time.Second))
	h := acquire(t, l, lock.Request{Key: "k"})
	p.Freeze()
	expectLost(t, h, 3*time.Second)
	next := acquire(t, newLocker(t, s.Client(t)), lock.Request{Key: "k"})
	p.Thaw() // late renewals arrive now
	<-time.After(200 * time.Millisecond)
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release = %v, want ErrLost", err)
	}
	expectBusy(t, l)
	release(t, next)
	release(t, acquire(t, l, lock.Request{Key: "k"}))
}

// On a slow network everything takes longer, and nothing is lost.
func TestSlowNetwork(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l, p := behind(t, s, setnxlock.Watchdog(2*time.Second))
	p.Delay(100 * time.Millisecond)
	h := acquire(t, l, lock.Request{Key: "k"})
	<-time.After(2500 * time.Millisecond)
	if err := context.Cause(h.Context()); err != nil {
		t.Errorf("the hold has ended: %v", err)
	}
	release(t, h)
}

// Nobody is there. The error comes soon, and is neither busy nor a refusal.
func TestNoServer(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	defer rdb.Close()
	start := time.Now()
	_, err := newLocker(t, rdb).Acquire(t.Context(), lock.Request{Key: "k"})
	if err == nil || errors.Is(err, lock.ErrBusy) || errors.Is(err, lock.ErrRefused) {
		t.Errorf("Acquire = %v, want an outage", err)
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A server without memory may have some soon.
func TestNoMemoryIsAnOutage(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--maxmemory", "1")
	_, err := newLocker(t, s.Client(t)).Acquire(t.Context(), lock.Request{Key: "k"})
	if err == nil || errors.Is(err, lock.ErrRefused) || errors.Is(err, lock.ErrBusy) {
		t.Errorf("Acquire without memory = %v, want an outage", err)
	}
}

// A server that is busy for a moment is asked again, also by a caller who does not wait for the lock.
func TestBusyServerIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--lua-time-limit", "10")
	rdb := s.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	l := newLocker(t, rdb)
	release(t, acquire(t, l, lock.Request{Key: "k"}))
	slow := s.Client(t, func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, time.Minute })
	go slow.Eval(context.Background(), "while true do end", nil)
	eventually(t, "the server is busy", func() bool { return redis.HasErrorPrefix(rdb.Get(t.Context(), "k").Err(), "BUSY") })
	got := make(chan error, 1)
	go func() {
		h, err := l.Acquire(context.Background(), lock.Request{Key: "k"})
		if err == nil {
			err = h.Release(context.Background())
		}
		got <- err
	}()
	<-time.After(300 * time.Millisecond)
	if err := rdb.ScriptKill(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("Acquire = %v", err)
	}
}

// The sentinels change the master. Who holds the lock keeps it, and who waits gets it.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	client := func() *redis.Client {
		return s.Client(t, func(o *redis.FailoverOptions) { o.ContextTimeoutEnabled, o.DialerRetries = true, 1 })
	}
	const timeout = 15 * time.Second
	h := acquire(t, newLocker(t, client(), setnxlock.Timeout(timeout)), lock.Request{Key: "k"})
	got := make(chan lock.Hold, 1)
	other := newLocker(t, client(), setnxlock.Timeout(timeout))
	go func() { got <- acquire(t, other, lock.Request{Key: "k", Wait: -1}) }()
	<-time.After(500 * time.Millisecond) // for the write to reach the replica
	s.Failover(t)
	if err := context.Cause(h.Context()); err != nil {
		t.Errorf("the hold has ended: %v", err)
	}
	release(t, h)
	release(t, <-got)
}

// A slot moves while a lock in it is held, and its keys are in between for a while.
func TestSlotMoves(t *testing.T) {
	t.Parallel()
	const key = "k"
	c := redistest.StartCluster(t, 0)
	from, slot := c.Owner(t, key)
	to := (from + 1) % 3
	l := newLocker(t, c.Client(t), setnxlock.Watchdog(time.Second))
	h := acquire(t, l, lock.Request{Key: key})
	c.OpenSlot(t, slot, c.Masters[from], c.Masters[to])
	free := acquire(t, l, lock.Request{Key: "{" + key + "}2"}) // asked for at the new master
	release(t, free)
	<-time.After(700 * time.Millisecond) // a renewal
	c.CloseSlot(t, slot, c.Masters[from], c.Masters[to])
	<-time.After(700 * time.Millisecond)
	if err := context.Cause(h.Context()); err != nil {
		t.Errorf("the hold has ended: %v", err)
	}
	expectBusy(t, newLocker(t, c.Client(t)))
	release(t, h)
}
