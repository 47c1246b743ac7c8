package check

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/faults/history"
)

// idles looks for locks at which nobody was inside for longer than the longest of their leases, while somebody waited, and
// nothing was at fault. Within a lease, it may still be kept for somebody who was killed, or lost it.
func (t *timeline) idles() {
	for _, key := range slices.Sorted(maps.Keys(t.byKey)) {
		calls := slices.DeleteFunc(slices.Clone(t.byKey[key]), func(c *call) bool { return c.class() == open })
		bound := int64(t.options.Idle)
		for _, c := range calls {
			bound = max(bound, int64(c.ask.Lease+t.options.Idle))
		}
		for _, gap := range t.gaps(t.busy(calls), bound) {
			t.forgotten(key, calls, gap, bound)
		}
	}
}

// forgotten looks for calls that waited in a gap for longer than the bound.
func (t *timeline) forgotten(key string, calls []*call, gap span, bound int64) {
	for _, c := range calls {
		if c.ask.Kind == "semaphore" && t.starved(c) {
			continue
		}
		waited := span{max(gap.from, c.ask.At), min(gap.to, t.back(c))}
		for _, g := range t.gaps(t.troubles(c), bound) {
			if idle := min(g.to, waited.to) - max(g.from, waited.from); idle > bound {
				t.violation("idle", "nobody had %q from %s on for %v while somebody waited, and %v may be:\n\t%s", key,
					t.at(max(g.from, waited.from)), time.Duration(idle), time.Duration(bound), t.tell(c))
				return
			}
		}
	}
}

// starved reports whether a holder of c's semaphore was killed: it has no lease, and its permits are gone.
func (t *timeline) starved(c *call) bool {
	return slices.ContainsFunc(c.ask.Keys, func(key string) bool {
		return slices.ContainsFunc(t.byKey[key], func(o *call) bool { return t.killed(o.ask.Proc) != forever })
	})
}

// busy are the times in which somebody has what calls ask for, and the moments from which on somebody may have it for a lease.
func (t *timeline) busy(calls []*call) (all []span) {
	for _, c := range calls {
		killed := t.killed(c.ask.Proc)
		if c.entered != 0 {
			end := max(c.left, c.released)
			if c.released == 0 {
				end = max(c.left, min(killed, t.end)) // still being released
			}
			all = append(all, span{c.entered, end})
		}
		if c.answer == history.Failed || c.answer == history.Lost {
			all = append(all, span{c.answered, max(c.answered, c.released) + 1})
		}
		if c.ask.At <= killed && killed != forever && t.back(c) >= killed {
			all = append(all, span{killed, killed + 1})
		}
	}
	return all
}

// troubles are the times in which something was at fault for c.
func (t *timeline) troubles(c *call) (all []span) {
	for _, f := range t.faults {
		if f.strikes(c.ask.Proc, c.ask.Servers) {
			all = append(all, f.span)
		}
	}
	return append(all, t.stops[c.ask.Proc]...)
}

// gaps are the times of the history that none of the spans touches, if they are longer than a bound.
func (t *timeline) gaps(spans []span, bound int64) (gaps []span) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	at := t.begin
	for _, s := range append(spans, span{t.end, forever}) {
		if s.from-at > bound {
			gaps = append(gaps, span{at, s.from})
		}
		at = max(at, s.to)
	}
	return gaps
}
