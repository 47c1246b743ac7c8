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
	if err := h.over(); err != nil {
		return err
	}
	if err := h.takeTurn(ctx); err != nil {
		return err
	}
	defer h.claim.seat.pass()
	rest, err := h.leave()
	if err != nil {
		return err
	}
	h.cancel(nil)
	defer h.c.rise(h.claim.seat)
	if rest > 0 {
		return h.releasePart(ctx, rest)
	}
	return h.releaseWhole(ctx)
}

// takeTurn waits for the scripts of the same owner that are under way. If ctx does not last that long, the release goes
// on without its caller.
func (h *hold) takeTurn(ctx context.Context) error {
	turn := h.claim.seat.turn
	select {
	case <-turn:
		return nil
	default:
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		h.c.start(func() { _ = h.Release(context.WithoutCancel(ctx)) })
		return context.Cause(ctx)
	}
}

// leave ends the hold on this side, before anything is asked, so that no renewal follows. It returns how many holds the
// owner has left.
func (h *hold) leave() (rest int, err error) {
	if err := h.over(); err != nil {
		return 0, err
	}
	dog, cl := h.c.watchdog, h.claim
	dog.mu.Lock()
	defer dog.mu.Unlock()
	h.end(released)
	if rest = len(cl.holds); rest > 0 {
		cl.beginSetting(leaseAfter(cl.holds, dog.timeout))
	}
	dog.watch(cl)
	return rest, nil
}

// over tells why there is nothing to release, if so. It answers the first Release of a lost hold with the loss; its work
// has ended by now, so what the lock may still have in Redis need not stay until its lease ends.
func (h *hold) over() error {
	dog := h.c.watchdog
	dog.mu.Lock()
	defer dog.mu.Unlock()
	switch h.state {
	case released:
		return lock.ErrNotHeld
	case lost:
		h.state = released
		if len(h.claim.holds) == 0 {
			h.c.undo(h.claim, dog.timeout)
		}
		return h.cause
	}
	return nil
}

// releasePart sets the count to rest.
func (h *hold) releasePart(ctx context.Context, rest int) error {
	cl, dog := h.claim, h.c.watchdog
	dog.mu.Lock()
	lease := leaseAfter(cl.holds, dog.timeout)
	dog.mu.Unlock()
	done := func(a answer) { h.c.endSetting(cl, a, lease) }
	a := h.c.ask(ctx, cl.release(rest, lease), done)
	if a.late {
		return a.err
	}
	done(a)
	return h.verdict(a)
}

// releaseWhole frees the lock.
func (h *hold) releaseWhole(ctx context.Context) error {
	again := func(a answer) {
		if a.err != nil {
			h.c.lockedUndo(h.claim, h.c.watchdog.timeout)
		}
	}
	a := h.c.ask(ctx, h.claim.release(0, 0), again)
	if a.late {
		return a.err
	}
	again(a)
	return h.verdict(a)
}

// verdict reads the answer to a release. A lock that is not there any more was lost, unless an attempt that was not
// answered may have been the one that released it.
func (h *hold) verdict(a answer) error {
	if a.err == nil && a.values[0] == 0 && !a.inDoubt {
		return &lock.LostError{Held: time.Since(h.since), Reason: errGone}
	}
	return a.err
}

// sendBatch asks Redis about many claims in one pipeline.
func (c *Client) sendBatch(ctx context.Context, batch []errand) []outcome {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	calls := make([]call, len(batch))
	for i, e := range batch {
		if e.lease == 0 {
			calls[i] = e.claim.release(0, 0)
		} else {
			calls[i] = e.claim.renew(e.lease)
		}
	}
	outcomes := make([]outcome, len(batch))
	for i, a := range c.pipeline(ctx, calls) {
		outcomes[i] = outcome{done: a.err == nil && a.values[0] == 1, err: a.err}
	}
	return outcomes
}
