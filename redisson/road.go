package redisson

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/redis/go-redis/v9"
)

// road is the one way to Redis: every question of a client takes it, reads included.
//
// A question goes along the lane to its master; see lane for the ways there. The asker waits for the answer until its deadline, and
// leaves soon after its context ends, however long go-redis takes. One sweeper checks all deadlines every sweepInterval while there
// are questions; none has a timer of its own.
type road struct {
	rdb      redis.UniversalClient
	topology topology
	timeout  time.Duration
	replicas syncReplicas
	workers  int // of a lane, at most
	sessions int // of a lane, at most; 0 where go-redis can't be told to give up in time
	metrics  *metrics
	dones    sync.Pool // of channels of questions that are over and whose askers have received

	mu      sync.Mutex
	lanes   map[string]*lane // by the address of the master
	gone    []*session       // to be closed by unlock
	open    []*question      // those that are not over, and those that have ended since the last sweep
	sweeper *time.Timer
	sweepAt time.Time // zero when nothing is to be swept
	closed  bool
}

// question is one call, or several for one master that travel together.
type question struct {
	calls  []call
	until  time.Time      // the deadline for go-redis
	done   chan struct{}  // receives once there are answers, or errors in their place; nil if nobody waits
	posted func([]answer) // is given the answers where nobody waits

	// Guarded by the road's mutex.
	lane    *lane
	by      time.Time // the deadline of the asker
	sent    time.Time // zero before
	early   bool      // as lane.early counts them
	over    bool      // answered or given up
	answers []answer

	one [1]call // room for most calls
}

const (
	// sweepInterval is how late a deadline may be noticed.
	sweepInterval = 20 * time.Millisecond
	// goneInterval is how long a question that was sent still waits for its answer when its asker wants to go.
	goneInterval = 50 * time.Millisecond
)

func newRoad(rdb redis.UniversalClient, t topology, s settings) *road {
	r := &road{rdb: rdb, topology: t, timeout: s.timeout, replicas: s.sync, workers: s.workers, lanes: map[string]*lane{}}
	if s.bounded {
		r.sessions = min(gatherFrom, s.workers/2)
	}
	r.dones.New = func() any { return make(chan struct{}, 1) }
	r.sweeper = time.AfterFunc(forever, r.sweep)
	return r
}

// ask performs cl and waits for its answer until by. It repeats a call that was not answered, or refused by a server that
// was not ready, for as long; the answer says how many of these attempts may still run. If ctx ends, the answer is its
// cause; but one that comes within a moment is still taken, and a call that has not been sent yet never will be.
func (r *road) ask(ctx context.Context, by time.Time, cl call) answer {
	return r.askFrom(ctx, time.Now(), by, cl)
}

// askFrom is ask for a caller who has just looked at the clock.
func (r *road) askFrom(ctx context.Context, asked, by time.Time, cl call) answer {
	doubts, now := 0, asked
	for pause := firstPause; ; pause, now = min(pauseGrowth*pause, maxPause), time.Now() {
		a, ok := r.askDirectly(now, by, cl)
		if !ok {
			a = r.askWorker(ctx, by, cl)
		}
		doubts += a.doubts
		a.doubts = doubts
		if a.err != nil && ctx.Err() == nil && r.repeatable(a.err) && time.Until(by) > pause && sleep(ctx, pause) {
			r.metrics.repeated(cl)
			continue
		}
		if errors.Is(a.err, errNoAnswer) || a.err != nil && !reply.IsReply(a.err) && (ctx.Err() != nil || !time.Now().Before(by)) {
			a.err = cmp.Or(context.Cause(ctx), noAnswer(time.Since(asked))) // go-redis may have noticed first
		}
		return a
	}
}

// askSoon is ask with the client's timeout as the deadline.
func (r *road) askSoon(ctx context.Context, cl call) answer {
	now := time.Now()
	return r.askFrom(ctx, now, now.Add(r.timeout), cl)
}

// askWorker has a worker perform a call once.
func (r *road) askWorker(ctx context.Context, by time.Time, cl call) answer {
	q := &question{one: [1]call{cl}, until: by, by: by, done: r.dones.Get().(chan struct{})}
	q.calls = q.one[:]
	r.send(q)
	select {
	case <-q.done:
	case <-ctx.Done():
		r.hurry(q)
		<-q.done
	}
	r.dones.Put(q.done)
	return q.answers[0]
}

// endLocked ends q with these answers.
func (q *question) endLocked(answers []answer) {
	q.over, q.answers = true, answers
	q.lane.addLocked(-1)
	if q.done != nil {
		q.done <- struct{}{}
	}
}

// giveUpLocked ends q without an answer. If it was sent, its calls may have run, or may run later.
func (q *question) giveUpLocked() {
	answers := make([]answer, len(q.calls))
	for i := range answers {
		answers[i].err = errNoAnswer
		if !q.sent.IsZero() {
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
	case q.sent.IsZero():
		q.giveUpLocked()
	default:
		q.by = earlier(q.by, time.Now().Add(goneInterval))
	}
}

// sweepLocked has the sweeper come at the given time, or earlier.
func (r *road) sweepLocked(at time.Time) {
	if r.sweepAt.IsZero() || at.Before(r.sweepAt) {
		r.sweepAt = at
		r.sweeper.Reset(time.Until(at))
	}
}

// sweep gives up the questions whose deadlines are over, and forgets those that have ended. It also looks after the lanes.
func (r *road) sweep() {
	r.mu.Lock()
	defer r.unlock()
	r.sweepAt = time.Time{}
	now := time.Now()
	ended := func(q *question) bool {
		if !q.over && !now.Before(q.by) {
			q.giveUpLocked()
		}
		if !q.over && !q.sent.IsZero() && now.Sub(q.sent) > directTimeout {
			q.lane.quick = false
		}
		return q.over
	}
	r.open = slices.DeleteFunc(r.open, ended)
	for _, l := range r.lanes {
		l.queue = slices.DeleteFunc(l.queue, ended)
		r.callWorkersLocked(l)
		r.returnSessionsLocked(l, now)
	}
	if len(r.open) > 0 {
		r.sweepLocked(now.Add(sweepInterval))
	}
}

// close lets the workers go that have nothing to do, and gives connections back. Questions that come later are still answered.
func (r *road) close() {
	r.mu.Lock()
	defer r.unlock()
	r.closed = true
	for _, l := range r.lanes {
		l.filled.Broadcast()
		r.returnSessionsLocked(l, time.Now().Add(sessionIdle))
	}
	if len(r.open) == 0 {
		r.sweeper.Stop()
		r.sweepAt = time.Time{}
	}
}
