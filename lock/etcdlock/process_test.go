package etcdlock_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

func TestLockEndsWithACrashedHolder(t *testing.T) {
	parallel(t)
	c := single(t)
	client := dial(t, c.Endpoints()...)
	holder, next := startWorker(t, c.Endpoints()...), startWorker(t, c.Endpoints()...)
	first := token(t, holder.does("lock crash", "held"))
	next.does("try crash", "busy")
	next.send("lock crash")
	waiting(t, client, "crash", 2)
	start := time.Now()
	holder.signal(syscall.SIGKILL)
	second := token(t, next.says("held"))
	if took := time.Since(start); took > workerWatchdog+2*time.Second {
		t.Errorf("a lease of %v ended after %v", workerWatchdog, took)
	}
	if second <= first {
		t.Errorf("token %d does not follow %d", second, first)
	}
	next.does("unlock crash", "released")
}

// The process learns of the loss when it runs again, and its release does nothing to the next holder.
func TestHolderPausedPastItsLeaseHasLostTheLock(t *testing.T) {
	parallel(t)
	c := single(t)
	holder, next := startWorker(t, c.Endpoints()...), startWorker(t, c.Endpoints()...)
	holder.does("lock pause", "held")
	holder.does("alive pause", "alive")
	holder.signal(syscall.SIGSTOP)
	next.does("lock pause", "held")
	holder.signal(syscall.SIGCONT)
	eventually(t, func() bool { return holder.does("alive pause", "") == "lost" }) // its timers need a moment
	holder.does("unlock pause", "lost")
	next.does("alive pause", "alive")
	holder.does("try pause", "busy")
	next.does("unlock pause", "released")
}

// A waiter that sleeps past its lease has lost its place. It goes on waiting, at the end of the line.
func TestWaiterPausedPastItsLeaseGoesToTheEndOfTheLine(t *testing.T) {
	parallel(t)
	c := single(t)
	client := dial(t, c.Endpoints()...)
	l := locker(t, client)
	const key = "paused-waiter"
	h := acquire(t, l, lock.Request{Key: key})
	sleeper := startWorker(t, c.Endpoints()...)
	sleeper.send("lock %s", key)
	waiting(t, client, key, 2)
	time.Sleep(time.Second) // until it has heard of that; who hears nothing for so long has an outage
	sleeper.signal(syscall.SIGSTOP)
	waiting(t, client, key, 1)
	next := background(t.Context(), l, lock.Request{Key: key, Wait: -1})
	waiting(t, client, key, 2)
	sleeper.signal(syscall.SIGCONT)
	waiting(t, client, key, 3)
	release(t, h)
	h = held(t, next)
	sleeper.silent()
	release(t, h)
	sleeper.says("held")
	sleeper.does("unlock "+key, "released")
}

// Somebody who dies in line stands in the way for as long as its lease, and not longer.
func TestCrashedWaiterLeavesTheLine(t *testing.T) {
	parallel(t)
	c := single(t)
	client := dial(t, c.Endpoints()...)
	l := locker(t, client)
	const key = "crashed-waiter"
	h := acquire(t, l, lock.Request{Key: key})
	waiter := startWorker(t, c.Endpoints()...)
	waiter.send("lock %s", key)
	waiting(t, client, key, 2)
	next := background(t.Context(), l, lock.Request{Key: key, Wait: -1})
	waiting(t, client, key, 3)
	waiter.signal(syscall.SIGKILL)
	release(t, h)
	release(t, held(t, next))
	if left := line(t, client, key); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
