package locktest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// all is what the Lockers of these tests have, in the order of their constants.
var all = []lock.Kind{lock.Exclusive, lock.Fair, lock.Read, lock.Write, lock.Fenced, lock.Spin, lock.Permit}

// inBubble runs the schedule of a seed in virtual time.
func inBubble(t *testing.T, locker func() lock.Locker, kind lock.Kind, seed uint64) (seen map[string]int, err error) {
	synctest.Test(t, func(*testing.T) {
		s := newSchedule(locker(), kind, seed)
		err = s.run()
		seen = s.seen
	})
	return seen, err
}

func newSchedule(locker lock.Locker, kind lock.Kind, seed uint64) *schedule {
	s := scene{suite: &suite{kinds: all, patience: 10 * time.Second}, locker: locker, kind: kind, key: "key"}
	return s.schedule(seed)
}

// A schedule that meets nothing rare proves nothing.
func TestSchedulesMeetEverything(t *testing.T) {
	always := []string{
		"enters", "re-enters", "busy", "refused", "related", "served", "canceled", "kept", "extended",
		"lost", "lost before others of its stay", "released before others of its stay",
	}
	for kind, more := range map[lock.Kind][]string{
		lock.Exclusive: nil,
		lock.Read:      {"enters or busy", "upgrade refused"},
		lock.Permit:    nil,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			sum := make(map[string]int)
			for seed := range uint64(400) {
				seen, err := inBubble(t, good, kind, seed)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				for what, n := range seen {
					sum[what] += n
				}
			}
			t.Log(sum)
			for _, what := range append(more, always...) {
				if sum[what] == 0 {
					t.Errorf("%q is never met", what)
				}
			}
		})
	}
}

// A Locker that is wrong about ownership is found by a few schedules, without a check of its own.
func TestSchedulesFindBrokenOwners(t *testing.T) {
	for _, tt := range brokenOwners {
		t.Run(tt.name+"/"+tt.promise, func(t *testing.T) {
			for seed := range uint64(1000) {
				if _, err := inBubble(t, tt.locker, tt.kind, seed); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("not found")
		})
	}
}

// The seed of a failure brings it about again. Where calls wait in line, it depends on the scheduler, too.
func TestSeedRepeatsAFailure(t *testing.T) {
	firstFailure := func() string {
		for seed := range uint64(100) {
			if _, err := inBubble(t, siblingsShare, lock.Exclusive, seed); err != nil && !newSchedule(nil, lock.Exclusive, seed).waits {
				return fmt.Sprintf("seed %d: %v", seed, err)
			}
		}
		return ""
	}
	once, again := firstFailure(), firstFailure()
	if once == "" || once != again {
		t.Errorf("%s\nand then\n%s", once, again)
	}
}
