package redisson

import (
	"cmp"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// The lock of a holder passes from one hold to the next, to a waiter of the same client, by one script: that says whether Redis still had the holder,
// which is the answer to the release, and has it for as long as the next hold needs. Nobody else hears of it. Such a streak lasts for so many turns, and for
// handoffTime at most: others are to get the lock, too.
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

// covers reports whether what is known of the lease of ho is enough for next to begin.
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

// beginSharing makes h a hold of a holder of this client that reads with the same lease, as long as its streak lasts. The method enter must follow, with
// the answer if there is a question. Readers don't exclude each other, so they need not be told apart in Redis. With another lease, what a crash
// leaves would last for longer than one of them has asked for.
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
