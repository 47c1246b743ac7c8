package redisson

import (
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/redis/go-redis/v9"
)

// retry is a script that is repeated in the background until Redis has answered it. It removes a holder that is not alive any
// more, or makes a change to a number. The watchdog sends it when it is due, and gives up at until: by then, what it would remove has
// ended by itself. The mutex of the registry guards it.
type retry struct {
	entry
	holder *holder // nil for a change
	call   call
	until  instant
	pause  time.Duration // before the next attempt; 0 before the first
	goneBy instant       // from then on the answer "not there" is trusted: no attempt to enter can still arrive
	done   chan struct{} // closed when it is over
}

// retry starts to make a change in the background.
func (s *registry) retry(cl call, until instant) {
	s.mu.Lock()
	defer s.unlock()
	rt := &retry{call: cl, until: until, done: make(chan struct{})}
	s.schedule.set(&rt.entry, rt, soon())
}

// removeLocked starts to remove ho from Redis at the given time, or earlier if that was planned before.
func (s *registry) removeLocked(ho *holder, at instant) *retry {
	at = max(at, soon())
	if rt := ho.removal; rt != nil {
		s.schedule.set(&rt.entry, rt, min(rt.due, at))
		return rt
	}
	exit, _ := ho.leave(present())
	rt := &retry{holder: ho, call: exit, done: make(chan struct{}),
		until: at.add(max(ho.asked, s.timeout)).add(2 * s.grace)}
	ho.removal = rt
	s.schedule.set(&rt.entry, rt, at)
	return rt
}

// retriedLocked notes the answer to a retry. While an attempt of the holder to enter may still arrive, the answer "not there"
// proves nothing, and neither does it if what an attempt with an answer took was there. An attempt can be as late as Redis was silent, so that time counts
// from the first answer.
func (s *registry) retriedLocked(rt *retry, a answer) {
	now := present()
	ho := rt.holder
	if rt.index == 0 || a.Err != nil && !final(a.Err) {
		return
	}
	if ho != nil && a.Err != nil && reply.IsReply(a.Err) && !reply.Classify(a.Err).Incurable { // what stays behind, such as a dead waiter in a queue, would keep others waiting then
		rt.until = min(rt.until, now.add(max(ho.asked, s.timeout)).add(2*s.grace))
		return
	}
	if rt.goneBy == 0 {
		rt.goneBy = now
		if ho != nil && ho.inDoubt(now) {
			rt.goneBy = now.add(s.grace)
		}
		rt.again(&s.schedule, s.timing, now, firstAgain) // an attempt to enter may be just behind
	}
	if a.Yes() && ho != nil && ho.doubts == 1 && ho.validUntil == 0 || now >= rt.goneBy {
		rt.finish(&s.schedule)
	}
}

// firstAgain is the pause after the first attempt, and after the first answer. Each pause after that is four times as long.
const firstAgain = 10 * time.Millisecond

// again has rt sent again after the pause, or a part of it: those of about the same time travel together.
func (rt *retry) again(in *schedule, t timing, now instant, pause time.Duration) {
	rt.pause = min(pause, t.retryAfter())
	at, end := now.add(rt.pause), rt.until
	if now < rt.goneBy {
		end = rt.goneBy
	}
	in.set(&rt.entry, rt, min(end, at.add(-at.sub(instantOf(t.origin))%(rt.pause/2))))
}

// finish ends rt.
func (rt *retry) finish(in *schedule) {
	if ho := rt.holder; ho != nil {
		ho.removal = nil
	}
	close(rt.done)
	in.set(&rt.entry, rt, 0)
}

// refused is the error for what Redis refuses for good.
func refused(err error) error { return fmt.Errorf("redisson: %w: %w", lock.ErrRefused, err) }

// lasting reports whether err is permanent. All others can come of a change of masters, or of a server that starts.
func lasting(err error) bool {
	return reply.IsReply(err) && !reply.Classify(err).Repeat || errors.Is(err, redis.ErrClosed) ||
		errors.Is(err, lock.ErrUnsupported)
}

// final reports whether a call that failed with err would fail again, as far as time goes. A shortage may end.
func final(err error) bool {
	return lasting(err) && !reply.Classify(err).Passes
}
