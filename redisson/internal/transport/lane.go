package transport

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// lane leads to one master. There are three ways along it:
//
//   - A worker sends the oldest question that is queued, and waits for the answer in place of the asker. A lane has at most as many
//     workers as go-redis has connections, so a silent server holds up no other server and no more goroutines than that.
//   - Directly: the asker itself sends its question in a session. That saves two switches between goroutines, which take as long as a
//     round trip on a fast network. The asker can't leave before the socket does, so it waits no longer than directTimeout. Then a
//     worker sends the question again.
//   - Gathered: once GatherFrom questions are open, only a few workers send, each all that is queued in one pipeline.
//
// The last two are for a quick lane, one whose last answer came soon. The first answer that is late or lost ends that, and then each
// question has a worker of its own again. A lane is never quick where replicas confirm locks: WAIT is for the writes of its own
// connection. The road's mutex guards a lane.
type lane struct {
	queue   []*question // that were not sent; some may be over
	filled  sync.Cond   // there is something to do for a worker, or the road is closed
	open    int         // questions that are not over
	crowded bool        // by them
	since   time.Time   // when they were last that many
	workers int
	idle    int // workers that wait for a question
	busy    int // workers that wait for an answer
	early   int // of these, those whose question was sent before there was any answer
	quick   bool

	heard, left time.Time // the last answer, zero: none; and when a worker last left for one

	followers followers

	sessions []*session // idle; the one used last is the last
	made     int        // sessions, those in use included
}

// session is a connection that a lane has borrowed from go-redis' pool. It is in use by one goroutine, or idle.
type session struct {
	*redis.Conn
	since time.Time // when it was borrowed
	trip  trip      // of the question under way
}

const (
	// GatherFrom is how many questions are open when gathering begins to pay, and gatherers is how many pipelines are then under way.
	GatherFrom = 20
	gatherers  = 3
	// BatchSize bounds the calls of a pipeline.
	BatchSize = 500
	// crowdedFor is how long a lane stays crowded at least.
	crowdedFor = 5 * time.Millisecond
	// directTimeout is how long one waits for an answer in a session.
	directTimeout = GoneInterval
	// quickAnswer is how soon the answers of a quick lane come.
	quickAnswer = directTimeout / 2
	// sessionAge is how long a session is kept from the pool. Of a connection that was not in the pool for 5s, or never, go-redis looks
	// at the socket before and after each command: two more system calls and two allocations.
	sessionAge = 2 * time.Second
)

func (l *lane) gathering() bool { return l.quick && l.crowded }

// addLocked changes the number of questions that are open. A lane gets crowded by many, and stays so for a while: answers to many at
// once leave it empty for a moment.
func (l *lane) addLocked(n int) {
	l.open += n
	if l.open >= GatherFrom {
		l.crowded, l.since = true, time.Now()
	} else if l.crowded && time.Since(l.since) > crowdedFor {
		l.crowded = false
	}
}

// send brings a question on its way. What is not sent before its deadlines are over never will be.
func (r *Road) send(q *question) {
	address := r.topology.Master(q.calls[0].Keys[0])
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.laneLocked(address)
	q.lane, q.asked = l, time.Now()
	l.addLocked(1)
	l.queue, r.open = append(l.queue, q), append(r.open, q)
	r.sweepLocked(q.asked.Add(sweepInterval))
	r.callWorkersLocked(l)
}

// laneLocked returns the lane to a master.
func (r *Road) laneLocked(address string) *lane {
	l := r.lanes[address]
	if l == nil {
		l = &lane{filled: sync.Cond{L: &r.mu}}
		r.lanes[address] = l
	}
	return l
}

// callWorkersLocked has a worker come for what is queued, unless enough are under way.
func (r *Road) callWorkersLocked(l *lane) {
	if len(l.queue) == 0 || l.gathering() && l.busy >= gatherers {
		return
	}
	l.filled.Signal()
	if len(l.queue) > l.idle && l.workers < r.Workers {
		l.workers++
		go r.work(l)
	}
}

// work answers what comes along a lane. After close it ends as soon as nothing is queued.
func (r *Road) work(l *lane) {
	for qs, by := r.next(l); qs != nil; qs, by = r.next(l) {
		calls := slices.Grow(slices.Clip(qs[0].calls), len(qs)-1)
		for _, q := range qs[1:] {
			calls = append(calls, q.calls...)
		}
		sent := time.Now()
		t, ss := r.depart(l, calls, by)
		answers := r.perform(t, calls)
		r.end(l, ss, sent, qs, answers)
		for i, cl := range calls {
			r.Observer.Asked(sent, cl, answers[i])
		}
	}
}

