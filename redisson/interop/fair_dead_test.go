package interop

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// fairHeadIsKilled: a head that died keeps those behind it waiting until its deadline, and no longer. A living head of Go puts its
// deadline off; one of Redisson's joins with the time to live of the lock and its own wait. The watchdogs are short because a waiter
// of Redisson's, which is not notified of the release, sleeps for the time to live that it has heard of.
func fairHeadIsKilled(t *testing.T, on setting) {
	const watchdog, patience = 6 * time.Second, 12 * time.Second
	w := newWorld(t, on)
	w.java = w.newJava(map[string]any{"lockWatchdogTimeout": watchdog.Milliseconds()})
	w.client = w.newClient(redisson.WatchdogTimeout(watchdog))
	java, _ := w.fairPair("go")
	w.take(java, "a", 0)
	c := startChild(t, order{Addrs: w.addrs(), Cluster: on.cluster, Watchdog: watchdog, Patience: patience,
		Request: lock.Request{Key: "go", Kind: lock.Fair, Wait: forever}})
	w.eventually("the Go process waits", func() bool { return len(w.line("go")) == 1 })
	w.servedAfterDeath("go", java, c.kill)
	w.clean()

	mortal, kill := w.mortal(nil)
	dying := newJavaMutex(t, mortal, step{"getFairLock", "java"})
	_, golang := w.fairPair("java")
	w.take(golang, "a", 0)
	begin(t, "Java dies", func() result { return dying.take("x", patience, 0) })
	w.eventually("the Java process waits", func() bool { return len(w.line("java")) == 1 })
	w.servedAfterDeath("java", golang, kill)
	w.clean()
}

// servedAfterDeath kills the head of the queue behind m and then frees the lock, for which another thread of m's waits behind the
// dead one.
func (w *world) servedAfterDeath(name string, m mutex, kill func()) {
	w.t.Helper()
	p := w.joins(m, "b", name, forever)
	kill()
	head := w.line(name)[0] // moves its deadline no more
	released := w.release(m, "a")
	if left := head.deadline.Sub(released.end); left < time.Second {
		w.t.Fatalf("the deadline of the dead is %v after the lock was freed: too little to see that it keeps others waiting", left)
	}
	w.between("served after the deadline of the dead", p.gets().end.Sub(head.deadline), -10*time.Millisecond, soon)
	if line := w.line(name); len(line) != 0 {
		w.t.Errorf("queue %v, want nobody in it", line)
	}
	w.release(m, "b")
}

// fairSeveralAreKilled: the times of the dead add up, whichever side they are of: each has its own after that of the one ahead of
// it. Those behind are served in their order after the last of these times.
func fairSeveralAreKilled(t *testing.T, on setting) {
	const watchdog, ofGo, ofJava = 6 * time.Second, 8 * time.Second, 10 * time.Second
	w := newWorld(t, on)
	w.java = w.newJava(map[string]any{"lockWatchdogTimeout": watchdog.Milliseconds()})
	w.client = w.newClient(redisson.WatchdogTimeout(watchdog))
	java, golang := w.fairPair("k")
	mortal, killJava := w.mortal(nil)
	dying := newJavaMutex(t, mortal, step{"getFairLock", "k"})
	w.take(golang, "a", 0)
	inLine := func(n int) { w.eventually("it waits", func() bool { return len(w.line("k")) == n }) }
	dies := func() *child {
		return startChild(t, order{Addrs: w.addrs(), Cluster: on.cluster, Watchdog: watchdog, Patience: ofGo,
			Request: lock.Request{Key: "k", Kind: lock.Fair, Wait: forever}})
	}
	first := dies()
	inLine(1)
	begin(t, "Java dies", func() result { return dying.take("x", ofJava, 0) })
	inLine(2)
	last := dies()
	inLine(3)
	next, other := w.joins(java, "b", "k", forever), w.joins(golang, "c", "k", forever)
	first.kill()
	killJava()
	last.kill()

	killed, end := time.Now(), w.line("k")[2].deadline
	w.between("the deadline of the last one that died", end.Sub(killed), ofGo, ofGo+ofJava+ofGo)
	w.release(golang, "a")
	w.between("served after it", next.gets().end.Sub(end), -10*time.Millisecond, soon)
	other.waits(50 * time.Millisecond)
	w.release(java, "b")
	w.between("the next one is served after it", other.gets().end.Sub(end), -10*time.Millisecond, 2*soon)
	w.release(golang, "c")
	w.clean()
}
