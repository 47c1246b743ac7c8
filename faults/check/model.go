package check

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/latchkey-go/latchkey/faults/history"
)

// The sequential models check that the calls of a key are linearizable: that each take and each end of a hold can be given a moment
// within its call, such that the model admits them in that order. A hold is an operation that takes, between Ask and Enter, and one
// that ends. How it ended decides when that may have been:
//
//	released     between Exit and the end of the release
//	not held     between the last good look and the end of the release: it may have lapsed, also while its process was stopped
//	anything else: lost, killed, release in doubt   at any time after the last good look
//
// A call that failed is left out, and so is one whose hold may have been lost with the server's data. That is sound, as is looking at
// windows of a history: all that holds of these models do to one another is to exclude each other and to raise the token, so any part
// of a correct history is correct. Windows overlap by half, so that two holds with few others in between share one.
const (
	windowHolds = 64
	windowTime  = time.Second
)

// A hold is what a call has while it is inside. Its number tells it from others of its owner.
type hold struct {
	number  int
	owner   string
	class   class
	permits int
	limit   int
	token   int64
}

// held is the state of the models: who is inside, in the order of their numbers, and the last token.
type held struct {
	by    []hold
	token int64
}

// admits are the models, by name: whether somebody may get in.
var admits = map[string]func(s held, h hold) bool{
	"mutex":     func(s held, _ hold) bool { return len(s.by) == 0 },
	"reentrant": ownedBy,
	"fenced": func(s held, h hold) bool {
		return ownedBy(s, h) && (h.token > s.token || h.token == s.token && len(s.by) > 0)
	},
	"readwrite": func(s held, h hold) bool {
		return !slices.ContainsFunc(s.by, func(o hold) bool {
			read, reentered := o.class == shared && h.class == shared, o.owner == h.owner && (o.class == exclusive || h.class == shared)
			return !read && !reentered
		})
	},
	"semaphore": func(s held, h hold) bool {
		sum := h.permits
		for _, o := range s.by {
			sum += o.permits
		}
		return sum <= h.limit
	},
}

func ownedBy(s held, h hold) bool {
	return !slices.ContainsFunc(s.by, func(o hold) bool { return o.owner != h.owner })
}

// modelOf is the model of the kinds that share a key.
func modelOf(calls []*call) string {
	name := "reentrant"
	for _, c := range calls {
		switch c.ask.Kind {
		case "mutex", "fenced":
			name = c.ask.Kind
		case "read", "write":
			return "readwrite"
		case "permit", "semaphore":
			return "semaphore"
		}
	}
	return name
}

// An end is the operation in which a hold ends; a hold itself is the one that takes.
type end struct{ hold }

func lockModel(admit func(held, hold) bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return held{} },
		Step: func(state, input, _ any) (bool, any) {
			s := state.(held)
			if e, ends := input.(end); ends {
				by := slices.DeleteFunc(slices.Clone(s.by), func(o hold) bool { return o.number == e.number })
				return len(by) < len(s.by), held{by, s.token}
			}
			h := input.(hold)
			i, _ := slices.BinarySearchFunc(s.by, h, func(a, b hold) int { return cmp.Compare(a.number, b.number) })
			return admit(s, h), held{slices.Insert(slices.Clone(s.by), i, h), max(s.token, h.token)}
		},
		Equal: func(a, b any) bool {
			return a.(held).token == b.(held).token && slices.Equal(a.(held).by, b.(held).by)
		},
	}
}

// operations are those of the holds of calls.
func (t *timeline) operations(calls []*call) (ops []porcupine.Operation) {
	for i, c := range calls {
		h := hold{i, c.ask.Owner, c.class(), c.ask.Permits, c.ask.Limit, c.token}
		ends := span{t.provenUntil(c), forever}
		switch {
		case c.release.Op == history.Released && c.leftBy == history.Exit:
			ends = span{c.left, c.released}
		case c.release.Op == history.NotHeld:
			ends.to = c.released
		}
		ops = append(ops,
			porcupine.Operation{ClientId: i, Input: h, Call: c.ask.At, Return: c.entered},
			porcupine.Operation{ClientId: i, Input: end{h}, Call: ends.from, Return: ends.to})
	}
	return ops
}

// provenUntil is when a context was last known to be good. A process that was stopped may have looked before it noticed.
func (t *timeline) provenUntil(c *call) int64 {
	for _, s := range t.stops[c.ask.Proc] {
		if s.to < c.entered || s.from > c.lastLook() || c.left > s.to+int64(t.options.Grace) {
			continue
		}
		i, _ := slices.BinarySearch(c.looks, s.from)
		return c.looks[max(i-1, 0)]
	}
	return c.lastLook()
}

// A window is a part of the history of a key that one model checks.
type window struct {
	key, model string
	calls      []*call
}

func (t *timeline) models() {
	if t.options.Models < 0 {
		return
	}
	until := time.Now().Add(t.options.Models)
	for _, w := range t.windows() {
		left := min(windowTime, time.Until(until))
		if left <= 0 {
			t.result.Undecided++
			continue
		}
		model := lockModel(admits[w.model])
		switch porcupine.CheckOperationsTimeout(model, t.operations(w.calls), left) {
		case porcupine.Ok:
			t.result.Histories[w.model]++
		case porcupine.Unknown:
			t.result.Undecided++
		case porcupine.Illegal:
			t.result.Histories[w.model]++
			t.illegal(w, model)
		}
	}
	t.latchModels()
}

// illegal reports a window by the first of its calls that the model can't explain, with those that it met.
func (t *timeline) illegal(w window, model porcupine.Model) {
	n := 1
	for n < len(w.calls) && porcupine.CheckOperations(model, t.operations(w.calls[:n])) {
		n++
	}
	c := w.calls[n-1]
	met := slices.DeleteFunc(slices.Clone(w.calls[:n-1]), func(o *call) bool { return t.until(o) <= c.ask.At })
	t.violation("model", "%q is no %s:%s", w.key, w.model, t.tellAll(append(met, c)))
}

// until is when a hold of a call may have ended at the latest.
func (t *timeline) until(c *call) int64 {
	if c.released != 0 && c.release.Op != history.Unreleased {
		return c.released
	}
	return t.end
}

// windows are all parts of the histories that the models check, those of different keys by turns.
func (t *timeline) windows() (all []window) {
	byKey := map[string][]window{}
	for key := range t.byKey {
		model := modelOf(t.byKey[key])
		for _, calls := range t.epochs(key) {
			for from := 0; from == 0 || from+windowHolds/2 < len(calls); from += windowHolds / 2 {
				byKey[key] = append(byKey[key], window{key, model, calls[from:min(from+windowHolds, len(calls))]})
			}
		}
	}
	for len(byKey) > 0 {
		for _, key := range slices.Sorted(maps.Keys(byKey)) {
			all = append(all, byKey[key][0])
			if byKey[key] = byKey[key][1:]; len(byKey[key]) == 0 {
				delete(byKey, key)
			}
		}
	}
	return all
}

// epochs are the sections of key that began and ended between two losses of data of its servers.
func (t *timeline) epochs(key string) [][]*call {
	byLosses := map[int][]*call{}
	for _, c := range t.sections(key) {
		before, during := 0, false
		for _, loss := range t.lossesOf(c) {
			during = during || loss.touches(span{c.ask.At, t.until(c) + 1})
			if loss.to <= c.ask.At {
				before++
			}
		}
		if !during {
			byLosses[before] = append(byLosses[before], c)
		}
	}
	return slices.Collect(maps.Values(byLosses))
}
