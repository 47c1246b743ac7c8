package redisson

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/redisson/internal/reply"
	"github.com/redis/go-redis/v9"
)

// road is the one way to Redis: every question of a client takes it, reads included.
//
// A question is queued in the lane to its master, and sent by one of the lane's workers. A lane has at most as many workers as
// go-redis has connections, so a silent server holds up no other server and no more goroutines than that. The asker waits for
// the answer until its deadline, and leaves soon after its context ends, however long go-redis takes. One sweeper checks all
// deadlines every sweepInterval while there are questions; none has a timer of its own.
type road struct {
	rdb      redis.UniversalClient
	topology topology
	timeout  time.Duration
	replicas syncReplicas
	workers  int // of a lane, at most

	mu       sync.Mutex
	lanes    map[string]*lane // by the address of the master
	open     []*question      // those that are not over, and those that have ended since the last sweep
	sweeping bool             // soon
	closed   bool
}

// lane leads to one master. The road's mutex guards it.
type lane struct {
	queue   []*question // that were not sent; some may be over
	filled  sync.Cond   // the queue is not empty, or the road is closed
	workers int
	idle    int // workers that wait for a question
}

// question is one call, or several for one master that travel together.
type question struct {
	calls  []call
	until  time.Time      // the deadline for go-redis
	done   chan struct{}  // receives once there are answers, or errors in their place; nil if nobody waits
	posted func([]answer) // is given the answers where nobody waits

	// Guarded by the road's mutex.
	by      time.Time // the deadline of the asker
	sent    bool
	over    bool // answered or given up
	answers []answer
}

const (
	// sweepInterval is how late a deadline may be noticed.
	sweepInterval = 20 * time.Millisecond
	// goneInterval is how long a question that was sent still waits for its answer when its asker wants to go.
	goneInterval = 50 * time.Millisecond
)

func newRoad(rdb redis.UniversalClient, t topology, s settings) *road {
	return &road{rdb: rdb, topology: t, timeout: s.timeout, replicas: s.sync, workers: s.workers, lanes: map[string]*lane{}}
}

// ask performs cl and waits for its answer until by. It repeats a call that was not answered, or refused by a server that
// was not ready, for as long; the answer says how many of these attempts may still run. If ctx ends, the answer is its
// cause; but one that comes within a moment is still taken, and a call that has not been sent yet never will be.
func (r *road) ask(ctx context.Context, by time.Time, cl call) answer {
	doubts := 0
	for pause := firstPause; ; pause = min(pauseGrowth*pause, maxPause) {
		a := r.wait(ctx, &question{calls: []call{cl}, until: by, by: by, done: make(chan struct{}, 1)})
		doubts += a.doubts
		a.doubts = doubts
		if a.err == nil || ctx.Err() != nil || !r.repeatable(a.err) || time.Until(by) < pause || !sleep(ctx, pause) {
			return a
		}
	}
}

// askSoon is ask with the client's timeout as the deadline.
func (r *road) askSoon(ctx context.Context, cl call) answer {
	return r.ask(ctx, time.Now().Add(r.timeout), cl)
}

func (r *road) wait(ctx context.Context, q *question) answer {
	asked := time.Now()
	r.send(q)
	select {
	case <-q.done:
	case <-ctx.Done():
		r.hurry(q)
		<-q.done
	}
	a := q.answers[0]
	if errors.Is(a.err, errNoAnswer) || a.err != nil && !reply.IsReply(a.err) && !time.Now().Before(q.until) { // go-redis may notice first
		a.err = cmp.Or(context.Cause(ctx), noAnswer(time.Since(asked)))
	}
	return a
}

// send brings a question on its way. What is not sent before its deadlines are over never will be.
func (r *road) send(q *question) {
	address := r.topology.Master(q.calls[0].keys[0])
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lanes[address]
	if l == nil {
		l = &lane{filled: sync.Cond{L: &r.mu}}
		r.lanes[address] = l
	}
	l.queue, r.open = append(l.queue, q), append(r.open, q)
	r.setSweeperLocked()
	l.filled.Signal()
	if len(l.queue) > l.idle && l.workers < r.workers {
		l.workers++
		go r.work(l)
	}
}

// work answers what comes along a lane. After close it ends as soon as nothing is queued.
func (r *road) work(l *lane) {
	for q := r.next(l); q != nil; q = r.next(l) {
		r.answer(q, r.perform(q.calls, q.until))
	}
}

func (r *road) next(l *lane) *question {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for len(l.queue) == 0 {
			if r.closed {
				l.workers--
				return nil
			}
			l.idle++
			l.filled.Wait()
			l.idle--
		}
		q := l.queue[0]
		l.queue = l.queue[1:]
		if !q.over {
			q.sent = true
			return q
		}
	}
}

func (r *road) answer(q *question, answers []answer) {
	r.mu.Lock()
	if !q.over {
		q.endLocked(answers)
	}
	r.mu.Unlock()
	if q.posted != nil {
		q.posted(answers)
	}
}

// endLocked ends q with these answers.
func (q *question) endLocked(answers []answer) {
	q.over, q.answers = true, answers
	if q.done != nil {
		q.done <- struct{}{}
	}
}

// giveUpLocked ends q without an answer. If it was sent, its calls may have run, or may run later.
func (q *question) giveUpLocked() {
	answers := make([]answer, len(q.calls))
	for i := range answers {
		answers[i].err = errNoAnswer
		if q.sent {
			answers[i].doubts = 1
		}
	}
	q.endLocked(answers)
}

// hurry gives q up if it was not sent, and soon otherwise.
func (r *road) hurry(q *question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case q.over:
	case !q.sent:
		q.giveUpLocked()
	default:
		q.by = earlier(q.by, time.Now().Add(goneInterval))
	}
}

// setSweeperLocked has the questions looked at soon, as long as there are any.
func (r *road) setSweeperLocked() {
	if !r.sweeping && len(r.open) > 0 {
		r.sweeping = true
		time.AfterFunc(sweepInterval, r.sweep)
	}
}

// sweep gives up the questions whose deadlines are over, and forgets those that have ended.
func (r *road) sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweeping = false
	now := time.Now()
	ended := func(q *question) bool {
		if !q.over && !now.Before(q.by) {
			q.giveUpLocked()
		}
		return q.over
	}
	r.open = slices.DeleteFunc(r.open, ended)
	for _, l := range r.lanes {
		l.queue = slices.DeleteFunc(l.queue, ended)
	}
	r.setSweeperLocked()
}

// close lets the workers go that have nothing to do. Questions that come later are still answered.
func (r *road) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, l := range r.lanes {
		l.filled.Broadcast()
	}
}
