package redisson

import (
	"context"
	"fmt"
	"time"
)

// Extend gives a hold with a lease of its own another d from now on, if it would end sooner. A hold that is renewed needs
// that not; MaxHold stays. The errors are those of Release.
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
