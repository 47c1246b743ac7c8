package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/lock"
)

// errLevels refuses a call whose keys can't be taken together.
var errLevels = fmt.Errorf("%w: levels and a rate are for one key, and levels have keys of their own: begin their templates differently", lock.ErrUnsupported)

// noKey answers a call that failed for err before there was a key: at a fact, or at a function that a template calls.
// fields are the facts that the text at fault reads.
func (c *call) noKey(err error, fields []string, t *task) (ran bool, outcome string, _ error) {
	if c.mode == On && c.ctx.Err() != nil && (errors.Is(err, c.ctx.Err()) || errors.Is(err, context.Cause(c.ctx))) {
		return false, OutcomeCanceled, c.canceled()
	}
	outcome, failed := c.keyError(err, fields)
	switch {
	case c.mode == Shadow:
		c.record.Refused = failed
		return true, OutcomeShadow, t.run(c.ctx)
	case errors.Is(failed.Err, ErrOutage):
		return c.instead(c.spec.Outage, outcome, failed, t)
	}
	return false, outcome, failed
}

// keyError converts a rendering error to the *Error that the caller gets.
func (c *call) keyError(err error, fields []string) (outcome string, _ *Error) {
	outcome, sentinel := classify(err)
	failed := c.fail(sentinel, err)
	failed.Fact = factOf(err)
	if failed.Fact == "" && len(fields) == 1 {
		failed.Fact = fields[0]
	}
	if c.record != nil {
		c.record.Fact = failed.Fact
	}
	return outcome, failed
}

// refuse answers a call that did not get its locks for err.
func (c *call) refuse(err error, t *task) (ran bool, outcome string, _ error) {
	if c.entry != nil && err == ErrDraining { //nolint:errorlint // as take returns it
		c.entry.registry.gate.refuse()
		return c.drained()
	}
	if c.ctx.Err() != nil { // whatever the locker made of it: nobody is there to run anything for
		return false, OutcomeCanceled, c.canceled()
	}
	switch {
	case c.turn.replaced():
		return false, OutcomeReplaced, c.fail(ErrReplaced, nil)
	case errors.Is(err, lock.ErrRefused): // first, as the key of another type may be a lock of another kind, or anything else
		return false, OutcomeFault, c.fail(ErrFault, err)
	case errors.Is(err, lock.ErrUnsupported):
		return false, OutcomeUnsupported, c.fail(ErrUnsupported, err)
	case errors.Is(err, lock.ErrBusy):
		refused := c.fail(ErrBusy, err)
		refused.RetryAfter = c.retryAfter(err)
		return c.instead(c.spec.Busy, OutcomeBusy, refused, t)
	case c.outwaited(err):
		return c.instead(c.spec.Busy, OutcomeBusy, c.fail(ErrBusy, &early{err}), t)
	case errors.Is(err, lock.ErrLost):
		err = &early{err}
	}
	return c.instead(c.spec.Outage, outage(err), c.fail(ErrOutage, err), t)
}

// instead follows the policy in place of the work, or refuses the call.
func (c *call) instead(policy Policy, outcome string, refused *Error, t *task) (ran bool, _ string, _ error) {
	if c.record != nil {
		c.record.Refused = refused
	}
	switch {
	case policy == Skip:
		return false, OutcomeSkipped, nil
	case policy == RunUnlocked:
		return true, OutcomeUnlocked, t.run(c.ctx)
	case policy == RunFallback && c.above != nil:
		return false, OutcomeFallback, nil // when those before it have given their locks back
	case policy == RunFallback:
		return false, OutcomeFallback, t.instead(c.ctx, refused)
	}
	return false, outcome, refused
}

// outwaited reports whether err is that a lock reached the end that the Spec sets it while others were waited for. That
// is contention; a lock lost for another reason is an outage.
func (c *call) outwaited(err error) bool {
	return errors.Is(err, lock.ErrLost) && (c.request.Lease > 0 || errors.Is(err, lock.ErrMaxHold))
}

func (c *call) fail(sentinel, cause error) *Error {
	level, rate := c.full(sentinel, cause)
	return &Error{Guard: c.spec.Name, Err: sentinel, Cause: cause, Level: level, Rate: rate}
}

// full says which bound a call that failed for cause has met: the template of the key that is full, or the rate.
func (c *call) full(sentinel, cause error) (template string, rate bool) {
	busy, ok := errors.AsType[*lock.BusyError](cause)
	if !ok || !errors.Is(sentinel, ErrBusy) || busy.Rate || busy.Level == "" || c.spec.Levels == "" {
		return "", ok && errors.Is(sentinel, ErrBusy) && busy.Rate
	}
	at := slices.IndexFunc(c.request.Levels, func(l lock.Level) bool { return l.Key == strings.TrimPrefix(busy.Level, shadowPrefix) })
	return c.spec.keys()[1+at], false
}

// canceled returns the end of the caller's context as an error. With a cause of the caller's own, it matches both.
func (c *call) canceled() error {
	err, cause := c.ctx.Err(), context.Cause(c.ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("guard %q: %w", c.spec.Name, cause)
	}
	return fmt.Errorf("guard %q: %w: %w", c.spec.Name, err, cause)
}
