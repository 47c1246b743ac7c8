package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/redis/go-redis/v9"
)

// lane leads to one master. There are three ways along it:
//
//   - A worker sends the oldest question that is queued, and waits for the answer in place of the asker. A lane has at most as many
//     workers as go-redis has connections, so a silent server holds up no other server and no more goroutines than that.
//   - Directly: the asker itself sends its question. That saves two switches between goroutines, which take as long as a
//     round trip on a fast network. The asker can't leave before the socket does, so it waits no longer than directTimeout. Then a
//     worker sends the question again.
//   - Gathered: once GatherFrom questions are open, only a few workers send, each all that is queued in one pipeline.
//
// The last two are for a quick lane, one whose last answer came soon. The first answer that is late or lost ends that, and then each
// question has a worker of its own again. The road's mutex guards a lane.
type lane struct {
	queue   []*question // that were not sent; some may be over
	filled  sync.Cond   // there is something to do for a worker, or the road is closed
	open    int         // questions that are not over
	workers int
	idle    int // workers that wait for a question
	busy    int // workers, and others, that wait for an answer
	quick   bool

	heard, left time.Time // the last answer, zero: none; and when a worker last left for one

	followers followers
}

const (
	// GatherFrom is how many questions are open when gathering begins to pay, and gatherers is how many pipelines are then under way.
	GatherFrom = 20
	gatherers  = 3
	// BatchSize bounds the calls of a pipeline.
	BatchSize = 500
	// directTimeout is how long an asker waits itself for an answer.
	directTimeout = GoneInterval
	// quickAnswer is how soon the answers of a quick lane come.
	quickAnswer = directTimeout / 2
)

func (l *lane) gathering() bool { return l.quick && l.open >= GatherFrom }

// send brings a question on its way. A question that is not sent before its deadlines are over never will be.
func (r *Road) send(q *question) {
	address := r.topology.Master(q.calls[0].Keys[0])
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.laneLocked(address)
	q.lane, q.asked = l, time.Now()
	l.open++
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

// callWorkersLocked makes a worker come for the queued questions, unless enough are under way.
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

// work answers the questions of a lane. After close it ends as soon as nothing is queued.
func (r *Road) work(l *lane) {
	for qs, by := r.next(l); qs != nil; qs, by = r.next(l) {
		calls := slices.Grow(slices.Clip(qs[0].calls), len(qs)-1)
		for _, q := range qs[1:] {
			calls = append(calls, q.calls...)
		}
		sent := time.Now()
		answers := r.perform(r.depart(calls[0].Keys[0], by), calls)
		r.end(l, sent, qs, answers)
		for i, cl := range calls {
			r.Observer.Asked(sent, cl, answers[i])
		}
	}
}

// next returns the questions for a worker to send together, and the latest of their deadlines.
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
			r.callWorkersLocked(l)
			return qs, by
		}
	}
}

// arriveLocked notes that a worker is back that left at the given time.
func (r *Road) arriveLocked(l *lane, sent time.Time, answered bool) {
	now := time.Now()
	l.busy--
	if answered {
		l.heard = now
	}
	l.quick = answered && now.Sub(sent) < quickAnswer
	r.callWorkersLocked(l)
}

// end ends questions that a worker has sent together, with the answers to all of their calls.
func (r *Road) end(l *lane, sent time.Time, qs []*question, answers []Answer) {
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
	r.arriveLocked(l, sent, answered)
}

// askDirectly performs a call once, if that is the way for one more question and there is enough time to ask again.
func (r *Road) askDirectly(now, by time.Time, cl Call) (a Answer, ok bool) {
	if by.Sub(now) < 2*directTimeout {
		return a, false
	}
	l, node := r.direct(cl.Keys[0])
	if node == nil {
		return a, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), directTimeout) // also for a connection of the pool
	defer cancel()
	t := &trip{Context: ctx, by: now.Add(directTimeout), via: node, node: node, lane: l}
	t.publish, t.err = r.topology.Publish(t)
	a = r.performOne(t, cl, evalsha)
	wrong := a.Err != nil && a.elsewhere()
	if !wrong { // or a worker tells of it, who asks again
		r.Observer.Asked(now, cl, a)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l.open--
	r.arriveLocked(l, now, a.Err == nil || !a.Failed())
	return a, !wrong && !errors.Is(a.Err, ErrNotReplicated) // for which there is more time elsewhere
}

