package interop

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

// multiScenarios are those of several locks at once.
var multiScenarios = []scenario{
	{name: "49_multi_lock", play: multiLock},
	{name: "49_multi_lock_a_thousand_rounds", play: multiCounter, long: true},
}

// multiPair is one multi-lock seen from both sides, which name its members in opposite orders.
func (w *world) multiPair() (java *javaMutex, golang *goMutex) {
	member := func(name string) []step { return []step{{"getLock", name}} }
	java = newJavaMutex(w.t, w.java, step{"getMultiLock", member("a"), member("b"), member("c")})
	l := must[*redisson.MultiLock](w.t)(redisson.NewMultiLock(w.client.Lock("c"), w.client.Lock("b"), w.client.Lock("a")))
	return java, newGo(w.t, l)
}

func multiLock(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, golang := w.multiPair()
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
		w.between("woken after", p.gets().end.Sub(released.start), 0, time.Second)
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

func multiCounter(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, golang := w.multiPair()
	w.counts(2, 500, java, golang)
	w.clean()
}
