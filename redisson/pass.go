package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/transport"
)

// How the lock of a holder passes from one hold to the next, to a waiter of the same client, and how the release of the one before learns
// whether Redis still had the holder.
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

// mayPassLocked reports whether the lock of ho, one hold of which has just ended, may pass to next. Nobody else must hold it under ho, and
// the streak must not be over. A newer holder of the client shows that ho is not in Redis any more. And if this process dies, the lock
// must not outlive it for longer than next wants.
func (s *registry) mayPassLocked(ho *holder, next *hold, now instant) bool {
	return len(ho.holds) == 0 && ho.unreleased == 0 && ho.lasts(now) &&
		s.byLock[ho.lockID()] == ho && ho.asked <= cmp.Or(next.lease, s.timeout)
}

// lasts reports whether the streak of ho goes on.
func (ho *holder) lasts(now instant) bool {
	age := now.sub(ho.admitted)
	return age < minHandoff || ho.turns < handoffTurns && age < handoffTime
}

// longEnoughLocked reports whether what is known of the lease of ho is enough for next to begin. After a suspension of the machine, of
// which the watchdog may not know yet, nothing is known.
func (s *registry) longEnoughLocked(ho *holder, next *hold, now instant) bool {
	left := ho.validUntil.sub(now)
	if suspension(s.origin, time.Now())-s.asleep > s.timeout/3 {
		return false
	}
	return !ho.outdated && !ho.told && (next.lease == 0 && left >= s.timeout/2 || next.lease > 0 && left >= goodFor(next.lease))
}

// passLocked makes next a hold of ho, whose last one has ended. Its admission must follow: by follow if the lease is known to last, and
// otherwise by enter with the answer, which also has the token of a fenced hold. Or abandon must.
//
// The question is that of a renewal: it also says whether ho was still there, which the release has to report.
func (s *registry) passLocked(ho *holder, next *hold, now instant) task {
	s.addLocked(ho, next, now)
	ho.turns++
	s.placeLocked(ho)
	why := renewal
	switch {
	case next.kind == lock.Fenced:
		why = fencing
	case s.longEnoughLocked(ho, next, now):
		return task{next: next, turn: ho.turns, began: now}
	}
	t := s.updateLocked(ho, 0, why)
	t.next = next
	return t
}

// addLocked makes h a hold of ho, to be admitted.
func (s *registry) addLocked(ho *holder, h *hold, now instant) {
	h.holder, h.over = ho, now.add(h.lease)
	ho.holds, ho.asked = append(ho.holds, h), max(ho.asked, cmp.Or(h.lease, s.timeout))
}

// beginSharing makes h a hold of a holder of this client that reads with the same lease, as long as its streak lasts. Its admission must follow, as after
// passLocked. Readers don't exclude each other, so they need not be told apart in Redis. With another lease, what a crash leaves would last for longer than
// one of them has asked for.
func (s *registry) beginSharing(h *hold) (t task, ok bool) {
	s.mu.Lock()
	defer s.unlock()
	ho, now := s.byLock[h.holder.lockID()], present()
	if ho == nil || ho.kind != lock.Read || !ho.has(lock.Read) || ho.asked != h.holder.asked || now.sub(ho.admitted) >= handoffTime || now >= ho.validUntil {
		return t, false
	}
	s.addLocked(ho, h, now)
	s.placeLocked(ho)
	if s.longEnoughLocked(ho, h, now) {
		return t, true
	}
	ho.version++
	return s.updateLocked(ho, 0, renewal), true
}

// follow makes h a hold without a question: a lock was passed to it whose lease is known. The error says why it is none.
func (s *registry) follow(h *hold) error {
	ended := h.ended()
	s.mu.Lock()
	defer s.unlock()
	h.since = present()
	return s.admitLocked(h, h.since, ended)
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
	if !c.lines.give(to, g) {
		c.registry.abandon(to.hold)
	}
}

// decline takes an offer back, because Redis has not answered or would not let the lock pass. It is removed then.
func (d pendingRelease) decline() {
	d.hold.c.registry.abandon(d.to.hold)
	d.hold.c.lines.give(d.to, grant{declined: true})
}

// removed waits for the removal of the holder, if this client itself has begun one, and returns nil if Redis still had it: then nothing was
// lost. A removal, after a Close for one, may overtake the question of a release, which finds nothing; and where the server refuses the next
// one for good, that is the business of that one alone. Otherwise err stands, but nobody knows of a loss that no removal has confirmed in time.
func (d pendingRelease) removed(ctx context.Context, err error) error {
	alarm := time.After(time.Until(d.by))
	for {
		end, changed := d.hold.c.registry.removing(d.hold.holder)
		switch {
		case end == freed:
			return nil
		case changed == nil:
			return err
		}
		select {
		case <-changed:
			continue
		case <-ctx.Done():
		case <-alarm:
		}
		if !errors.Is(err, lock.ErrLost) {
			return err
		}
		return cmp.Or(context.Cause(ctx), d.hold.c.road.NoAnswer(d.hold.c.timeout))
	}
}

// handoffCheck says whether Redis had a holder when its lock passed on, or what is to be done to learn that.
type handoffCheck struct {
	known   bool
	err     error           // the lock was lost, or nobody knows
	ask     task            // endConfirm must follow
	changed <-chan struct{} // wait for that: somebody else asks, or the end of the streak will tell
	brief   bool            // the latter, and not for longer than confirmDelay
}

