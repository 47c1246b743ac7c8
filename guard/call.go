package guard

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// call is one run of a runner. Memory is the greatest part of what a guard costs, so a call is on the stack, unless it is one of a
// Stack. That works only as long as no pointer to it gets into the heap, or into an interface or a closure that somebody may keep:
// otherwise the compiler puts it into the heap, which the tests of allocations notice.
type call struct {
	*runner
	ctx     context.Context  // the caller's, with our span
	record  *telemetryRecord // nil if nothing observes the call
	mode    Mode             // On outside of a Registry
	request *lock.Request    // the runner's, or the call's own if facts have a say in it

	*shared                // nil until keys are made, unless it came with the call
	released bool          // the holds must not be given back again
	locked   bool          // all of them are held, or were
	judged   bool          // lost and until are set, as the work has returned
	since    time.Duration // when all locks were held, by the clock, as is the next
	until    time.Duration // until when the locks are good
	keep     time.Duration // how long the locks stay after their release
	lost     error         // why the call lost a lock
	turn     *turn         // nil unless newer calls replace this one
	above    *call         // before it in a Stack
	ahead    [][]string    // the keys of the guards behind it in a Stack, if they are known
	joined   bool          // its locks are taken with those of the other guards of a Stack

	leaveAhead func() // gives back what these have not taken; nil if nothing was
	*member           // nil outside of a Registry
}

// shared is the part of a call that others may keep: the work, the locker, and observers of its keys.
type shared struct {
	work      heldContext // its holds are in the order taken
	releasing releaseContext

	oneHold [1]lock.Hold // room for the usual case
	oneKey  [1]string
}

// task is the work that a call guards. It has functions instead of an interface, because values called through an
// interface can't be on the stack.
type task struct {
	run func(ctx context.Context) error
	// instead is the fallback, which runs in place of work that could not have its lock. It is not nil if the policy is
	// to run it.
	instead func(ctx context.Context, refused error) error
	// appendKeys makes the keys in place of the runner; or nil.
	appendKeys func(ctx context.Context, room []string) ([]string, error)
	// ahead is whether the call may render the keys of the guards behind it.
	ahead bool
}

// start makes the call and reports its end to the observers. below is not nil where t calls the guards behind this one.
func (c *call) start(ctx context.Context, facts keyexpr.Facts, t *task, below *descent) (ran bool, err error) {
	c.until = Forever
	c.open(ctx)
	defer c.end()
	ran, outcome, err := c.do(facts, t)
	if c.above != nil {
		c.above.judge() // as what observes c takes time, too
	}
	if below != nil && below.inner.record != nil {
		c.record.behind = &below.inner.record.Event
	}
	if below != nil && below.back {
		ran = false
		outcome, err = c.rolledBack(below)
	}
	if c.record != nil {
		c.record.Outcome, c.record.Err = outcome, err
	}
	return ran, err
}

// do runs the call until its release, in the mode that its Registry sets if it is in one.
func (c *call) do(facts keyexpr.Facts, t *task) (ran bool, outcome string, err error) {
	switch {
	case c.entry != nil && !c.enter():
		return c.drained()
	case c.mode == Off:
		return true, OutcomeOff, t.run(c.ctx)
	}
	if c.when != nil {
		applies, err := c.when.Eval(c.ctx, facts)
		if err != nil {
			return c.noKey(err, c.when.Fields(), t)
		}
		if !applies {
			return true, OutcomeConditionFalse, t.run(c.ctx)
		}
	}
	keys, err := c.render(facts, t)
	if err != nil {
		return c.noKey(err, c.fields(), t)
	}
	if c.mode == Shadow {
		return c.shadowed(keys, t)
	}
	if t.ahead {
		c.lookAhead(facts)
	}
	if err := c.take(keys); err != nil {
		c.release() // before anything runs instead of the work
		return c.refuse(err, t)
	}
	outcome, err = c.settle(t.run(&c.work))
	return true, outcome, err
}

