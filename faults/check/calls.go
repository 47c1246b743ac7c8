package check

import (
	"maps"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/faults/history"
)

// returns looks for calls that never came back, and for holds that were never given back, of processes that live.
func (t *timeline) returns() {
	for _, c := range t.calls {
		if t.killed(c.ask.Proc) != forever {
			continue
		}
		switch {
		case c.answered == 0:
			t.violation("return", "a call for %q never came back:\n\t%s", names(c.ask.Keys), t.tell(c))
		case c.entered != 0 && c.released == 0 && c.class() != open:
			t.violation("return", "%q was never given back:\n\t%s", names(c.ask.Keys), t.tell(c))
		}
	}
}

// late is how long after a time something was done, without the time in which the process was stopped, or had no processor.
func (t *timeline) late(proc string, due, done int64) time.Duration {
	if done <= due {
		return 0
	}
	return time.Duration(done-due) - t.awayFor(proc, span{due, done})
}

// back is when a call came back, or else its process or the history ended.
func (t *timeline) back(c *call) int64 {
	if c.answered != 0 {
		return c.answered
	}
	return min(t.end, t.killed(c.ask.Proc))
}

// deadlines looks for calls and releases that were back too long after the end of their context.
func (t *timeline) deadlines() {
	check := func(c *call, what string, deadline, back int64) {
		if deadline == 0 {
			return
		}
		late := t.late(c.ask.Proc, deadline, back)
		t.result.Latest = max(t.result.Latest, late)
		if late > t.options.Overshoot {
			t.violation("deadline", "%s of %q was %v late for its deadline at %s:\n\t%s", what, names(c.ask.Keys), late, t.at(deadline), t.tell(c))
		}
	}
	for _, c := range t.calls {
		check(c, "a call", c.ask.Deadline, t.back(c))
		if c.released != 0 {
			check(c, "the release", c.release.Deadline, c.released)
		}
	}
}

// waits looks for calls that were back too long after their wait.
func (t *timeline) waits() {
	for _, c := range t.calls {
		if c.ask.Wait < 0 {
			continue
		}
		if late := t.late(c.ask.Proc, c.ask.At+int64(c.ask.Wait), t.back(c)); late > t.options.WaitSlack {
			t.violation("wait", "a call for %q was %v late after its wait of %v:\n\t%s", names(c.ask.Keys), late, c.ask.Wait, t.tell(c))
		}
	}
}

// reentries looks for owners whose own lock was busy for them, with nothing at fault.
func (t *timeline) reentries() {
	for _, key := range slices.Sorted(maps.Keys(t.byKey)) {
		holding := map[string][]*call{} // by owner
		for _, c := range t.byKey[key] {
			if c.class() > shared || c.ask.Kind == "mutex" || len(c.ask.Keys) > 1 { // others may have the rest of the keys
				continue
			}
			owner := c.ask.Owner
			for _, o := range holding[owner] {
				reenters := o.class() == exclusive || c.class() == shared
				if reenters && c.answer == history.Busy && o.lookedAfter(c.answered) && !t.faulty(c, span{c.ask.At, c.answered}) {
					t.violation("reentry", "an owner that holds %q was told that it is busy:\n\t%s\n\t%s", key, t.tell(o), t.tell(c))
				}
			}
			if c.entered != 0 {
				holding[owner] = append(still(holding[owner], c.ask.At), c)
			}
		}
	}
}

// still are those of calls that are inside at a time.
func still(calls []*call, at int64) (inside []*call) {
	for _, c := range calls {
		if c.left > at {
			inside = append(inside, c)
		}
	}
	return inside
}

// faulty reports whether anything was at fault for c within s: a server that it asked, or its process.
func (t *timeline) faulty(c *call, s span) bool {
	for _, f := range t.faults {
		if f.touches(s) && f.strikes(c.ask.Proc, c.ask.Servers) {
			return true
		}
	}
	for _, stop := range t.stops[c.ask.Proc] {
		if stop.touches(s) {
			return true
		}
	}
	return false
}

// heals looks for calls without a bound that came back without the lock while all was well, although they had the time.
func (t *timeline) heals() {
	for _, c := range t.calls {
		if c.ask.Wait >= 0 || c.entered != 0 || c.answered == 0 {
			continue
		}
		for _, healthy := range t.healthy {
			from := max(c.ask.At, healthy.from)
			if c.answered < from || c.answered >= healthy.to || c.ask.Deadline != 0 && c.ask.Deadline-from < int64(t.options.Live) {
				continue
			}
			t.violation("heal", "a call for %q did not get in after the heal at %s:\n\t%s", names(c.ask.Keys), t.at(healthy.from), t.tell(c))
		}
	}
}

// leftovers are what workers found left over.
func (t *timeline) leftovers() {
	for _, e := range t.others {
		if e.Op == history.Leftover && e.N != 0 {
			t.violation("leftover", "%s: %d %s (%s)", e.Proc, e.N, e.What, where(e))
		}
	}
}