// known returns what is known of the turn that began when h was released.
func (s *registry) known(h *hold, turn int32) handoffCheck {
	s.mu.Lock()
	defer s.unlock()
	return s.knownLocked(h, turn)
}

func (s *registry) knownLocked(h *hold, turn int32) handoffCheck {
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

// confirm is known, which ends the release, or says how to learn more. One question is enough for all turns before it, and so is the
// release of the holder, or its removal: a holder that is found was there all the time. Who has waited for the end of the streak for confirmDelay
// asks.
func (s *registry) confirm(h *hold, turn int32, waited time.Duration, now instant) handoffCheck {
	s.mu.Lock()
	defer s.unlock()
	c, ho := s.knownLocked(h, turn), h.holder
	switch {
	case c.known:
		s.active.Add(-1)
	case ho.releaseState == leaving || ho.confirming || ho.removal != nil:
		c.changed = s.changing.of(ho).told
	case waited < confirmDelay && ho.overSoon(now):
		c.changed, c.brief = s.changing.soon(ho, &s.mu).told, true
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

// overSoon reports whether the streak of ho, as its turns were so far, is about to end.
func (ho *holder) overSoon(now instant) bool {
	return !ho.dead && ho.turns > 0 && now.sub(ho.admitted)*time.Duration(max(handoffTurns+1-ho.turns, 1))/time.Duration(ho.turns) < confirmSkip
}

// endConfirm notes what Redis has answered. For a plain lock, an older version of the counts makes no difference: a holder that is not
// there is lost, unless it was this client that has removed it.
func (s *registry) endConfirm(ho *holder, t task, a answer) {
	s.mu.Lock()
	defer s.unlock()
	ho.confirming = false
	s.applyLocked(ho, a, t.version)
	switch {
	case a.Yes():
		ho.confirmed = max(ho.confirmed, t.turn)
	case a.Gone() && !ho.dead:
		s.loseLocked(ho, ho.goneError())
	case a.Gone() && ho.releaseState == unsettled && ho.removal == nil:
		s.settleLocked(ho, ho.stateOfGone(present()))
	}
	s.placeLocked(ho)
	s.changing.tell(ho)
}

// confirm waits until it is known whether Redis still had the holder when its lock passed on, and asks if nobody else does. The error is
// that of the release.
func (d pendingRelease) confirm(ctx context.Context) (err error) {
	c, t := d.hold.c, d.task
	defer func() { c.metrics.released(d.hold, err) }()
	by := t.began.add(c.timeout)
	for now, done := t.began, ctx.Done(); ; now = present() {
		known := c.registry.confirm(d.hold, t.turn, now.sub(t.began), now)
		switch {
		case known.known:
			return known.err
		case known.changed == nil:
			a := c.road.Ask(ctx, by.time(), known.ask.call)
			c.registry.endConfirm(d.hold.holder, known.ask, a)
			if a.Err == nil || a.Gone() {
				continue
			}
			c.registry.end()
			if known = c.registry.known(d.hold, t.turn); known.known {
				return known.err
			}
			return a.Err
		case now >= by:
			c.registry.end()
			return cmp.Or(context.Cause(ctx), c.road.NoAnswer(c.timeout))
		}
		var alarm <-chan time.Time
		if !known.brief {
			alarm = time.After(by.sub(now))
		}
		select {
		case <-known.changed:
		case <-alarm:
		case <-done:
			done, by = nil, min(by, present().add(transport.GoneInterval))
		}
	}
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

// removing returns the state of ho and, while its removal or release is under way, what is closed when more is known.
func (s *registry) removing(ho *holder) (end releaseState, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.unlock()
	if ho.releaseState == leaving || ho.releaseState == unsettled && ho.removal != nil {
		changed = s.changing.of(ho).told
	}
	return ho.releaseState, changed
}

// settleLocked notes what has become of ho.
func (s *registry) settleLocked(ho *holder, f releaseState) {
	if ho.releaseState = f; len(s.changing) > 0 {
		s.changing.tell(ho)
	}
}

// settlements are for those who wait to know more of a holder. The mutex of the registry guards them.
type settlements map[*holder]*settlement

// settlement is what those share who wait for one.
type settlement struct {
	told  chan struct{} // closed then
	alarm *time.Timer   // has them look after confirmDelay; nil if none of them needs that
}

// tell has those look who wait for what is known of ho.
func (all settlements) tell(ho *holder) {
	if c := all[ho]; c != nil {
		close(c.told)
		delete(all, ho)
		if c.alarm != nil {
			c.alarm.Stop()
		}
	}
}

// of returns that of ho. It has a channel that is closed when more is known.
func (all settlements) of(ho *holder) *settlement {
	c := all[ho]
	if c == nil {
		c = &settlement{told: make(chan struct{})}
		all[ho] = c
	}
	return c
}

// soon is of, but those who wait look after confirmDelay at the latest.
func (all settlements) soon(ho *holder, mu *sync.Mutex) *settlement {
	c := all.of(ho)
	if c.alarm == nil {
		c.alarm = time.AfterFunc(confirmDelay, func() {
			mu.Lock()
			defer mu.Unlock()
			if all[ho] == c {
				all.tell(ho)
			}
		})
	}
	return c
}
