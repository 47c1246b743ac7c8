package redisson

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Why a RedLock can't be had or is lost, beside what the single servers say.
var (
	errSilent   = errors.New("no answer in time")
	errMinority = errors.New("no longer held by the majority of the servers")
	errRedLate  = errors.New("redisson: the majority of the servers took longer to answer than the lease allows")
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
	decided   chan struct{}

	// The mutex of the call guards the rest.
	state    redState
	parts    []lock.Hold
	kept     int     // of parts, not lost
	busy     int     // members that others have
	failures []error // of the members that could not be asked
	certain  bool    // decided is closed
	ends     *time.Timer
	cause    error // why it was lost
}

type redState int

const (
	redAsking redState = iota
	redHeld
	redLost
	redOver // given up or given back
)

func newRedHold(c *redCall) *redHold {
	h := &redHold{c: c, since: time.Now(), decided: make(chan struct{})}
	h.questions, h.stop = context.WithCancel(context.WithoutCancel(c.ctx))
	return h
}

// begin returns the members to ask. The method answered must follow for each.
func (h *redHold) begin() (able []*Lock) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	for _, member := range h.c.r.locks {
		if h.c.open[member] == nil {
			able = append(able, member)
		} else {
			h.failures = append(h.failures, errSilent)
		}
	}
	if h.decide(); len(able) < h.c.r.quorum {
		return nil
	}
	for _, member := range able {
		h.c.open[member] = make(chan struct{})
	}
	return able
}

// add notes what a member has answered. It returns false for an answer that came too late to be of use.
func (h *redHold) add(part lock.Hold, err error) bool {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	switch {
	case h.state == redOver:
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

// decide closes decided once the majority has agreed, or can't any more and it is certain why: because a majority has
// answered, or because none will. The mutex is held.
func (h *redHold) decide() {
	n, quorum := len(h.c.r.locks), h.c.r.quorum
	possible := n - h.busy - len(h.failures) - (len(h.parts) - h.kept)
	answered := len(h.parts)+h.busy >= quorum || n-len(h.failures) < quorum
	if !h.certain && (h.kept >= quorum || possible < quorum && answered) {
		h.certain = true
		close(h.decided)
	}
}

// miss notes that a member was lost.
func (h *redHold) miss(cause error) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	h.kept--
	switch {
	case h.state == redAsking:
		h.decide()
	case h.state == redHeld && h.kept < h.c.r.quorum:
		h.lose(fmt.Errorf("%w: %w", errMinority, cause))
	}
}

// lose ends the hold. The mutex is held.
func (h *redHold) lose(reason error) {
	h.state = redLost
	h.cause = &lock.LostError{Held: time.Since(h.since), Reason: reason}
	h.cancel(h.cause)
}

// lapse is called when the lease is over.
func (h *redHold) lapse() {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if h.state == redHeld {
		h.lose(errLease)
	}
}

// conclude makes a hold of the round, or says why it is none.
func (h *redHold) conclude() error {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	valid := h.validity()
	switch {
	case h.c.ctx.Err() != nil:
		return context.Cause(h.c.ctx)
	case h.kept < h.c.r.quorum:
		return h.refusal()
	case valid <= 0:
		return errRedLate
	}
	h.state = redHeld
	h.ctx, h.cancel = context.WithCancelCause(lock.WithHold(context.WithValue(h.c.ctx, h.c.r.key, h), h, h.unreleased))
	if h.c.lease > 0 {
		h.ends = time.AfterFunc(valid, h.lapse)
	}
	return nil
}

// validity is for how long the lock may be relied on from now: a lease that is not renewed counts from before the first
// question, whoever answered last. Otherwise each member looks after its own.
func (h *redHold) validity() time.Duration {
	if h.c.lease == 0 {
		return 1
	}
	return goodFor(h.c.lease) - drift(h.c.lease) - time.Since(h.since)
}

// hopeless reports whether the failure of a member will not pass: its server or its client refuses, or the client is closed.
func hopeless(err error) bool {
	return errors.Is(err, lock.ErrRefused) || errors.Is(err, lock.ErrUnsupported) || errors.Is(err, ErrClosed)
}

// refusal is why there is no majority: none is to be had if too many refuse, and it is busy if a majority has answered at all. The
// mutex is held.
func (h *redHold) refusal() error {
	n, quorum := len(h.c.r.locks), h.c.r.quorum
	refused := slices.DeleteFunc(slices.Clone(h.failures), func(err error) bool { return !hopeless(err) })
	if h.c.never = n-len(refused) < quorum; h.c.never {
		return fmt.Errorf("redisson: %d of %d locks can't be had: %w", len(refused), n, errors.Join(refused...))
	}
	if answered := len(h.parts) + h.busy; answered < quorum {
		failures := slices.Clone(h.failures)
		if answered+len(failures) < n {
			failures = append(failures, errSilent)
		}
		return fmt.Errorf("redisson: only %d of %d servers answered: %w", answered, n, errors.Join(failures...))
	}
	return &lock.BusyError{Waited: time.Since(h.c.start)}
}

// unreleased is for the chain of contexts, where h stands for its parts, also for those that come late. After a loss, those that are left
// are still held.
func (h *redHold) unreleased() bool {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	return h.state != redOver
}

// within returns the hold of a client's lock of that name, live or not. If the lock was asked for and has not answered yet, within returns
// what is closed then.
func (h *redHold) within(c *Client, name string) (part *hold, open <-chan struct{}) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	for _, p := range h.parts {
		if own := p.(interface{ inner() *hold }).inner(); own.c == c && own.holder.name() == name {
			return own, nil
		}
	}
	for member, open := range h.c.open {
		if member.c == c && member.key == name {
			return nil, open
		}
	}
	return nil, nil
}

