// Package transport is the road to Redis: scripts, each of which runs once or is safely repeated. It knows nothing of locks.
package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
	"github.com/redis/go-redis/v9"
)

// Road is the one way to Redis: every question of a client takes it, reads included.
//
// A question goes along the lane to its master; see lane for the ways there. The asker waits for the answer until its deadline, and
// leaves soon after its context ends, however long go-redis takes. One sweeper checks all deadlines every sweepInterval while there
// are questions; none has a timer of its own.
type Road struct {
	Settings   // Overload is an ErrNoAnswer, too
	rdb        redis.UniversalClient
	topology   *pubsub.Topology
	fresh      *reply.Fresh // nil in a cluster
	mostDirect int          // under way in a lane; 0 where go-redis can't give up in time
	denied     sync.Once    // for the warning that the user may not ask
	sparing    atomic.Bool  // spare keys are left out: a server has refused one

	mu      sync.Mutex
	lanes   map[string]*lane // by the address of the master
	open    []*question      // those that are not over, and those that have ended since the last sweep
	sweeper *time.Timer
	sweepAt time.Time     // zero when nothing is to be swept
	late    time.Duration // of the last sweeps; that of each counts for half at the next
	crowded time.Time     // when a question last ended as overload
	closed  bool
}

// question is one call, or several for one master that travel together.
type question struct {
	calls  []Call
	done   chan struct{}  // receives once there are answers, or errors in their place; nil if nobody waits
	posted func([]Answer) // gets the answers where nobody waits

	// Guarded by the road's mutex.
	lane    *lane
	asked   time.Time
	by      time.Time // the deadline of the asker
	sent    time.Time // zero before
	over    bool      // answered or given up
	answers []Answer
}

const (
	// sweepInterval is how late a deadline may be noticed.
	sweepInterval = 20 * time.Millisecond
	// GoneInterval is how long a question that was sent still waits for its answer when its asker wants to go.
	GoneInterval = 50 * time.Millisecond
)

// Settings are those of a Road.
type Settings struct {
	Timeout  time.Duration     // of a question whose asker sets no deadline
	Workers  int               // goroutines for each master, at most: connections that go-redis has
	Bounded  bool              // go-redis gives up at the end of a context
	Replicas Replicas          // that confirm the locks that scripts take
	Refuse   func(error) error // converts an error with which a server refuses for good
	Overload error             // the error of a question that got no connection in time matches it
	Observer Observer
}

// Observer observes questions. Its methods are called without any mutex held.
type Observer interface {
	// Asked gets a call and its answer.
	Asked(sent time.Time, cl Call, a Answer)
	// Repeated gets a call that is about to go out again.
	Repeated(cl Call)
}

// New returns a Road to the servers of rdb.
func New(rdb redis.UniversalClient, t *pubsub.Topology, s Settings) *Road {
	r := &Road{Settings: s, rdb: rdb, topology: t, fresh: reply.NewFresh(rdb), lanes: map[string]*lane{}}
	r.Overload = fmt.Errorf("%w: %w", s.Overload, ErrNoAnswer)
	if s.Bounded {
		r.mostDirect = min(GatherFrom, s.Workers/2)
	}
	r.sweeper = time.AfterFunc(forever, r.sweep)
	r.sweeper.Stop() // until there is something to sweep
	return r
}

// forever is longer than anything waits.
const forever = 100 * 365 * 24 * time.Hour

// Ask performs cl and waits for its answer until by. It repeats a call that was not answered, or refused by a server that
// was not ready, for as long; the answer says how many of these attempts may still run. If ctx ends, the answer is its
// cause; but one that comes within a moment is still taken, and a call that has not been sent yet never will be.
func (r *Road) Ask(ctx context.Context, by time.Time, cl Call) Answer {
	doubts, asked := 0, time.Now()
	now := asked
	for pause := firstPause; ; pause, now = min(pauseGrowth*pause, maxPause), time.Now() {
		a, ok := r.askDirectly(now, by, cl)
		if !ok {
			doubts += a.Doubts
			a = r.AskTogether(ctx, by, []Call{cl})[0]
		}
		doubts += a.Doubts
		a.Doubts = doubts
		if a.Err != nil && ctx.Err() == nil && r.repeatable(a.Err) && time.Until(by) > pause && clock.Sleep(ctx, pause) {
			r.Observer.Repeated(cl)
			continue
		}
		ended, late := ctx.Err() != nil, !time.Now().Before(by)
		if a.Err != nil && (errors.Is(a.Err, ErrNoAnswer) || ended && r.repeatable(a.Err) || (ended || late) && !reply.IsReply(a.Err)) {
			a.Err = cmp.Or(context.Cause(ctx), r.noAnswer(time.Since(asked), errors.Is(a.Err, r.Overload))) // go-redis may have noticed first
		}
		return a
	}
}

