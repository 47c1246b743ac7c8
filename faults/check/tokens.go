package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/latchkey-go/latchkey/faults/history"
)

// tokens compares the tokens of each key: a call that began after another had entered has the greater one. An owner
// that re-enters may get its own again. A server counts anew those that it has lost.
func (t *timeline) tokens() {
	for _, key := range slices.Sorted(maps.Keys(t.byKey)) {
		asked := slices.DeleteFunc(slices.Clone(t.byKey[key]), func(c *call) bool { return c.token == 0 })
		entered := slices.SortedFunc(slices.Values(asked), func(a, b *call) int { return cmp.Compare(a.entered, b.entered) })
		latest := map[int64]*call{} // the call with the greatest token of those that began after a loss, by its time; 0 is the start
		latest[0] = nil
		if len(asked) > 0 {
			for _, loss := range t.lossesOf(asked[0]) {
				latest[loss.to] = nil
			}
		}
		for _, c := range asked {
			for len(entered) > 0 && entered[0].entered < c.ask.At {
				raise(latest, entered[0])
				entered = entered[1:]
			}
			if o := latest[t.lostLast(c)]; o != nil && (c.token < o.token || c.token == o.token && c.ask.Owner != o.ask.Owner) {
				t.violation("token", "of %q does not rise:\n\t%s\n\t%s", key, t.tell(o), t.tell(c))
			}
		}
	}
}

// raise takes c for the latest wherever it is.
func raise(latest map[int64]*call, c *call) {
	for since, o := range latest {
		if c.ask.At >= since && (o == nil || o.token < c.token) {
			latest[since] = c
		}
	}
}

// lostLast is the end of the last loss of data that may have been before c was given its token.
func (t *timeline) lostLast(c *call) (at int64) {
	for _, loss := range t.lossesOf(c) {
		if loss.from < c.entered {
			at = max(at, loss.to)
		}
	}
	return at
}

// stores looks for writes that a store accepted from a token lower than one that it had accepted before, and for those that it
// acknowledged and lost.
func (t *timeline) stores() {
	type accepted struct {
		history.Event
		by *call
	}
	writes := map[string][]accepted{} // by key of the lock that guards the store
	for _, c := range t.calls {
		for _, w := range c.writes {
			if w.Op == history.Refused {
				t.result.Refused++
				continue
			}
			t.result.Writes++
			writes[names(c.ask.Keys)] = append(writes[names(c.ask.Keys)], accepted{w, c})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(writes)) {
		all := writes[key]
		slices.SortFunc(all, func(a, b accepted) int { return cmp.Compare(a.Since, b.Since) })
		done := slices.SortedFunc(slices.Values(all), func(a, b accepted) int { return cmp.Compare(a.At, b.At) })
		var highest accepted
		for _, w := range all {
			for done[0].At < w.Since {
				if done[0].Token > highest.Token {
					highest = done[0]
				}
				done = done[1:]
			}
			if w.Token != 0 && w.Token < highest.Token {
				t.violation("write", "the store of %q accepted token %d at %s (%s), after %d at %s (%s):\n\t%s\n\t%s", key, w.Token,
					t.at(w.At), where(w.Event), highest.Token, t.at(highest.At), where(highest.Event), t.tell(highest.by), t.tell(w.by))
			}
		}
	}
	t.updates()
}

// updates looks for elements that a store acknowledged and does not have at the end. Without a fence that is what pauses do; so
// only those that were written with a token are violations.
func (t *timeline) updates() {
	final := map[string]map[string]bool{}
	for _, e := range t.others {
		if e.Op == history.Final {
			has := map[string]bool{}
			for _, element := range e.Elements {
				if has[element] {
					t.violation("once", "the store of %q has %q twice", names(e.Keys), element)
				}
				has[element] = true
			}
			final[names(e.Keys)] = has
		}
	}
	for _, c := range t.calls {
		has, ok := final[names(c.ask.Keys)]
		for _, w := range c.writes {
			if !ok || w.What == "" || w.Op != history.Write {
				continue
			}
			t.result.Updates++
			if has[w.What] {
				continue
			}
			t.result.Missing++
			if w.Token != 0 {
				t.violation("update", "the store of %q acknowledged %q at %s (%s), and does not have it:\n\t%s",
					names(c.ask.Keys), w.What, t.at(w.At), where(w), t.tell(c))
			}
		}
	}
}
