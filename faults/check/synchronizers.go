package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/latchkey-go/latchkey/faults/history"
)

// latches looks for waits that ended before the latch can have been open. A latch is set once in a history; so each round has a
// key of its own.
func (t *timeline) latches() {
	for _, set := range t.others {
		if set.Op != history.Set || set.Kind != "latch" {
			continue
		}
		opened := t.opened(set)
		for _, c := range t.byKey[set.Keys[0]] {
			if c.ask.Kind == "latch" && c.ask.At > set.At && c.entered != 0 && c.entered < opened && !t.wiped(c, c, c.entered) {
				t.violation("latch", "a wait for %q ended, and it can't have been open before %s:\n\t%s", set.Keys[0], t.at(opened), t.tell(c))
			}
		}
	}
}

// opened is the earliest time at which a latch can have been open that was set to the limit of set.
func (t *timeline) opened(set history.Event) int64 {
	var counts []int64
	for _, e := range t.others {
		if e.Op == history.Count && e.Keys[0] == set.Keys[0] {
			counts = append(counts, cmp.Or(e.Since, e.At))
		}
	}
	slices.Sort(counts)
	switch {
	case set.Limit <= 0:
		return 0
	case len(counts) < set.Limit:
		return forever
	}
	return counts[set.Limit-1]
}

// limiters looks for more passes within the interval of a rate than there may be. The server's clock may run 5% faster.
func (t *timeline) limiters() {
	for _, key := range slices.Sorted(maps.Keys(t.byKey)) {
		var passes []*call
		for _, c := range t.byKey[key] {
			if c.ask.Kind == "limiter" && c.entered != 0 {
				passes = append(passes, c)
			}
		}
		for i, first := range passes { // in the order of their requests
			end, sum := first.ask.At+int64(first.ask.Rate)*19/20, 0
			for _, c := range passes[i:] {
				if c.ask.At > end {
					break
				}
				if c.entered <= end {
					sum += c.ask.Permits
				}
			}
			if sum > first.ask.Limit && !t.lost(first.ask.Servers, span{first.ask.At, end}) {
				t.violation("rate", "%d permits of %q within %v, and %d may be, from:\n\t%s", sum, key, first.ask.Rate, first.ask.Limit, t.tell(first))
			}
		}
	}
}

// lost reports whether any of the servers may have lost its data within s.
func (t *timeline) lost(servers []string, s span) bool {
	return slices.ContainsFunc(servers, func(name string) bool { return slices.ContainsFunc(t.losses[name], s.touches) })
}
