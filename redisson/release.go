package redisson

import (
	"cmp"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/lock"
)

// beginRelease ends h on this side before the question to Redis, so that no renewal follows. With a time to keep the
// lock for, h stays among the holds of its holder. The error says why h was lost. If the task has a question, the
// method endRelease must follow.
//
// If next is not nil and the limits allow it, the lock is handed to next; task.next reports that.
//
// A re-entry under a hold of its kind leaves nothing to ask: Redis has a count that is too high by one until the next
// update, which matters to nobody. The outer hold is still there, and its release finds out whether the lock is, too.
// The release of one of several readers asks nothing either, but the others may go on for long: the watchdog brings
// their number to Redis. For a writer each release cuts the lease.
func (s *registry) beginRelease(h *hold, kept time.Duration, next *hold) (t task, err error) {
	s.mu.Lock()
	defer s.unlock()
	now, ho := present(), h.holder
	if err := s.overLocked(h, now); err != nil {
		return s.dischargeLocked(h, now), err
	}
	s.active.Add(1)
	s.endLocked(h, nil)
	if kept > 0 {
		h.lease, h.ends, h.over = kept, now.add(kept), now.add(kept)
		ho.holds = append(ho.holds, h)
	}
	if next != nil && s.mayPassLocked(ho, next, now) {
		return s.passLocked(ho, next, now), nil
	}
	if len(ho.holds) == 0 {
		return ho.beginLeave(now), nil
	}
	if reads := ho.kind == lock.Read; kept == 0 && (handsOver(ho.family) || reads) && ho.has(h.kind) {
		if reads {
			ho.changed()
		}
		s.active.Add(-1)
		s.placeLocked(ho)
		return t, nil
	}
	if ho.leaves() {
		return ho.beginLeave(now), nil
	}
	ho.version++
	why := renewal
	if h.kind == lock.Write && kept == 0 && ho.counts().writes > 0 {
		why = shortening
		ho.beginCut(ho.need(now, s.timeout), now)
	}
	t = s.updateLocked(ho, 0, why)
	s.placeLocked(ho)
	return t, nil
}

// overLocked returns why h is not held any more, or nil.
func (s *registry) overLocked(h *hold, now instant) error {
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
func (s *registry) dischargeLocked(h *hold, now instant) (t task) {
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
		s.active.Add(1)
		h.holder.version++ // it may overtake what others have asked
		t.call, _ = h.holder.leave(now)
		t.whole = true
	default:
		s.removeLocked(h.holder, now)
	}
	return t
}

// endRelease applies the answer of Redis to a release, and returns its error.
func (s *registry) endRelease(h *hold, t task, a answer) error {
	s.mu.Lock()
	defer s.unlock()
	s.active.Add(-1)
	now, ho := present(), h.holder
	if t.whole {
		s.buryLocked(ho)
		if a.Err != nil && !a.Gone() || ho.inDoubt(now) {
			s.removeLocked(ho, now).call = t.call
		}
	} else {
		if t.why == shortening {
			ho.endCut(a, now.add(s.grace))
		}
		s.applyLocked(ho, a, t.version)
		s.emptyLocked(ho, now)
		s.placeLocked(ho)
		if t.next != nil && ho.dead {
			s.removeLocked(ho, now)
		}
	}
	switch {
	case t.next != nil && t.why == fencing && lasting(a.Err) && !reply.Classify(a.Err).NoRight: // the next one hears that its token can't be counted
		return nil
	case !a.Gone():
		return a.Err
	case t.next == nil && !t.whole && t.version != ho.version: // overtaken by another change
		return nil
	case now >= ho.validUntil:
		return h.lostError(now, errLease)
	case t.whole && a.Doubts > 0: // the attempt that was not answered has done it
		return nil
	}
	return h.lostError(now, ho.goneError())
}

// beginExtension prepares an extension of h by d. The method endExtension must follow.
func (s *registry) beginExtension(h *hold, d time.Duration) (update task, err error) {
	s.mu.Lock()
	defer s.unlock()
	if err := s.overLocked(h, present()); err != nil {
		return update, err
	}
	h.holder.asked = max(h.holder.asked, d)
	return s.updateLocked(h.holder, d, renewal), nil
}

