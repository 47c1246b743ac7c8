package guard

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// How long Lead pauses before it stands again. Each pause is cut by chance to between a half and the whole, so that candidates that have
// failed together do not come back together.
const (
	firstLeadPause = 250 * time.Millisecond // the next ones double,
	maxLeadPause   = 8 * time.Second        // up to this,
	steadyLead     = 30 * time.Second       // and begin anew after an attempt that took this long
)

// Lead runs fn while this process is the leader: of all that call it with the same key, the one that has the lock of g. The others
// wait, for as long as ctx lasts. fn gets a context that ends when the lead is lost, before anybody else can have it, and Token says its
// fencing token if g is Fenced. Lead blocks until one of these:
//
//   - fn returns nil under its lead: the work is done. Lead returns nil and gives the lead away, to the next that waits. Work that is to
//     go on for ever returns only when its context ends.
//   - ctx ends, or Registry.Drain begins where g is In a Registry: the context of fn ends, fn returns, the lock is given back once, and Lead
//     returns nil, whether or not it ever led. But if fn returns an error of its own, or has lost the lead meanwhile, it is that error.
//   - g is no guard for a leader, or the lock service refuses for good (ErrUnsupported, ErrFault, ErrKey): Lead returns the error.
//
// After anything else, Lead stands again: after an error of fn, after a loss even if fn returned nil, after MaxHold, and after an outage,
// the first attempt included. It waits until fn has returned, and then pauses: for 250ms, doubled each time up to 8s, less a random part of
// up to a half. The pauses begin anew after an attempt of 30s or more, which a lead that lasted is, and after MaxHold. A panic of fn
// gives the lead away, and is the caller's.
//
// Lead does not return errors after which it stands again: observers get them. Observers get OutcomeElected when a lead
// begins, under its lock and with the context of fn, and its end as that of each call. Event.Lead is true in both.
//
// g is any guard whose key reads no request, also a Stack. Lead waits by itself, so g has no Wait other than Forever.
// Lead refuses options that it would ignore, or that would let two lead or nobody: the policies of Busy and Outage,
// When, Switchable, HoldAtLeast, Read, Limit and Rate. Under a Lead with the same key, Lead re-enters, as each call
// does.
//
// A process that stood still past its lease learns of the loss when it runs again, which can be too late: a store that
// must not have two writers compares their tokens. See docs/leader.md for how long it takes until the next one leads.
func Lead(ctx context.Context, g *Guard, fn func(context.Context) error) error {
	if err := g.unmade("Lead with"); err != nil {
		return err
	}
	if fn == nil {
		return g.spec.errorf("Lead with a nil function")
	}
	r, err := g.adapt(nil, abilities{leads: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if g.registry != nil {
		defer context.AfterFunc(g.registry.drain, func() { cancel(ErrDraining) })()
	}
	for pause := firstLeadPause; ; pause = min(2*pause, maxLeadPause) {
		began := time.Now()
		ran, err := r.RunOr(ctx, nil, func(ctx context.Context) error {
			r.current().elected(ctx, time.Since(began))
			return fn(ctx)
		}, nil)
		told := ctx.Err() != nil && !errors.Is(err, ErrLost) && (!ran || errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
		switch {
		case told: // to end, and that is all
			return nil
		case err == nil, ctx.Err() != nil, !ran && !errors.Is(err, ErrBusy) && !errors.Is(err, ErrOutage):
			return err
		case time.Since(began) >= steadyLead, errors.Is(err, lock.ErrMaxHold):
			pause = firstLeadPause
		}
		select {
		case <-time.After(pause - rand.N(pause/2)):
		case <-ctx.Done():
			return nil
		}
	}
}

// elected tells the observers that the guards of r have their locks.
func (r *runner) elected(ctx context.Context, wait time.Duration) {
	for ; r != nil; r = r.next {
		e := Event{Guard: r.spec.Name, Template: r.spec.Key, Outcome: OutcomeElected, Lead: true, Wait: wait, Keys: len(heldBy(ctx, r.spec.Name).holds)}
		for _, observe := range r.observers {
			observe(ctx, e)
		}
	}
}
