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

// send brings a question on its way. What is not sent before its deadlines are over never will be.
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
		answers := r.perform(r.depart(calls[0].Keys[0], by), calls)
		r.end(l, sent, qs, answers)
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
			r.callWorkersLocked(l)
			return qs, by
		}
	}
}

// arriveLocked notes that somebody is back who was sent at the given time.
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
