package redisson

import (
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// departure is what to ask Redis for a release.
type departure struct {
	task       // without a script: nothing
	whole bool // the holder goes, and not only a hold
	cut   bool // the lease is cut
}

// beginRelease ends h on this side before Redis is asked, so that no renewal follows. With a time to keep the lock for, h stays
// among the holds of its holder. The error says why h was lost. The method endRelease must follow if there is something to ask.
func (s *claims) beginRelease(h *hold, kept time.Duration) (d departure, err error) {
	s.mu.Lock()
	defer s.unlock()
	now := time.Now()
	ho := h.holder
	switch err := s.overLocked(h, now); {
	case h.state == lost:
		return s.dischargeLocked(h, now), err
	case err != nil:
		return d, err
	}
	s.active++
	s.endLocked(h, released, nil)
	if kept > 0 {
		h.lease, h.ends, h.over = kept, now.Add(kept), now.Add(kept)
		ho.holds = append(ho.holds, h)
	}
	ho.version++ // also for a partial release that is under way, and may find nothing any more
	if heir, until, ok := ho.heir(); ok {
		s.buryLocked(ho)
		d.whole, d.call = true, ho.family.exit(ho, heir, max(0, until.Sub(now)))
		return d, nil
	}
	why := renewal
	if d.cut = h.kind == lock.Write && kept == 0 && ho.counts().writes > 0; d.cut {
		why = shortening
		ho.beginCut(ho.need(now, s.timeout), now)
	}
	d.task = s.updateLocked(ho, 0, why)
	s.placeLocked(ho)
	return d, nil
}

// overLocked returns why h is not held any more, or nil.
func (s *claims) overLocked(h *hold, now time.Time) error {
	if h.state == held {
		s.expireLocked(h.holder, now)
	}
	if h.state == released {
		return lock.ErrNotHeld
	}
	return h.cause
}

// dischargeLocked is beginRelease for a lost hold. Its work has ended now, so whatever is left of the lock in Redis can go before its
// lease ends. The watchdog removes it, or the caller after a close.
func (s *claims) dischargeLocked(h *hold, now time.Time) (d departure) {
	h.state = released
	ho := h.holder
	ho.unreleased--
	if errors.Is(h.cause, ErrClosed) && s.awaited > 0 {
		s.awaited--
	}
	switch {
	case ho.unreleased > 0 || !ho.dead:
	case s.closed != nil:
		s.active++
		d.whole, d.call = true, ho.family.exit(ho, "", 0)
	default:
		s.removeLocked(ho, now)
	}
	return d
}

// endRelease notes what Redis has answered to a departure, and returns the error of the release.
func (s *claims) endRelease(h *hold, d departure, a answer) error {
	s.mu.Lock()
	defer s.unlock()
	s.active--
	now := time.Now()
	ho := h.holder
	if d.whole {
		if a.err != nil && !a.gone() || ho.inDoubt(now) {
			s.removeLocked(ho, now)
			if a.err != nil {
				ho.removal.call = d.call
			}
		}
	} else {
		switch {
		case d.cut && a.doubts > 0:
			ho.endCut(now.Add(s.grace))
		case d.cut:
			ho.endCut(now)
		}
		s.applyLocked(ho, a, d.version)
		s.emptyLocked(ho)
		s.placeLocked(ho)
	}
	switch {
	case !a.gone():
		return a.err
	case !d.whole && d.version != ho.version: // overtaken by another change
		return nil
	case !now.Before(ho.validUntil):
		return h.lostError(now, errLease)
	case d.whole && a.doubts > 0: // the attempt that was not answered has done it
		return nil
	}
	return h.lostError(now, errGone)
}

// applyLocked takes over the answer to an update of a holder that had this version of its counts. An older version may have been
// overtaken by a newer one, to which it does not apply.
func (s *claims) applyLocked(ho *holder, a answer, version int) {
	switch {
	case ho.dead:
	case a.yes():
		lease := ho.believe(a)
		if version == ho.version {
			ho.renewAt = s.renewalDue(a.sent, lease)
			ho.outdated = lease < duration(a.values[1]) // and will count for more later
		}
	case !a.gone():
		ho.lastErr = a.err
		ho.outdated = true
	case version == ho.version:
		s.loseLocked(ho, errGone)
	default:
		ho.changed()
	}
}