// render renders the keys of the call: at least one, none of them empty. It also evaluates the other expressions about
// the locks.
func (c *call) render(facts keyexpr.Facts, t *task) (keys []string, err error) {
	if c.shared == nil {
		c.shared = new(shared)
	}
	switch room := c.oneKey[:0]; {
	case c.above != nil && len(c.above.ahead) > 0:
		keys, c.ahead, c.joined = c.above.ahead[0], c.above.ahead[1:], true
	case t.appendKeys != nil:
		keys, err = t.appendKeys(c.ctx, room)
	case c.keyFunc != nil:
		keys, err = c.keyFunc.keys(room, facts)
	default:
		keys, err = c.key.AppendKeys(c.ctx, room, facts)
	}
	switch {
	case err == nil && len(keys) == 0: // nothing to lock must not mean to run without a lock
		err = errNoKeys
	case err == nil && len(keys) > 1 && c.spec.bounded():
		err = errLevels
	case err == nil && c.expressions != nil:
		err = c.evaluate(keys, facts)
	}
	return keys, err
}

// end gives back the locks that a panic left held, and reports the call's end. Being deferred and without a recover, it
// leaves a panic as it is.
func (c *call) end() {
	if c.entry != nil {
		defer c.leave()
	}
	if c.record != nil {
		defer c.tell()
	}
	if c.turn != nil {
		defer c.leaveTurn()
	}
	if c.leaveAhead != nil {
		defer c.leaveAhead()
	}
	c.release()
}

// acquire takes the locks of all keys, or returns the first error with those taken so far in c.work.holds. Each lock's
// context derives from the one before it, so that the last ends when any of them is lost, and all are above the work.
func (c *call) acquire(keys []string) error {
	if c.record != nil {
		c.beginWait(keys)
		defer c.endWait()
	}
	c.work.holds = c.oneHold[:0]
	if err := c.takeAll(keys); err != nil {
		return err
	}
	ctx := c.latest()
	if ctx.Err() != nil { // the caller has gone, or a lock was lost while others were waited for
		return context.Cause(ctx)
	}
	if err := c.spec.canKeep(c.work.holds); err != nil {
		return err
	}
	c.work.Context, c.work.runner = ctx, c.runner //nolint:fatcontext // one a call
	c.locked, c.since = true, c.beginning()
	if c.record != nil {
		c.beginHold()
	}
	return nil
}

// takeAll acquires keys in order. Spec.Wait bounds the total. A locker that can reserve several locks at once does so
// in one question, which includes the keys of the guards behind this one.
func (c *call) takeAll(keys []string) error {
	request := *c.request
	bounded := request.Wait > 0 && (len(keys) > 1 || len(c.ahead) > 0 || c.spec.Busy == Replace)
	var start time.Duration
	if bounded {
		start = clock.Now()
	}
	if c.spec.Busy == Replace {
		if err := c.takeTurn(request, keys); err != nil {
			return err
		}
	}
	ctx, reserved := c.latest(), 0 // up to there
	if len(c.ahead) > 0 && c.above == nil {
		var err error
		if ctx, reserved, err = c.reserveStack(ctx, keys); err != nil {
			return err
		}
	}
	rest := func() {
		if bounded {
			request.Wait = max(0, c.request.Wait-(clock.Now()-start))
		}
	}
	for i, key := range keys {
		rest()
		if reserved <= i && i < len(keys)-1 {
			var n int
			var leave func()
			var err error
			if ctx, n, leave, err = c.reserve(ctx, request, keys[i:]); err != nil {
				return err
			}
			defer leave()
			reserved = i + n
			rest()
		}
		request.Key = key
		hold, err := c.takeOne(ctx, &request)
		if err != nil {
			return err
		}
		c.work.holds = append(c.work.holds, hold)
		ctx = hold.Context() //nolint:fatcontext // one a key
	}
	return nil
}

// beginning returns when the last of the locks was acquired, which some lockers know themselves.
func (c *call) beginning() time.Duration {
	if hold, ok := c.work.holds[len(c.work.holds)-1].(clock.Timed); ok {
		return time.Duration(hold.Since())
	}
	return clock.Now()
}

// latest is the context of the last lock taken, or the caller's if there is none.
func (c *call) latest() context.Context {
	if n := len(c.work.holds); n > 0 {
		return c.work.holds[n-1].Context()
	}
	if c.turn != nil {
		return c.turn.ctx
	}
	return c.ctx
}