// AskSoon is Ask with the client's timeout as the deadline.
func (r *Road) AskSoon(ctx context.Context, cl Call) Answer {
	return r.Ask(ctx, time.Now().Add(r.Timeout), cl)
}

// Post makes one attempt at calls for one master until by. Nobody waits for the answers: they are given to posted.
func (r *Road) Post(calls []Call, by time.Time, posted func([]Answer)) {
	r.send(&question{calls: calls, by: by, posted: posted})
}

// AskTogether makes one attempt at calls for one master, in as few round trips as BatchSize allows, and waits for the answers until by.
// Like Ask it leaves soon after the end of ctx.
func (r *Road) AskTogether(ctx context.Context, by time.Time, calls []Call) (answers []Answer) {
	var questions []*question
	for part := range slices.Chunk(calls, BatchSize) {
		q := &question{calls: part, by: by, done: make(chan struct{}, 1)}
		questions = append(questions, q)
		r.send(q)
	}
	for _, q := range questions {
		answers = append(answers, r.await(ctx, q)...)
	}
	return answers
}

// await returns the answers to q. It gives q up soon after the end of ctx.
func (r *Road) await(ctx context.Context, q *question) []Answer {
	select {
	case <-q.done:
	case <-ctx.Done():
		r.hurry(q)
		<-q.done
	}
	for i, a := range q.answers {
		if q.sent.IsZero() && errors.Is(a.Err, r.Overload) { // no worker tells of it
			r.Observer.Asked(q.asked, q.calls[i], a)
		}
	}
	return q.answers
}

// endLocked ends q with these answers.
func (q *question) endLocked(answers []Answer) {
	q.over, q.answers = true, answers
	q.lane.open--
	if q.done != nil {
		q.done <- struct{}{}
	}
}

// giveUpLocked ends q without an answer, for err. If it was sent, its calls may have run, or may run later.
func (q *question) giveUpLocked(err error) {
	answers := make([]Answer, len(q.calls))
	for i := range answers {
		answers[i].Err = err
		if !q.sent.IsZero() {
			answers[i].Doubts = 1
		}
	}
	q.endLocked(answers)
}

// hurry gives q up if it was not sent, and soon otherwise.
func (r *Road) hurry(q *question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case q.over:
	case q.sent.IsZero():
		q.giveUpLocked(ErrNoAnswer)
	default:
		q.by = Earlier(q.by, time.Now().Add(GoneInterval))
	}
}

// sweepLocked has the sweeper come at the given time, or earlier.
func (r *Road) sweepLocked(at time.Time) {
	if r.sweepAt.IsZero() || at.Before(r.sweepAt) {
		r.sweepAt = at
		r.sweeper.Reset(time.Until(at))
	}
}

// sweep gives up the questions whose deadlines are over, and forgets those that have ended. It also looks after the lanes. In a process that is
// too busy, the answers that have arrived are read first.
func (r *Road) sweep() {
	runtime.Gosched()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.late /= 2
	r.late, r.sweepAt = r.lateLocked(now), time.Time{}
	ended := func(q *question) bool {
		if !q.over && !now.Before(q.by) {
			q.giveUpLocked(r.silenceLocked(q, now))
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
	}
	if len(r.open) > 0 {
		r.sweepLocked(now.Add(sweepInterval))
	}
}

// Close lets the workers go that have nothing to do. Questions that come later are still answered.
func (r *Road) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, l := range r.lanes {
		l.filled.Broadcast()
	}
}

// ErrNotReplicated is the error of a call that too few replicas have confirmed in time.
var ErrNotReplicated = errors.New("redisson: not replicated: the lock was not confirmed by enough replicas")

// Replicas is the number of replicas that must confirm the locks that a script takes, and the time for that. The zero
// value requires none.
type Replicas struct {
	Count   int // or Online
	Timeout time.Duration
}

// Online is a count: one replica, of a master that has any online.
const Online = -1

// followers is a lane's knowledge of the replicas of its master, from the master itself. The road's mutex guards it.
type followers struct {
	online int
	asked  time.Time
	denied int // of the questions: those that the user may not ask
}

