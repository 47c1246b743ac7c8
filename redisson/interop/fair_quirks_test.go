package interop

import (
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// fairUnits: Redisson's tryLock(30, SECONDS) queues up for 30 milliseconds. So it is dead to the queue, though it waits, and whoever
// comes after it is served before it. It is not notified of the release after that, either.
func fairUnits(t *testing.T, on setting) {
	w := newWorld(t, on)
	w.client = w.newClient(redisson.WatchdogTimeout(6 * time.Second)) // Java may hear of the lease of Go
	java, golang := w.fairPair("k")
	w.take(java, "holder", 5*time.Second)
	asked, end := time.Now(), w.leaseEnd("k").Add(30*time.Millisecond)
	short := w.joinsBy("Java waits for 30s", "k", func() result {
		a := java.call("short", "tryLock", 30, "SECONDS")
		r := a.result()
		r.ok = a.Value == true
		return r
	})
	w.within("deadline of Java", w.line("k")[0].deadline, end.Add(-time.Since(asked)), end)
	patient := w.joins(golang, "patient", "k", forever)
	w.take(java, "holder", 12*time.Second)
	w.pass(time.Until(end) + 500*time.Millisecond)
	w.release(java, "holder")
	released := w.release(java, "holder")
	w.between("Go is served after", patient.gets().end.Sub(released.start), 0, soon)
	w.release(golang, "patient")
	w.between("Java waited", short.gets().took(), 5*time.Second, 20*time.Second)
	w.release(java, "short")
	w.clean()
}

// fairShortened: when that tryLock gives up, it takes seconds, not milliseconds, from those behind it. A Go waiter that looks
// dead by that puts its deadline right when it next looks by itself.
func fairShortened(t *testing.T, on setting) {
	w := newWorld(t, on)
	w.client = w.newClient(redisson.FairLockWaitTimeout(4 * time.Second))
	java, golang := w.fairPair("k")
	w.take(java, "holder", 7*time.Second)
	short := w.joinsBy("Java waits for 6s", "k", func() result {
		return java.call("short", "tryLock", 6, "SECONDS").result()
	})
	patient := w.joins(golang, "patient", "k", forever)
	w.take(java, "holder", 30*time.Second)
	short.ends()
	if line := w.line("k"); len(line) == 1 && line[0].deadline.After(time.Now()) {
		t.Logf("Go has put its deadline right by now: %v", line)
	}
	w.eventually("Go has a deadline in the future", func() bool {
		line := w.line("k")
		return len(line) == 1 && time.Until(line[0].deadline) > 2*time.Second
	})
	w.refused(java, "other") // and would remove the dead
	if line := w.line("k"); len(line) != 1 {
		t.Errorf("queue %v, want Go in it", line)
	}
	patient.waits(0)
	w.release(java, "holder")
	released := w.release(java, "holder")
	w.between("Go is served after", patient.gets().end.Sub(released.start), 0, soon)
	w.release(golang, "patient")
	w.clean()
}

// fairAsync: when Redisson's tryLockAsync gives up, it takes five minutes from all behind it, whatever its wait was. The
// holder that finds the Go waiter dead notifies nobody; so it comes back when it next looks by itself.
func fairAsync(t *testing.T, on setting) {
	w := newWorld(t, on)
	w.client = w.newClient(redisson.WatchdogTimeout(6*time.Second), redisson.FairLockWaitTimeout(5*time.Second))
	java, golang := w.fairPair("k")
	w.take(java, "holder", 0)
	async := w.joinsBy("Java tries asynchronously for 1s", "k", func() result {
		a := java.call("", "tryLockAsync", 1000, "MILLISECONDS")
		r := a.result()
		r.ok = a.Value == true
		return r
	})
	patient := w.joins(golang, "patient", "k", forever)
	before := w.line("k")[1].deadline
	if r := async.ends(); r.ok || r.err != nil {
		t.Errorf("tryLockAsync = %v, %v; want false", r.ok, r.err)
	}
	var line []waiter
	w.eventually("Java leaves the queue", func() bool { line = w.line("k"); return len(line) < 2 })
	if pulled := before.Add(-300 * time.Second); len(line) == 1 && line[0].deadline.Before(time.Now()) { // else Go has been here
		w.within("deadline of Go", line[0].deadline, pulled, pulled)
	}
	released := w.release(java, "holder")
	w.between("Go is served after", patient.gets().end.Sub(released.start), 0, 2*time.Second+soon)
	w.release(golang, "patient")
	w.clean()
}

// fairVanishes: whoever unlocks a fair lock that is gone notifies the head of the queue. For Redisson that is a success; Go
// says that the hold was lost.
func fairVanishes(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, golang := w.fairPair("k")
	for _, side := range [][2]mutex{{java, golang}, {golang, java}} {
		holder, other := side[0], side[1]
		w.take(holder, "a", 0)
		before := w.scripts()
		head := w.joins(other, "b", "k", forever)
		// Whoever waits asks again when it is subscribed. After that it has to be told.
		w.eventually("the head has asked twice", func() bool { return w.scripts() >= before+2 })
		line, messages := w.line("k"), w.everything()
		w.rdb.Del(t.Context(), "k")
		r := holder.unlock("a")
		switch {
		case holder == mutex(java) && r.err != nil:
			t.Errorf("Java unlocks what is gone: %v, want no error", r.err)
		case holder == mutex(golang) && !errors.Is(r.err, lock.ErrLost):
			t.Errorf("Go unlocks what is gone: %v, want ErrLost", r.err)
		}
		w.between("the head is served after", head.gets().end.Sub(r.start), 0, soon)
		messages.expect(channelOf("k") + ":" + line[0].holder + " 0")

		// Now that somebody else has it, it is not the caller's.
		if r := holder.unlock("a"); !notOwner(r.err) {
			t.Errorf("%v unlocks what %v holds: %v, want not the owner", holder, other, r.err)
		}
		messages.expect()
		messages.close()
		w.only("k", "1")
		w.release(other, "b")
		w.clean()
	}
}
