package redisson

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
	"github.com/latchkey-go/latchkey/redisson/internal/transport"
	"github.com/redis/go-redis/v9"
)

// takeDue ends the holds that are over by now, and returns the questions for Redis. The next alarm is set by unlock.
func (s *registry) takeDue() (todo []task) {
	s.mu.Lock()
	defer s.unlock()
	s.alarmAt = 0
	wall, now := time.Now(), present()
	if s.sleptLocked(wall) {
		s.doubtLocked(slices.Collect(s.holders.all())) // the lease of each may be over
	}
	s.asleep = suspension(s.origin, wall)
	for len(s.schedule) > 0 && s.schedule[0].due <= now {
		switch due := s.schedule[0].of.(type) {
		case *holder:
			s.expireLocked(due, now)
			if !due.dead && (due.outdated || due.renewed()) && now >= due.renewAt {
				todo = append(todo, s.renewLocked(due, now))
			}
			s.placeLocked(due)
		case *retry:
			if now < due.until {
				todo = append(todo, task{of: due, call: due.call, first: due.pause == 0})
				due.again(&s.schedule, s.timing, now, max(firstAgain, 4*due.pause))
			} else {
				due.finish(&s.schedule)
			}
		}
	}
	return todo
}

// renewLocked returns the task that renews ho, which is due. It is due again, should Redis not confirm it.
func (s *registry) renewLocked(ho *holder, now instant) task {
	ho.owed, ho.renewAt = cmp.Or(ho.owed, ho.renewAt), now.add(s.retryAfter())
	t := s.updateLocked(ho, 0, renewal)
	t.due = ho.owed
	return t
}

// doubtAll schedules a question to Redis about all holders.
func (s *registry) doubtAll() {
	s.mu.Lock()
	defer s.unlock()
	s.doubtLocked(slices.SortedFunc(s.holders.all(), func(a, b *holder) int { return cmp.Compare(a.name(), b.name()) }))
}

// told schedules a question to Redis about a holder that is said to be gone. It is lost only if Redis does not have it.
func (s *registry) told(name, id string, why error) {
	s.mu.Lock()
	defer s.unlock()
	for _, family := range []lock.Kind{lock.Exclusive, lock.Write} {
		for _, ho := range s.holders[lockID{name, family}] {
			if ho.id == id && !ho.told { // one question at a time: many would overtake each other, and none would count
				ho.told, ho.why = true, why
				s.doubtLocked([]*holder{ho})
			}
		}
	}
}

// answered notes the answers to tasks.
func (s *registry) answered(tasks []task, answers []answer) {
	s.mu.Lock()
	defer s.unlock()
	for i, t := range tasks {
		switch of := t.of.(type) {
		case *holder:
			if a := answers[i]; a.Err != nil && !a.Gone() {
				of.lastErr = a.Err
			}
			s.applyLocked(of, answers[i], t.version)
			s.placeLocked(of)
		case *retry:
			s.retriedLocked(of, answers[i])
		}
	}
}

// expireLocked ends the holds of ho whose time is over, and all of them once ho itself is not valid any more. When the last hold
// ends by its own lease, the lock is removed then, and does not stay for the lease that it has in Redis.
func (s *registry) expireLocked(ho *holder, now instant) {
	for i := 0; i < len(ho.holds); {
		h := ho.holds[i]
		if h.ends == 0 || now < h.ends {
			i++
			continue
		}
		s.endLocked(h, h.lostError(now, h.lapse()))
		ho.changed()
		ho.renewAt = min(h.over, now.add(s.retryAfter())) // the work has that long to take notice
		s.emptyLocked(ho, h.over)
	}
	if !ho.dead && now >= ho.validUntil {
		s.loseLocked(ho, ho.lapse())
	}
}

// watch sends the tasks that are due until stop is closed. Each master gets a pipeline of its own, so that a silent one
// does not delay the renewals on others. A pipeline is given up after a third of the watchdog's timeout. Nobody waits
// for it: its tasks are due again before that.
func (c *Client) watch(stop <-chan struct{}) {
	for {
		select {
		case <-c.registry.alarm.C:
		case <-stop:
			return
		}
		for _, part := range pubsub.ByMaster(c.topology, c.registry.takeDue(), func(t task) string { return t.call.Keys[0] }) {
			c.dispatch(c.together(part), time.Now())
		}
	}
}

