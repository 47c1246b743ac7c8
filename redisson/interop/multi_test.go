package interop

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

// multiScenarios are those of several locks at once.
var multiScenarios = []scenario{
	{name: "49_multi_lock", play: func(t *testing.T, on setting) { multiLock(t, on, (*world).multiPair) }},
	{name: "49_multi_lock_a_thousand_rounds", play: func(t *testing.T, on setting) { multiCounter(t, on, 500, (*world).multiPair) }, long: true},
	{name: "55_nested_multi_lock", play: func(t *testing.T, on setting) { multiLock(t, on, (*world).nestedMultiPair) }},
	{name: "55_nested_multi_lock_with_a_lease", play: nestedLease, long: true},
	{name: "55_nested_multi_lock_two_hundred_rounds", play: func(t *testing.T, on setting) { multiCounter(t, on, 100, (*world).nestedMultiPair) }, long: true},
}

// multiPair is one multi-lock seen from both sides, which name its members in opposite orders.
func (w *world) multiPair() (java *javaMutex, golang *goMutex) {
	member := func(name string) []step { return []step{{"getLock", name}} }
	java = newJavaMutex(w.t, w.java, step{"getMultiLock", member("a"), member("b"), member("c")})
	l := must[*redisson.MultiLock](w.t)(redisson.NewMultiLock(w.client.Lock("c"), w.client.Lock("b"), w.client.Lock("a")))
	return java, newGo(w.t, l)
}

// nestedMultiPair is multiPair for a multi-lock of a multi-lock and a lock; the two sides do not nest the same ones.
func (w *world) nestedMultiPair() (java *javaMutex, golang *goMutex) {
	member := func(name string) []step { return []step{{"getLock", name}} }
	java = newJavaMutex(w.t, w.java, step{"getMultiLock", []step{{"getMultiLock", member("a"), member("b")}}, member("c")})
	inner := must[*redisson.MultiLock](w.t)(redisson.NewMultiLock(w.client.Lock("c"), w.client.Lock("b")))
	l := must[*redisson.MultiLock](w.t)(redisson.NewMultiLock(inner, w.client.Lock("a")))
	return java, newGo(w.t, l)
}

func multiLock(t *testing.T, on setting, pair func(*world) (*javaMutex, *goMutex)) {
	w := newWorld(t, on)
	java, golang := pair(w)
	for _, side := range [][2]mutex{{java, golang}, {golang, java}} {
		holder, other := side[0], side[1]
		w.take(holder, "a", 0)
		for _, name := range []string{"a", "b", "c"} {
			w.only(name, "1")
		}
		w.refused(other, "b")
		p := begin(t, other.String()+" waits for all", func() result { return other.take("b", forever, 0) })
		p.waits(500 * time.Millisecond)
		released := w.release(holder, "a")
		w.between("woken after", p.gets().end.Sub(released.start), 0, soon)
		w.release(other, "b")
		w.clean()

		// A single one of them is in the way, too, and the others are not kept meanwhile.
		single, _ := w.pair("b")
		w.take(single, "s", 0)
		w.refused(other, "b")
		w.eventually("the others are free", func() bool { return len(w.hash("a"))+len(w.hash("c")) == 0 })
		w.release(single, "s")
		w.clean()
	}
}

// nestedLease: Redisson can't take a nested multi-lock with a lease, and leaves behind what it took.
func nestedLease(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, golang := w.nestedMultiPair()
	all := []string{"a", "b", "c"}
	w.take(golang, "a", 20*time.Second)
	for _, name := range all {
		w.between("time to live of "+name, w.rdb.PTTL(t.Context(), name).Val(), 15*time.Second, 20*time.Second)
	}
	w.refused(java, "b")
	w.release(golang, "a")
	w.clean()

	if r := java.take("a", 0, 5*time.Second); r.err == nil || !strings.Contains(r.err.Error(), "ClassCastException") {
		t.Errorf("Java takes it with a lease: %v, %v; want a ClassCastException", r.ok, r.err)
	}
	for _, name := range all {
		w.only(name, "1")
	}
	taken := golang.take("b", 20*time.Second, 0)
	if !taken.ok || taken.err != nil {
		t.Fatalf("Go has it after the lease: %v, %v; want that", taken.ok, taken.err)
	}
	w.release(golang, "b")
	w.clean()
}

func multiCounter(t *testing.T, on setting, rounds int, pair func(*world) (*javaMutex, *goMutex)) {
	w := newWorld(t, on)
	java, golang := pair(w)
	w.counts(2, rounds, java, golang)
	w.clean()
}
