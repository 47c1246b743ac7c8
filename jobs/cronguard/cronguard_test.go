package cronguard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/robfig/cron/v3"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/jobs/cronguard"
	"github.com/latchkey-go/latchkey/jobs/jobtest"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// job is one that is due at each tick until it has succeeded.
type job struct {
	done    atomic.Bool
	running atomic.Int32
	failed  atomic.Bool // the last run
}

func (j *job) State(*testing.T) (jobtest.State, int) {
	if j.done.Load() {
		return jobtest.Done, 0
	}
	return jobtest.Pending, 0
}

func (j *job) Running(*testing.T) bool { return j.running.Load() > 0 }

// failures is a cron.Logger that notes that a job has failed.
type failures struct{ *job }

func (failures) Info(string, ...any)           {}
func (f failures) Error(error, string, ...any) { f.failed.Store(true) }

// ticks is a runner over either scheduler.
type ticks struct {
	add  func(j *job, o jobtest.Order)
	stop func()
}

func (r ticks) Add(_ *testing.T, o jobtest.Order, _ bool) jobtest.Job {
	j := new(job)
	r.add(j, o)
	return j
}

func (ticks) Again(t *testing.T, _ jobtest.Job) { t.Fatal("ticks deliver nothing twice") }

func (r ticks) Cancel(*testing.T, jobtest.Job) { r.stop() }

func (r ticks) Stop() { r.stop() }

func TestBehavioursOfCron(t *testing.T) {
	jobtest.Run(t, jobtest.Driver{
		Key: "order:7", Counts: true, Without: []string{"bad key", "busy at the last attempt", "runner stops", "drain", "replaced", "delivered twice", "levels"}, // it has neither facts, attempts nor a memory
		Start: func(t *testing.T, _ string, g *guard.Guard, work func(context.Context) error) jobtest.Runner {
			ctx, cancel := context.WithCancel(context.Background())
			c := cron.New()
			c.Start()
			add := func(j *job, _ jobtest.Order) {
				guarded := guard.Must(cronguard.Job(ctx, g, failures{j}, work))
				var one sync.Mutex // as failed is of one run
				c.Schedule(cron.Every(time.Second), cron.FuncJob(func() {
					j.running.Add(1)
					defer j.running.Add(-1)
					one.Lock()
					defer one.Unlock()
					if j.done.Load() {
						return
					}
					j.failed.Store(false)
					guarded.Run()
					j.done.Store(!j.failed.Load())
				}))
			}
			return ticks{add, func() { cancel(); <-c.Stop().Done() }}
		},
	})
}

func TestBehavioursOfLocker(t *testing.T) {
	jobtest.Run(t, jobtest.Driver{
		Key: "order:#{job.Kind}", Counts: true, // it is asked before a job, whose end it does not learn; and what it does not let run is not done
		Without: []string{"bad key", "busy at the last attempt", "skip", "lost", "cancel", "runner stops", "drain", "replaced", "delivered twice", "hold"},
		Start: func(t *testing.T, _ string, g *guard.Guard, work func(context.Context) error) jobtest.Runner {
			s, err := gocron.NewScheduler(gocron.WithDistributedLocker(guard.Must(cronguard.Locker(g))))
			if err != nil {
				t.Fatal(err)
			}
			s.Start()
			add := func(j *job, o jobtest.Order) {
				var one sync.Mutex
				task := gocron.NewTask(func() {
					if one.Lock(); !j.done.Load() {
						j.done.Store(work(context.Background()) == nil)
					}
					one.Unlock()
				})
				guard.Must(s.NewJob(gocron.DurationRandomJob(100*time.Millisecond, 500*time.Millisecond), task, gocron.WithName(o.ID)))
			}
			return ticks{add, sync.OnceFunc(func() { _ = s.Shutdown() })}
		},
	})
}

