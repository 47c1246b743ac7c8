package interop

import (
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// downgradeScenarios are those of a writer that goes on reading.
var downgradeScenarios = []scenario{
	{name: "52_downgrade_lets_in_who_waits", play: downgradeLetsIn, long: true},
	{name: "53_leased_write_ends_beside_a_read", play: leasedWriteEnds, long: true},
}

// downgradeLetsIn: a downgrade is not announced. Readers that wait get in when they next try, of Go after a third of the watchdog's
// timeout at the latest, of Java when the lease is over that they have heard of. A writer waits until nobody reads any more.
func downgradeLetsIn(t *testing.T, on setting) {
	w := newWorld(t, on)
	w.java = w.newJava(map[string]any{"lockWatchdogTimeout": 6000})
	w.client = w.newClient(redisson.WatchdogTimeout(6 * time.Second))
	t.Run("sides", func(t *testing.T) {
		w.beside(t, "Java goes on", func(w *world) {
			java, golang := w.rwPair("java")
			w.letsIn("java", java, java, golang)
		})
		w.beside(t, "Go goes on", func(w *world) {
			java, golang := w.rwPair("go")
			w.letsIn("go", golang, java, golang)
		})
	})
	w.clean()
}

func (w *world) letsIn(name string, holder, java, golang sides) {
	goesOn, reader, writer := name+" goes on", name+" reads", name+" writes" // a thread does one thing at a time
	messages := w.messages(rwChannelOf(name))
	w.take(holder.write, goesOn, 0)
	w.take(holder.read, goesOn, 0)
	javaReads := w.wait(java.read, reader, rwChannelOf(name), forever)
	goReads := w.wait(golang.read, reader, rwChannelOf(name), forever)
	javaWrites, goWrites := w.passes(java.write, writer), w.passes(golang.write, writer)
	for _, p := range []*pending{javaReads, goReads, javaWrites, goWrites} {
		p.waits(200 * time.Millisecond)
	}
	released := w.release(holder.write, goesOn)
	w.between("Go reads after", goReads.gets().end.Sub(released.start), 0, 2*time.Second+soon)
	w.between("Java reads after", javaReads.gets().end.Sub(released.start), 0, 6*time.Second+soon)
	messages.expect()
	w.release(java.read, reader)
	w.release(golang.read, reader)
	for _, p := range []*pending{javaWrites, goWrites} {
		p.waits(0)
	}
	messages.expect()

	released = w.release(holder.read, goesOn)
	for _, p := range []*pending{javaWrites, goWrites} {
		w.between(p.what+" after", p.gets().end.Sub(released.start), 0, time.Second+soon)
	}
	messages.expect("0", "1", "1")
	messages.close()
}

// leasedWriteEnds: when the lease of a writer is over that reads as well, it goes on as a reader in Go. A writer of Redisson's stays
// one until it gives back its write lock, and others can't read.
func leasedWriteEnds(t *testing.T, on setting) {
	w := newWorld(t, on)
	t.Run("sides", func(t *testing.T) {
		w.beside(t, "Go", func(w *world) { w.becomesReader("go") })
		w.beside(t, "Java", func(w *world) { w.staysWriter("java") })
	})
	w.clean()
}

func (w *world) becomesReader(name string) {
	java, golang := w.rwPair(name)
	written := w.take(golang.write, "a", 3*time.Second)
	w.take(golang.read, "a", 0)
	refused, got := firstOf(java.read, golang.read)
	if got.err != nil || !got.ok {
		w.t.Errorf("others read: %v, %v; want that they can", got.ok, got.err)
	}
	w.between("others read after", got.end.Sub(written.start), 3*time.Second, time.Hour)
	w.between("they were refused until", refused.start.Sub(written.end), 0, 3*time.Second+soon)
	for _, s := range []sides{java, golang} {
		w.refused(s.write, "b")
		w.take(s.read, "b", 0)
		w.release(s.read, "b")
	}
	w.holders(name, "read")
	if r := golang.write.unlock("a"); !errors.Is(r.err, lock.ErrLost) {
		w.t.Errorf("Go unlocks the write lock whose lease is over: %v, want ErrLost", r.err)
	}
	w.release(golang.read, "a")
	w.take(java.write, "b", 0)
	w.release(java.write, "b")
}

func (w *world) staysWriter(name string) {
	java, golang := w.rwPair(name)
	w.take(java.write, "a", time.Second)
	w.take(java.read, "a", 0)
	w.pass(2 * time.Second)
	w.refused(golang.read, "b")
	w.holders(name, "write")
	w.release(java.write, "a")
	w.take(golang.read, "b", 0)
	w.release(golang.read, "b")
	w.release(java.read, "a")
}
