package worker

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/faults/history"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// The settings of the synchronizers of a round; the program sets them before the round.
const (
	// PermitLease is that of a permit of an expirable semaphore. It ends without notice, so it is longer than any fault.
	PermitLease = 15 * time.Second
	// RatePermits may be taken from a rate limiter within RateInterval.
	RatePermits  = 10
	RateInterval = 100 * time.Millisecond
)

// semaphore takes one permit, which nothing but its release ends.
type semaphore struct{ *redisson.Semaphore }

func (s semaphore) Lock(ctx context.Context) (context.Context, error) {
	return context.WithoutCancel(ctx), s.Acquire(ctx, 1)
}

func (s semaphore) TryLock(ctx context.Context, wait, _ time.Duration) (context.Context, bool, error) {
	ok, err := s.TryAcquire(ctx, 1, wait)
	return context.WithoutCancel(ctx), ok, err
}

func (s semaphore) Unlock(context.Context) error {
	return insist(func() error { return s.Release(context.Background(), 1) })
}

// insist makes a change until it is made, or goes on in the background: what Redis has refused, such as for want of a permission,
// is for the caller to repeat.
func insist(change func() error) error {
	for {
		err := change()
		if err == nil || errors.Is(err, redisson.ErrPending) || errors.Is(err, lock.ErrNotHeld) || errors.Is(err, redisson.ErrClosed) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// expirable takes one permit with a lease.
type expirable struct {
	*redisson.PermitExpirableSemaphore
}

func (s expirable) Lock(ctx context.Context) (context.Context, error) {
	id, err := s.Acquire(ctx, PermitLease)
	return context.WithValue(context.WithoutCancel(ctx), holdKey{}, id), err
}

func (s expirable) TryLock(ctx context.Context, wait, _ time.Duration) (context.Context, bool, error) {
	id, ok, err := s.TryAcquire(ctx, wait, PermitLease)
	return context.WithValue(context.WithoutCancel(ctx), holdKey{}, id), ok, err
}

func (s expirable) Unlock(held context.Context) error {
	return insist(func() error { return s.Release(context.Background(), held.Value(holdKey{}).(string)) })
}

// latch counts down, each caller once in a round for each latch, and waits for a while, at the end for as long as it takes.
func (c *caller) latch(t target, end bool) {
	l := c.w.clients[0].CountDownLatch(t.keys[0])
	for !c.countDown(l, t) && end {
		time.Sleep(10 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.rng.IntN(50))*time.Millisecond)
	defer cancel()
	if end {
		ctx = context.Background()
	}
	call := c.ask(t, attempt{wait: -1, deadline: history.Until(ctx)})
	c.passed(ctx, call, l.Await(ctx))
}

// countDown reports false if Redis refused that.
func (c *caller) countDown(l *redisson.CountDownLatch, t target) bool {
	if c.counted[t.keys[0]] {
		return true
	}
	e := history.Event{Op: history.Count, Kind: "latch", Keys: t.keys, Since: history.Now()}
	if err := l.CountDown(context.Background()); errors.Is(err, redisson.ErrPending) {
		e.Error = err.Error() // it goes on in the background
	} else if err != nil {
		return false
	}
	c.counted[t.keys[0]] = true
	c.w.log.Note(e)
	return true
}

// limiter takes some permits, or one of the rate of a lock.Permit.
func (c *caller) limiter(t target, _ bool) {
	n, wait := int64(1+c.rng.IntN(3)), time.Duration(c.rng.IntN(200))*time.Millisecond
	take := func() (bool, error) {
		return c.w.clients[0].RateLimiter(t.keys[0]).TryAcquire(context.Background(), n, wait)
	}
	if t.names == "pace" {
		p := permits{c.w.clients[0], lock.Request{Key: t.keys[0], Kind: lock.Permit, Rate: lock.Rate{Permits: RatePermits, Interval: RateInterval}}}
		n, take = 1, func() (bool, error) { _, ok, err := p.TryLock(context.Background(), wait, 0); return ok, err }
	}
	call := c.w.log.Ask(history.Event{Kind: t.kind, Keys: t.keys, Servers: c.servers(), Worker: c.id, Owner: c.owner, Wait: wait,
		Permits: int(n), Limit: RatePermits, Rate: RateInterval})
	ok, err := take()
	if err == nil && !ok {
		err = errBusy
	}
	c.passed(context.Background(), call, err)
}

var errBusy = errors.New("no permits in time")

// passed notes how a call ended that holds nothing.
func (c *caller) passed(ctx context.Context, call *history.Call, err error) {
	switch {
	case err == nil:
		call.Enter(context.Background(), 0)
		call.Exit()
	case errors.Is(err, errBusy), ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		call.Fail(history.Busy, err)
	default:
		call.Fail(history.Failed, err)
		time.Sleep(time.Duration(2+c.rng.IntN(15)) * time.Millisecond)
	}
}
