package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// Stack returns a guard of several, each with a name, a key and policies of its own, for one entry point: the locks of the
// first are taken first and given back last. It fits where a Guard does.
//
//	pay, err := guard.Func(guard.Must(guard.Stack(perCustomer, perOrder)), svc.Pay)
//
// The work runs under all of them, or not at all: if one can't have its lock, those before it give theirs back before its
// policy does anything. With RunUnlocked, the call goes on without that lock; a condition that is false passes its guard
// only. A Fallback is declared with the first guard and is that of all. Each guard has its own event and span; of a call
// that was rolled back, all of them tell the same outcome.
func Stack(guards ...*Guard) (*Guard, error) {
	if len(guards) < 2 {
		return nil, fmt.Errorf("guard: Stack of %d guards: give at least two", len(guards))
	}
	var faults []error
	names := make(map[string]bool)
	for i, g := range guards {
		if err := g.unmade(fmt.Sprintf("Stack: number %d is", i+1)); err != nil {
			faults = append(faults, err)
			continue
		}
		faults = append(faults, g.unstackable(i == 0)...)
		if names[g.spec.Name] {
			faults = append(faults, g.spec.errorf("twice in a Stack"))
		}
		names[g.spec.Name] = true
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	first := guards[0].detached()
	first.rest = slices.Clone(guards[1:])
	return first, nil
}

// unstackable says why g can't be in a Stack.
func (g *Guard) unstackable(first bool) (faults []error) {
	check := func(bad bool, text string) {
		if bad {
			faults = append(faults, g.spec.errorf("in a Stack: %s", text))
		}
	}
	check(g.spec.Name == "" || g.spec.Key == "" && g.keyFunc == nil, "give it a Name and a Key")
	check(len(g.rest) > 0, "it is a Stack itself: give its guards")
	check(!first && g.fallback != nil, "declare the Fallback with the first guard")
	return faults
}

// fitRest fits the guards behind the first to roots.
func (g *Guard) fitRest(r *runner, roots keyexpr.Roots, can abilities, said func(*Registry) map[string]Spec) (faults []error) {
	for _, member := range g.rest {
		fitted := *member
		fitted.adopted = g.fallback != nil
		fitted.spec.OneKey = fitted.spec.OneKey || g.unread
		next, err := fitted.fitTo(roots, can, said)
		if err == nil && next.spec.Methods != g.spec.Methods {
			err = next.spec.errorf("in a Stack: for methods %s, but %q for %s: a request passes all guards or none, so give both the same",
				cmp.Or(next.spec.Methods, "of all kinds"), g.spec.Name, cmp.Or(g.spec.Methods, "all"))
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		next.wantKeys = next.wantKeys || r.wantKeys // as those before it report its errors
		r.next, r = next, next
	}
	return faults
}

// descent is the work of a guard that has others behind it: their call.
type descent struct {
	task  task
	facts keyexpr.Facts
	inner call
	back  bool // give back the locks before it, as nothing ran
}

// errRolledBack ends the work of a guard whose successors could not run. The caller never gets it.
var errRolledBack = errors.New("guard: rolled back")

func (d *descent) run(ctx context.Context) error {
	ran, err := d.inner.descend(ctx, d.facts, d.task)
	if d.back = !ran; d.back {
		return errRolledBack
	}
	return err
}

// descend is start where the work of c is the call of the guards behind it, if there are any.
func (c *call) descend(ctx context.Context, facts keyexpr.Facts, t task) (ran bool, err error) {
	if c.next == nil {
		return c.start(ctx, facts, &t, nil)
	}
	d := &descent{task: t, facts: facts, inner: call{runner: c.next, above: c}}
	return c.start(ctx, facts, &task{run: d.run, instead: t.instead, ahead: c.above == nil && t.appendKeys == nil}, d)
}

// rolledBack is the end of a call whose successors could not run, now that its own locks have been given back. The first
// guard of the stack runs the fallback.
func (c *call) rolledBack(d *descent) (outcome string, err error) {
	e := d.inner.record
	c.record.Refused, c.record.Fact = e.Refused, e.Fact
	switch {
	case e.Outcome == OutcomeFallback && c.above == nil:
		return e.Outcome, d.task.instead(c.ctx, e.Refused)
	case e.Outcome == OutcomeCanceled && c.ctx.Err() == nil: // it was c that ended them, and not the caller
		return c.ended(context.Cause(&c.work))
	}
	return e.Outcome, e.Err
}

// ended is the end of a call whose own lock, or turn, ended for cause while its successors waited. No policy applies.
func (c *call) ended(cause error) (outcome string, err error) {
	switch {
	case c.turn.replaced():
		return OutcomeReplaced, c.fail(ErrReplaced, nil)
	case c.outwaited(cause):
		return OutcomeBusy, c.fail(ErrBusy, &early{cause})
	}
	return OutcomeOutage, c.fail(ErrOutage, &early{cause})
}
