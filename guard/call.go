package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// call is one run of a Runner.
type call struct {
	*Runner
	ctx   context.Context // the caller's, with our span
	span  trace.Span
	event Event

	holds       []lock.Hold // what is to be given back, in the order taken
	one         [1]lock.Hold
	locked      bool        // all of them are held, or were
	since       time.Time   // when that began
	countedHeld bool        // in latchkey.guard.held
	work        heldContext // of the work, then
	fallback    func(context.Context, error) error
}

// Run makes one guarded call: it evaluates the condition, renders the keys, takes the locks in the order of their names
// (all or none), runs fn with a context that ends when one of them is lost, and gives them back, also if fn panics.
// facts is asked for a root once for the condition and once for the key, if they name it.
//
// ran says whether fn was called. The error is fn's own, untouched; or an *Error; or, if ctx ended before fn could
// start, one that names the guard and matches both ctx.Err() and the cause of ctx. With Skip, a call that could not have
// the lock returns false and nil.
func (r *Runner) Run(ctx context.Context, facts keyexpr.Facts, fn func(context.Context) error) (ran bool, err error) {
	return r.run(ctx, facts, fn, nil)
}

func (r *Runner) run(ctx context.Context, facts keyexpr.Facts, fn func(context.Context) error,
	fallback func(context.Context, error) error) (ran bool, err error) {
	c := &call{Runner: r, fallback: fallback}
	// The outcome until a better one is known, which does not happen if anything panics.
	c.event = Event{Guard: r.spec.Name, Template: r.spec.Key, Outcome: OutcomePanic}
	c.ctx, c.span = r.tel.spans.start(ctx, time.Now(), &r.labels)
	defer c.end()
	ran, outcome, err := c.do(facts, fn)
	c.event.Outcome, c.event.Err = outcome, err
	return ran, err
}

// do is the call from the condition to the release.
func (c *call) do(facts keyexpr.Facts, fn func(context.Context) error) (ran bool, outcome string, err error) {
	if c.when != nil {
		applies, err := c.when.Eval(c.ctx, facts)
		if err != nil {
			return c.noKey(err, c.when.Fields(), fn)
		}
		if !applies {
			return true, OutcomeConditionFalse, fn(c.ctx)
		}
	}
	keys, err := c.keys(c.ctx, facts)
	if err != nil {
		return c.noKey(err, c.fields(), fn)
	}
	if err := c.acquire(keys); err != nil {
		c.release() // before anything runs instead of fn
		return c.refuse(err, fn)
	}
	outcome, err = c.settle(fn(&c.work))
	return true, outcome, err
}

// noKey answers a call that failed for err before there was a key: at a fact, or at a function that a template calls.
// fields is what the text at fault reads.
func (c *call) noKey(err error, fields []string, fn func(context.Context) error) (ran bool, outcome string, _ error) {
	if c.ctx.Err() != nil && (errors.Is(err, c.ctx.Err()) || errors.Is(err, context.Cause(c.ctx))) {
		return false, OutcomeCanceled, c.canceled()
	}
	outcome, sentinel := classify(err)
	failed := c.fail(sentinel, err)
	failed.Fact = factOf(err)
	if failed.Fact == "" && len(fields) == 1 {
		failed.Fact = fields[0]
	}
	c.event.Fact = failed.Fact
	if sentinel == ErrOutage {
		return c.instead(c.spec.Outage, outcome, failed, fn)
	}
	return false, outcome, failed
}

// end gives back what a panic left held, and tells how the call went. Being deferred and without a recover, it leaves a
// panic as it is.
func (c *call) end() {
	defer c.tell()
	c.release()
}

func (c *call) tell() {
	c.tel.report(c)
	for _, observe := range c.observers {
		observe(c.ctx, c.event)
	}
}

// acquire takes the locks of all keys, or returns the first error with those taken so far in c.holds. Each lock's
// context derives from the one before it, so that the last ends when any of them is lost, and all are above the work.
func (c *call) acquire(keys []string) error {
	c.event.Keys = len(keys)
	if c.wantKeys {
		names := keys
		c.event.keys = &names
	}
	start := time.Now()
	counted := c.tel.count(c.ctx, c.tel.waiting, &c.labels)
	defer func() {
		c.tel.uncount(c.ctx, c.tel.waiting, &c.labels, counted)
		c.event.Wait = time.Since(start)
	}()
	c.holds = c.one[:0]
	request := c.spec.request()
	for _, key := range keys {
		request.Key = key
		hold, err := c.locker.Acquire(c.latest(), request)
		if err != nil {
			return err
		}
		c.holds = append(c.holds, hold)
		if c.spec.Wait != Forever {
			request.Wait = max(0, c.spec.Wait-time.Since(start))
		}
	}
	ctx := c.latest()
	if ctx.Err() != nil { // the caller has gone, or a lock was lost while others were waited for
		return context.Cause(ctx)
	}
	c.work, c.locked, c.since = heldContext{Context: ctx, guard: c.spec.Name}, true, time.Now()
	if len(c.holds) == 1 {
		c.work.hold = c.holds[0]
	}
	c.countedHeld = c.tel.count(c.ctx, c.tel.held, &c.labels)
	acquired(c.span, len(keys), c.since.Sub(start))
	return nil
}

