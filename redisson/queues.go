package redisson

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// After a failover, or a restart from older data, the queues of fair locks have waiters again that were served long ago. Others would wait for
// each of them as for a dead one. So a client removes its own: when it hears that one is at the head, and when Redis was away.

// queues is what a client knows of its places in the queues of fair locks. The mutex of claims guards it.
type queues struct {
	entry                       // when to look through the queues
	waiting  map[int64]bool     // the ends of the numbers of those that wait, as scripts tell them
	names    map[string]instant // of the locks, with the last time when somebody began to wait
	starting bool               // it is time to look, and nobody has seen to that yet
}

// sweepAfter is how long after Redis was away the queues are looked through, and again until it has answered for all of them.
const sweepAfter = time.Second

// mostSwept is how many locks are remembered for that.
const mostSwept = 10_000

// endOf returns the last digits of a holder's number: as many as Lua can count with, and as scripts answer.
func endOf(id string) int64 {
	n, _ := strconv.ParseInt(id[max(0, len(id)-15):], 10, 64)
	return n
}

// stand notes that ho is about to get in line. The caller calls leave when it does not wait any more.
func (s *claims) stand(ho *holder) {
	s.mu.Lock()
	defer s.unlock()
	q := &s.queues
	if q.waiting == nil {
		q.waiting, q.names = map[int64]bool{}, map[string]instant{}
	}
	for name := range q.names {
		if len(q.names) < mostSwept {
			break
		}
		delete(q.names, name)
	}
	q.waiting[endOf(ho.id)], q.names[ho.name()] = true, present()
}

func (s *claims) leave(ho *holder) {
	s.mu.Lock()
	defer s.unlock()
	delete(s.queues.waiting, endOf(ho.id))
}

// stands reports whether that is the end of the number of somebody who waits.
func (s *claims) stands(end int64) bool {
	s.mu.Lock()
	defer s.unlock()
	return s.queues.waiting[end]
}

// away has the queues looked through in a while, as Redis has not answered.
func (s *claims) away() {
	s.mu.Lock()
	defer s.unlock()
	if q := &s.queues; len(q.names) > 0 && q.index == 0 && s.closed == nil {
		s.schedule.set(&q.entry, q, present().add(sweepAfter))
	}
}

// sweepLocked notes that it is time to look through the queues.
func (s *claims) sweepLocked() {
	s.queues.starting = true
	s.schedule.set(&s.queues.entry, &s.queues, 0)
}

// toSweep returns the names of the locks whose queues are to be looked through now. What was long ago is forgotten.
func (s *claims) toSweep() (names []string) {
	s.mu.Lock()
	defer s.unlock()
	if !s.queues.starting {
		return nil
	}
	s.queues.starting = false
	for name, last := range s.queues.names {
		if present().sub(last) > queueMemory {
			delete(s.queues.names, name)
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// sweepAll looks through queues, and later again if Redis does not answer.
func (c *Client) sweepAll(names []string) {
	for _, name := range names {
		if !c.sweep(c.ctx, time.Now().Add(c.timeout), name) {
			c.claims.away()
			return
		}
	}
}

// sweep removes those from the queue of a fair lock who wait no more, of this client, and reports whether Redis has answered. Who stands there
// now, and is not among those who wait when the answer comes, is over: a waiter is noted before it gets in line.
func (c *Client) sweep(ctx context.Context, by time.Time, name string) bool {
	var over []any
	for {
		a := c.road.Ask(ctx, by, call{Script: fairOwn, Keys: fairKeys(name), Args: append([]any{c.id + ":", lockChannel(name)}, over...)})
		if a.Err != nil {
			return lasting(a.Err)
		}
		over = nil
		for _, id := range a.List {
			if id, ok := id.(string); ok && !c.claims.stands(endOf(id)) {
				over = append(over, id)
			}
		}
		if len(over) == 0 {
			return true
		}
	}
}

// haunted reports whether a refusal names a waiter of this client that waits no more.
func (c *Client) haunted(kind lock.Kind, a answer) bool {
	return kind == lock.Fair && a.Values[0] == 0 && a.Values[2] != 0 && !c.claims.stands(a.Values[2])
}
