package guard

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// An Explanation describes what a guard would do with a call, for operators and for tests. It has keys in it, which can
// hold personal data.
type Explanation struct {
	// Spec is the declaration, with tags and overrides applied.
	Spec Spec
	// Mode is how the guard is switched.
	Mode Mode
	// Shape is what the keys look like: order:<string>. It is empty for a KeyFunc.
	Shape string
	// Applies is false if the condition is: the work would run without a lock.
	Applies bool
	// Keys are those that the call would take, in this order. There are none if it does not apply, or for Err.
	Keys []KeyState
	// Limit, Levels and Lease are those that the call would request, whether from the Spec or from its facts. They are
	// zero without Keys.
	Limit  int
	Levels []lock.Level
	Lease  time.Duration
	// Err is why there is no key, as the *Error that the call would return.
	Err error
	// Rest are the explanations of the guards behind this one in a Stack.
	Rest []Explanation
}

// KeyState is the state of a key at this moment.
type KeyState struct {
	Key string
	// Known is whether the locker can say if the key is held. Busy and Remaining mean nothing without it.
	Known bool
	// Busy is whether the call would have to wait for the key, or be refused.
	Busy bool
	// Level is the template of the full key, where that is known, and Rate is whether the rate is used up, as in an
	// Error.
	Level string
	Rate  bool
	// Remaining is how long the present holder may keep the key if it does not renew it; 0 is not known.
	Remaining time.Duration
	// Err is why the locker could not say, if it can say at all: it did not answer, or would refuse the call for
	// another reason than that the key is held.
	Err error
}

// A peeker is a Locker that can say whether a lock is free without taking it. Peek returns what an Acquire that does not
// wait would return, and nil if it would get the lock.
type peeker interface {
	Peek(ctx context.Context, r lock.Request) error
}

// Explain says what a call with these facts would do now, without taking a lock or running anything. Facts are by root, as
// the key names them: map[string]any{"req": PayRequest{OrderID: "7"}}. The error is that the guard does not fit them.
//
// The state of keys is known with lockers that have a method Peek(context.Context, lock.Request) error, which returns
// the result of an Acquire without a wait.
func (g *Guard) Explain(ctx context.Context, facts map[string]any) (Explanation, error) {
	if g == nil {
		return Explanation{}, errors.New("guard: Explain of a nil guard")
	}
	roots := make(keyexpr.Roots, len(facts))
	for name, fact := range facts {
		roots[name] = keyexpr.Type(reflect.TypeOf(fact))
	}
	r, err := g.explainer(roots, false)
	faults, last := []error{err}, r
	for _, member := range g.rest {
		next, err := member.explainer(roots, g.fallback != nil)
		if faults = append(faults, err); last != nil {
			last.next = next
		}
		last = next
	}
	if err := errors.Join(faults...); err != nil {
		return Explanation{}, err
	}
	return r.Explain(ctx, func(root string) (any, error) { return facts[root], nil }), nil
}

// explainer fits g to roots as prepare does, but does not list it in a registry.
func (g *Guard) explainer(roots keyexpr.Roots, adopted bool) (*runner, error) {
	fitted := *g
	fitted.override((*Registry).said)
	fitted.imply()
	if adopted {
		fitted.spec.implyFallback()
	}
	r, faults := fitted.compile(roots)
	if err := fitted.spec.errors(append(faults, fitted.mistakes(fitted.owner != nil)...)); err != nil {
		return nil, err
	}
	if g.registry != nil {
		r.entry, _ = g.registry.find(r.spec.Name) // nil if the guard stands nowhere yet
	}
	return r, nil
}

// Explain says what RunOr would do now with a call that has these facts; see Guard.Explain.
func (r *runner) Explain(ctx context.Context, facts keyexpr.Facts) Explanation {
	r = r.current()
	e := r.explain(ctx, facts)
	for next := r.next; next != nil; next = next.next {
		e.Rest = append(e.Rest, next.explain(ctx, facts))
	}
	return e
}

// explain is Explain for r alone.
func (r *runner) explain(ctx context.Context, facts keyexpr.Facts) Explanation {
	e := Explanation{Spec: r.spec, Applies: true}
	e.Spec.zeros = 0
	if r.key != nil {
		e.Shape = r.key.Shape()
	}
	if r.entry != nil {
		e.Mode = Mode(r.entry.mode.Load())
	}
	c := &call{runner: r, ctx: ctx, request: &r.request}
	if r.when != nil {
		applies, err := r.when.Eval(ctx, facts)
		if err != nil {
			_, e.Err = c.keyError(err, r.when.Fields())
			return e
		}
		if e.Applies = applies; !applies {
			return e
		}
	}
	keys, err := c.render(facts, new(task))
	if err != nil {
		_, e.Err = c.keyError(err, r.fields())
		return e
	}
	e.Limit, e.Levels, e.Lease = c.request.Limit, c.request.Levels, c.request.Lease
	for _, key := range keys {
		e.Keys = append(e.Keys, c.peek(key))
	}
	return e
}

func (c *call) peek(key string) KeyState {
	state := KeyState{Key: key}
	p, ok := c.locker.(peeker)
	if !ok {
		return state
	}
	request := *c.request
	request.Key, request.Wait = key, 0
	err := p.Peek(c.ctx, request)
	state.Busy = errors.Is(err, lock.ErrBusy)
	state.Level, state.Rate = c.full(ErrBusy, err)
	if state.Known = err == nil || state.Busy; !state.Known {
		state.Err = err
	}
	if busy, ok := errors.AsType[*lock.BusyError](err); ok {
		state.Remaining = busy.Remaining
	}
	return state
}

// String is some lines for people.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "guard %q, %v: %v\n", e.Spec.Name, e.Mode, e.Spec)
	if e.Shape != "" {
		fmt.Fprintf(&b, "keys look like %s\n", e.Shape)
	}
	switch {
	case e.Err != nil:
		fmt.Fprintf(&b, "would fail: %v\n", e.Err)
	case !e.Applies:
		b.WriteString("would run without a lock: the condition is false\n")
	case e.Mode == Off:
		b.WriteString("would run without a lock: switched off\n")
	case e.Spec.LimitFrom+e.Spec.LeaseFrom != "":
		fmt.Fprintf(&b, "for this call%v\n", Spec{Limit: e.Limit, Lease: e.Lease})
	}
	for _, l := range e.Levels {
		fmt.Fprintf(&b, "level %q, limit %d\n", l.Key, l.Limit)
	}
	for _, k := range e.Keys {
		b.WriteString(k.String() + "\n")
	}
	for _, next := range e.Rest {
		b.WriteString(next.String())
	}
	return b.String()
}

// String is a line for people.
func (k KeyState) String() string {
	switch {
	case k.Err != nil:
		return fmt.Sprintf("key %q: %v", k.Key, k.Err)
	case !k.Known:
		return fmt.Sprintf("key %q", k.Key)
	case !k.Busy:
		return fmt.Sprintf("key %q, free now", k.Key)
	case k.Rate, k.Level != "":
		return fmt.Sprintf("key %q, %s (remaining %v)", k.Key, (&Error{Level: k.Level, Rate: k.Rate}).what(), k.Remaining)
	case k.Remaining > 0:
		return fmt.Sprintf("key %q, held by others for another %v", k.Key, k.Remaining)
	}
	return fmt.Sprintf("key %q, held by others", k.Key)
}
