package interop

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/lock"
)

// kindScenarios are those of one key for two sorts of locks, which is a mistake.
var kindScenarios = []scenario{
	{name: "60_read_or_write_beside_a_plain_lock", play: func(t *testing.T, on setting) { bothWays(t, on, sidesOfPlain) }},
	{name: "60_plain_beside_a_read_or_write_lock", play: func(t *testing.T, on setting) { rwBothWays(t, on, plainOfSides) }},
	{name: "60_lock_of_a_semaphore", play: lockOfSemaphore},
}

// sidesOfPlain: Go says that the key is a plain lock's. Redisson joins: the end of a read frees the lock of the other one, and
// that of a write leaves it as if it were a reader's.
func sidesOfPlain(w *world, name string, holder, _ mutex) {
	java, golang := w.rwPair(name)
	for _, side := range []struct {
		kind         lock.Kind
		java, golang mutex
	}{{lock.Read, java.read, golang.read}, {lock.Write, java.write, golang.write}} {
		w.take(holder, "a", 0)
		own := w.only(name, "1")
		w.refusedKind(side.golang, lock.Exclusive, side.kind)
		w.only(name, "1")

		w.take(side.java, "b", 0)
		if hash := w.hash(name); hash[own] != "1" || hash["mode"] != side.kind.String() || len(hash) != 3 {
			w.t.Errorf("Java joins: %v, want both holders and a mode", hash)
		}
		w.release(side.java, "b")
		want := map[string]string{}
		if side.kind == lock.Write {
			want = map[string]string{own: "1", "mode": "read"}
		}
		if hash := w.hash(name); !maps.Equal(hash, want) {
			w.t.Errorf("after the %v of Java: %v, want %v", side.kind, hash, want)
		}
		w.rdb.Del(w.t.Context(), name)
		holder.unlock("a")
	}
}

func (w *world) refusedKind(m mutex, held, wanted lock.Kind) {
	w.t.Helper()
	r := m.take("b", 0, 0)
	kinds, _ := errors.AsType[*lock.KindError](r.err)
	if r.ok || kinds == nil || kinds.Held != held || kinds.Wanted != wanted {
		w.t.Errorf("Go takes for %v what is held for %v: %v, %v; want a KindError", wanted, held, r.ok, r.err)
	}
}

// plainOfSides: Go says that the key is a read/write lock's; to Redisson, the lock is busy.
func plainOfSides(w *world, name string, holder, _ sides) {
	java, golang := w.pair(name)
	for _, side := range []struct {
		kind lock.Kind
		m    mutex
	}{{lock.Read, holder.read}, {lock.Write, holder.write}} {
		w.take(side.m, "a", 0)
		before := w.hash(name)
		w.refusedKind(golang, side.kind, lock.Exclusive)
		w.refused(java, "b")
		if after := w.hash(name); !maps.Equal(after, before) {
			w.t.Errorf("%s was %v and is %v", name, before, after)
		}
		w.release(side.m, "a")
		w.clean()
	}
}

// lockOfSemaphore: both say that the key is of the wrong type, and Go that it may be a semaphore's.
func lockOfSemaphore(t *testing.T, on setting) {
	w := newWorld(t, on)
	w.object("getSemaphore", "k").get("", "trySetPermits", 3)
	java, golang := w.pair("k")
	w.refusedKind(golang, lock.Permit, lock.Exclusive)
	if r := java.take("a", 0, 0); r.err == nil || !strings.Contains(r.err.Error(), "WRONGTYPE") {
		t.Errorf("Java takes a semaphore as a lock: %v, %v; want an error", r.ok, r.err)
	}
}
