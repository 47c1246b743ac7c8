package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
)

// failover: a lock that was replicated outlasts its master, and so do those who wait for it on either side; the tokens of
// a fenced lock go on growing. A lock that was not replicated yet is lost with its master, and may have two holders.
func failover(t *testing.T, on setting) {
	on.replicas = 1
	w := newWorld(t, on)
	w.client = w.newClient(redisson.Timeout(10 * time.Second)) // which an election may take
	names := make([][]string, 3)                               // of two locks of each master
	for n := 0; len(names[0]) < 2 || len(names[1]) < 2; n++ {
		name := fmt.Sprint("k", n)
		i, _ := w.cluster.Owner(t, name)
		names[i] = append(names[i], name)
	}
	w.failsOver(0, names[0], func() { w.cluster.Failover(t, 0) })
	w.failsOver(1, names[1], func() {
		w.cluster.AwaitReplica(t, w.cluster.Replicas[1])
		w.cluster.Masters[1].Kill(t)
		w.cluster.AwaitMaster(t, w.cluster.Replicas[1])
	})
}

// failsOver has both sides hold a lock and wait for two while their master, of that number, is lost.
func (w *world) failsOver(master int, names []string, fail func()) {
	w.t.Helper()
	java, golang := w.fence(names[0]), w.fence(names[1])
	w.take(java.java, "a", 0)
	w.take(golang.golang, "a", 0)
	java.grows(java.java, "a")
	golang.grows(golang.golang, "a")
	var waiting []*pending
	for _, f := range []*fence{java, golang} {
		for _, m := range []mutex{f.java, f.golang} {
			waiting = append(waiting, w.passesFence(f, m))
		}
	}
	offset := func(n *redistest.Node) string {
		return n.Admin.InfoMap(w.t.Context(), "replication").Item("Replication", "master_repl_offset")
	}
	w.eventually("the replica has what its master has", func() bool {
		at := offset(w.cluster.Masters[master])
		return at != "" && at == offset(w.cluster.Replicas[master])
	})
	fail()
	for _, p := range waiting {
		p.waits(500 * time.Millisecond)
	}
	w.release(java.java, "a")
	w.release(golang.golang, "a")
	for _, p := range waiting {
		w.t.Logf("%s: after %v", p.what, p.gets().took())
	}
}

// passesFence has a thread wait for the lock, take it with a token that grows, and give it back.
func (w *world) passesFence(f *fence, m mutex) *pending {
	w.t.Helper()
	return w.beginAt(channelOf(f.name), fmt.Sprintf("%v waits for %s", m, f.name), func() result {
		r := m.take(f.name, forever, 0)
		if r.err != nil {
			return r
		}
		f.grows(m, f.name)
		released := m.unlock(f.name)
		return result{ok: true, err: released.err, start: r.start, end: r.end}
	})
}
