package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// rwScenarios are those of the read/write lock.
var rwScenarios = []scenario{
	{name: "33_two_readers", play: func(t *testing.T, on setting) { rwBothWays(t, on, twoReaders) }},
	{name: "34_last_reader_releases", play: func(t *testing.T, on setting) { rwBothWays(t, on, lastReader) }},
	{name: "35_readers_wake_together", play: func(t *testing.T, on setting) {
		rwBothWays(t, on, func(w *world, name string, a, b sides) { readersWake(w, name, 3, a, b) })
	}},
	{name: "35_sixty-four_readers_wake_together", play: func(t *testing.T, on setting) {
		rwBothWays(t, on, func(w *world, name string, a, b sides) { readersWake(w, name, 32, a, b) })
	}},
	{name: "36_writer_goes_on_reading", play: func(t *testing.T, on setting) { rwBothWays(t, on, downgrade) }},
	{name: "37_longest_reader_counts", play: longestReader, long: true},
	{name: "38_reader_holds_on", play: readerHoldsOn, long: true},
	{name: "39_reader_is_killed", play: readerIsKilled, long: true},
	{name: "40_write_reentry", play: func(t *testing.T, on setting) { rwBothWays(t, on, writeReentry) }},
	{name: "41_foreign_unlock_of_a_side", play: foreignSideUnlock},
	{name: "42_force_of_the_other_side", play: func(t *testing.T, on setting) { rwBothWays(t, on, forceOfSides) }, long: true},
}

// sides is a read/write lock as one process sees it. A thread is the same owner on both sides of it.
type sides struct{ read, write mutex }

func (s sides) String() string { return s.read.String() }

func rwChannelOf(name string) string { return "redisson_rwlock:" + braced(name) }

// rwPair is one read/write lock seen from both processes.
func (w *world) rwPair(name string) (java, golang sides) {
	return javaSides(w.t, w.java, name), goSides(w.t, w.client, name)
}

func javaSides(t *testing.T, c *javaClient, name string) sides {
	path := step{"getReadWriteLock", name}
	return sides{newJavaMutex(t, c, path, step{"readLock"}), newJavaMutex(t, c, path, step{"writeLock"})}
}

func goSides(t *testing.T, c *redisson.Client, name string) sides {
	l := c.ReadWriteLock(name)
	read, write := newGo(t, l.ReadLock()), newGo(t, l.WriteLock())
	write.threads = read.threads
	return sides{read, write}
}

// rwBothWays plays a scenario for two processes twice, each in each part.
func rwBothWays(t *testing.T, on setting, play func(w *world, name string, a, b sides)) {
	w := newWorld(t, on)
	java, golang := w.rwPair("java-first")
	play(w, "java-first", java, golang)
	java, golang = w.rwPair("go-first")
	play(w, "go-first", golang, java)
}

// holders are the fields of the lock's hash but for the mode, which is expected to be as given.
func (w *world) holders(name, mode string) map[string]string {
	w.t.Helper()
	hash := w.hash(name)
	if hash["mode"] != mode {
		w.t.Errorf("%s = %v, want mode %q", name, hash, mode)
	}
	delete(hash, "mode")
	return hash
}

func twoReaders(w *world, name string, a, b sides) {
	w.take(a.read, "a", 20*time.Second)
	w.take(b.read, "b", 10*time.Second)
	w.take(b.read, "b", 5*time.Second)
	counts := map[string][]time.Duration{"1": {20 * time.Second}, "2": {10 * time.Second, 5 * time.Second}}
	keys := 4 // with that of the lock
	if _, ok := b.read.(*goMutex); ok {
		counts["2"] = counts["2"][:1] // Go has one key for all holds of a reader, and Java takes the longest
		keys--
	}
	for holder, count := range w.holders(name, "read") {
		for n, lease := range counts[count] {
			key := fmt.Sprintf("%s:%s:rwlock_timeout:%d", braced(name), holder, n+1)
			ttl := must[time.Duration](w.t)(w.rdb.PTTL(w.t.Context(), key).Result())
			w.between("time to live of "+key, ttl, lease-4*time.Second, lease)
			if v := w.rdb.Get(w.t.Context(), key).Val(); v != "1" {
				w.t.Errorf("%s = %q, want 1", key, v)
			}
		}
		delete(counts, count)
	}
	if got := w.rdb.Keys(w.t.Context(), "*").Val(); len(got) != keys || len(counts) != 0 {
		w.t.Errorf("keys %q, counts %v are missing", got, counts)
	}
	for _, m := range []mutex{a.write, b.write} {
		w.refused(m, "c")
		w.between("time to live", m.ttl(), 15*time.Second, 20*time.Second)
	}
	for _, s := range []sides{a, b} {
		if !s.read.locked() || s.write.locked() {
			w.t.Errorf("%v: read %v, written %v; want true and false", s, s.read.locked(), s.write.locked())
		}
	}
	w.release(b.read, "b")
	w.release(a.read, "a")
	w.between("time to live", a.read.ttl(), 5*time.Second, 10*time.Second)
	w.release(b.read, "b")
	w.clean()
}

