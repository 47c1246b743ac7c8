package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/faults/history"
)

// count fills in what the run was like.
func (t *timeline) count() {
	r := t.result
	for _, c := range t.calls {
		switch {
		case c.entered == 0:
		case c.class() == open:
			r.Passes++
		default:
			r.Sections++
			if c.leftBy == history.Lost {
				r.Lost++
			}
		}
	}
	r.Took = time.Duration(t.end - t.begin)
	if r.Took > 0 {
		r.Rate = float64(r.Sections) / r.Took.Seconds()
	}
	r.Waited = len(t.waited())
	t.strikes()
}

// waited are the sections that somebody else kept waiting: one whom they exclude was inside after they had begun to
// wait.
func (t *timeline) waited() map[*call]bool {
	waited := map[*call]bool{}
	for key := range t.byKey {
		var before []*call // those that may still matter
		for _, c := range t.sections(key) {
			sum := c.ask.Permits
			for _, o := range before {
				if o.left <= c.ask.At {
					continue
				}
				if c.class() == counted && o.class() == counted {
					sum += o.ask.Permits
				}
				if c.excludes(o) || c.class() == counted && sum > c.ask.Limit {
					waited[c] = true
					break
				}
			}
			before = append(before, c)
			if len(before) > 64 {
				before = slices.Delete(before, 0, 32)
			}
		}
	}
	return waited
}

// strikes counts the sections that each kind of fault struck inside.
func (t *timeline) strikes() {
	var sections []*call
	longest := int64(0)
	for _, c := range t.calls {
		if c.entered != 0 && c.class() != open {
			sections = append(sections, c)
			longest = max(longest, c.left-c.entered)
		}
	}
	slices.SortFunc(sections, func(a, b *call) int { return cmp.Compare(a.entered, b.entered) })
	for _, f := range t.faults {
		t.result.Faults[f.kind]++
		t.result.Strikes[f.kind] += struck(f, sections, longest)
	}
}

// struck counts the sections within which a fault was felt. A kill ends a section, and strikes it too.
func struck(f fault, sections []*call, longest int64) (n int) {
	from, _ := slices.BinarySearchFunc(sections, f.from-longest, func(c *call, at int64) int { return cmp.Compare(c.entered, at) })
	for _, c := range sections[from:] {
		if c.entered >= f.to {
			break
		}
		if f.touches(span{c.entered, c.left + 1}) && f.strikes(c.ask.Proc, c.ask.Servers) {
			n++
		}
	}
	return n
}

// void finds reasons for which the run proves nothing.
func (t *timeline) void() {
	r, o := t.result, t.options
	reason := func(when bool, format string, args ...any) {
		if when {
			r.Void = append(r.Void, fmt.Sprintf(format, args...))
		}
	}
	reason(r.Sections == 0, "there was no section")
	reason(r.Rate < o.Floor, "%.0f sections a second are fewer than %.0f", r.Rate, o.Floor)
	reason(o.Share > 0 && float64(r.Waited) < o.Share*float64(r.Sections), "only %d of %d sections waited for another owner", r.Waited, r.Sections)
	for _, kind := range slices.Sorted(maps.Keys(r.Strikes)) {
		reason(r.Strikes[kind] == 0, "%q never struck inside a section", kind)
	}
	for _, kind := range o.Kinds {
		_, made := r.Strikes[kind]
		reason(!made, "%q was never made", kind)
	}
	for _, healthy := range t.healthy {
		asked := slices.ContainsFunc(t.calls, func(c *call) bool { return c.ask.At > healthy.from && c.ask.At < healthy.to })
		reason(!asked, "nobody asked after the heal at %s", t.at(healthy.from))
	}
}
