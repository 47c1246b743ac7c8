package redisson

import "time"

// queueMemory is how long a client goes on trying to leave the queue of a fair lock. An entry there ends with its deadline, but
// others ahead may put that off.
const queueMemory = time.Hour

// retry is a script that is repeated in the background until Redis has answered it. It removes a holder that is not alive any
// more, or makes a change to a number. The watchdog sends it at next, and gives up at until: by then, what it would remove has
// ended by itself. The mutex of claims guards it.
type retry struct {
	holder *holder // nil for a change
	call   call
	next   time.Time
	until  time.Time
	goneBy time.Time // from then on the answer "not there" is trusted: no attempt to enter can still arrive
	over   bool
	done   chan struct{} // closed when it is over
	index  int           // in the heap of claims; -1 when not there
}

func (rt *retry) due() time.Time { return earlier(rt.next, rt.until) }
func (rt *retry) finished() bool { return rt.over }
func (rt *retry) place() *int    { return &rt.index }

// retry starts to make a change in the background.
func (s *claims) retry(cl call, until time.Time) {
	s.mu.Lock()
	defer s.unlock()
	s.retryLocked(&retry{call: cl, next: soon(), until: until})
}

func (s *claims) retryLocked(rt *retry) {
	rt.done, rt.index = make(chan struct{}), -1
	s.retries++
	s.placeLocked(rt)
}

// removeLocked starts to remove ho from Redis at the given time, or earlier if that was planned before.
func (s *claims) removeLocked(ho *holder, at time.Time) {
	at = later(at, soon())
	if rt := ho.removal; rt != nil {
		rt.next = earlier(rt.next, at)
		s.placeLocked(rt)
		return
	}
	rt := &retry{holder: ho, call: ho.family.exit(ho, "", 0), next: at, until: at.Add(max(ho.asked, s.timeout)).Add(2 * s.grace)}
	if ho.queues {
		rt.until = at.Add(queueMemory)
	}
	ho.removal = rt
	s.retryLocked(rt)
}

// retriedLocked notes the answer to a retry. While an attempt of the holder to enter may still arrive, the answer "not there"
// proves nothing. An attempt can be as late as Redis was silent, so that time counts from the first answer.
func (s *claims) retriedLocked(rt *retry, a answer) {
	now := time.Now()
	ho := rt.holder
	if rt.over || a.err != nil && !final(a.err) {
		return
	}
	if rt.goneBy.IsZero() {
		rt.goneBy = now
		if ho != nil && ho.inDoubt(now) {
			rt.goneBy = now.Add(s.grace)
		}
	}
	if a.yes() && ho != nil && ho.doubts == 1 || !now.Before(rt.goneBy) {
		s.finishLocked(rt)
	}
}

func (s *claims) finishLocked(rt *retry) {
	rt.over = true
	if rt.holder != nil {
		rt.holder.removal = nil
	}
	s.retries--
	close(rt.done)
	s.placeLocked(rt)
}
