package etcdlock

import (
	"testing"

	"github.com/latchkey-go/latchkey/lock"
)

// ahead makes a view of entries that were created in that order, all of them known.
func ahead(entries ...spot) *view {
	v := &view{whole: true, reached: true}
	for i, s := range entries {
		s.created = int64(10 + i)
		v.oldest = append(v.oldest, s)
		v.nearest = append([]spot{s}, v.nearest...)
	}
	return v
}

func TestJudge(t *testing.T) {
	mutex := spot{name: "694d9a", kind: lock.Exclusive}
	read, write := spot{name: "~R", kind: lock.Read}, spot{name: "W", kind: lock.Write}
	downgraded := spot{name: "D", kind: lock.Read}
	permit := func(limit int) spot { return spot{name: "P", kind: lock.Permit, limit: limit} }
	for _, tt := range []struct {
		name  string
		view  *view
		kind  lock.Kind
		limit int
		want  verdict
	}{
		// nobody
		{"empty", ahead(), lock.Exclusive, 0, verdict{held: true}},
		{"empty, for a reader", ahead(), lock.Read, 0, verdict{held: true}},
		{"empty, for a permit", ahead(), lock.Permit, 1, verdict{held: true}},
		{"only pages of other locks", &view{}, lock.Exclusive, 0, verdict{unclear: true}},
		// one at a time
		{"behind a Mutex", ahead(mutex), lock.Fair, 0, verdict{behind: "694d9a"}},
		{"behind the youngest", ahead(mutex, spot{name: "E"}), lock.Fenced, 0, verdict{behind: "E"}},
		{"behind readers", ahead(read), lock.Exclusive, 0, verdict{mixed: true, refused: lock.Read}},
		{"behind permits", ahead(permit(1)), lock.Exclusive, 0, verdict{mixed: true, refused: lock.Permit}},
		// readers and writers
		{"reader behind readers", ahead(read, read), lock.Read, 0, verdict{held: true}},
		{"reader behind a writer", ahead(write, read), lock.Read, 0, verdict{behind: "W"}},
		{"reader behind a waiting writer", ahead(read, write, read), lock.Read, 0, verdict{behind: "W"}},
		{"reader behind a writer that reads now", ahead(downgraded), lock.Read, 0, verdict{held: true}},
		{"writer behind readers", ahead(read, read), lock.Write, 0, verdict{behind: "~R"}},
		{"writer behind a writer that reads now", ahead(downgraded), lock.Write, 0, verdict{behind: "D"}},
		{"reader behind a Mutex", ahead(mutex), lock.Read, 0, verdict{mixed: true, refused: lock.Exclusive}},
		// permits
		{"room", ahead(permit(3), permit(3)), lock.Permit, 3, verdict{held: true}},
		{"no room", ahead(permit(3), permit(3), permit(3)), lock.Permit, 3, verdict{}},
		{"less room for oneself", ahead(permit(3), permit(3)), lock.Permit, 2, verdict{}},
		{"behind one who waits", ahead(permit(3), permit(1)), lock.Permit, 5, verdict{}},
		{"behind a write lock", ahead(write), lock.Permit, 5, verdict{mixed: true, refused: lock.Write}},
	} {
		if got := tt.view.judge(tt.kind, tt.limit); got != tt.want {
			t.Errorf("%s: judge = %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestJudgeOfAnEntryInTheLine(t *testing.T) {
	v := ahead(spot{name: "A", kind: lock.Permit, limit: 2}, spot{name: "B", kind: lock.Permit, limit: 2}, spot{name: "C", kind: lock.Permit, limit: 2})
	for i, held := range []bool{true, true, false} {
		v.own = &v.oldest[i]
		if got := v.judge(lock.Permit, 2); got.held != held {
			t.Errorf("permit %d: %+v, want held %v", i, got, held)
		}
	}
	v = ahead(spot{name: "A"}, spot{name: "B"})
	v.own = &v.oldest[0]
	if got := v.judge(lock.Exclusive, 0); !got.held {
		t.Errorf("the oldest: %+v", got)
	}
	v.own = &v.oldest[1]
	if got := v.judge(lock.Exclusive, 0); got != (verdict{behind: "A"}) {
		t.Errorf("the second: %+v", got)
	}
	v.reached, v.nearest = false, v.nearest[:1]
	if got := v.judge(lock.Exclusive, 0); !got.unclear {
		t.Errorf("the second, on a short page: %+v", got)
	}
}

func TestValues(t *testing.T) {
	for k := lock.Exclusive; k <= lock.Permit; k++ {
		kind, limit := parseValue(valueOf(k, 7))
		if kind != k || k == lock.Permit && limit != 7 {
			t.Errorf("%v is read as %v, %d", k, kind, limit)
		}
	}
	for _, foreign := range []string{"", "read", "latchkey", "latchkey ", "latchkey nothing", "node-7"} {
		if kind, _ := parseValue(foreign); kind != lock.Exclusive {
			t.Errorf("%q is read as %v", foreign, kind)
		}
	}
	if kind, limit := parseValue("latchkey permit many"); kind != lock.Permit || limit != 0 {
		t.Errorf("a permit without a number is read as %v, %d", kind, limit)
	}
}
