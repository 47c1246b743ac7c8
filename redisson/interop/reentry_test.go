package interop

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// reentryScenarios are those of locks that can't be re-entered.
var reentryScenarios = []scenario{
	{name: "57_non_reentrant_lock", play: func(t *testing.T, on setting) {
		w := newWorld(t, on)
		java, golang := newJavaMutex(t, w.java, step{"getNonReentrantLock", "k"}), newGo(t, w.client.NonReentrantLock("k"))
		again, goAgain := w.pair("k")
		w.onlyOnce(java, golang, again)
		w.onlyOnce(golang, java, goAgain)
		w.handsOver("k", java, golang)
		w.handsOver("k", golang, java)
		w.counts(2, 100, java, golang)
		w.clean()
	}},
	{name: "57_non_reentrant_fair_lock", play: func(t *testing.T, on setting) {
		w := newWorld(t, on)
		java, golang := newJavaMutex(t, w.java, step{"getNonReentrantFairLock", "k"}), newGo(t, w.client.NonReentrantFairLock("k"))
		again, goAgain := w.fairPair("k")
		w.onlyOnce(java, golang, again)
		w.onlyOnce(golang, java, goAgain)
		fairOrder(w, "k", java, golang)
		fairOrder(w, "k", golang, java)
	}},
}

// onlyOnce: the holder is refused by an error if it takes the lock again, and the lock stays as it is. The re-entrant lock of the
// same name is the same lock to the other side, whatever it is to the holder.
func (w *world) onlyOnce(holder, other, reentrant mutex) {
	w.t.Helper()
	w.take(holder, "a", 20*time.Second)
	for _, wait := range []time.Duration{0, 5 * time.Second} {
		start := time.Now()
		if r := holder.take("a", wait, time.Minute); r.ok || !reentryRefused(r.err) {
			w.t.Errorf("%v takes it again: %v, %v; want to hear that it can't", holder, r.ok, r.err)
		}
		w.between("refused after", time.Since(start), 0, soon)
	}
	w.only("k", "1")
	w.between("time to live", other.ttl(), 15*time.Second, 20*time.Second)
	w.refused(other, "b")
	w.refused(reentrant, "b")
	w.release(holder, "a")
	w.clean()
}

// reentryRefused reports whether err is how a side says that the lock can't be re-entered.
func reentryRefused(err error) bool {
	if thrown, ok := errors.AsType[*javaError](err); ok {
		return thrown.class == "java.lang.IllegalMonitorStateException" && strings.Contains(thrown.message, "non-reentrant")
	}
	return errors.Is(err, lock.ErrUnsupported)
}
