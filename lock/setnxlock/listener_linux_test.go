package setnxlock_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
)

// processorTime is for how long this process has kept processors busy.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Who waits while the client is closed is told soon, and costs nothing until then.
func TestClosedClientEndsTheWait(t *testing.T) {
	s := redistest.Start(t)
	h := acquire(t, newLocker(t, s.Client(t), setnxlock.RedisLockRegistry("shop")), lock.Request{Key: "k"})
	rdb := s.Client(t)
	l := newLocker(t, rdb, setnxlock.RedisLockRegistry("shop"), setnxlock.Timeout(time.Second), setnxlock.Poll(time.Second, 0))
	done := make(chan error, 1)
	go func() {
		_, err := l.Acquire(context.Background(), lock.Request{Key: "k", Wait: -1})
		done <- err
	}()
	eventually(t, "the waiter listens", func() bool { return subscribed(t, s.Client(t)) == 1 })
	before, start := processorTime(t), time.Now()
	if err := rdb.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("the waiter got the lock from a closed client")
	}
	if busy, took := processorTime(t)-before, time.Since(start); busy > took/5 {
		t.Errorf("a processor was busy for %v of the %v until the waiter was told", busy, took)
	}
	release(t, h)
}
