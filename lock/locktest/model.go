package locktest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// model knows who may hold a lock. It shares nothing with the Lockers except the table in lock.Reenter: it has its own tree of
// calls, its own clocks, and its own count of who is in.
type model struct {
	calls   []*call        // that got their lock, in this order
	waiting map[string]int // calls in line for each key
	stays   int            // begun so far
}

// call is one Acquire that got its lock.
type call struct {
	under
	r     lock.Request
	hold  lock.Hold
	n     int // counted from 1
	stay  int // likewise
	state state

	canceled bool // its Acquire was, just too late

	// With a lease, the hold lasts at least until sure, and should have ended at due. Between the two, only the Locker
	// knows. Both are zero for a hold that does not end by itself.
	sure, due time.Time
}

// under is the place of an Acquire in the tree of calls.
type under struct {
	outer    *call // nil at the root
	cut      bool  // with NewOwner
	detached bool  // with WithoutCancel
}

type state string

const (
	live     state = "live"
	kept     state = "kept"     // released with Keep, which has not ended
	lost     state = "lost"     // and not released yet
	released state = "released" // whatever was before
)

func (c *call) String() string {
	return fmt.Sprintf("#%d (%v %q, %s)", c.n, c.r.Kind, c.r.Key[len(c.r.Key)-1:], c.state)
}

// blocks reports whether c keeps strangers out.
func (c *call) blocks() bool { return c.state == live || c.state == kept }

// doubtful reports whether c may have ended by itself at t.
func (c *call) doubtful(t time.Time) bool { return c.blocks() && !c.due.IsZero() && !t.Before(c.sure) }

// outerDoubtful reports whether the context of c may have ended at t together with one above it.
func (c *call) outerDoubtful(t time.Time) bool {
	for !c.detached && c.outer != nil {
		if c = c.outer; c.doubtful(t) {
			return true
		}
	}
	return false
}

// lasts notes that c is to end by itself d after a moment between from and to. The margin is for Lockers that give up early.
func (c *call) lasts(d time.Duration, from, to time.Time) {
	c.sure, c.due = from.Add(d*3/4), to.Add(d)
}

// ended reports whether the context of c must have ended.
func (c *call) ended() bool {
	return c.state != live || c.canceled || c.outer != nil && !c.detached && c.outer.ended()
}

// ancestors are the live holds above u, innermost first.
func (u under) ancestors() []*call {
	var calls []*call
	for u.outer != nil && !u.cut {
		if u.outer.state == live {
			calls = append(calls, u.outer)
		}
		u = u.outer.under
	}
	return calls
}

// holders are the calls that keep strangers out of key.
func (m *model) holders(key string) []*call {
	return slices.DeleteFunc(slices.Clone(m.calls), func(c *call) bool { return c.r.Key != key || !c.blocks() })
}

// liveCalls are the calls whose holds are neither released nor lost.
func (m *model) liveCalls() []*call {
	return slices.DeleteFunc(slices.Clone(m.calls), func(c *call) bool { return c.state != live })
}

// admission is the expected outcome of an Acquire that does not wait.
type admission struct {
	outcome outcome
	stay    int       // that it re-enters
	held    lock.Kind // for which it is refused
	related bool      // if it is busy
	here    bool      // likewise
}

type outcome string

const (
	enters   outcome = "enters"    // as a stranger
	reenters outcome = "re-enters" // the stay of an ancestor
	busy     outcome = "busy"
	refused  outcome = "refused"        // with a KindError
	either   outcome = "enters or busy" // there is room, but others are in line
)

// admit returns the expected outcome of r at u, if no call is doubtful.
func (m *model) admit(u under, r lock.Request) admission {
	var kinds []lock.Kind
	stay := 0
	for _, c := range u.ancestors() {
		if c.r.Key == r.Key {
			kinds, stay = append(kinds, c.r.Kind), c.stay
		}
	}
	if stay != 0 {
		if e, ok := errors.AsType[*lock.KindError](lock.Reenter(r.Kind, kinds...)); ok {
			return admission{outcome: refused, held: e.Held}
		}
		return admission{outcome: reenters, stay: stay}
	}
	holders := m.holders(r.Key)
	switch {
	case len(holders) == 0:
		return admission{outcome: enters}
	case holders[0].r.Kind.Family() != r.Kind.Family():
		return admission{outcome: refused, held: holders[0].r.Kind}
	case !room(r, holders):
		here := slices.ContainsFunc(holders, func(c *call) bool { return c.state == live })
		return admission{outcome: busy, related: related(u, holders), here: here}
	case m.waiting[r.Key] > 0:
		return admission{outcome: either}
	}
	return admission{outcome: enters}
}

// room reports whether a stranger with r goes together with the holders.
func room(r lock.Request, holders []*call) bool {
	if r.Kind == lock.Permit {
		return stays(holders) < r.Limit
	}
	writes := func(c *call) bool { return c.r.Kind != lock.Read }
	return len(holders) == 0 || r.Kind == lock.Read && !slices.ContainsFunc(holders, writes)
}

func stays(calls []*call) int {
	numbers := make(map[int]bool)
	for _, c := range calls {
		numbers[c.stay] = true
	}
	return len(numbers)
}

// related reports whether a live hold is above both u and one of the holders.
func related(u under, holders []*call) bool {
	above := u.ancestors()
	common := func(c *call) bool { return slices.Contains(above, c) }
	return slices.ContainsFunc(holders, func(h *call) bool { return h.state == live && slices.ContainsFunc(h.ancestors(), common) })
}

// add notes a hold that r got at u between from and to, in the given stay or in one of its own.
func (m *model) add(u under, r lock.Request, h lock.Hold, stay int, from, to time.Time) *call {
	if stay == 0 {
		m.stays++
		stay = m.stays
	}
	c := &call{hold: h, r: r, under: u, n: len(m.calls) + 1, stay: stay, state: live}
	if d := r.Lease; d > 0 && (r.MaxHold == 0 || d < r.MaxHold) {
		c.lasts(d, from, to)
	} else if r.MaxHold > 0 {
		c.lasts(r.MaxHold, from, to)
	}
	m.calls = append(m.calls, c)
	return c
}