// dispatch sends packs for one master, one pipeline after the other. It drops the rest when that takes too long: by
// then they are due again. Tasks that have to ask for themselves do so in any case, or the same packs would ask a slow
// server for ever.
func (c *Client) dispatch(packs []pack, due time.Time) {
	part, rest := pipeline(packs)
	by := time.Now().Add(min(c.timeout, c.registry.timeout/3))
	c.road.Post(callsOf(part), by, func(all []answer) {
		tasks, answers, unsaid := c.openAll(part, all)
		c.registry.answered(tasks, answers)
		c.metrics.renewed(tasks, answers)
		if time.Since(due) >= c.registry.retryAfter() {
			rest = nil
		}
		if rest = append(alone(unsaid), rest...); len(rest) > 0 {
			c.dispatch(rest, due)
		}
	})
}

// pipeline cuts off as many packs as travel together, one at least.
func pipeline(packs []pack) (part, rest []pack) {
	n, tasks := 1, len(packs[0])
	for n < len(packs) && tasks+len(packs[n]) <= transport.BatchSize {
		tasks += len(packs[n])
		n++
	}
	return packs[:n], packs[n:]
}

// retry is a script that is repeated in the background until Redis has answered it. It removes a holder that is not
// alive any more, or makes a change to a number. The watchdog sends it when it is due, and gives up at until: by then,
// the holder has ended by itself. The mutex of the registry guards it.
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

// retriedLocked notes the answer to a retry. While an attempt of the holder to enter may still arrive, the answer "not
// there" proves nothing. Neither does a removal, if an attempt with an answer took the entry. An attempt can be as late
// as Redis was silent, so that time counts from the first answer.
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

// again schedules rt after the pause, or a part of it: those of about the same time travel together.
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

// refused is the error for a permanent refusal of Redis.
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

// instant is a time on the monotonic clock: a third as long as a time.Time, of which a holder would have nine. Zero is no time.
type instant int64

// epoch is long before the process, so that all its instants are positive, those of tests in virtual time included.
var epoch = time.Now().Add(-100 * 365 * 24 * time.Hour)

func present() instant { return instant(time.Since(epoch)) } // which reads one clock, and time.Now two

func instantOf(t time.Time) instant { return instant(t.Sub(epoch)) }

func (i instant) time() time.Time { return epoch.Add(time.Duration(i)) }

// add returns the latest instant if the sum is later than that.
func (i instant) add(d time.Duration) instant {
	if d > 0 && i > math.MaxInt64-instant(d) {
		return math.MaxInt64
	}
	return i + instant(d)
}

func (i instant) sub(from instant) time.Duration { return time.Duration(i - from) }

// soonInterval is how long the watchdog collects new work. Work of about the same time travels together, and not before
// work that was due already.
const soonInterval = time.Millisecond

func soon() instant { return present().add(soonInterval) }

// forever is longer than anything waits.
const forever = 100 * 365 * 24 * time.Hour

// schedule is a heap of the registry's work. The entry that is due first is at the top.
type schedule []*entry

// entry is the part of a holder or a retry that the schedule needs.
type entry struct {
	of    any // a *holder or a *retry
	due   instant
	index int // in the heap, from 1; 0 when not there
}

// set gives the entry a time, or takes it out of the schedule if that is zero.
func (s *schedule) set(e *entry, of any, due instant) {
	switch e.of, e.due = of, due; {
	case due == 0 && e.index > 0:
		heap.Remove(s, e.index-1)
	case due == 0:
	case e.index > 0:
		heap.Fix(s, e.index-1)
	default:
		heap.Push(s, e)
	}
}

// Len implements [heap.Interface].
func (s schedule) Len() int { return len(s) }

// Less implements [heap.Interface].
func (s schedule) Less(i, j int) bool { return s[i].due < s[j].due }

// Swap implements [heap.Interface].
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i+1, j+1
}

// Push implements [heap.Interface].
func (s *schedule) Push(x any) {
	*s = append(*s, x.(*entry))
	(*s)[len(*s)-1].index = len(*s)
}

// Pop implements [heap.Interface].
func (s *schedule) Pop() any {
	last := len(*s) - 1
	e := (*s)[last]
	(*s)[last], e.index = nil, 0
	*s = (*s)[:last]
	return e
}

// without returns list without one element, in place.
func without[T comparable](list []T, x T) []T {
	if i := slices.Index(list, x); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// alarm calls a function some time after it was set, in a goroutine of its own, and can be set again from then on.
type alarm struct {
	f     func()
	armed atomic.Bool
}

// set schedules the call of the function after d, unless it will be called anyway.
func (a *alarm) set(d time.Duration) {
	if !a.armed.Swap(true) {
		time.AfterFunc(d, a.ring)
	}
}

func (a *alarm) ring() {
	a.armed.Store(false) // what comes up from now on sets it again
	a.f()
}
