package redisson

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// registry owns the state of a client's locks: its holders, and those that it still has to remove from Redis. Each
// method is one whole transition. Nobody else changes a holder or takes the mutex. Contexts end after a transition,
// without the mutex; see unlock.
//
// Loss is decided by the local clock. A holder is valid until the lease that Redis answered last is over, less a margin; the
// lease counts from before the question was sent. Nothing that Redis does or omits can delay that.
type registry struct {
	timing
	alarm   *time.Timer // of the watchdog
	metrics *metrics

	onHeld func() // called with the mutex held when the client has got a lock

	mu       sync.Mutex
	schedule schedule
	holders  holders       // alive
	alarmAt  instant       // zero when the alarm is not set
	asleep   time.Duration // for how long the machine was suspended since the origin, as far as is known
	ended    []ending      // by the present transition

	active atomic.Int64 // acquires and releases under way

	// While the client is being closed.
	closing atomic.Bool   // it is, or was
	closed  error         // why no lock is taken any more
	quiet   chan struct{} // closed when nothing is under way; nil before the close and after that
	awaited int           // holds that the close has ended, and whose work has not released them
}

// timing is how long things take. It never changes.
type timing struct {
	timeout time.Duration // the watchdog's: the lease of a renewed lock
	grace   time.Duration // how long a script that was not answered may still arrive
	origin  time.Time     // of the grid on which renewals are due
}

// retryAfter is the pause between two attempts at an update or a removal.
func (t timing) retryAfter() time.Duration { return min(t.timeout/9, time.Second) }

// renewalDue returns when to renew a lease: after a third of it, as Redisson does. The time is rounded down to a grid, so that
// holders of about the same age share a pipeline.
func (t timing) renewalDue(asked time.Time, lease time.Duration) instant {
	lease = min(lease, t.timeout)
	at := asked.Add(lease / 3).Sub(t.origin)
	return instantOf(t.origin).add(at.Truncate(max(lease/30, 1)))
}

// ending is a hold whose context must end.
type ending struct {
	hold  *hold
	cause error
}

// errTooLate fails an Acquire whose lease is over before its answer arrives.
var errTooLate = errors.New("redisson: Redis took longer to answer than the lease")

func newRegistry(timeout, grace time.Duration) *registry {
	return &registry{timing: timing{timeout: timeout, grace: grace, origin: time.Now()}, alarm: time.NewTimer(forever), holders: holders{},
		onHeld: func() {}}
}

// unlock ends a transition. It moves the alarm forward if something is due before it; the alarm also goes off once in a while by
// itself, because a suspension of the machine is only noticed by looking. Then it ends the contexts of the holds that have ended.
// That comes after the mutex, because the end of a context can run foreign code.
func (s *registry) unlock() {
	if len(s.schedule) > 0 && (s.alarmAt == 0 || s.schedule[0].due < s.alarmAt) {
		now := present()
		s.alarmAt = min(s.schedule[0].due, now.add(s.timeout/30))
		s.alarm.Reset(s.alarmAt.sub(now))
	}
	if s.quiet != nil && int(s.active.Load())+s.awaited+len(s.schedule) == 0 {
		close(s.quiet)
		s.quiet = nil
	}
	ended := s.ended
	s.ended = nil
	s.mu.Unlock()
	for _, e := range ended {
		if s.metrics != nil {
			s.metrics.ended(e)
		}
		e.hold.ctx.End(e.cause)
	}
}

// begin announces an Acquire, for which a close waits until end. It fails after a close.
func (s *registry) begin() error {
	s.active.Add(1)
	if !s.closing.Load() {
		return nil
	}
	s.end()
	return ErrClosed
}

// end ends an operation that begin has counted. The last one wakes a close that waits.
func (s *registry) end() {
	if s.active.Add(-1) == 0 && s.closing.Load() {
		s.mu.Lock()
		s.unlock()
	}
}

// sleptLocked reports whether the machine was suspended for so long that leases may be over. The watchdog may not know
// of that yet.
func (s *registry) sleptLocked(now time.Time) bool {
	return suspension(s.origin, now)-s.asleep > s.timeout/3
}

