package setnxlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
	"github.com/redis/go-redis/v9"
)

// deaf has waiters come by themselves only when a test is long over.
var deaf = setnxlock.Poll(time.Hour, 0)

// waitAsync waits for a lock, and sends the error of taking and releasing it.
func waitAsync(l *setnxlock.Locker, r lock.Request) <-chan error {
	done := make(chan error, 1)
	r.Wait = time.Minute
	go func() {
		h, err := l.Acquire(context.Background(), r)
		if err == nil {
			err = h.Release(context.Background())
		}
		done <- err
	}()
	return done
}

func expectSoon(tb testing.TB, what string, done <-chan error) {
	tb.Helper()
	select {
	case err := <-done:
		if err != nil {
			tb.Errorf("%s: %v", what, err)
		}
	case <-time.After(10 * time.Second):
		tb.Errorf("%s: not woken", what)
	}
}

func subscribed(tb testing.TB, rdb *redis.Client) int {
	tb.Helper()
	all, err := rdb.PubSubChannels(context.Background(), "*").Result()
	if err != nil {
		tb.Fatal(err)
	}
	return len(all)
}

// Waiters for many keys are woken by the releases of another client, listen on one connection, and leave no channel or goroutine.
func TestReleaseWakesAnotherClient(t *testing.T) {
	s := redistest.Start(t)
	rdb, p := s.Client(t), s.Front(t)
	before := runtime.NumGoroutine()
	holder := newLocker(t, rdb, setnxlock.RedisLockRegistry("shop"))
	behind := redis.NewClient(&redis.Options{Addr: p.Addr, PoolSize: 1})
	waiter := newLocker(t, behind, setnxlock.RedisLockRegistry("shop"), deaf)
	const n = 20
	var holds []lock.Hold
	var waits []<-chan error
	for i := range n {
		r := lock.Request{Key: fmt.Sprint("k", i)}
		holds = append(holds, acquire(t, holder, r))
		waits = append(waits, waitAsync(waiter, r))
	}
	eventually(t, "all listen", func() bool { return subscribed(t, rdb) == n })
	if open, _ := p.Connections(); open > 2 {
		t.Errorf("%d connections, want one for questions and one to listen", open)
	}
	<-time.After(100 * time.Millisecond) // each has asked again after its confirmation
	for i, h := range holds {
		release(t, h)
		expectSoon(t, fmt.Sprint("waiter ", i), waits[i])
	}
	eventually(t, "no channel is left", func() bool { return subscribed(t, rdb) == 0 })
	if err := behind.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+8 }) // the proxy's connections
}

// What was released before the subscription was confirmed is not slept through.
func TestReleaseBeforeTheSubscription(t *testing.T) {
	s := redistest.Start(t)
	l, p := behind(t, s, setnxlock.RedisLockRegistry("shop"), deaf)
	holder := newLocker(t, s.Client(t), setnxlock.RedisLockRegistry("shop"))
	h := acquire(t, holder, lock.Request{Key: "k"})
	subscription := p.KeepBackReply("shop-channel", 0)
	done := waitAsync(l, lock.Request{Key: "k"})
	subscription.Await(t)
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	subscription.Deliver(t)
	expectSoon(t, "the waiter", done)
}

// The connection breaks, and the release falls into the gap. The waiter asks again when it is subscribed again.
func TestReleaseWhileTheConnectionIsBroken(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	l, p := behind(t, s, setnxlock.RedisLockRegistry("shop"), deaf)
	h := acquire(t, newLocker(t, rdb, setnxlock.RedisLockRegistry("shop")), lock.Request{Key: "k"})
	done := waitAsync(l, lock.Request{Key: "k"})
	eventually(t, "the waiter listens", func() bool { return subscribed(t, rdb) == 1 })
	again := p.KeepBackReply("shop-channel", 0)
	p.Drop()
	again.Await(t)
	release(t, h)
	again.Deliver(t)
	expectSoon(t, "the waiter", done)
}

// Who may not subscribe polls.
func TestWaiterWithoutSubscribe(t *testing.T) {
	_, rdb := worker(t, "~*", "&*", "+@all", "-subscribe")
	l := newLocker(t, rdb, setnxlock.RedisLockRegistry("shop"))
	h := acquire(t, l, lock.Request{Key: "k"})
	done := waitAsync(newLocker(t, rdb, setnxlock.RedisLockRegistry("shop")), lock.Request{Key: "k"})
	<-time.After(100 * time.Millisecond)
	release(t, h)
	expectSoon(t, "the waiter", done)
}

// A waiter that leaves stops listening.
func TestWaiterThatLeavesStopsListening(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	h := acquire(t, newLocker(t, rdb, setnxlock.RedisLockRegistry("shop")), lock.Request{Key: "k"})
	l := newLocker(t, rdb, setnxlock.RedisLockRegistry("shop"), deaf)
	before := runtime.NumGoroutine()
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := l.Acquire(ctx, lock.Request{Key: "k", Wait: -1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire = %v, want the caller's deadline", err)
		}
		cancel()
	}
	eventually(t, "no channel is left", func() bool { return subscribed(t, rdb) == 0 })
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
	release(t, h)
}
