package guard

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// errLeaseOver is why a lock is lost whose own clock says so before anybody else did.
var errLeaseOver = errors.New("the lease was over when the work returned")

// settle gives the locks back after the work returned err, and finds out whether they were held to its end. A lock that
// is good when the work returns is not lost by what becomes of it while it is given back.
func (c *call) settle(err error) (outcome string, _ error) {
	good := c.good()
	lost := c.lost(good)
	c.releaseWithin(good)
	if lost == nil {
		lost = c.releaseLost
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

// good is how long all locks are still good by their own clocks. One that has no clock is good for what was declared, or
// forever if it is renewed.
func (c *call) good() time.Duration {
	good := Forever
	for _, hold := range c.holds {
		if h, ok := hold.(interface{ Remaining() time.Duration }); ok {
			good = min(good, h.Remaining())
		} else {
			good = min(good, c.declared())
		}
	}
	return good
}

// declared is how long a lock that was never extended is good at most, counted from when the last one was taken.
func (c *call) declared() time.Duration {
	end := Forever
	if c.spec.Lease > 0 {
		end = c.spec.Lease
	}
	if c.spec.MaxHold > 0 {
		end = min(end, c.spec.MaxHold)
	}
	if end == Forever {
		return Forever
	}
	return max(0, end-time.Since(c.since))
}

// lost is how one of our locks was lost, if it was; good is for how long none will be. The loss of a lock that the caller
// holds ends the work's context too, but is the caller's to report.
func (c *call) lost(good time.Duration) error {
	cause := context.Cause(&c.work)
	if errors.Is(cause, lock.ErrLost) && !errors.Is(cause, context.Cause(c.ctx)) {
		return cause
	}
	if good > 0 {
		return nil
	}
	held := time.Since(c.since)
	if c.spec.MaxHold > 0 && held >= c.spec.MaxHold {
		return &lock.LostError{Held: held, Reason: lock.ErrMaxHold}
	}
	return &lock.LostError{Held: held, Reason: errLeaseOver}
}

// release gives back what is still held, where the work did not return.
func (c *call) release() { c.releaseWithin(Forever) }

// releaseWithin gives back all locks, each once and all under one bound, whatever becomes of the others. A loss that a
// locker answers while the locks are good happened during the work.
func (c *call) releaseWithin(good time.Duration) {
	holds := c.holds
	c.holds = nil
	if len(holds) == 0 {
		return
	}
	c.releasing.caller, c.releasing.timeout = c.ctx, c.releaseTimeout
	defer c.releasing.stop()
	r := release{ctx: &c.releasing}
	if good < Forever {
		r.until = time.Now().Add(good)
	}
	r.all(c.locker, holds)
	c.event.Release, c.releaseLost = errors.Join(r.errs...), r.lost
	if c.locked {
		c.event.Held = time.Since(c.since)
		c.recent.add(c.event.Held)
	}
}

// release is the giving back of the locks of one call.
type release struct {
	ctx   context.Context
	until time.Time // until when the locks are good; zero is forever

	mu       sync.Mutex
	errs     []error
	lost     error // the first loss that is the work's
	panicked any
}

// all gives back holds. A panic of the locker reaches the caller when all are done.
func (r *release) all(l lock.Locker, holds []lock.Hold) {
	if len(holds) == 1 {
		r.note(holds[0].Release(r.ctx))
		return
	}
	slices.Reverse(holds) // so that a locker which gives them back one by one leaves the last one first
	if l, ok := l.(interface {
		ReleaseAll(ctx context.Context, holds []lock.Hold) error
	}); ok {
		r.note(l.ReleaseAll(r.ctx, holds))
		return
	}
	var releases sync.WaitGroup
	for _, hold := range holds {
		releases.Go(func() { r.one(hold) })
	}
	releases.Wait()
	if r.panicked != nil {
		panic(r.panicked)
	}
}

// one gives back hold in a goroutine of its own, where a panic would end the program.
func (r *release) one(hold lock.Hold) {
	defer func() {
		if v := recover(); v != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.panicked = v
		}
	}()
	r.note(hold.Release(r.ctx))
}

// note writes down what the locker has answered.
func (r *release) note(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
	gone := errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrNotHeld)
	if gone && r.lost == nil && (r.until.IsZero() || time.Now().Before(r.until)) {
		r.lost = err
	}
}