// enter makes h a hold by the answer of Redis to a question about this version of its holder, or returns why it is
// none. Without an answer, it shares the holder of others, and the lease is known to last.
func (s *registry) enter(h *hold, version int32, a *answer) error {
	ended := h.ended()
	s.mu.Lock()
	defer s.unlock()
	now := present()
	if a == nil {
		h.since = now
		return s.admitLocked(h, now, ended)
	}
	s.applyLocked(h.holder, *a, version)
	err := a.Err
	switch {
	case a.Gone():
		err = h.lostError(now, h.holder.goneError())
	case err == nil:
		h.since, h.token = instantOf(a.Sent), a.Values[2]
	}
	return s.admitLocked(h, now, cmp.Or(err, ended))
}

// admitLocked makes h a hold unless there is a reason against it, or the holder or the client has come to its end.
func (s *registry) admitLocked(h *hold, now instant, reason error) error {
	ho := h.holder
	switch {
	case ho.dead:
		reason = h.lostError(now, ho.goneError())
	case reason == nil && s.closed != nil:
		reason = s.closed
	case reason == nil && now >= ho.validUntil:
		reason = errTooLate
	}
	if reason != nil {
		ho.holds = without(ho.holds, h)
		ho.changed()
		s.emptyLocked(ho, now)
		s.placeLocked(ho)
		return reason
	}
	h.state = held
	if h.lease > 0 || h.most > 0 {
		h.lastFor(cmp.Or(h.lease, h.most), h.since)
	}
	if ho.admitted == 0 {
		ho.admitted = now
		s.holders.add(ho)
		s.onHeld()
	}
	s.placeLocked(ho)
	return nil
}

// updateLocked returns the task that brings the counts of ho to Redis, with the lease that its holds need, or a longer one.
func (s *registry) updateLocked(ho *holder, lease time.Duration, why change) task {
	c := ho.counts()
	if why == reentry {
		c.added = cmp.Or(ho.holds[len(ho.holds)-1].lease, s.timeout)
	}
	cl := ho.family.update(ho, c, max(lease, ho.need(present(), s.timeout)), why)
	return task{of: ho, call: cl, version: ho.version, why: why}
}

// applyLocked applies the answer to an update of a holder that had this version of its counts. An older version may
// have been overtaken by a newer one, to which it does not apply.
func (s *registry) applyLocked(ho *holder, a answer, version int32) {
	switch {
	case ho.dead:
	case a.Yes():
		lease := ho.believe(a)
		ho.owed = 0
		if version == ho.version {
			ho.renewAt = s.renewalDue(a.Sent, lease)
			ho.outdated = lease < duration(a.Values[1]) // and will count for more later
			ho.told = false
		}
	case !a.Gone():
		ho.outdated = true
	case version == ho.version:
		s.loseLocked(ho, ho.goneError())
	default:
		ho.changed()
	}
}

// beginReentry prepares a re-entry of h under outer. The method enter must follow, unless outer or its holder is not there any more: the
// holder may have passed to another call since outer was found.
func (s *registry) beginReentry(h, outer *hold) (update task, ok bool) {
	s.mu.Lock()
	defer s.unlock()
	ho, now := h.holder, present()
	if outer.state != held || ho.dead || now >= ho.validUntil {
		return update, false
	}
	ho.add(h, now, s.timeout)
	ho.version++
	why := reentry
	if h.kind == lock.Fenced {
		why = fencing
	}
	return s.updateLocked(ho, 0, why), true
}

// discard starts to remove a holder that was not admitted from Redis, if it has taken its lock there, or may have left something. The channel is closed
// when Redis has answered; it is nil if there is nothing to remove.
func (s *registry) discard(ho *holder, took bool) (done <-chan struct{}) {
	s.mu.Lock()
	defer s.unlock()
	if took {
		ho.doubts++ // which the removal finds, and others may still arrive
	}
	if ho.queued || ho.doubts > 0 || ho.dead {
		return s.removeLocked(ho, present()).done
	}
	return nil
}

// tried applies the answer to attempts to enter that have not brought the lock: some were not answered, or the holder
// has to wait, and so stands in a queue now if its lock has one.
func (s *registry) tried(ho *holder, a answer) {
	s.mu.Lock()
	defer s.unlock()
	ho.queued = ho.queued || ho.queues && a.Err == nil && a.Values[0] == 0
	if a.Doubts > 0 {
		ho.doubts = int16(min(int(ho.doubts)+a.Doubts, math.MaxInt16))
		ho.doubtUntil = present().add(s.grace)
	}
}

