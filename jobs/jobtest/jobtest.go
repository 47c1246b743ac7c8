// Package jobtest has the one table of what guards do in front of the handlers of job runners. Each runner is a [Driver], and [Run] plays the
// whole table with it: on the runner itself, with locks in a real Redis.
package jobtest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// Order is the payload of all jobs.
type Order struct {
	ID string `json:"id"`
}

// State is the state of a job in its runner.
type State string

// The states. A job that runs, or will come again, is Pending.
const (
	Pending State = "pending"
	Done    State = "done"
	Dead    State = "dead" // archived, cancelled, failed for good
)

// Job is a job that was added.
type Job interface {
	// State says also how often it has failed, as the runner counts.
	State(t *testing.T) (s State, failures int)
	// Running reports whether a handler has it, which may still wait for its lock.
	Running(t *testing.T) bool
}

// Runner is one process that works on the jobs of a queue.
type Runner interface {
	// Add adds a job, which may fail once or, if it is the last attempt, not at all.
	Add(t *testing.T, o Order, last bool) Job
	// Again delivers a job that runs once more, as after a loss of its runner.
	Again(t *testing.T, j Job)
	// Cancel has the runner end a job.
	Cancel(t *testing.T, j Job)
	// Stop ends the runner, and what it runs.
	Stop()
}

// Driver starts runners.
type Driver struct {
	// Start starts one for the jobs of a queue, whose handler runs work under g.
	Start func(t *testing.T, queue string, g *guard.Guard, work func(context.Context) error) Runner
	// Key is the template of an order's lock; empty is order:#{req.ID}.
	Key string
	// Counts says that the runner counts a refusal as a failure, whatever a guard does.
	Counts bool
	// Without are the rows that the runner has nothing for.
	Without []string
}

// scene is one play of a row.
type scene struct {
	*testing.T
	driver   Driver
	queue    string
	server   *redistest.Server
	hand     *redisson.Client // of another process
	row      row
	registry *guard.Registry
	events   guardtest.Events
	runner   Runner
	work     func(ctx context.Context, run int32) error
	ran      atomic.Int32
	inside   atomic.Int32
	most     atomic.Int32
}

// Run plays the table.
func Run(t *testing.T, d Driver) {
	for i, r := range table {
		if slices.Contains(d.Without, r.name) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := &scene{T: t, driver: d, row: r, server: redistest.Start(t), queue: "row" + strconv.Itoa(i)}
			s.hand = s.client()
			s.start()
			r.play(s)
		})
	}
}

func (s *scene) client() *redisson.Client {
	c := guard.Must(redisson.Open("redis://" + s.server.Addr))
	s.Cleanup(func() { _ = c.Close() })
	return c
}

// start starts a runner of the scene's queue, as another process does.
func (s *scene) start() {
	s.registry = guard.Must(guard.NewRegistry())
	newGuard := func(opts []guard.Option) *guard.Guard {
		return guard.Must(guard.New(s.client(), append(opts, guard.In(s.registry))...))
	}
	key := guard.Key(cmp.Or(s.driver.Key, "order:#{req.ID}"))
	g := newGuard(append([]guard.Option{guard.Name("order.settle"), key, guard.Observe(s.events.Observe)}, s.row.options...))
	if s.row.also != nil {
		g = guard.Must(guard.Stack(g, newGuard(s.row.also)))
	}
	s.runner = s.driver.Start(s.T, s.queue, g, func(ctx context.Context) error {
		n := s.inside.Add(1)
		defer s.inside.Add(-1)
		for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
		}
		run := s.ran.Add(1)
		if s.work != nil {
			return s.work(ctx, run)
		}
		time.Sleep(20 * time.Millisecond)
		return nil
	})
	s.Cleanup(s.runner.Stop)
}

func (s *scene) add(id string) Job { s.Helper(); return s.runner.Add(s.T, Order{id}, false) }

// hold takes the lock of order 7 in another process.
func (s *scene) hold() (release func()) {
	h := guard.Must(s.hand.Acquire(context.Background(), lock.Request{Key: "order:7"}))
	return func() {
		if err := h.Release(context.Background()); err != nil {
			s.Error(err)
		}
	}
}

func (s *scene) eventually(what string, ok func() bool) {
	s.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("not within 30s: %s", what)
		}
	}
}

// sees waits until the guard has had an outcome.
func (s *scene) sees(outcome string) {
	s.Helper()
	s.eventually("outcome "+outcome, func() bool { return s.outcomes(outcome) > 0 })
}

func (s *scene) outcomes(outcome string) (n int) {
	for _, o := range s.events.Outcomes("order.settle") {
		if o == outcome {
			n++
		}
	}
	return n
}

// wantDone waits for the end of a job. A runner that counts refusals has their number in failures, too.
func (s *scene) wantDone(j Job, failures, ran int) {
	s.Helper()
	s.eventually("the job is done", func() bool { state, _ := j.State(s.T); return state == Done })
	_, failed := j.State(s.T)
	if failed != failures && !s.driver.Counts {
		s.Errorf("it failed %d times, as the runner counts, want %d", failed, failures)
	}
	if got := int(s.ran.Load()); got != ran {
		s.Errorf("it ran %d times, want %d", got, ran)
	}
}

// runs waits until the work has begun so many times.
func (s *scene) runs(n int32) {
	s.Helper()
	s.eventually("the work runs", func() bool { return s.ran.Load() >= n })
}

// errOwn is the work's own error.
var errOwn = errors.New("the work's own error")