// endExtension extends h to d from the question to Redis, if that is later than its end.
func (s *registry) endExtension(h *hold, d time.Duration, update task, a answer) error {
	s.mu.Lock()
	defer s.unlock()
	s.applyLocked(h.holder, a, update.version)
	err := s.overLocked(h, present())
	switch {
	case err != nil:
	case a.Gone(): // overtaken by another change
		err = h.lostError(present(), h.holder.goneError())
	case a.Err == nil && h.lease > 0:
		h.lastFor(d, instantOf(a.Sent))
	default:
		err = a.Err
	}
	s.placeLocked(h.holder)
	return err
}

// remaining returns how long h is still good without a renewal.
func (s *registry) remaining(h *hold) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.state != held {
		return 0
	}
	end := h.holder.validUntil
	if h.ends > 0 {
		end = min(end, h.ends)
	}
	return max(0, end.sub(present()))
}

// A holder hands its lock from one hold to the next, to a waiter of the same client, by one script. The script says
// whether Redis still had the holder, which answers the release, and sets its lease to the next hold's need. Nobody
// else hears of it. A streak lasts for handoffTurns turns and handoffTime at most, so that others get the lock, too.
const (
	handoffTurns = 16
	handoffTime  = 50 * time.Millisecond
)

// mayPassLocked reports whether the lock of ho, one hold of which has just ended, may pass to next. Nobody else must hold it under ho, and
// the streak must not be over. A newer holder of the client shows that ho is not in Redis any more. And if this process dies, the lock
// must not outlive it for longer than next wants.
func (s *registry) mayPassLocked(ho *holder, next *hold, now instant) bool {
	return len(ho.holds) == 0 && ho.unreleased == 0 && ho.turns < handoffTurns && now.sub(ho.admitted) < handoffTime &&
		s.holders.newest(ho.lockID()) == ho && ho.asked <= cmp.Or(next.lease, s.timeout)
}

// covers reports whether the known lease of ho is enough for next to begin.
func (ho *holder) covers(next *hold, now instant, timeout time.Duration) bool {
	left := ho.validUntil.sub(now)
	return !ho.outdated && !ho.told && (next.lease == 0 && left >= timeout/2 || next.lease > 0 && left >= goodFor(next.lease))
}

// add makes h a hold of ho, to be admitted.
func (ho *holder) add(h *hold, now instant, timeout time.Duration) {
	h.holder, h.over = ho, now.add(h.lease)
	ho.holds, ho.asked = append(ho.holds, h), max(ho.asked, cmp.Or(h.lease, timeout))
}

// passLocked makes next a hold of ho, whose last one has ended. The method enter must follow with the answer, which also has the token of a
// fenced hold, or abandon must.
func (s *registry) passLocked(ho *holder, next *hold, now instant) task {
	ho.add(next, now, s.timeout)
	ho.turns++
	s.placeLocked(ho)
	why := renewal
	if next.kind == lock.Fenced {
		why = fencing
	}
	t := s.updateLocked(ho, 0, why)
	t.next = next
	return t
}

// beginSharing makes h a hold of a holder of this client that reads with the same lease, as long as its streak lasts.
// The method enter must follow, with the answer if there is a question. Readers don't exclude each other, so Redis need
// not distinguish them. With another lease, a crash would leave the lock for longer than one of them has requested.
func (s *registry) beginSharing(h *hold) (t task, ok bool) {
	s.mu.Lock()
	defer s.unlock()
	ho, now := s.holders.newest(h.holder.lockID()), present()
	if ho == nil || ho.kind != lock.Read || !ho.has(lock.Read) || ho.asked != h.holder.asked || now.sub(ho.admitted) >= handoffTime || now >= ho.validUntil {
		return t, false
	}
	ho.add(h, now, s.timeout)
	s.placeLocked(ho)
	if ho.covers(h, now, s.timeout) && !s.sleptLocked(time.Now()) {
		return t, true
	}
	ho.version++
	return s.updateLocked(ho, 0, renewal), true
}

// abandon gives up a hold to which a lock was passed, and that will not be admitted. The lock is removed then.
func (s *registry) abandon(h *hold) {
	s.mu.Lock()
	defer s.unlock()
	ho := h.holder
	ho.holds = without(ho.holds, h)
	s.emptyLocked(ho, present())
}
