// Package asynqguard puts guards in front of the handlers of asynq, https://github.com/hibiken/asynq.
//
//	settle := guard.Must(guard.New(locker, guard.Name("order.settle"), guard.Key("order:#{req.OrderID}")))
//	mux := asynq.NewServeMux()
//	mux.Handle("order:settle", guard.Must(asynqguard.New[Settle](settle))(handler))
//	server := asynq.NewServer(redis, asynq.Config{IsFailure: asynqguard.IsFailure, RetryDelayFunc: asynqguard.RetryDelay})
//
// A key has these facts: `req`, the payload, and `job` with Kind (the type of the task), Queue, ID and Attempt, from 1.
//
// The outcomes of a task:
//
//	done, or skipped by the policy Skip    done
//	busy                                   it comes again when the guard says; no retry is used up
//	no answer from the lock service        it comes again in 5 s; no retry is used up
//	no key from its payload                archived at once, as coming again can't help
//	replaced by a newer one                archived at once
//	lock lost while it runs                its context ends; it failed, even if the handler returns nil
//	the handler's own error                it failed
//
// A task whose own time is over while it waits has failed for asynq, so have a guard wait for less than that.
//
// asynq archives a task that is refused at its last attempt, whatever IsFailure says. So there the guard keeps its worker, and tries until
// the task's time is over.
//
// asynq delivers a task again if a worker was silent for 30 s, and the first may still run: the guard keeps them apart if both have one
// key. asynq's own Unique keeps a second task out of the queue; a guard has it wait for the first.
package asynqguard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/jobs/internal/job"
)

// New returns middleware that runs handlers under g, for mux.Use or one handler. The payload is JSON of a T; any takes what there is, and
// struct{} says that no key needs it. The error says which fact of g's key does not exist.
func New[T any](g *guard.Guard) (asynq.MiddlewareFunc, error) {
	return Decoding(g, func(payload []byte) (v T, err error) { return v, json.Unmarshal(payload, &v) })
}

// Decoding is New for payloads that decode knows to read, and no JSON.
func Decoding[T any](g *guard.Guard, decode func([]byte) (T, error)) (asynq.MiddlewareFunc, error) {
	if decode == nil {
		return nil, errors.New("asynqguard: Decoding with a nil function: give one that reads a payload, or use New for JSON")
	}
	guarded, err := job.New[T](g)
	if err != nil {
		return nil, err
	}
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			info := job.Info{Kind: t.Type()}
			info.ID, _ = asynq.GetTaskID(ctx)
			info.Queue, _ = asynq.GetQueueName(ctx)
			retried, _ := asynq.GetRetryCount(ctx)
			most, known := asynq.GetMaxRetry(ctx)
			info.Attempt = retried + 1
			for {
				err := guarded.Run(ctx, info, func() (T, error) { return decode(t.Payload()) }, func(ctx context.Context) error {
					return next.ProcessTask(ctx, t)
				})
				refused, ok := err.(*job.Refused) //nolint:errorlint // of this guard, or of one right behind it
				switch {
				case !ok, ctx.Err() != nil:
					return err
				case refused.Never:
					return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
				case !known || retried < most:
					return err
				}
				select {
				case <-time.After(refused.After):
				case <-ctx.Done():
				}
			}
		})
	}, nil
}

// IsFailure is for asynq.Config; a function of your own asks it first. It is false for a task that did not run because its guard had it wait: then no retry is used up.
func IsFailure(err error) bool {
	refused, ok := errors.AsType[*job.Refused](err)
	return err != nil && (!ok || refused.Never)
}

// RetryDelay is for asynq.Config; a function of your own asks it where IsFailure is false. A task that did not run because its guard had it wait comes again when the guard says; any other as
// asynq.DefaultRetryDelayFunc says. Without it, all wait as if they had failed.
func RetryDelay(n int, err error, t *asynq.Task) time.Duration {
	if refused, ok := errors.AsType[*job.Refused](err); ok && !refused.Never {
		return refused.After
	}
	return asynq.DefaultRetryDelayFunc(n, err, t)
}
