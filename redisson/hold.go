package redisson

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// holdKey finds in a context the innermost hold of a lock, also one that has ended.
type holdKey struct {
	c    *Client
	name string
	kind lock.Kind
}

// open makes the context of a hold that is about to be admitted.
func (h *hold) open(ctx context.Context) {
	ctx = context.WithValue(ctx, holdKey{h.c, h.holder.name, h.kind}, h)
	h.ctx, h.cancel = context.WithCancelCause(lock.WithHold(ctx, h.public(), h.live))
}

// public is h as its owner sees it.
func (h *hold) public() lock.Hold {
	if h.kind == lock.Fenced {
		return fencedHold{h}
	}
	return h
}

func (h *hold) inner() *hold { return h }

func (h *hold) live() bool { return h.c.claims.live(h) }

// Context implements [lock.Hold].
func (h *hold) Context() context.Context { return h.ctx }

// Release implements [lock.Hold]. The script goes out even if ctx has ended; ctx bounds only the wait for its answer, and so
// does the client's timeout. When the answer is an error, the watchdog goes on trying to remove the lock until its lease ends.
func (h *hold) Release(ctx context.Context) error { return h.release(ctx, 0) }

// Keep is Release, except that nobody gets the lock for another d: for work that is done once an interval. A d of 0 or less is
// Release. If the hold is a re-entry, the time counts from now, too, but the outer hold goes on.
func (h *hold) Keep(ctx context.Context, d time.Duration) error { return h.release(ctx, max(d, 0)) }

func (h *hold) release(ctx context.Context, kept time.Duration) error {
	d, lost := h.c.claims.beginRelease(h, kept)
	if d.call.script == nil {
		return lost
	}
	return cmp.Or(lost, h.c.claims.endRelease(h, d, h.c.road.askSoon(ctx, d.call)))
}

// Extend gives a hold with a lease of its own another d from now on, if it would end sooner. A hold that is renewed has
// no need of it; MaxHold stays. The errors are those of Release.
func (h *hold) Extend(ctx context.Context, d time.Duration) error {
	if d < time.Millisecond {
		return fmt.Errorf("redisson: a hold can't be extended by %v: want at least 1ms", d)
	}
	update, err := h.c.claims.beginExtension(h, d)
	if err != nil {
		return err
	}
	return h.c.claims.endExtension(h, d, update, h.c.road.askSoon(ctx, update.call))
}

// Remaining returns how long the hold is still good if it is not renewed, and 0 once it has ended. It does not ask Redis.
func (h *hold) Remaining() time.Duration { return h.c.claims.remaining(h) }

// beginExtension prepares an extension of h by d. The method endExtension must follow.
func (s *claims) beginExtension(h *hold, d time.Duration) (update task, err error) {
	s.mu.Lock()
	defer s.unlock()
	if err := s.overLocked(h, time.Now()); err != nil {
		return update, err
	}
	return s.updateLocked(h.holder, d, renewal), nil
}

// endExtension lets h go on for d from when Redis was asked, if that is longer than it would.
func (s *claims) endExtension(h *hold, d time.Duration, update task, a answer) error {
	s.mu.Lock()
	defer s.unlock()
	s.applyLocked(h.holder, a, update.version)
	err := s.overLocked(h, time.Now())
	switch {
	case err != nil:
	case a.gone(): // overtaken by another change
		err = h.lostError(time.Now(), errGone)
	case a.err == nil && h.lease > 0:
		h.lastFor(d, a.sent)
	default:
		err = a.err
	}
	s.placeLocked(h.holder)
	return err
}
