// Jobs runs a job on a schedule, once for each tick, on however many instances: with robfig/cron and with gocron.
//
//	go -C examples run ./jobs                                   # with locks of this process
//	go -C examples run ./jobs --redis redis://localhost:6379     # with locks that other machines see
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/robfig/cron/v3"

	"github.com/latchkey-go/latchkey/examples/internal/example"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/jobs/cronguard"
	"github.com/latchkey-go/latchkey/lock"
)

func main() { example.Main(run) }

const (
	instances = 5
	ticks     = 3
	every     = time.Second // the least that robfig/cron can do
)

// onceATick guards a job that all instances start at each tick. The first one runs it. HoldAtLeast keeps the lock until shortly
// before the next tick, so that an instance which starts late finds it held, and Skip makes that no error.
func onceATick(locker lock.Locker, name string) (*guard.Guard, error) {
	return guard.New(locker, guard.Name(name), guard.Key("job:"+name), guard.HoldAtLeast(every*8/10), guard.Busy(guard.Skip))
}

func run(ctx context.Context, locker lock.Locker, out io.Writer) error {
	for _, s := range []struct {
		name  string
		start func(ctx context.Context, locker lock.Locker, work func()) (stop func(), err error)
	}{{"robfig/cron", startCron}, {"gocron", startGocron}, {"gocron with a Locker", startGocronWithLocker}} {
		var ran atomic.Int64
		time.Sleep(time.Until(time.Now().Truncate(every).Add(every * 3 / 2))) // ticks are at whole seconds: none is cut in two
		for range instances {
			stop, err := s.start(ctx, locker, func() { ran.Add(1) })
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			defer stop()
		}
		select {
		case <-time.After(ticks * every):
		case <-ctx.Done():
			return ctx.Err()
		}
		fmt.Fprintf(out, "%-20s %d instances, %d ticks, %d runs\n", s.name+":", instances, ticks, ran.Load())
	}
	return nil
}

func startCron(ctx context.Context, locker lock.Locker, work func()) (stop func(), err error) {
	g, err := onceATick(locker, "cron.report")
	if err != nil {
		return nil, err
	}
	wrap, err := cronguard.Wrapper(ctx, g, cron.DefaultLogger)
	if err != nil {
		return nil, err
	}
	c := cron.New(cron.WithChain(wrap))
	c.Schedule(cron.Every(every), cron.FuncJob(work))
	c.Start()
	return func() { <-c.Stop().Done() }, nil
}

// startGocron gives gocron a guarded task. Its context ends if the lock is lost.
func startGocron(_ context.Context, locker lock.Locker, work func()) (stop func(), err error) {
	g, err := onceATick(locker, "gocron.report")
	if err != nil {
		return nil, err
	}
	job, err := guard.Job(g, func(context.Context) error {
		work()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return start(job)
}

// start schedules task at whole seconds, as gocron wants it for several instances.
func start(task any, opts ...gocron.SchedulerOption) (stop func(), err error) {
	s, err := gocron.NewScheduler(opts...)
	if err != nil {
		return nil, err
	}
	next := time.Now().Truncate(every).Add(every)
	if time.Until(next) < every/10 {
		next = next.Add(every) // a start in the past is an error
	}
	if _, err := s.NewJob(gocron.DurationJob(every), gocron.NewTask(task), gocron.WithName("gocron.locked"),
		gocron.WithStartAt(gocron.WithStartDateTime(next))); err != nil {
		return nil, errors.Join(err, s.Shutdown())
	}
	s.Start()
	return func() { _ = s.Shutdown() }, nil
}

// startGocronWithLocker is for schedulers that have a gocron.Locker already, with tasks that nobody wants to touch.
// Prefer startGocron: a task behind a gocron.Locker does not learn of the loss of its lock.
func startGocronWithLocker(_ context.Context, locker lock.Locker, work func()) (stop func(), err error) {
	g, err := guard.New(locker, guard.Name("gocron.locker"), guard.Key("job:#{job.Kind}"), guard.HoldAtLeast(every*8/10))
	if err != nil {
		return nil, err
	}
	l, err := cronguard.Locker(g)
	if err != nil {
		return nil, err
	}
	return start(work, gocron.WithDistributedLocker(l))
}
