package interop

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// readScenarios are those of several read holds at once.
var readScenarios = []scenario{
	{name: "51_read_holds", play: readHolds, long: true},
	{name: "51_nested_reads_come_and_go", play: readsComeAndGo, long: true},
	{name: "51_unlock_of_a_read_that_is_over", play: func(t *testing.T, on setting) { rwBothWays(t, on, expiredRead) }, long: true},
}

// readPlans say who reads for how long: a thread of one side, or, with a capital letter, of the other one; with a lease, or renewed;
// and after what time since the beginning the hold is released. What else a thread has is nested in what it had before.
var readPlans = []string{
	"a 4s, a 1.5s",
	"a 1.5s, a 4s",
	"a 4s, a 1.5s until 0.7s",
	"a 1.5s, a 4s until 0.7s",
	"a 4s until 0.8s, a 1.5s until 0.7s",
	"a 1.5s, a 2.5s, a 4s until 0.5s",

	"a 4s, b 1.5s",
	"a 4s until 0.5s, b 1.5s",
	"a 4s, b 1.5s until 0.5s",
	"a 4s until 0.5s, B 1.5s",
	"a 1.5s until 0.5s, B 4s",
	"a 4s until 0.6s, a 1.5s until 0.5s, B 2.5s",
	"a 2.5s, a 4s until 0.5s, B 1.5s until 1s",

	"a renewed until 5s",
	"a renewed until 5s, a renewed until 1s",
	"a renewed until 5s, B renewed until 1s",
	"a renewed until 1s, B 2.5s",
}

// goReadPlans are for Go alone: a thread of Redisson's gives back its innermost hold first, and where one of its holds is renewed,
// it renews the others as well.
var goReadPlans = []string{
	"a 4s until 0.5s, a 1.5s",
	"a 1.5s until 0.5s, a 4s",
	"a renewed until 5s, a 1.5s",
	"a renewed until 5s, a 1.5s until 1s",
	"a 1.5s, a renewed until 5s",
}

// readHold is one hold of such a plan.
type readHold struct {
	other  bool
	thread string
	lease  time.Duration // 0: renewed
	until  time.Duration // 0: not released
}

func parseReads(t *testing.T, plan string) (holds []readHold) {
	for part := range strings.SplitSeq(plan, ", ") {
		words := strings.Fields(part)
		h := readHold{thread: words[0], other: words[0] == strings.ToUpper(words[0])}
		if words[1] != "renewed" {
			h.lease = must[time.Duration](t)(time.ParseDuration(words[1]))
		}
		if len(words) > 2 {
			h.until = must[time.Duration](t)(time.ParseDuration(words[3]))
		}
		holds = append(holds, h)
	}
	return holds
}

// readHolds: writers of both sides stay out for exactly as long as the longest of the read holds.
func readHolds(t *testing.T, on setting) {
	w := newWorld(t, on)
	w.java = w.newJava(map[string]any{"lockWatchdogTimeout": 4500})
	w.client = w.newClient(redisson.WatchdogTimeout(4500 * time.Millisecond))
	t.Run("plans", func(t *testing.T) {
		for _, plan := range slices.Concat(readPlans, goReadPlans) {
			w.beside(t, "Go reads: "+plan, func(w *world) {
				other, reader := w.rwPair("Go " + plan)
				w.excludesWriters(parseReads(w.t, plan), reader, other)
			})
		}
		for _, plan := range readPlans {
			w.beside(t, "Java reads: "+plan, func(w *world) {
				reader, other := w.rwPair("Java " + plan)
				w.excludesWriters(parseReads(w.t, plan), reader, other)
			})
		}
	})
	w.clean()
}