func lastReader(w *world, name string, a, b sides) {
	w.wakes(func() (released, woken result) {
		messages := w.messages(rwChannelOf(name))
		w.take(a.read, "a", 0)
		w.take(b.read, "b", 0)
		p := w.wait(b.write, "c", rwChannelOf(name), forever)
		w.release(b.read, "b")
		p.waits(100 * time.Millisecond)
		messages.expect()
		released, woken = w.release(a.read, "a"), p.gets()
		messages.expect("0")
		w.release(b.write, "c")
		messages.expect("1")
		messages.close()
		return released, woken
	})
	w.clean()
}

// readersWake: n readers on each side wait for the writer, and all read within 300ms of its release.
func readersWake(w *world, name string, n int, a, b sides) {
	w.wakesWithin(300*time.Millisecond, func() (released, woken result) {
		messages := w.messages(rwChannelOf(name))
		w.take(a.write, "writer", 0)
		var readers []*pending
		for i := range n {
			for _, s := range []sides{a, b} {
				readers = append(readers, begin(w.t, fmt.Sprintf("%v reads", s), func() result {
					return s.read.take(fmt.Sprint("reader", i), forever, 0)
				}))
			}
		}
		w.eventually("both sides subscribe", func() bool { return w.subscribers(rwChannelOf(name)) == 3 })
		w.pass(300 * time.Millisecond) // a thread of Redisson that is not asleep yet sleeps until the lease is over
		released = w.release(a.write, "writer")
		for _, p := range readers {
			if r := p.gets(); r.end.After(woken.end) {
				woken = r
			}
		}
		messages.expect("1")
		w.t.Logf("%d readers, the last one after %v, of a writer in %v", len(readers), woken.end.Sub(released.start), a)
		for i := range n {
			w.release(a.read, fmt.Sprint("reader", i))
			w.release(b.read, fmt.Sprint("reader", i))
		}
		messages.expect("0")
		messages.close()
		return released, woken
	})
	w.clean()
}

// downgrade: a writer that reads and then stops writing lets other readers in, but notifies nobody.
func downgrade(w *world, name string, a, b sides) {
	messages := w.messages(rwChannelOf(name))
	w.take(a.write, "a", 0)
	w.take(a.read, "a", 0)
	if len(w.holders(name, "write")) != 2 || !b.read.locked() || !b.write.locked() {
		w.t.Errorf("%v; %v sees it read: %v, written: %v; want both", w.hash(name), b, b.read.locked(), b.write.locked())
	}
	w.refused(b.read, "b")
	w.release(a.write, "a")
	messages.expect()
	if len(w.holders(name, "read")) != 1 || !b.read.locked() || b.write.locked() {
		w.t.Errorf("%v; %v sees it read: %v, written: %v; want it read", w.hash(name), b, b.read.locked(), b.write.locked())
	}
	w.refused(b.write, "b")
	w.take(b.read, "b", 0)
	w.release(b.read, "b")
	messages.expect()
	w.release(a.read, "a")
	messages.expect("0")
	messages.close()
	w.clean()
}

// longestReader: the lock lasts as long as the longest of its readers, also when another one releases.
func longestReader(t *testing.T, on setting) {
	w := newWorld(t, on)
	for _, other := range []time.Duration{6 * time.Second, 30 * time.Second} {
		for _, goStays := range []bool{false, true} {
			t.Run(fmt.Sprintf("other %v, Go stays %v", other, goStays), func(t *testing.T) {
				t.Parallel()
				w := *w
				w.t = t
				name := fmt.Sprint("k", other, goStays)
				stays, leaves := w.rwPair(name)
				if goStays {
					stays, leaves = leaves, stays
				}
				long := w.take(stays.read, name, 10*time.Second)
				w.take(leaves.read, name, other)
				p := w.wait(leaves.write, name+" writer", rwChannelOf(name), forever)
				w.pass(time.Second)
				w.release(leaves.read, name)
				for holder := range w.holders(name, "read") {
					end := w.leaseEnd(braced(name) + ":" + holder + ":rwlock_timeout:1")
					w.within("end of the lock, compared to that of its reader", w.leaseEnd(name), end, end)
				}
				written := p.gets()
				w.between("written since the reader asked", written.end.Sub(long.start), 10*time.Second, time.Hour)
				latest := 20*time.Second + soon
				if other == 30*time.Second && goStays {
					latest = other + soon // nobody is notified, and Java sleeps for as long as the lock was to last, Go for 10s
				}
				w.between("written since it read", written.end.Sub(long.end), 0, latest)
				w.release(leaves.write, name+" writer")
			})
		}
	}
}

