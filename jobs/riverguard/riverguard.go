// Package riverguard puts guards in front of the workers of River, https://riverqueue.com.
//
//	settle := guard.Must(guard.New(locker, guard.Name("order.settle"), guard.Key("order:#{req.OrderID}")))
//	client, err := river.NewClient(driver, &river.Config{
//		Middleware: []rivertype.Middleware{guard.Must(riverguard.New[SettleArgs](settle))},
//		…
//	})
//
// A key has these facts: `req`, the arguments, and `job` with Kind, Queue, ID and Attempt, from 1.
//
// The outcomes of a job:
//
//	done, or skipped by the policy Skip    completed
//	busy                                   snoozed until the guard says; no attempt is used up
//	no answer from the lock service        snoozed for 5 s; no attempt is used up
//	stopped while it waited                snoozed, for the next client that runs; no attempt is used up
//	no key from its arguments              cancelled, as coming again can't help
//	replaced by a newer one                cancelled
//	lock lost while it runs                its context ends; it failed, even if the worker returns nil
//	the worker's own error                 it failed
//
// River delivers a job again if it takes longer than Config.RescueStuckJobsAfter, or if its client was cut off, and the first may still run: the
// guard keeps them apart if both have one key. River's unique jobs keep a second one out of the queue; a guard has it wait for the first.
package riverguard

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/jobs/internal/job"
)

// New returns middleware for river.Config that runs the jobs whose arguments are a T under g, and lets all others pass. The error says which
// fact of g's key does not exist.
func New[T river.JobArgs](g *guard.Guard) (rivertype.WorkerMiddleware, error) {
	var args T
	kinds := []string{args.Kind()}
	if also, ok := any(args).(river.JobArgsWithKindAliases); ok {
		kinds = append(kinds, also.KindAliases()...)
	}
	return newMiddleware[T](g, kinds)
}

// All is New for jobs of all kinds. `req` is whatever the arguments are, by the names that they have in JSON.
func All(g *guard.Guard) (rivertype.WorkerMiddleware, error) { return newMiddleware[any](g, nil) }

func newMiddleware[T any](g *guard.Guard, kinds []string) (rivertype.WorkerMiddleware, error) {
	guarded, err := job.New[T](g)
	if err != nil {
		return nil, err
	}
	return river.WorkerMiddlewareFunc(func(ctx context.Context, row *rivertype.JobRow, doInner func(context.Context) error) error {
		if kinds != nil && !slices.Contains(kinds, row.Kind) {
			return doInner(ctx)
		}
		info := job.Info{Kind: row.Kind, Queue: row.Queue, ID: strconv.FormatInt(row.ID, 10), Attempt: row.Attempt}
		err := guarded.Run(ctx, info, func() (args T, err error) { return args, json.Unmarshal(row.EncodedArgs, &args) }, doInner)
		refused, ok := err.(*job.Refused) //nolint:errorlint // of this guard: one within has wrapped its own
		switch {
		case !ok:
			return err
		case refused.Never:
			return river.JobCancel(err)
		}
		return fmt.Errorf("%w: %w", err, river.JobSnooze(refused.After))
	}), nil
}
