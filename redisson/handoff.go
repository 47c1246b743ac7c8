package redisson

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/transport"
)

// handoff is how the lock of a holder passes from one hold to the next, to a waiter of the same client, and how the release of the one before
// learns whether Redis still had the holder. The mutex of the registry guards it.
//
//	held ── released, nobody waits ──► leaving ── answered ──► freed, missing or unsure
//	 ▲  └── released, somebody waits, and the streak goes on
//	 │        ├─ its lease is known to last ──► passed: the next one begins at once
//	 │        └─ it is not, or a token is wanted ──► asked: the next one begins with the answer
//	 └──────────────┘
//	  the one who has released it waits until an update that was sent later is answered, or the release at the end of the streak; if
//	  that takes longer than confirmDelay, it asks
//
// A reader that leaves before others of its holder has released it in the same sense.
type handoff struct {
	releaseState releaseState
	confirming   bool          // Redis is asked whether it has the holder
	turns        int32         // how often the lock has passed on
	confirmed    int32         // the last of these turns of which it is known that Redis had the holder when the turn before ended
	more         chan struct{} // closed when more is known; nil if nobody waits for that
}

// A streak, in which the lock of a holder passes on, lasts for so many turns, or for minHandoff if that is longer, and for handoffTime at most:
// others are to get the lock, too, but turns that are shorter than the two questions of a streak are not what they wait for.
const (
	handoffTurns = 16
	handoffTime  = 50 * time.Millisecond
	minHandoff   = time.Millisecond
)

// If the hand-over should end within confirmSkip, as its pace has it, it is not confirmed by a question: its final release will do that. Otherwise it is
// confirmed after confirmDelay.
const (
	confirmSkip  = 200 * time.Microsecond
	confirmDelay = time.Millisecond
)

// releaseState is what is known of the end of a holder in Redis.
type releaseState uint8

const (
	unsettled releaseState = iota // it has not ended; or the watchdog removes it; or the client was closed
	leaving                       // its release is under way
	freed                         // by a release
	unsure                        // its time was over, or its release was not answered
	missing                       // Redis did not have it any more
)

// lasts reports whether a streak that began so long ago goes on.
func (f *handoff) lasts(age time.Duration) bool {
	return age < minHandoff || f.turns < handoffTurns && age < handoffTime
}

// overSoon reports whether a streak that began so long ago is about to end, if its turns stay as long as they were.
func (f *handoff) overSoon(age time.Duration) bool {
	return f.turns > 0 && age*time.Duration(max(handoffTurns+1-f.turns, 1))/time.Duration(f.turns) < confirmSkip
}

// settle notes what has become of the holder.
func (f *handoff) settle(end releaseState) {
	f.releaseState = end
	f.tell()
}

// tell has those look who wait for more to be known.
func (f *handoff) tell() {
	if f.more != nil {
		close(f.more)
		f.more = nil
	}
}

// news returns a channel that is closed when more is known.
func (f *handoff) news() <-chan struct{} {
	if f.more == nil {
		f.more = make(chan struct{})
	}
	return f.more
}