// readerHoldsOn: readers that come and go do not shorten the hold of one that is renewed.
func readerHoldsOn(t *testing.T, on setting) {
	w := newWorld(t, on)
	for _, goStays := range []bool{true, false} {
		t.Run(fmt.Sprintf("Go stays %v", goStays), func(t *testing.T) {
			t.Parallel()
			w := *w
			w.t = t
			stays, others := w.rwPair(fmt.Sprint("k", goStays))
			if goStays {
				stays, others = others, stays
			}
			w.take(stays.read, "a", 0)
			for i := range 60 {
				w.take(others.read, "b", time.Duration(3+i%3)*time.Second)
				w.pass(500 * time.Millisecond)
				w.release(others.read, "b")
				w.refused(others.write, "c")
				w.between("time to live", others.read.ttl(), 15*time.Second, 30*time.Second)
				w.pass(500 * time.Millisecond)
			}
			w.release(stays.read, "a")
			w.take(others.write, "c", 0)
			w.release(others.write, "c")
		})
	}
}

// readerIsKilled: another reader is not taken for the one that died, even if it is renewed.
func readerIsKilled(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, golang := w.rwPair("go")
	c := w.startChild(5*time.Second, lock.Request{Key: "go", Kind: lock.Read})
	c.acquired(t)
	w.outlivesReader("go", c.kill, java, golang)

	mortal, kill := w.mortal(map[string]any{"lockWatchdogTimeout": 5000})
	dying := javaSides(t, mortal, "java")
	java, golang = w.rwPair("java")
	w.take(dying.read, "x", 0)
	w.outlivesReader("java", kill, golang, java)
}

func (w *world) outlivesReader(name string, kill func(), reader, writer sides) {
	w.take(reader.read, "a", 0)
	p := w.wait(writer.write, "b", rwChannelOf(name), forever)
	kill()
	p.waits(7 * time.Second)
	released := w.release(reader.read, "a")
	w.between("written after", p.gets().end.Sub(released.start), 0, soon)
	w.release(writer.write, "b")
	w.clean()
}

// writeReentry: a re-entry of the writer adds its lease to what is left.
func writeReentry(w *world, name string, a, b sides) {
	for _, lease := range []time.Duration{20 * time.Second, 0} {
		worth := lease
		if lease == 0 {
			worth = 30 * time.Second
		}
		w.take(a.write, "a", lease)
		w.take(a.write, "a", lease)
		w.between("time to live of both", b.write.ttl(), 2*worth-5*time.Second, 2*worth)
		w.release(a.write, "a")
		w.between("time to live of one", b.write.ttl(), worth-5*time.Second, worth)
		w.release(a.write, "a")
	}
	w.take(a.write, "a", 20*time.Second)
	w.take(a.write, "a", 5*time.Second)
	w.between("time to live of a long one and a short one", b.write.ttl(), 20*time.Second, 25*time.Second)
	w.release(a.write, "a")
	w.release(a.write, "a")
	w.clean()
}

// foreignSideUnlock: Go knows by itself what it does not hold and notifies nobody. Redisson asks Redis, where the unlock of a
// lock that nobody has is a message all the same; and so is Go's, of a hold that it had and lost.
func foreignSideUnlock(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, golang := w.rwPair("k")
	messages := w.messages(rwChannelOf("k"))
	unlock := func(m mutex, thread string, want ...string) {
		t.Helper()
		if r := m.unlock(thread); !notOwner(r.err) {
			t.Errorf("%v unlocks what is not its own: %v, want not the owner", m, r.err)
		}
		messages.expect(want...)
	}
	for _, side := range [][2]sides{{java, golang}, {golang, java}} {
		reader, other := side[0], side[1]
		w.take(reader.read, "a", 0)
		for _, m := range []mutex{other.read, other.write, reader.write} {
			unlock(m, "b")
		}
		w.holders("k", "read")
		w.release(reader.read, "a")
		messages.expect("0")
	}
	unlock(java.read, "a", "0")
	unlock(java.write, "a", "1")
	unlock(golang.read, "a")
	unlock(golang.write, "a")
	for _, s := range []sides{java, golang} {
		for payload, m := range map[string]mutex{"0": s.read, "1": s.write} {
			w.take(m, "a", 0)
			w.rdb.Del(t.Context(), "k")
			unlock(m, "a", payload)
		}
	}
	for _, key := range w.rdb.Keys(t.Context(), "{k}:*").Val() {
		if strings.Contains(key, ":rwlock_timeout:") { // of the locks that we deleted
			w.rdb.Del(t.Context(), key)
		}
	}
	messages.close()
	w.clean()
}

func forceOfSides(w *world, name string, a, b sides) {
	messages := w.messages(rwChannelOf(name))
	force := func(m mutex, want bool, payloads ...string) {
		w.t.Helper()
		if r := m.force(); r.ok != want || r.err != nil {
			w.t.Errorf("%v forces: %v, %v; want %v", m, r.ok, r.err, want)
		}
		messages.expect(payloads...)
	}
	force(b.read, false)
	force(b.write, false)
	w.take(a.write, "a", 0)
	force(b.read, false)
	w.holders(name, "write")
	force(b.write, true, "1")
	w.take(a.read, "b", 3*time.Second)
	force(b.write, false)
	w.holders(name, "read")
	force(b.read, true, "0")
	messages.close()
	w.eventually("the hold of the reader ends", func() bool {
		return len(slices.DeleteFunc(w.rdb.Keys(w.t.Context(), "*").Val(), w.receipt)) == 0
	})
}
