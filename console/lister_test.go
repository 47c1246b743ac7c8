package console

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

// Between two searches, the locks that are known are read again: those that are gone are no longer shown, and others are found by the next search.
func TestKnownLocksAreReadAgain(t *testing.T) {
	f := newFake(heldLock("freed", clientA+":1"), heldLock("taken", clientA+":2"), heldLock("replaced", clientA+":3"), heldLock("kept", clientA+":4"))
	l := &lister{client: f}
	var last *listState
	read := func(searches int, failed error, want ...string) {
		t.Helper()
		last, _ = l.read(t.Context(), last, func(*listState) {})
		var got []string
		for _, r := range last.rows {
			for _, h := range r.Holders {
				got = append(got, r.Key+" "+h.ID[len(clientA):])
			}
		}
		slices.Sort(got)
		if n, _, _ := f.counts(); !slices.Equal(got, want) || last.total != len(want) || n != searches || last.failed != failed {
			t.Fatalf("after %d searches there are %d locks, %q, %v; want %d, %q, %v", n, last.total, got, last.failed, searches, want, failed)
		}
	}
	read(1, nil, "freed :1", "kept :4", "replaced :3", "taken :2")
	seen := last.rows[slices.IndexFunc(last.rows, func(r row) bool { return r.Key == "kept" })].seen
	l.due = time.Now().Add(time.Hour)
	f.forget("freed")
	f.put(heldLock("taken", clientB+":9"))
	f.put(redisson.Object{Key: "replaced", Type: redisson.TypeOther})
	f.put(heldLock("new", clientB+":5"))
	read(1, nil, "kept :4", "taken :9")
	for _, r := range last.rows {
		if (r.Key == "kept") != r.seen.Equal(seen) {
			t.Errorf("%s was seen since %v, and one at first since %v", r.Key, r.seen, seen)
		}
	}
	l.due = time.Now().Add(time.Hour)
	f.fail(errDown)
	read(1, errDown, "kept :4", "taken :9")
	f.fail(nil)
	f.forget("replaced")                          // which no search would find
	read(2, nil, "kept :4", "new :5", "taken :9") // at once, as not all had answered
}

// A search that takes long shows how far it has come, and what it or the last one has found.
func TestSearchShowsItsProgress(t *testing.T) {
	var shown []*listState
	r := newReading(nil, func(s *listState) { shown = append(shown, s) })
	r.progress(redisson.Progress{Keys: 1000, Total: 1_000_000})
	if len(shown) > 0 {
		t.Error("it is shown at once")
	}
	r.shown = time.Now().Add(-listPartial)
	r.add(heldLock("a", clientA+":1"))
	r.progress(redisson.Progress{Keys: 340_000, Total: 1_000_000})
	if len(shown) != 1 || len(shown[0].rows) != 1 {
		t.Fatalf("it has shown %+v", shown)
	}
	if status := listStatus(shown[0]); !status.Searching || !strings.Contains(status.Text, ": 340,000 of 1,000,000 keys") {
		t.Errorf("it says %+v", status)
	}
}

// A search that takes long is not repeated soon: known locks are read again meanwhile, and where there is none, nothing is.
func TestLongSearchesAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, f := range []*fakeRedis{newFake(), newFake(heldLock("a", clientA+":1"))} {
			f.slow = 3 * time.Second
			l, readings, start := &lister{client: f}, 0, time.Now()
			var last *listState
			for ; time.Since(start) < 5*time.Minute; readings++ {
				var rest time.Duration
				last, rest = l.read(t.Context(), last, func(*listState) {})
				time.Sleep(rest)
			}
			searches, inspects, _ := f.counts()
			if searches != 10 || inspects != readings-searches || inspects > 0 != (last.total > 0) || last.total > 0 && inspects < 100 {
				t.Errorf("%d locks: %d readings in 5m, %d by a search of %v", last.total, readings, searches, f.slow)
			}
		}
	})
}
