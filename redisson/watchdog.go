package redisson

import (
	"container/heap"
	"slices"
	"time"
)

// task is a script that is due: an update of a holder, or a retry.
type task struct {
	what    scheduled
	call    call
	version int
}

// takeDue ends what is over by now, sets the next alarm, and returns what Redis is to be asked.
func (s *claims) takeDue() (todo []task) {
	s.mu.Lock()
	defer s.unlock()
	now := time.Now()
	asleep := suspension(s.origin, now)
	if asleep-s.asleep > s.timeout/3 {
		for _, hos := range s.byLock {
			for _, ho := range hos {
				ho.changed()
				s.placeLocked(ho)
			}
		}
	}
	s.asleep = asleep
	for len(s.schedule) > 0 && !s.schedule[0].due().After(now) {
		switch t := s.schedule[0].(type) {
		case *holder:
			s.expireLocked(t, now)
			if !t.dead && (t.outdated || t.renewed()) && !now.Before(t.renewAt) {
				t.renewAt = now.Add(s.retryAfter())
				todo = append(todo, s.updateLocked(t, 0, renewal))
			}
			s.placeLocked(t)
		case *retry:
			if !now.Before(t.until) {
				s.finishLocked(t)
				continue
			}
			t.next = now.Add(s.retryAfter())
			todo = append(todo, task{what: t, call: t.call})
			s.placeLocked(t)
		}
	}
	s.alarmAt = time.Time{}
	if len(s.schedule) > 0 {
		s.setAlarmLocked(s.schedule[0].due())
	}
	return todo
}

// answered notes the answers to tasks.
func (s *claims) answered(tasks []task, answers []answer) {
	s.mu.Lock()
	defer s.unlock()
	for i, t := range tasks {
		switch what := t.what.(type) {
		case *holder:
			s.applyLocked(what, answers[i], t.version)
			s.placeLocked(what)
		case *retry:
			s.retriedLocked(what, answers[i])
		}
	}
}

// expireLocked ends the holds of ho whose time is over, and all of them once ho itself is not valid any more. When the last hold
// ends by its own lease, the lock is removed then, and does not stay for the lease that it has in Redis.
func (s *claims) expireLocked(ho *holder, now time.Time) {
	for _, h := range slices.Clone(ho.holds) {
		if h.ends.IsZero() || now.Before(h.ends) {
			continue
		}
		s.endLocked(h, lost, h.lostError(now, h.lapse()))
		ho.changed()
		ho.renewAt = earlier(h.over, now.Add(s.retryAfter())) // the work has that long to take notice
		if len(ho.holds) == 0 {
			s.buryLocked(ho)
			s.removeLocked(ho, h.over)
		}
	}
	if !ho.dead && !now.Before(ho.validUntil) {
		s.loseLocked(ho, ho.lapse())
	}
}

// retryAfter is the pause between two attempts at an update or a removal.
func (s *claims) retryAfter() time.Duration { return min(s.timeout/9, time.Second) }

// renewalDue returns when to renew a lease: after a third of it, as Redisson does. The time is rounded down to a grid, so that
// holders of about the same age share a pipeline.
func (s *claims) renewalDue(asked time.Time, lease time.Duration) time.Time {
	lease = min(lease, s.timeout)
	at := asked.Add(lease / 3).Sub(s.origin)
	return s.origin.Add(at.Truncate(max(lease/30, 1)))
}

// soonInterval is how long the watchdog collects what has just come up. What comes up at about the same time travels together, and
// not before what was due already.
const soonInterval = time.Millisecond

func soon() time.Time { return time.Now().Add(soonInterval) }

// batchSize bounds a pipeline, so that its answer comes well before the next attempt is due.
const batchSize = 500

// watch sends what is due until stop is closed. Each master gets a pipeline of its own, so that a silent one does not delay the
// renewals on others. A pipeline is given up after a third of the watchdog's timeout. Nobody waits for it: its tasks are due
// again before that.
func (c *Client) watch(stop <-chan struct{}) {
	for {
		select {
		case <-c.claims.alarm.C:
		case <-stop:
			return
		}
		byMaster := map[string][]task{}
		var masters []string
		for _, e := range c.claims.takeDue() {
			master := c.topology.Master(e.call.keys[0])
			if byMaster[master] == nil {
				masters = append(masters, master)
			}
			byMaster[master] = append(byMaster[master], e)
		}
		for _, m := range masters {
			c.dispatch(byMaster[m], time.Now())
		}
	}
}

// dispatch sends tasks for one master, one part after the other. It drops the rest when that takes too long: by then they are due
// again.
func (c *Client) dispatch(tasks []task, due time.Time) {
	part := tasks[:min(batchSize, len(tasks))]
	rest := tasks[len(part):]
	calls := make([]call, len(part))
	for i, e := range part {
		calls[i] = e.call
	}
	c.road.post(calls, time.Now().Add(min(c.timeout, c.claims.timeout/3)), func(answers []answer) {
		c.claims.answered(part, answers)
		if len(rest) > 0 && time.Since(due) < c.claims.retryAfter() {
			c.dispatch(rest, due)
		}
	})
}

// scheduled is something that claims have to see to at a time.
type scheduled interface {
	due() time.Time
	finished() bool
	place() *int // in the heap; -1 when not there
}

// placeLocked puts t where it belongs in the heap, or takes it out.
func (s *claims) placeLocked(t scheduled) {
	switch i := *t.place(); {
	case t.finished():
		if i >= 0 {
			heap.Remove(&s.schedule, i)
		}
	case i < 0:
		heap.Push(&s.schedule, t)
	default:
		heap.Fix(&s.schedule, i)
	}
}

// schedule implements heap.Interface.
type schedule []scheduled

func (h schedule) Len() int           { return len(h) }
func (h schedule) Less(i, j int) bool { return h[i].due().Before(h[j].due()) }

func (h schedule) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].place(), *h[j].place() = i, j
}

func (h *schedule) Push(x any) {
	t := x.(scheduled)
	*t.place() = len(*h)
	*h = append(*h, t)
}

func (h *schedule) Pop() any {
	old := *h
	t := old[len(old)-1]
	*t.place() = -1
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}

// without returns list without one element, in place.
func without[T comparable](list []T, x T) []T {
	if i := slices.Index(list, x); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
