package redisson

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// beginRelease ends h on this side before Redis is asked, so that no renewal follows. With a time to keep the lock for, h stays
// among the holds of its holder. The error says why h was lost. If there is something to ask, the method endRelease must follow; after a
// turn, the methods confirm and end.
//
// The lock passes to next, unless that is nil, if it may. The task says whether it does.
//
// A re-entry under a hold of its kind leaves nothing to ask: Redis has a count that is too high by one until the next update, which
// matters to nobody. The outer hold is still there, and its release finds out whether the lock is, too. For a writer each release
// cuts the lease.
func (s *claims) beginRelease(h *hold, kept time.Duration, next *hold) (t task, err error) {
	s.mu.Lock()
	defer s.unlock()
	now, ho := present(), h.holder
	if err := s.overLocked(h, now); err != nil {
		return s.dischargeLocked(h, now), err
	}
	s.active++
	s.endLocked(h, nil)
	if kept > 0 {
		h.lease, h.ends, h.over = kept, now.add(kept), now.add(kept)
		ho.holds = append(ho.holds, h)
	}
	if next != nil && s.mayPassLocked(ho, next, now) {
		return s.passLocked(ho, next, now), nil
	}
	if kept == 0 && handsOver(ho.family) && ho.has(h.kind) {
		s.active--
		s.placeLocked(ho)
		return t, nil
	}
	ho.version++ // also for a partial release that is under way, and may find nothing any more
	if heir, until, ok := ho.heir(); ok {
		ho.dead = true // endRelease buries it, when nobody waits for that any more
		s.settleLocked(ho, leaving)
		t = task{whole: true, free: heir == "" && handsOver(ho.family)}
		if ho.exit != nil && heir == "" {
			t.call = *ho.exit
		} else {
			t.call = ho.family.exit(ho, heir, max(0, until.sub(now)))
		}
		return t, nil
	}
	why := renewal
	if h.kind == lock.Write && kept == 0 && ho.counts().writes > 0 {
		why = shortening
		ho.beginCut(ho.need(now, s.timeout), now)
	}
	t = s.updateLocked(ho, 0, why)
	s.placeLocked(ho)
	return t, nil
}

// mayPassLocked reports whether the lock of ho, one hold of which has just ended, may pass to next. Nobody else must hold it under ho, and
// the streak must not be over. A newer holder of the client shows that ho is not in Redis any more. And if this process dies, the lock
// must not outlive it for longer than next wants.
func (s *claims) mayPassLocked(ho *holder, next *hold, now instant) bool {
	return len(ho.holds) == 0 && ho.turns < streakTurns && now.sub(ho.admitted) < streakTime &&
		s.byLock[ho.lockID()] == ho && ho.asked <= cmp.Or(next.lease, s.timeout)
}

// knownToLast reports whether what is known of the lease of ho is enough for next to begin.
func (s *claims) knownToLast(ho *holder, next *hold, now instant) bool {
	left := ho.validUntil.sub(now)
	return !ho.outdated && !ho.told && (next.lease == 0 && left >= s.timeout/2 || next.lease > 0 && left >= goodFor(next.lease))
}

// passLocked makes next a hold of ho, whose last one has ended. Its admission must follow: by follow if the lease is known to last, and
// otherwise by enter with the answer, which also has the token of a fenced hold. Or abandon must.
//
// The question is that of a renewal: it also says whether ho was still there, which the release has to report.
func (s *claims) passLocked(ho *holder, next *hold, now instant) task {
	next.holder, next.over = ho, now.add(next.lease)
	ho.holds, ho.asked = append(ho.holds, next), max(ho.asked, next.lease)
	ho.turns++
	s.placeLocked(ho)
	why := renewal
	switch {
	case next.kind == lock.Fenced:
		why = fencing
	case s.knownToLast(ho, next, now):
		return task{next: next, turn: ho.turns}
	}
	t := s.updateLocked(ho, 0, why)
	t.next = next
	return t
}

// confirmation says whether Redis had a holder when its lock passed on, or what is to be done to learn that.
type confirmation struct {
	known   bool
	err     error           // the lock was lost, or nobody knows
	ask     task            // endConfirm must follow
	changed <-chan struct{} // wait for that: somebody else asks
}

