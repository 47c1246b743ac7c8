package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/lock"
)

// errLeaseOver is why a lock is lost whose own clock says so before anybody else did.
var errLeaseOver = errors.New("the lease was over when the work returned")

// settle gives the locks back after the work returned err, and finds out whether they were held to its end. A lock that
// is good when the work returns is not lost, even if its release fails.
func (c *call) settle(err error) (outcome string, _ error) {
	c.judge()
	if c.lost == nil && err == nil && c.spec.Hold > 0 {
		c.keep = c.spec.Hold - (clock.Now() - c.since)
	}
	c.release()
	lost := c.lost
	switch {
	case lost == nil && err == nil:
		return OutcomeOK, nil
	case lost == nil && c.stopped(err):
		return OutcomeReplaced, c.fail(ErrReplaced, err)
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

// judge finds out, when the work has returned, whether the locks of c are lost, and those of all guards before it in a
// Stack, whether or not the guards between them have locks: the time after that is not the work's anymore.
func (c *call) judge() {
	for ; c != nil; c = c.above {
		if !c.locked || c.judged {
			continue
		}
		c.judged = true
		good := c.good()
		if good <= 0 || c.work.Err() != nil {
			c.lost = c.loss(good)
		}
		if good < Forever {
			c.until = clock.Now() + good
		}
	}
}

// good is how long all locks are still good by their own clocks. A lock without a clock is good for the declared time,
// or forever if it is renewed.
func (c *call) good() time.Duration {
	good := Forever
	for _, hold := range c.work.holds {
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
	end := min(cmp.Or(c.request.Lease, Forever), cmp.Or(c.spec.MaxHold, Forever))
	if end == Forever || c.work.extended.Load() {
		return Forever
	}
	return max(0, end-(clock.Now()-c.since))
}

// loss is how one of our locks was lost, if it was; good is for how long none will be. The loss of a lock that the caller
// holds ends the work's context too, but is the caller's to report.
func (c *call) loss(good time.Duration) error {
	if cause := context.Cause(&c.work); errors.Is(cause, lock.ErrLost) && !errors.Is(cause, context.Cause(c.ctx)) {
		return cause
	}
	if good > 0 {
		return nil
	}
	held := clock.Now() - c.since
	if c.spec.MaxHold > 0 && held >= c.spec.MaxHold {
		return &lock.LostError{Held: held, Reason: lock.ErrMaxHold}
	}
	return &lock.LostError{Held: held, Reason: errLeaseOver}
}

// release gives back all locks, each once and all under one bound, even if others fail. A loss that a locker answers
// while the locks are good happened during the work.
func (c *call) release() {
	if c.shared == nil || len(c.work.holds) == 0 || c.released {
		return
	}
	last := c // of those before it whose locks are given back with these
	for c.givesBack() && last.above != nil && last.above.givesBack() {
		last = last.above
	}
	holds := c.work.holds
	for b := c; b != last.above; b = b.above {
		if b != c {
			holds = append(slices.Clone(b.work.holds), holds...)
		}
		b.released = true
		b.work.over.Store(true)
	}
	c.releasing.parent, c.releasing.timeout = c.ctx, c.releaseTimeout //nolint:fatcontext // one a call
	defer c.releasing.stop()
	var err error
	if len(holds) == 1 {
		err = giveBack(&c.releasing, holds[0], c.keep)
	} else if all, ok := c.locker.(releaser); ok && c.keep <= 0 {
		holds = slices.Clone(holds) // others may read it
		slices.Reverse(holds)       // the last one first, where it gives them back one by one
		err = all.ReleaseAll(&c.releasing, holds)
	} else {
		c.releaseTogether(holds)
	}
	for b := c; b != last.above; b = b.above {
		b.gone(err)
	}
}

// givesBack reports whether the locks of a call are given back with those of the guards behind it. If one of them is
// lost, all of these calls report that: the work did not have all of its locks.
func (c *call) givesBack() bool { return c.joined && c.locked && !c.released && c.spec.Hold == 0 }

// gone notes that the locks are given back, and the locker's answer.
func (c *call) gone(err error) {
	if err != nil {
		c.answered(err, clock.Now() < c.until)
	}
	if c.locked && (c.record != nil || c.recent.due()) {
		held := clock.Now() - c.since
		c.recent.add(held + max(0, c.keep))
		if c.record != nil {
			c.record.Held = held
		}
	}
}

// keeper is a hold that can stand in the way of strangers for some time after its release.
type keeper interface {
	Keep(ctx context.Context, d time.Duration) error
}

// giveBack releases hold, or keeps it if keep is positive.
func giveBack(ctx context.Context, hold lock.Hold, keep time.Duration) error {
	if keep > 0 {
		return hold.(keeper).Keep(ctx, keep)
	}
	return hold.Release(ctx)
}

// canKeep refuses holds that can't be kept, where that is declared.
func (s *Spec) canKeep(holds []lock.Hold) error {
	if s.Hold == 0 {
		return nil
	}
	for _, hold := range holds {
		if _, ok := hold.(keeper); !ok {
			return fmt.Errorf("%w: hold=%v, but locks of this locker can't be kept", lock.ErrUnsupported, s.Hold)
		}
	}
	return nil
}

// stopped reports whether err of the work says that a newer call has come. An adapter may have answered the client by
// then, and ended the caller's context.
func (c *call) stopped(err error) bool {
	if !c.turn.replaced() || errors.Is(context.Cause(c.ctx), ErrReplaced) { // by a call around this one
		return false
	}
	return errors.Is(err, ErrReplaced) || c.ctx.Err() == nil && errors.Is(err, context.Canceled)
}

// releaser is a locker that can give back several locks at once.
type releaser interface {
	ReleaseAll(ctx context.Context, holds []lock.Hold) error
}

// answered records the error of a release, while the locks were good or later.
func (c *call) answered(err error, good bool) {
	if isLoss(err) && good && c.lost == nil {
		c.lost = err
	}
	a := c.record
	if a == nil {
		return
	}
	if a.Release != nil {
		err = errors.Join(a.Release, err)
	}
	a.Release = err
}

// releaseTogether gives back all of holds at once. A panic of the locker reaches the caller when all are done.
func (c *call) releaseTogether(holds []lock.Hold) {
	ctx, keep := &c.releasing, c.keep // as goroutines can't have c
	answers, panicked := together(len(holds), func(i int) error { return giveBack(ctx, holds[i], keep) })
	for _, a := range answers {
		if a.err != nil {
			c.answered(a.err, a.at < c.until)
		}
	}
	if panicked != nil {
		panic(panicked)
	}
}

// answer is how one of several calls of a locker at once ended.
type answer struct {
	err      error
	at       time.Duration // by the clock
	panicked any
}

var errNoAnswer = errors.New("the locker did not return")

// together calls f for each number below n, each in a goroutine of its own, and waits for all. It returns the first panic
// among them, too, by number.
func together(n int, f func(i int) error) (answers []answer, panicked any) {
	answers = make([]answer, n)
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			a := &answers[i]
			defer func() { a.at, a.panicked = clock.Now(), recover() }()
			a.err = errNoAnswer // unless f returns
			a.err = f(i)
		})
	}
	calls.Wait()
	for _, a := range answers {
		panicked = cmp.Or(panicked, a.panicked)
	}
	return answers, panicked
}
