package check

import (
	"cmp"
	"maps"
	"slices"
)

// holders walks over the sections of each key in the order in which they began, and looks at those that are inside with them.
func (t *timeline) holders() {
	apart := map[*call]string{} // why a section that overran is excused
	for _, key := range slices.Sorted(maps.Keys(t.byKey)) {
		var inside []*call
		for _, c := range t.sections(key) {
			inside = slices.DeleteFunc(inside, func(o *call) bool { return o.left <= c.entered })
			t.pairs(key, c, inside, apart)
			t.permits(key, c, inside, apart)
			inside = append(inside, c)
		}
	}
	for _, why := range apart {
		if why == "stopped" {
			t.result.Stopped++
		} else {
			t.result.AfterLoss++
		}
	}
}

// sections are the calls for key that got in, in the order in which they did.
func (t *timeline) sections(key string) []*call {
	var all []*call
	for _, c := range t.byKey[key] {
		if c.entered != 0 && c.class() != open {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *call) int { return cmp.Compare(a.entered, b.entered) })
	return all
}

// pairs looks for somebody inside whom c must not meet.
func (t *timeline) pairs(key string, c *call, inside []*call, apart map[*call]string) {
	for _, o := range inside {
		if !c.excludes(o) {
			continue
		}
		late, why := t.excuse(o, c)
		if late == nil {
			what := "two holders"
			if c.class() == shared || o.class() == shared {
				what = "a writer with a reader"
			}
			t.violation("holders", "%s of %q, from %s on:\n\t%s\n\t%s", what, key, t.at(c.entered), t.tell(o), t.tell(c))
			continue
		}
		apart[late] = why
	}
}

// permits counts those that are inside with c, and have no excuse for that.
func (t *timeline) permits(key string, c *call, inside []*call, apart map[*call]string) {
	if c.class() != counted {
		return
	}
	sum, most, excused := c.ask.Permits, c.ask.Limit, map[*call]string{}
	for _, o := range inside {
		if o.class() == counted {
			sum, most = sum+o.ask.Permits, max(most, o.ask.Limit) // the last one has met the others
		}
	}
	taken := sum
	for _, o := range inside {
		if late, why := t.excuse(o, c); late != nil && o.class() == counted && excused[late] == "" {
			excused[late] = why
			sum -= late.ask.Permits
		}
	}
	if sum > most {
		t.violation("holders", "%d permits of %q are taken at %s, and there are %d:%s", sum, key, t.at(c.entered), most,
			t.tellAll(append(slices.Clone(inside), c)))
	} else if taken > most {
		maps.Copy(apart, excused)
	}
}

// excuse finds out which of two sections overran, c being the one that began later, and why it could not know; nil if none did.
func (t *timeline) excuse(o, c *call) (late *call, why string) {
	switch at := c.entered; {
	case t.wiped(o, c, at):
		return o, "lost"
	case t.wiped(c, o, at):
		return c, "lost"
	case t.overran(o, at):
		return o, "stopped"
	case t.overran(c, at):
		return c, "stopped"
	}
	return nil, ""
}

// overran reports whether the process of c was stopped at a time, or had just been, and c ended as soon as it was continued.
func (t *timeline) overran(c *call, at int64) bool {
	grace := int64(t.options.Grace)
	return slices.ContainsFunc(t.stops[c.ask.Proc], func(s span) bool {
		noticed := s.to
		if noticed != forever {
			noticed += grace
		}
		return s.to > c.ask.At && s.from <= at && at <= noticed && c.left <= noticed
	})
}

// wiped reports whether a server may have lost what it gave to c before it gave the same to o, with both inside at a time.
func (t *timeline) wiped(c, o *call, at int64) bool {
	known := int64(c.ask.Lease + t.options.Grace) // by then, c knew; only a lock without a lease lasts on
	return slices.ContainsFunc(t.lossesOf(c), func(loss span) bool {
		return c.ask.At < loss.to && o.entered > loss.from && (c.ask.Lease == 0 || at <= loss.to+known)
	})
}

// lossesOf are the losses of data of all servers that c asked.
func (t *timeline) lossesOf(c *call) (all []span) {
	for _, server := range c.ask.Servers {
		all = append(all, t.losses[server]...)
	}
	return all
}
