// Package cronguard puts guards in front of the jobs of robfig/cron, https://github.com/robfig/cron, and of gocron,
// https://github.com/go-co-op/gocron, so that one of several machines runs each.
//
//	report := guard.Must(guard.New(locker, guard.Name("report"), guard.Key("job:report"),
//		guard.Busy(guard.Skip), guard.HoldAtLeast(50*time.Minute)))
//	c := cron.New()
//	c.AddJob("@hourly", guard.Must(cronguard.Job(ctx, report, logger, func(ctx context.Context) error { … })))
//
// A schedule starts a job on all machines at about the same time. The first runs it; Skip makes it no error that the
// others find it held, and HoldAtLeast keeps the lock after success, so that a machine whose clock is behind finds it
// held, too. It must be shorter than the time between two ticks. A job that fails frees the lock at once.
//
// Neither scheduler has a way to come later: a job that is refused waits for the next tick. Where the lock is lost, the
// context of the job ends; jobs behind Wrapper and Locker have none, so prefer Job, and for gocron a guard.Job as the
// task:
//
//	task := guard.Must(guard.Job(report, func(ctx context.Context) error { … }))
//	s.NewJob(gocron.CronJob("0 * * * *", false), gocron.NewTask(task))
package cronguard

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-co-op/gocron/v2"
	"github.com/robfig/cron/v3"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/jobs/internal/job"
)

// Job is a job of robfig/cron that runs fn under g, whose key has no facts. ctx ends it: cancel it when the program
// ends, before or after cron.Stop. logger gets the error of fn, or the reason why it did not run. A nil logger is
// cron.DefaultLogger, and cron.DiscardLogger drops them.
func Job(ctx context.Context, g *guard.Guard, logger cron.Logger, fn func(context.Context) error) (cron.Job, error) {
	run, err := guard.Job(g, fn)
	if err != nil {
		return nil, err
	}
	if logger == nil {
		logger = cron.DefaultLogger
	}
	return cron.FuncJob(func() {
		if err := run(ctx); err != nil {
			logger.Error(err, "guarded job")
		}
	}), nil
}

// Wrapper is Job for jobs that are there already, such as all of a cron.WithChain, which share the key of g.
func Wrapper(ctx context.Context, g *guard.Guard, logger cron.Logger) (cron.JobWrapper, error) {
	if _, err := Job(ctx, g, logger, func(context.Context) error { return nil }); err != nil {
		return nil, err
	}
	return func(next cron.Job) cron.Job {
		return guard.Must(Job(ctx, g, logger, func(context.Context) error { // which had no error a moment ago
			next.Run()
			return nil
		}))
	}, nil
}

// Locker is a gocron.Locker. A key has the fact `job.Kind`, which is the name of gocron's job: give it one by gocron.WithName.
func Locker(g *guard.Guard) (gocron.Locker, error) {
	guarded, err := job.New[struct{}](g)
	if err != nil {
		return nil, err
	}
	return locker{guarded}, nil
}

type locker struct{ guarded job.Guard[struct{}] }

// errSkipped keeps gocron from running a job.
var errSkipped = errors.New("cronguard: skipped")

// Lock begins a guarded call that lasts until Unlock. gocron takes an error for "another machine runs it".
func (l locker) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	h := held{begun: make(chan struct{}), over: make(chan struct{}), result: make(chan error, 1)}
	go func() {
		h.result <- l.guarded.Run(ctx, job.Info{Kind: name}, nil, func(context.Context) error {
			close(h.begun)
			<-h.over
			return nil
		})
	}()
	select {
	case <-h.begun:
		return h, nil
	case err := <-h.result:
		if err == nil {
			err = errSkipped
		}
		return nil, err
	}
}

// held is a call whose work is to wait for Unlock.
type held struct {
	begun, over chan struct{}
	result      chan error
}

// Unlock ends the call. Its error says that the lock was lost meanwhile.
func (h held) Unlock(context.Context) error {
	close(h.over)
	if err := <-h.result; err != nil {
		return fmt.Errorf("cronguard: %w", err)
	}
	return nil
}