// followersBy are the questions for the number of replicas online.
var followersBy = [][]any{{"role"}, {"info", "replication"}}

const (
	followersAge = time.Second
	deniedAge    = time.Minute // after which rights may be others
)

// confirms returns how many replicas must confirm a take along a lane: the number that was set, or as many as are
// online there. If it does not know the latter, it returns the question.
func (r *Road) confirms(l *lane) (online int, ask *single) {
	if r.Replicas.Count >= 0 {
		return r.Replicas.Count, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(l.followers.asked) < followersAge {
		return l.followers.online, nil
	}
	return 0, &single{redis.NewCmd(context.Background(), followersBy[l.followers.denied]...)}
}

// counted applies the answer of a master about its replicas, and returns how many are online.
func (r *Road) counted(l *lane, ask *single) int {
	n, err := online(ask), ask.Err()
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &l.followers
	f.online, f.asked = n, time.Now()
	switch {
	case err == nil:
	case !reply.IsReply(err):
		f.asked = time.Time{}
	case f.denied+1 < len(followersBy):
		f.denied, f.asked = f.denied+1, time.Time{}
	default:
		f.denied = 0
		r.deniedLocked(l, err)
	}
	return n
}

// deniedLocked keeps the Road from asking a master about its replicas for a while.
func (r *Road) deniedLocked(l *lane, err error) {
	l.followers.online, l.followers.asked = 0, time.Now().Add(deniedAge-followersAge)
	if reply.Classify(err).NoRight { // some servers, as in tests, have no such command
		r.denied.Do(func() {
			slog.Warn("redisson: replicas do not confirm locks, as the user may not ask: allow +wait, and +role or +info", "error", err)
		})
	}
}

// online reads how many replicas a master has online: -1 of what is no master any more.
func online(ask *single) int {
	role, asked := ask.Val().([]any)
	if len(role) > 2 && role[0] == "master" { // ROLE lists no others
		list, _ := role[2].([]any)
		return len(list)
	}
	info, _ := ask.Val().(string)
	if asked || strings.Contains(info, "role:slave") {
		return -1
	}
	return strings.Count(info, "state=online")
}

// wait waits for replicas, for as long as leaves the asker the time to hear of it, also from a busy machine.
func (r *Road) wait(t *trip) *single {
	within := max(time.Millisecond, min(r.Replicas.Timeout, time.Until(t.by)/2))
	return &single{redis.NewCmd(t, "wait", max(1, r.Replicas.Count), within.Milliseconds())}
}

// confirm makes replicas confirm the locks that calls have just taken. WAIT speaks of the writes of its own connection:
// it came behind the calls, with which it travelled. One is for all of them.
func (r *Road) confirm(t *trip, wait *single, calls []Call, answers []Answer) {
	var taken []int
	for i, a := range answers {
		if calls[i].Script.Takes && a.Yes() {
			taken = append(taken, i)
		}
	}
	if len(taken) == 0 {
		return
	}
	if wait == nil { // only now is it known that there are replicas: to take a lock again does nothing but to say so
		for _, i := range taken {
			answers[i] = r.attempt(t, calls[i:i+1], evalsha)[0]
		}
		return
	}
	got, err := wait.Int()
	if got >= max(1, r.Replicas.Count) || r.Replicas.Count == Online && r.alone(t, err) {
		return
	}
	if err == nil {
		err = fmt.Errorf("%w: %d of %d within %v ms", ErrNotReplicated, got, max(1, r.Replicas.Count), wait.Args()[2])
	} else if !(Answer{Err: err}).elsewhere() { // a master that was demoted, or died, has not said it: the next one is asked
		err = fmt.Errorf("%w: %w", ErrNotReplicated, err)
	}
	for _, i := range taken {
		answers[i].Err, answers[i].Doubts = err, 1
	}
}

// alone reports whether a master whose replicas have not confirmed has none any more, or the user may not ask for them.
func (r *Road) alone(t *trip, err error) bool {
	denied := err != nil && reply.Classify(err).Refused
	r.mu.Lock()
	if denied {
		r.deniedLocked(t.lane, err)
	}
	ask := single{redis.NewCmd(t, followersBy[t.lane.followers.denied]...)}
	r.mu.Unlock()
	return denied || err == nil && t.send(ask, t.via.Process) == nil && r.counted(t.lane, &ask) == 0
}