// excludesWriters takes the holds and releases them, while a writer of each side tries. Neither must come in before the last
// hold is over, and none be refused that tries half a second later.
func (w *world) excludesWriters(holds []readHold, reader, other sides) {
	w.t.Helper()
	type release struct {
		at  time.Duration
		run func() result
	}
	var releases []release
	var over span // when the last one is
	start := time.Now()
	for _, h := range holds {
		m := reader.read
		if h.other {
			m = other.read
		}
		taken := w.take(m, h.thread, h.lease)
		if h.until > 0 {
			releases = append(releases, release{h.until, releaser(m, h.thread)})
		} else {
			over.extend(taken, h.lease)
		}
	}
	slices.SortFunc(releases, func(a, b release) int { return cmp.Compare(a.at, b.at) })
	var refused result
	writer := begin(w.t, "a writer tries", func() (got result) {
		refused, got = firstOf(reader.write, other.write)
		return got
	})
	for _, r := range releases {
		w.pass(time.Until(start.Add(r.at)))
		released := r.run()
		if released.err != nil {
			w.t.Errorf("release after %v: %v", r.at, released.err)
		}
		over.extend(released, 0)
	}
	got := writer.ends()
	w.inTime("a writer was in", over, refused, got)
}

// span is when something happens that happens within a call.
type span struct{ from, to time.Time }

// extend makes it at least so long after the call.
func (s *span) extend(r result, d time.Duration) {
	if at := r.start.Add(d); at.After(s.from) {
		s.from = at
	}
	if at := r.end.Add(d); at.After(s.to) {
		s.to = at
	}
}

// releaser returns what gives back the innermost hold of the thread. In Go it is that hold whatever is innermost by then.
func releaser(m mutex, thread string) func() result {
	g, ok := m.(*goMutex)
	if !ok {
		return func() result { return m.unlock(thread) }
	}
	held := g.threads.current(thread)
	return func() result { return g.unlockUnder(held) }
}

// firstOf has both try in turn until one of them has the lock, and gives it back. It returns the last try that was refused, and
// the one that was not.
func firstOf(all ...mutex) (refused, got result) {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		for _, m := range all {
			got = m.take("writer", 0, 0)
			if got.err != nil {
				return refused, got
			}
			if got.ok {
				got.err = m.unlock("writer").err
				return refused, got
			}
			refused = got
		}
	}
	return refused, got
}

// readsComeAndGo: re-entries that come and go do not end the renewed hold around them.
func readsComeAndGo(t *testing.T, on setting) {
	w := newWorld(t, on)
	w.java = w.newJava(map[string]any{"lockWatchdogTimeout": 4500})
	w.client = w.newClient(redisson.WatchdogTimeout(4500 * time.Millisecond))
	t.Run("sides", func(t *testing.T) {
		w.beside(t, "Go reads", func(w *world) {
			java, golang := w.rwPair("go")
			w.survivesReentries(golang.read, java.write)
		})
		w.beside(t, "Java reads", func(w *world) {
			java, golang := w.rwPair("java")
			w.survivesReentries(java.read, golang.write)
		})
	})
	w.clean()
}

func (w *world) survivesReentries(reader, writer mutex) {
	w.t.Helper()
	w.take(reader, "a", 0)
	for range 30 {
		w.take(reader, "a", 0)
		w.pass(150 * time.Millisecond)
		w.refused(writer, "b")
		w.release(reader, "a")
		w.pass(150 * time.Millisecond)
		w.refused(writer, "b")
	}
	w.release(reader, "a")
	w.take(writer, "b", 0)
	w.release(writer, "b")
}

// expiredRead: a reader's entry stays in Redis as long as others read, also when its lease is over. So Redisson unlocks it as if it
// were held; Go says that the hold was lost. The others read on.
func expiredRead(w *world, name string, a, b sides) {
	w.take(b.read, "b", 0)
	expired := w.take(a.read, "a", time.Second)
	w.pass(time.Until(expired.end.Add(1500 * time.Millisecond)))
	r := a.read.unlock("a")
	if _, ok := a.read.(*goMutex); ok && !errors.Is(r.err, lock.ErrLost) || !ok && r.err != nil {
		w.t.Errorf("%v unlocks a read that is over: %v; want ErrLost in Go, no error in Java", a, r.err)
	}
	w.refused(a.write, "c")
	w.eventually("only the other one is a reader", func() bool { return len(w.holders(name, "read")) == 1 })
	w.release(b.read, "b")
	w.clean()
}