// forced ends all holds of a lock that was freed by force. A holder that was admitted after the force was sent may have taken the
// lock afterwards, and is looked at.
func (s *registry) forced(id lockID, asked instant, why error) {
	s.mu.Lock()
	defer s.unlock()
	for _, ho := range slices.Clone(s.holders[id]) {
		if ho.admitted < asked {
			ho.told, ho.why = true, why
			s.loseLocked(ho, why)
		}
	}
	s.doubtLocked(s.holders[id])
}

// doubtLocked schedules a question now whether Redis still has these holders.
func (s *registry) doubtLocked(some []*holder) {
	for _, ho := range some {
		ho.changed()
		s.placeLocked(ho)
	}
}

// holds returns the live holds of a lock.
func (s *registry) holds(id lockID) (holds []*hold) {
	s.mu.Lock()
	defer s.unlock()
	for _, ho := range s.holders[id] {
		for _, h := range ho.holds {
			if h.state == held {
				holds = append(holds, h)
			}
		}
	}
	return holds
}

// busy reports whether there is a holder.
func (s *registry) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.holders) > 0
}

// oldest returns when the oldest of the holders was admitted, and zero without any. Permits do not count: nobody knows whose they are.
func (s *registry) oldest() (oldest instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ho := range s.holders.all() {
		if ho.kind != lock.Permit && (oldest == 0 || ho.admitted < oldest) {
			oldest = ho.admitted
		}
	}
	return oldest
}

// close ends all holds, because nothing will renew them. The returned channel is closed when nothing is under way any
// more, and the work of these holds has released them.
func (s *registry) close(cause error) (quiet <-chan struct{}) {
	s.mu.Lock()
	defer s.unlock()
	s.closing.Store(true)
	s.closed, s.quiet = cause, make(chan struct{})
	for _, e := range slices.Clone(s.schedule) {
		if ho, ok := e.of.(*holder); ok {
			s.awaited -= int(ho.unreleased)
			s.loseLocked(ho, cause)
			s.awaited += int(ho.unreleased)
		}
	}
	return s.quiet
}

// stopAwaiting ends a close's wait for the work of the holds that it has ended.
func (s *registry) stopAwaiting() {
	s.mu.Lock()
	defer s.unlock()
	s.awaited = 0
}

// loseLocked ends all holds of ho, unless its release is under way. The rest of it in Redis goes when their work
// releases them, and soon if all were still joining. Kept holds stay, for a successor.
func (s *registry) loseLocked(ho *holder, reason error) {
	if ho.dead {
		return
	}
	now := present()
	used := slices.ContainsFunc(ho.holds, func(h *hold) bool { return h.state != joining })
	for _, h := range slices.Clone(ho.holds) {
		if h.state != released {
			s.endLocked(h, h.lostError(now, reason))
		}
	}
	s.buryLocked(ho)
	if !used { // the lock is passing on, and the answer has it removed
		s.removeLocked(ho, now.add(s.grace))
	}
}

// endLocked ends one hold, which is released without a loss, and its context after the transition.
func (s *registry) endLocked(h *hold, loss *lock.LostError) {
	h.holder.holds = without(h.holder.holds, h)
	if h.state != held {
		return
	}
	h.state, h.loss = released, loss
	end := ending{hold: h}
	if loss != nil {
		h.state, end.cause = lost, loss
		h.holder.unreleased++
	}
	s.ended = append(s.ended, end)
}

// emptyLocked removes ho at the given time if it has no holds left.
func (s *registry) emptyLocked(ho *holder, at instant) {
	if !ho.dead && len(ho.holds) == 0 {
		s.buryLocked(ho)
		s.removeLocked(ho, at)
	}
}

// buryLocked takes ho from the holders that are alive.
func (s *registry) buryLocked(ho *holder) {
	ho.dead = true
	s.holders.remove(ho)
	s.placeLocked(ho)
}

// placeLocked gives ho its place in the schedule.
func (s *registry) placeLocked(ho *holder) { s.schedule.set(&ho.entry, ho, ho.attention()) }