// mayPassLocked reports whether the lock of ho, one hold of which has just ended, may pass to next. Nobody else must hold it under ho, and
// the streak must not be over. A newer holder of the client shows that ho is not in Redis any more. And if this process dies, the lock
// must not outlive it for longer than next wants.
func (s *registry) mayPassLocked(ho *holder, next *hold, now instant) bool {
	return len(ho.holds) == 0 && ho.unreleased == 0 && ho.lasts(now.sub(ho.admitted)) && s.holders.newest(ho.lockID()) == ho &&
		ho.asked <= cmp.Or(next.lease, s.timeout)
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

// passLocked makes next a hold of ho, whose last one has ended. The method enter must follow: at once if the lease is known to last, and
// otherwise with the answer, which also has the token of a fenced hold. Or abandon must.
//
// The question is that of a renewal: it also says whether ho was still there, which the release has to report.
func (s *registry) passLocked(ho *holder, next *hold, now instant) task {
	ho.add(next, now, s.timeout)
	ho.turns++
	s.placeLocked(ho)
	why := renewal
	switch {
	case next.kind == lock.Fenced:
		why = fencing
	case ho.covers(next, now, s.timeout) && !s.sleptLocked(time.Now()):
		return task{next: next, passed: true, turn: ho.turns, began: now}
	}
	t := s.updateLocked(ho, 0, why)
	t.next, t.turn, t.began = next, ho.turns, now
	return t
}

// beginSharing makes h a hold of a holder of this client that reads with the same lease, as long as its streak lasts. The method enter must follow, as
// after passLocked. Readers don't exclude each other, so they need not be told apart in Redis. With another lease, what a crash leaves would last for
// longer than one of them has asked for.
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

// pass gives a waiter the lock that was offered to it, which counts from then on. If it has left meanwhile, the lock is removed.
func (c *Client) pass(to *place, g grant) {
	if !c.queues.give(to, g) {
		c.registry.abandon(to.hold)
	}
}

// handoffCheck says whether Redis had a holder when its lock passed on, or what is to be done to learn that.
type handoffCheck struct {
	known bool
	err   error           // the lock was lost, or nobody knows
	ask   task            // endConfirm must follow
	more  <-chan struct{} // wait for that, as somebody else asks, or the end of the streak will tell
	until instant         // but no longer
}

// known says what is known of the turn that began when h was released.
func (h *hold) known(turn int32) handoffCheck {
	ho := h.holder
	switch {
	case ho.confirmed >= turn || ho.releaseState == freed:
		return handoffCheck{known: true}
	case ho.releaseState == missing:
		return handoffCheck{known: true, err: h.lostError(present(), ho.goneError())}
	case ho.releaseState == unsure:
		return handoffCheck{known: true, err: fmt.Errorf("redisson: %w to the release of the lock", transport.ErrNoAnswer)}
	}
	return handoffCheck{}
}

// confirm says what is known of a turn that began when h was released, or how to learn more, until by at most. One question is enough for all turns
// before it, and so is the release of the holder, or its removal: a holder that is found was there all the time. One that has waited for the end of the
// streak for confirmDelay asks.
func (s *registry) confirm(h *hold, t task, now, by instant) handoffCheck {
	s.mu.Lock()
	defer s.unlock()
	c, ho := h.known(t.turn), h.holder
	delayed := t.began.add(confirmDelay)
	switch {
	case c.known:
	case ho.releaseState == leaving || ho.confirming || ho.removal != nil:
		c.more, c.until = ho.news(), by
	case now < delayed && !ho.dead && ho.overSoon(now.sub(ho.admitted)):
		c.more, c.until = ho.news(), min(by, delayed)
	default:
		ho.confirming = true
		n := ho.counts()
		if n.all == 0 { // after a close, this client knows of none
			n.add(ho.kind)
		}
		c.ask = task{of: ho, call: ho.family.update(ho, n, ho.need(now, s.timeout), renewal), version: ho.version, turn: ho.turns}
	}
	return c
}

// endConfirm notes what Redis has answered, and says what is known of the turn then. For a plain lock, an older version of the counts makes no
// difference: a holder that is not there is lost, unless it was this client that has removed it.
func (s *registry) endConfirm(h *hold, turn int32, asked task, a answer) handoffCheck {
	s.mu.Lock()
	defer s.unlock()
	ho := h.holder
	ho.confirming = false
	s.applyLocked(ho, a, asked.version)
	switch {
	case a.Yes():
		ho.confirmed = max(ho.confirmed, asked.turn)
	case a.Gone() && !ho.dead:
		s.loseLocked(ho, ho.goneError())
	case a.Gone() && ho.releaseState == unsettled && ho.removal == nil:
		ho.settle(ho.stateOfGone(present()))
	}
	s.placeLocked(ho)
	ho.tell()
	return h.known(turn)
}

// confirm ends the release of a hold whose lock has passed on.
func (d pendingRelease) confirm(ctx context.Context) error {
	err := d.learn(ctx)
	d.hold.c.registry.end()
	d.hold.c.metrics.released(d.hold, err)
	return err
}

// learn waits until it is known whether Redis still had the holder when its hold was released, and asks if nobody else does. The error is
// that of the release.
func (d pendingRelease) learn(ctx context.Context) error {
	c, t := d.hold.c, d.task
	by := t.began.add(c.timeout)
	for now, done := t.began, ctx.Done(); ; now = present() {
		check := c.registry.confirm(d.hold, t, now, by)
		if check.ask.of != nil {
			a := c.road.Ask(ctx, by.time(), check.ask.call)
			check = c.registry.endConfirm(d.hold, t.turn, check.ask, a)
			if !check.known && a.Err != nil && !a.Gone() {
				return a.Err
			}
		}
		switch {
		case check.known:
			return check.err
		case check.more == nil:
			continue
		case now >= by:
			return cmp.Or(context.Cause(ctx), c.road.NoAnswer(c.timeout))
		}
		select {
		case <-check.more:
		case <-time.After(check.until.sub(now)):
		case <-done:
			done, by = nil, min(by, present().add(transport.GoneInterval))
		}
	}
}

// leaves reports whether this client itself takes ho out of Redis, or has done so: after a Close, for one, that may overtake the question of a
// release, which finds nothing then, though nothing was lost.
func (s *registry) leaves(ho *holder) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ho.releaseState == leaving || ho.releaseState == freed || ho.removal != nil
}

// stateAfter returns what the answer to a release of ho says of it.
func (ho *holder) stateAfter(a answer, now instant) releaseState {
	switch {
	case a.Gone() && a.Doubts == 0:
		return ho.stateOfGone(now)
	case a.Err != nil && !a.Gone():
		return unsure
	}
	return freed
}

// stateOfGone is that of a holder which Redis does not have: it may have ended by itself.
func (ho *holder) stateOfGone(now instant) releaseState {
	if now >= ho.validUntil {
		return unsure
	}
	return missing
}