// Context implements [lock.Hold].
func (h *redHold) Context() context.Context { return h.ctx }

// Release implements [lock.Hold].
func (h *redHold) Release(context.Context) error { return h.release() }

// release is Unlock's.
func (h *redHold) release() error {
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
	t := tally{parts: len(parts), servers: len(h.c.r.locks), quorum: h.c.r.quorum}
	silence := time.After(mostSilence)
	for heard, patient := 0, true; heard < len(parts) && t.freed < t.quorum && (patient || !t.free()); {
		select {
		case err := <-errs:
			heard++
			t.count(err)
		case <-silence:
			patient = false
		}
	}
	switch {
	case t.parts-t.gone < t.quorum:
		return &lock.LostError{Held: time.Since(h.since), Reason: errMinority}
	case t.free():
		return nil
	}
	return fmt.Errorf("redisson: only %d of %d servers released the lock: %w", t.freed, t.parts, errors.Join(t.failures...))
}

// tally is the outcome of a release on several servers, as far as it is known.
type tally struct {
	servers, quorum int
	parts           int // had the lock, to the best of our knowledge
	freed, gone     int // did have it, did not have it
	failures        []error
}

func (t *tally) count(err error) {
	switch {
	case err == nil:
		t.freed++
	case errors.Is(err, lock.ErrLost), errors.Is(err, lock.ErrNotHeld):
		t.gone++
	default:
		t.failures = append(t.failures, err)
	}
}

// free reports whether others can have the majority by now.
func (t *tally) free() bool { return t.servers-t.parts+t.freed+t.gone >= t.quorum }

// finish ends the hold or round on this side, once. It returns what is to be given back, and why the hold had been lost.
func (h *redHold) finish() (parts []lock.Hold, cause error, ok bool) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if h.state == redOver {
		return nil, nil, false
	}
	h.state = redOver
	h.stop() // the questions under way; what they have done is undone by the clients
	if h.cancel != nil {
		h.cancel(nil)
	}
	if h.ends != nil {
		h.ends.Stop()
	}
	return h.parts, h.cause, true
}