// next returns the questions that a worker is to send together, and the latest of their deadlines.
func (r *Road) next(l *lane) (qs []*question, by time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for len(l.queue) == 0 || l.gathering() && l.busy >= gatherers {
			if r.closed && len(l.queue) == 0 {
				l.workers--
				return nil, by
			}
			l.idle++
			l.filled.Wait()
			l.idle--
		}
		n := 1
		if l.gathering() {
			n = min(len(l.queue), BatchSize)
		}
		for _, q := range l.queue[:n] {
			if !q.over {
				q.sent = time.Now()
				if qs = append(qs, q); q.by.After(by) {
					by = q.by
				}
			}
		}
		l.queue = l.queue[n:]
		if len(qs) > 0 {
			l.busy, l.left = l.busy+1, time.Now()
			if qs[0].early = l.heard.IsZero(); qs[0].early {
				l.early++
			}
			r.callWorkersLocked(l)
			return qs, by
		}
	}
}

// arriveLocked notes that somebody is back who was sent at the given time, perhaps in a session. That is kept for the next question, or its
// connection is given back.
func (r *Road) arriveLocked(l *lane, ss *session, sent time.Time, answered bool) {
	now := time.Now()
	l.busy--
	if answered {
		l.heard = now
	}
	l.quick = answered && now.Sub(sent) < quickAnswer
	if ss != nil {
		l.sessions = append(l.sessions, ss)
		r.returnSessionsLocked(l, now)
	}
	r.callWorkersLocked(l)
}

// end ends questions that a worker has sent together, with the answers to all of their calls.
func (r *Road) end(l *lane, ss *session, sent time.Time, qs []*question, answers []Answer) {
	answered := !slices.ContainsFunc(answers, Answer.Failed)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range qs {
		own := answers[:len(q.calls)]
		answers = answers[len(q.calls):]
		r.judgeLocked(q, own)
		if !q.over {
			q.endLocked(own)
		}
		if q.posted != nil {
			go q.posted(own)
		}
	}
	if qs[0].early {
		l.early--
	}
	r.arriveLocked(l, ss, sent, answered)
}

// askDirectly performs a call once, if there is a session for it and enough time to ask again.
func (r *Road) askDirectly(now, by time.Time, cl Call) (a Answer, ok bool) {
	if by.Sub(now) < 2*directTimeout {
		return a, false
	}
	ss := r.borrow(cl.Keys[0])
	if ss == nil {
		return a, false
	}
	ss.trip.by = now.Add(directTimeout)
	a = r.performOne(&ss.trip, cl, evalsha)
	wrong := a.Err != nil && a.elsewhere()
	if !wrong { // or a worker tells of it, who asks again
		r.Observer.Asked(now, cl, a)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ss.trip.lane.open--
	r.arriveLocked(ss.trip.lane, ss, now, a.Err == nil || !a.Failed())
	return a, !wrong && !errors.Is(a.Err, ErrNotReplicated) // for which there is more time elsewhere
}

// borrow returns an idle session to the master of a key, if that is the way for one more question.
func (r *Road) borrow(key string) (ss *session) {
	address := r.topology.Master(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lanes[address]
	if l == nil || !l.quick || l.crowded || l.open >= GatherFrom || len(l.sessions) == 0 {
		return nil
	}
	last := len(l.sessions) - 1
	ss, l.sessions = l.sessions[last], l.sessions[:last]
	l.open++ // but a crowd only begins, and ends, with a question for a worker
	l.busy++
	return ss
}

// depart begins a worker's trip, in a new session if the lane is quick and may have one more. The call is its first use, which takes a
// connection from the pool, and perhaps sets it up. There go-redis (9.23) reads options that it may write while it sets up others, with a
// mutex that a Conn does not share with its client. It writes for the first connections to a server, so sessions come after these.
func (r *Road) depart(l *lane, calls []Call, by time.Time) (t *trip, ss *session) {
	t, key := &trip{Context: context.Background(), by: by, via: r.rdb}, calls[0].Keys[0]
	t.publish, t.err = r.topology.Publish(t)
	t.node = r.topology.Node(key)
	address := r.topology.Master(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	t.lane = r.laneLocked(address)
	if len(calls) > 1 || t.err != nil || t.node == nil || t.lane != l || !l.quick || l.early > 0 || l.gathering() || l.made >= r.sessions || r.closed {
		return t, nil
	}
	l.made++
	ss = &session{Conn: t.node.Conn(), since: time.Now()}
	t.via = ss
	ss.trip = *t
	return t, ss
}

// returnSessionsLocked gives back the connections that were borrowed for long, and all of a lane that is not quick. To close one can take time,
// and nobody waits for that.
func (r *Road) returnSessionsLocked(l *lane, now time.Time) {
	l.sessions = slices.DeleteFunc(l.sessions, func(ss *session) bool {
		if l.quick && !r.closed && now.Sub(ss.since) < sessionAge {
			r.sweepLocked(ss.since.Add(sessionAge))
			return false
		}
		l.made--
		go func() { _ = ss.Close() }() // says nothing of use
		return true
	})
}