// direct begins a direct question, if that is the way for one more. It returns the lane and the master; nil otherwise.
func (r *Road) direct(key string) (*lane, *redis.Client) {
	address, node := r.topology.Master(key), r.topology.Node(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lanes[address]
	if node == nil || l == nil || !l.quick || l.open >= GatherFrom || l.busy >= r.mostDirect {
		return nil, nil
	}
	l.open++
	l.busy++
	return l, node
}

// depart begins a worker's trip to the master of a key.
func (r *Road) depart(key string, by time.Time) *trip {
	t := &trip{Context: context.Background(), by: by, via: r.rdb}
	t.publish, t.err = r.topology.Publish(t)
	t.node = r.topology.Node(key)
	address := r.topology.Master(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	t.lane = r.laneLocked(address)
	return t
}

// A question can fail though Redis would have answered it: where it got no connection in time, and where this process
// was too busy to hear the answer. That is overload, and no outage of Redis. The asker treats both alike.

// silenceLocked returns the error of q, whose time is over now: ErrNoAnswer if Redis was silent, or overload. It is overload if q stood in line for
// most of its time while others were answered or had no connection, if this process is too busy to hear, or if others have the connections.
func (r *Road) silenceLocked(q *question, now time.Time) error {
	half := now.Sub(q.asked) / 2
	inLine := q.sent.IsZero() || q.sent.Sub(q.asked) > half
	if inLine && (now.Sub(q.lane.heard) < half || now.Sub(r.crowded) < half) || r.lateLocked(now) > half/2 || r.lentOutLocked(q, now.Add(-half/2)) {
		r.crowded = now
		return r.Overload
	}
	return ErrNoAnswer
}

// lateLocked returns how late the sweeper has been lately: a measure of how busy this process is.
func (r *Road) lateLocked(now time.Time) time.Duration {
	if r.sweepAt.IsZero() {
		return r.late
	}
	return r.late + max(0, now.Sub(r.sweepAt))
}

// lentOutLocked reports whether go-redis may still have no connection for q: others have all of them, and our workers stand in its line since the
// given time. For a moment they do so as well where Redis is silent, behind questions that were given up.
func (r *Road) lentOutLocked(q *question, since time.Time) bool {
	node := r.topology.Node(q.calls[0].Keys[0])
	if node == nil || q.lane.left.After(since) {
		return false
	}
	s := node.PoolStats()
	return q.lane.busy > 0 && int(s.PendingRequests) >= q.lane.busy && int(s.TotalConns-s.IdleConns) >= r.Workers
}

// judgeLocked gives a reason to those answers to q that a worker did not get, and whose time is over.
func (r *Road) judgeLocked(q *question, answers []Answer) {
	for i := range answers {
		switch a := &answers[i]; {
		case a.Err == nil, reply.IsReply(a.Err):
		case errors.Is(a.Err, r.Overload):
			r.crowded = time.Now()
		case !time.Now().Before(q.by):
			a.Err = r.silenceLocked(q, time.Now())
		}
	}
}

// NoAnswer is the error of a caller that has waited for that long for the answer to another's question.
func (r *Road) NoAnswer(after time.Duration) error {
	r.mu.Lock()
	now := time.Now()
	crowded := now.Sub(r.crowded) < after || r.lateLocked(now) > after/4
	r.mu.Unlock()
	return r.noAnswer(after, crowded)
}

func (r *Road) noAnswer(after time.Duration, crowded bool) error {
	after = after.Round(time.Millisecond)
	if !crowded {
		return fmt.Errorf("redisson: %w within %v", ErrNoAnswer, after)
	}
	queued, _, late := r.Load()
	return fmt.Errorf("redisson: %w within %v, with %d questions in line for %d connections in a process that is %v late: ask less at once, "+
		"or give it more CPU, or go-redis a larger PoolSize", r.Overload, after, queued, r.Workers, late.Round(time.Millisecond))
}

// Load returns how many questions are in line for a connection, how many connections of go-redis' pools are in use, and how late this process is.
func (r *Road) Load() (queued, connections int, late time.Duration) {
	s := r.rdb.PoolStats()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lanes {
		queued += len(l.queue)
	}
	return queued, int(s.TotalConns - s.IdleConns), r.lateLocked(time.Now())
}