// confirm returns what is known of the turn that began when h was released. One question is enough for all turns before it, and so is
// the release of the holder, or its removal: a holder that is found was there all the time. Unless the caller is to ask, it gets what is
// known, if anything is.
func (s *claims) confirm(h *hold, turn uint8, ask bool) (c confirmation) {
	s.mu.Lock()
	defer s.unlock()
	ho := h.holder
	switch {
	case ho.confirmed >= turn || ho.fate == freed:
		c.known = true
	case ho.fate == missing:
		c.known, c.err = true, h.lostError(present(), ho.goneError())
	case ho.fate == unsure:
		c.known, c.err = true, fmt.Errorf("redisson: %w to the release of the lock", errNoAnswer)
	case !ask:
	case ho.fate == leaving || ho.confirming || ho.removal != nil:
		c.changed = s.changedLocked(ho)
	default:
		ho.confirming = true
		n := ho.counts()
		n.all = max(n.all, 1) // after a close, this client knows of none
		c.ask = task{of: ho, call: ho.family.update(ho, n, ho.need(present(), s.timeout), renewal), version: ho.version, turn: ho.turns}
	}
	return c
}

// endConfirm notes what Redis has answered. For a plain lock, an older version of the counts makes no difference: a holder that is not
// there is lost, unless it was this client that has removed it.
func (s *claims) endConfirm(ho *holder, t task, a answer) {
	s.mu.Lock()
	defer s.unlock()
	ho.confirming = false
	s.applyLocked(ho, a, t.version)
	switch {
	case a.yes():
		ho.confirmed = max(ho.confirmed, t.turn)
	case a.gone() && !ho.dead:
		s.loseLocked(ho, ho.goneError())
	case a.gone() && ho.fate == unsettled && ho.removal == nil:
		s.settleLocked(ho, missing)
	}
	s.placeLocked(ho)
	s.tellLocked(ho)
}

// overLocked returns why h is not held any more, or nil.
func (s *claims) overLocked(h *hold, now instant) error {
	if h.state == held {
		s.expireLocked(h.holder, now)
	}
	switch h.state {
	case released:
		return lock.ErrNotHeld
	case lost:
		return h.loss
	}
	return nil
}

// dischargeLocked is beginRelease for a hold that has ended. If it was lost, its work has ended now, so whatever is left of the lock
// in Redis can go before its lease ends. The watchdog removes it, or the caller after a close.
func (s *claims) dischargeLocked(h *hold, now instant) (t task) {
	if h.state == released {
		return t
	}
	h.state = released
	h.holder.unreleased--
	if errors.Is(h.loss, ErrClosed) && s.awaited > 0 {
		s.awaited--
	}
	switch {
	case h.holder.unreleased > 0 || !h.holder.dead:
	case s.closed != nil:
		s.active++
		s.settleLocked(h.holder, leaving)
		t.whole, t.call = true, h.holder.family.exit(h.holder, "", 0)
	default:
		s.removeLocked(h.holder, now)
	}
	return t
}

// endRelease notes what Redis has answered to a release, and returns the error of it.
func (s *claims) endRelease(h *hold, t task, a answer) error {
	s.mu.Lock()
	defer s.unlock()
	s.active--
	now, ho := present(), h.holder
	if t.whole {
		s.buryLocked(ho)
		s.settleLocked(ho, ho.fateAfter(a, now))
		if a.err != nil && !a.gone() || ho.inDoubt(now) {
			s.removeLocked(ho, now).call = t.call
		}
	} else {
		if t.why == shortening {
			ho.endCut(a, now.add(s.grace))
		}
		s.applyLocked(ho, a, t.version)
		s.emptyLocked(ho, now)
		s.placeLocked(ho)
	}
	switch {
	case !a.gone():
		return a.err
	case t.next == nil && !t.whole && t.version != ho.version: // overtaken by another change
		return nil
	case now >= ho.validUntil:
		return h.lostError(now, errLease)
	case t.whole && a.doubts > 0: // the attempt that was not answered has done it
		return nil
	}
	return h.lostError(now, ho.goneError())
}

// fateAfter returns what the answer to a release of ho says of it.
func (ho *holder) fateAfter(a answer, now instant) fate {
	switch {
	case a.err != nil && !a.gone(), a.gone() && now >= ho.validUntil: // it may have ended by itself
		return unsure
	case a.gone() && a.doubts == 0:
		return missing
	}
	return freed
}

// applyLocked takes over the answer to an update of a holder that had this version of its counts. An older version may have been
// overtaken by a newer one, to which it does not apply.
func (s *claims) applyLocked(ho *holder, a answer, version int32) {
	switch {
	case ho.dead:
	case a.yes():
		lease := ho.believe(a)
		ho.owed = 0
		if version == ho.version {
			ho.renewAt = s.renewalDue(a.sent, lease)
			ho.outdated = lease < duration(a.values[1]) // and will count for more later
			if ho.told = ho.toldAgain; ho.told {
				ho.toldAgain = false
				ho.changed()
			}
		}
	case !a.gone():
		ho.lastErr = a.err
		ho.outdated = true
	case version == ho.version:
		s.loseLocked(ho, ho.goneError())
	default:
		ho.changed()
	}
}
