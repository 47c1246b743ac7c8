package redisson

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// The reasons why a RedLock fails or is lost, beside those of the single servers.
var (
	errSilent   = errors.New("no answer in time")
	errMinority = errors.New("no longer held by the majority of the servers")
)

// redHold is a round of questions and, if the majority agrees, the hold that comes of it. Answers that come after the
// majority's add to it.
type redHold struct {
	c      *redCall
	since  time.Time // before the first question
	ctx    context.Context
	cancel context.CancelCauseFunc
	// questions is the context of the members' holds. It does not end with the caller's, so that its end is never taken for
	// that of a member.
	questions context.Context
	stop      context.CancelFunc
	decided   context.Context // ends when the outcome is certain
	settle    context.CancelFunc

	// The mutex of the call guards the rest.
	over     bool // given up or given back
	parts    []lock.Hold
	kept     int     // of parts, not lost
	busy     int     // members that others have
	failures []error // of the members that did not answer or refused
	ends     *time.Timer
	cause    error // why it was lost
}

// begin returns the members to ask. The method answered must follow for each.
func (h *redHold) begin() (able []*Lock) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	for _, member := range h.c.r.locks {
		if h.c.asked[member] {
			h.failures = append(h.failures, errSilent)
		} else {
			able = append(able, member)
		}
	}
	if h.decide(); len(able) < h.c.r.quorum {
		return nil
	}
	for _, member := range able {
		h.c.asked[member] = true
	}
	return able
}

// add notes what a member has answered. It returns false for an answer that came too late to be of use.
func (h *redHold) add(part lock.Hold, err error) bool {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	switch {
	case h.over:
		return false
	case errors.Is(err, lock.ErrBusy):
		h.busy++
	case err != nil:
		h.failures = append(h.failures, err)
	default:
		h.parts = append(h.parts, part)
		h.kept++
		context.AfterFunc(part.Context(), func() { h.miss(context.Cause(part.Context())) })
	}
	h.decide()
	return true
}

// decide settles the round once the majority has agreed, or can't any more and it is certain why: because a majority has
// answered, or because none will. The mutex is held.
func (h *redHold) decide() {
	n, quorum := len(h.c.r.locks), h.c.r.quorum
	possible := n - h.busy - len(h.failures) - (len(h.parts) - h.kept)
	answered := len(h.parts)+h.busy >= quorum || n-len(h.failures) < quorum
	if h.kept >= quorum || possible < quorum && answered {
		h.settle()
	}
}

// miss notes that a member was lost.
func (h *redHold) miss(cause error) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	h.kept--
	if h.decide(); h.kept < h.c.r.quorum {
		h.lose(fmt.Errorf("%w: %w", errMinority, cause))
	}
}

// lose ends the hold if there is one. The mutex is held.
func (h *redHold) lose(reason error) {
	if h.ctx != nil && h.cause == nil && !h.over {
		h.cause = &lock.LostError{Held: time.Since(h.since), Reason: reason}
		h.cancel(h.cause)
	}
}

// lapse is called when the lease is over.
func (h *redHold) lapse() {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	h.lose(errLease)
}

// conclude makes a hold of the round, or returns why it is none.
func (h *redHold) conclude() error {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	valid := goodFor(h.c.lease) - drift(h.c.lease) - time.Since(h.since) // a lease counts from before the first question, whoever answered last
	switch {
	case h.c.ctx.Err() != nil:
		return context.Cause(h.c.ctx)
	case h.kept < h.c.r.quorum:
		return h.refusal()
	case h.c.lease > 0 && valid <= 0: // a member that is renewed looks after itself
		return errTooLate
	}
	h.ctx, h.cancel = context.WithCancelCause(lock.WithHold(context.WithValue(h.c.ctx, h.c.r.key, h), h, h.unreleased))
	if h.c.lease > 0 {
		h.ends = time.AfterFunc(valid, h.lapse)
	}
	return nil
}

// refusal returns why there is no majority. The lock is out of reach if too many servers refuse, and busy if a majority
// has answered at all. The caller holds the mutex.
func (h *redHold) refusal() error {
	n, answered, refused := len(h.c.r.locks), len(h.parts)+h.busy, 0
	if answered >= h.c.r.quorum {
		return &lock.BusyError{Waited: time.Since(h.c.start)}
	}
	for _, err := range h.failures {
		if lasting(err) || errors.Is(err, ErrClosed) {
			refused++
		}
	}
	if h.c.never = n-refused < h.c.r.quorum; answered+len(h.failures) < n {
		h.failures = append(h.failures, errSilent)
	}
	return fmt.Errorf("redisson: only %d of %d servers answered, and %d refused: %w", answered, n, refused, errors.Join(h.failures...))
}

// unreleased is for the chain of contexts, where h stands for its parts, also for those that come late. After a loss, those that are left
// are still held.
func (h *redHold) unreleased() bool {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	return !h.over
}

// within returns the hold of a client's lock of that name, live or not, and nil if the lock has not answered (yet).
func (h *redHold) within(c *Client, name string) *hold {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	for _, p := range h.parts {
		if own := c.within(p, name); own != nil {
			return own
		}
	}
	return nil
}

// Context implements [lock.Hold].
func (h *redHold) Context() context.Context { return h.ctx }

// Release implements [lock.Hold].
func (h *redHold) Release(context.Context) error {
	parts, cause, ok := h.finish()
	if !ok {
		return lock.ErrNotHeld
	}
	errs := make(chan error, len(parts))
	for _, p := range parts {
		go func() { errs <- p.Release(context.Background()) }()
	}
	if cause != nil {
		return cause
	}
	enough := len(parts) - (len(h.c.r.locks) - h.c.r.quorum) // of them free, and others can have the majority
	freed, gone, failures := h.outcome(errs, enough)
	switch {
	case len(parts)-gone < h.c.r.quorum:
		return &lock.LostError{Held: time.Since(h.since), Reason: errMinority}
	case freed+gone >= enough:
		return nil
	}
	return fmt.Errorf("redisson: only %d of %d servers released the lock: %w", freed, len(parts), errors.Join(failures...))
}

// outcome counts, as far as it is known soon, the parts that are released, and those that were not held any more.
func (h *redHold) outcome(errs <-chan error, enough int) (freed, gone int, failures []error) {
	silence := time.After(mostSilence)
	for patient := true; freed+gone+len(failures) < cap(errs) && freed < h.c.r.quorum && (patient || freed+gone < enough); {
		select {
		case <-silence:
			patient = false
		case err := <-errs:
			switch {
			case err == nil:
				freed++
			case errors.Is(err, lock.ErrLost), errors.Is(err, lock.ErrNotHeld):
				gone++
			default:
				failures = append(failures, err)
			}
		}
	}
	return freed, gone, failures
}

// finish ends the hold or round on this side, once. It returns the parts to give back, and why the hold had been lost.
func (h *redHold) finish() (parts []lock.Hold, cause error, ok bool) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if h.over {
		return nil, nil, false
	}
	h.over = true
	h.stop() // the questions under way; the clients undo their effects
	if h.cancel != nil {
		h.cancel(nil)
	}
	if h.ends != nil {
		h.ends.Stop()
	}
	return h.parts, h.cause, true
}
