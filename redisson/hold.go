package redisson

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Context is lock.Hold's.
func (h *hold) Context() context.Context { return h.ctx }

// Release is lock.Hold's. The script goes out even if ctx has ended; ctx bounds only the wait for its answer, and so does
// the client's timeout. When the answer is an error, the watchdog goes on trying to remove the lock until its lease ends.
func (h *hold) Release(ctx context.Context) error {
	if err := h.takeTurn(ctx); err != nil {
		return err
	}
	defer h.claim.seat.pass()
	rest, err := h.leave()
	if err != nil {
		return err
	}
	h.cancel(nil)
	if rest > 0 {
		return h.releasePart(ctx)
	}
	return h.releaseWhole(ctx)
}

// takeTurn waits for the scripts of the same owner that are under way, unless there is nothing to release. If ctx or the
// client's timeout does not last that long, the release goes on without its caller.
func (h *hold) takeTurn(ctx context.Context) error {
	if err := h.over(); err != nil {
		return err
	}
	turn := h.claim.seat.turn
	select {
	case <-turn:
		return nil
	default:
	}
	timeout := time.NewTimer(h.c.timeout)
	defer timeout.Stop()
	err := h.c.errTimeout()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timeout.C:
	}
	if err := h.over(); err != nil { // then its owner may be waiting for the lock, in line with others
		return err
	}
	h.c.start(func() { _ = h.Release(context.WithoutCancel(ctx)) })
	return err
}

// leave ends the hold on this side, before anything is asked, so that no renewal follows. It returns how many holds the
// owner has left.
func (h *hold) leave() (rest int, err error) {
	dog, cl := h.c.watchdog, h.claim
	dog.mu.Lock()
	defer dog.mu.Unlock()
	if err := h.overLocked(); err != nil {
		return 0, err
	}
	h.end(released)
	dog.watch(cl)
	return len(cl.holds), nil
}

// over tells why there is nothing to release, if so.
func (h *hold) over() error {
	h.c.watchdog.mu.Lock()
	defer h.c.watchdog.mu.Unlock()
	return h.overLocked()
}

// overLocked answers the first Release of a lost hold with the loss; its work has ended by now, so what the lock may still
// have in Redis need not stay until its lease ends.
func (h *hold) overLocked() error {
	switch h.state {
	case released:
		return lock.ErrNotHeld
	case lost:
		h.state = released
		if len(h.claim.holds) == 0 {
			h.c.undo(h.claim)
		}
		return h.cause
	}
	return nil
}

// releasePart leaves the owner's other holds.
func (h *hold) releasePart(ctx context.Context) error {
	cl, dog := h.claim, h.c.watchdog
	dog.mu.Lock()
	lease := leaseFor(cl.holds, dog.timeout)
	setting, exit := cl.set(lease), cl.family.exit(cl, lease)
	dog.watch(cl)
	dog.mu.Unlock()
	a := h.c.ask(ctx, exit, func(answer) {})
	dog.mu.Lock()
	losses := setting.answered(dog, a)
	if len(cl.holds) == 0 { // the rest was lost meanwhile, and must not get a new lease by this
		h.c.undo(cl)
	}
	dog.watch(cl)
	dog.mu.Unlock()
	tell(losses)
	if a.err == nil && a.values[0] == 0 {
		return h.gone()
	}
	return a.err
}

// releaseWhole frees the lock. A lock that is not there any more was lost, unless an attempt that was not answered may have
// been the one that released it.
func (h *hold) releaseWhole(ctx context.Context) error {
	again := func(a answer) {
		h.c.watchdog.mu.Lock()
		defer h.c.watchdog.mu.Unlock()
		if a.err != nil || h.claim.doubt {
			h.c.undo(h.claim)
		}
	}
	h.c.watchdog.mu.Lock()
	exit := h.claim.family.exit(h.claim, 0)
	h.c.watchdog.mu.Unlock()
	a := h.c.ask(ctx, exit, again)
	if !a.late {
		again(a)
	}
	if a.err == nil && a.values[0] == 0 && !a.inDoubt {
		return h.gone()
	}
	return a.err
}

func (h *hold) gone() error {
	return &lock.LostError{Held: time.Since(h.since), Reason: errGone}
}

// sendBatch asks Redis about many claims in one pipeline.
func (c *Client) sendBatch(ctx context.Context, batch []errand) []outcome {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	calls := make([]call, len(batch))
	for i, e := range batch {
		calls[i] = e.call
	}
	outcomes := make([]outcome, len(batch))
	for i, a := range c.pipeline(ctx, calls) {
		outcomes[i] = outcome{done: a.err == nil && a.values[0] == 1, err: a.err}
	}
	return outcomes
}