// latest is the context of the last lock taken, or the caller's if there is none.
func (c *call) latest() context.Context {
	if n := len(c.holds); n > 0 {
		return c.holds[n-1].Context()
	}
	return c.ctx
}

// request is what s asks of a locker, but for the key.
func (s Spec) request() lock.Request {
	r := lock.Request{Kind: s.Kind, Wait: s.Wait, Lease: s.Lease, MaxHold: s.MaxHold, Limit: s.Limit}
	if s.Wait == Forever {
		r.Wait = -1
	}
	return r
}

// refuse answers a call that did not get its locks for err.
func (c *call) refuse(err error, fn func(context.Context) error) (ran bool, outcome string, _ error) {
	if c.ctx.Err() != nil { // whatever the locker made of it: nobody is there to run anything for
		return false, OutcomeCanceled, c.canceled()
	}
	switch {
	case errors.Is(err, lock.ErrUnsupported):
		return false, OutcomeUnsupported, c.fail(ErrUnsupported, err)
	case errors.Is(err, lock.ErrRefused):
		return false, OutcomeFault, c.fail(ErrFault, err)
	case errors.Is(err, lock.ErrBusy):
		refused := c.fail(ErrBusy, err)
		if busy, ok := errors.AsType[*lock.BusyError](err); ok {
			refused.RetryAfter = busy.Remaining
		}
		return c.instead(c.spec.Busy, OutcomeBusy, refused, fn)
	case c.outwaited(err):
		return c.instead(c.spec.Busy, OutcomeBusy, c.fail(ErrBusy, &early{err}), fn)
	case errors.Is(err, lock.ErrLost):
		err = &early{err}
	}
	return c.instead(c.spec.Outage, OutcomeOutage, c.fail(ErrOutage, err), fn)
}

// instead does what policy says in place of the work, or refuses the call.
func (c *call) instead(policy Policy, outcome string, refused *Error, fn func(context.Context) error) (ran bool, _ string, _ error) {
	c.event.Refused = refused
	switch {
	case policy == Skip:
		return false, OutcomeSkipped, nil
	case policy == RunUnlocked:
		return true, OutcomeUnlocked, fn(c.ctx)
	case policy == RunFallback:
		return false, OutcomeFallback, c.fallback(c.ctx, refused)
	}
	return false, outcome, refused
}

// outwaited reports whether err is that a lock reached the end that the Spec sets it while others were waited for. That
// is contention; a lock lost for another reason is an outage.
func (c *call) outwaited(err error) bool {
	return errors.Is(err, lock.ErrLost) && (c.spec.Lease > 0 || errors.Is(err, lock.ErrMaxHold))
}

func (c *call) fail(sentinel, cause error) *Error {
	return &Error{Guard: c.spec.Name, Err: sentinel, Cause: cause}
}

// canceled is the end of the caller's context as an error. With a cause of the caller's own, it matches both.
func (c *call) canceled() error {
	err, cause := c.ctx.Err(), context.Cause(c.ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("guard %q: %w", c.spec.Name, cause)
	}
	return fmt.Errorf("guard %q: %w: %w", c.spec.Name, err, cause)
}

// settle gives the locks back after fn returned err, and finds out whether they were held to the end.
func (c *call) settle(err error) (outcome string, _ error) {
	lost := c.lost()
	c.release()
	if lost == nil && (errors.Is(c.event.Release, lock.ErrLost) || errors.Is(c.event.Release, lock.ErrNotHeld)) {
		lost = c.event.Release
	}
	switch {
	case lost == nil && err == nil:
		return OutcomeOK, nil
	case lost == nil:
		return OutcomeError, err
	}
	outcome = OutcomeLost
	if errors.Is(lost, lock.ErrMaxHold) {
		outcome = OutcomeMaxHold
	}
	if err != nil {
		lost = &lostWork{lost, err}
	}
	return outcome, c.fail(ErrLost, lost)
}

// lost is why the work's context ended, if that is the loss of one of our locks. The loss of a lock that the caller
// holds ends it too, but is the caller's to report.
func (c *call) lost() error {
	cause := context.Cause(&c.work)
	if errors.Is(cause, lock.ErrLost) && !errors.Is(cause, context.Cause(c.ctx)) {
		return cause
	}
	return nil
}

// release gives back all locks, the last one first and each once, whatever becomes of the others.
func (c *call) release() {
	n := len(c.holds)
	if n == 0 {
		return
	}
	defer c.release()
	hold := c.holds[n-1]
	c.holds = c.holds[:n-1]
	ctx := &releaseContext{caller: c.ctx}
	defer ctx.stop()
	if err := hold.Release(ctx); err != nil {
		c.event.Release = errors.Join(c.event.Release, err)
	}
	if c.locked {
		c.event.Held = time.Since(c.since)
	}
}