// Jobs that are there already share a key.
func TestWrapper(t *testing.T) {
	locks, ran := memlock.New(), atomic.Int32{}
	g := guard.Must(guard.New(locks, guard.Name("nightly"), guard.Key("nightly"), guard.Busy(guard.Skip)))
	wrap := guard.Must(cronguard.Wrapper(t.Context(), g, cron.DiscardLogger))
	c := cron.New(cron.WithSeconds(), cron.WithChain(wrap))
	for range 3 {
		if _, err := c.AddFunc("* * * * * *", func() { ran.Add(1); time.Sleep(1500 * time.Millisecond) }); err != nil {
			t.Fatal(err)
		}
	}
	c.Start()
	for ran.Load() == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond) // for the others of this tick
	<-c.Stop().Done()
	if n := ran.Load(); n != 1 {
		t.Errorf("%d of 3 jobs ran at one tick", n)
	}
}

// Each tick runs on one of three schedulers.
func TestLocker(t *testing.T) {
	locks, ran := memlock.New(), atomic.Int32{}
	start := time.Now().Truncate(time.Second).Add(2 * time.Second)
	for range 3 {
		g := guard.Must(guard.New(locks, guard.Name("report"), guard.Key("job:#{job.Kind}"), guard.HoldAtLeast(700*time.Millisecond)))
		s, err := gocron.NewScheduler(gocron.WithDistributedLocker(guard.Must(cronguard.Locker(g))))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Shutdown() }()
		if _, err := s.NewJob(gocron.DurationJob(time.Second), gocron.NewTask(func() { ran.Add(1) }), gocron.WithName("report"),
			gocron.WithStartAt(gocron.WithStartDateTime(start))); err != nil {
			t.Fatal(err)
		}
		s.Start()
	}
	time.Sleep(time.Until(start.Add(2500 * time.Millisecond)))
	if n := ran.Load(); n != 3 {
		t.Errorf("%d runs at 3 ticks", n)
	}
}

// Lock says why a job is not to run, and Unlock that its lock was lost.
func TestLockerErrors(t *testing.T) {
	newLocker := func(fault guardtest.Fault, opts ...guard.Option) gocron.Locker {
		locks := guardtest.New(fault)
		t.Cleanup(func() { locks.WantNothingHeld(t) })
		return guard.Must(cronguard.Locker(guard.Must(guard.New(locks, append(opts, guard.Name("report"), guard.Key("job:#{job.Kind}"))...))))
	}
	if _, err := newLocker(guardtest.Busy()).Lock(t.Context(), "report"); !errors.Is(err, guard.ErrBusy) {
		t.Errorf("busy: %v", err)
	}
	if _, err := newLocker(guardtest.Busy(), guard.Busy(guard.Skip)).Lock(t.Context(), "report"); err == nil {
		t.Error("a skipped job runs")
	}
	held, err := newLocker(guardtest.LostUnnoticed()).Lock(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Unlock(t.Context()); !errors.Is(err, guard.ErrLost) {
		t.Errorf("lost: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	g := guard.Must(guard.New(memlock.New(), guard.Name("report"), guard.Key("job:#{req.ID}")))
	_, job := cronguard.Job(t.Context(), g, cron.DiscardLogger, func(context.Context) error { return nil })
	_, wrapper := cronguard.Wrapper(t.Context(), g, cron.DiscardLogger)
	_, locker := cronguard.Locker(g)
	for what, err := range map[string]error{"Job": job, "Wrapper": wrapper, "Locker": locker} {
		if err == nil || !strings.Contains(err.Error(), "report") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Two machines have the same job, which one of them runs at each tick.
func Example() {
	locks := memlock.New() // in place of a Redis
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan string, 10)
	for range 2 {
		report := guard.Must(guard.New(locks,
			guard.Name("report"),
			guard.Key("job:report"),
			guard.Busy(guard.Skip),
			guard.HoldAtLeast(700*time.Millisecond), // shorter than the time between two ticks
		))
		c := cron.New(cron.WithSeconds())
		guard.Must(c.AddJob("* * * * * *", guard.Must(cronguard.Job(ctx, report, cron.DefaultLogger, func(context.Context) error {
			ran <- "reported"
			return nil
		}))))
		c.Start()
		defer c.Stop()
	}
	fmt.Println(<-ran)
	fmt.Println(<-ran)
	stop()
	// Output:
	// reported
	// reported
}
