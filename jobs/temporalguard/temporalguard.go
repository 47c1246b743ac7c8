// Package temporalguard puts guards in front of the activities of Temporal, https://temporal.io.
//
//	settle := guard.Must(guard.New(locker, guard.Name("order.settle"), guard.Key("order:#{req.OrderID}")))
//	w := worker.New(client, "orders", worker.Options{
//		Interceptors: []interceptor.WorkerInterceptor{guard.Must(temporalguard.New[Order](settle, "Settle"))},
//	})
//
// A key has these facts: `req`, the first argument, and `job` with Kind (the type of the activity), Queue (the task queue), ID (of the workflow, a
// colon, and that of the activity) and Attempt, from 1.
//
// The outcomes of an activity:
//
//	done                                   completed
//	skipped by the policy Skip             completed without a result: Get leaves its variable as it is
//	busy                                   fails as TypeBusy, and is tried again when the guard says
//	no answer from the lock service        fails as TypeOutage, and is tried again in 5 s
//	no key from its arguments              fails as TypeKey, and is not tried again
//	replaced by a newer one                fails as TypeReplaced, and is not tried again
//	lock lost while it runs                its context ends; it fails as TypeLost, even if it returns nil
//	cancelled while it waits               cancelled, if it has a HeartbeatTimeout
//	worker stopped while it waits          fails, and is tried again
//	the activity's own error               it fails
//
// Temporal counts each try as an attempt, so a guarded activity wants a RetryPolicy without MaximumAttempts, which is the default, and a
// ScheduleToCloseTimeout. The policy's MaximumInterval bounds when an activity is tried again, and local activities are tried again as their policy
// says.
//
// The time that an activity waits for its lock counts for its StartToCloseTimeout. While it waits, it heartbeats if it has a HeartbeatTimeout. An
// activity that was not heard of in time is tried again while the first may still run: the guard keeps them apart. One that returns
// activity.ErrResultPending gives its lock back then, and not when it is completed.
package temporalguard

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/jobs/internal/job"
)

// Types of the application errors by which a workflow learns what a guard has done to an activity, for RetryPolicy.NonRetryableErrorTypes. Only
// one that was lost or replaced may have run.
const (
	TypeBusy     = "latchkey.busy"
	TypeOutage   = "latchkey.outage"
	TypeKey      = "latchkey.key"
	TypeReplaced = "latchkey.replaced"
	TypeLost     = "latchkey.lost"
)

// New returns an interceptor for worker.Options that runs the activities of these types under g, or all without any. T is the type of their first
// argument, or what that points to; any takes whatever there is, and struct{} says that no key needs it. The error says which fact of g's key does
// not exist. A type that no activity has is not noticed, as workers learn of activities later.
func New[T any](g *guard.Guard, activities ...string) (interceptor.WorkerInterceptor, error) {
	guarded, err := job.New[T](g)
	if err != nil {
		return nil, err
	}
	return &worker[T]{guarded: guarded, types: slices.Clone(activities)}, nil
}

type worker[T any] struct {
	interceptor.WorkerInterceptorBase
	guarded job.Guard[T]
	types   []string // empty means all
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (w *worker[T]) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &inbound[T]{interceptor.ActivityInboundInterceptorBase{Next: next}, w}
}

// guards reports whether activities of that type are guarded. A session of Temporal is an activity of the SDK, which lasts as long as the session does.
func (w *worker[T]) guards(kind string) bool {
	if len(w.types) == 0 {
		return !strings.HasPrefix(kind, "internalSession")
	}
	return slices.Contains(w.types, kind)
}

type inbound[T any] struct {
	interceptor.ActivityInboundInterceptorBase
	worker *worker[T]
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (a *inbound[T]) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (res any, err error) {
	i := activity.GetInfo(ctx)
	kind := i.ActivityType.Name
	if !a.worker.guards(kind) {
		return a.Next.ExecuteActivity(ctx, in)
	}
	stop := heartbeat(ctx, i.HeartbeatTimeout)
	defer stop()
	id := strings.TrimPrefix(i.WorkflowExecution.ID+":"+i.ActivityID, ":") // there may be no workflow
	info := job.Info{Kind: kind, Queue: i.TaskQueue, ID: id, Attempt: int(i.Attempt)}
	err = a.worker.guarded.Run(ctx, info, func() (T, error) { return first[T](kind, in.Args) }, func(ctx context.Context) (err error) {
		stop()
		res, err = a.Next.ExecuteActivity(ctx, in)
		return err
	})
	return res, failure(kind, err)
}

// first is the first argument, as a T. A nil is the zero value, which the activity gets for it, too.
func first[T any](kind string, args []any) (v T, err error) {
	if len(args) == 0 {
		return v, fmt.Errorf("temporalguard: activity %s has no argument", kind)
	}
	switch arg := args[0].(type) {
	case nil:
		return v, nil
	case converter.EncodedValues: // of a dynamic activity, which are yet to be decoded
		err = arg.Get(&v)
		return v, err
	case T:
		return arg, nil
	case *T:
		if arg == nil {
			return v, nil
		}
		return *arg, nil
	}
	return v, fmt.Errorf("temporalguard: the first argument of activity %s is a %T and no %v", kind, args[0], reflect.TypeFor[T]())
}

// failure is how Temporal learns of err. An activity's own error stays as it is, and so does the end of its context.
func failure(kind string, err error) error {
	switch e := err.(type) { //nolint:errorlint // its own guard's, not that of one within the activity
	case *job.Refused:
		text := "activity " + kind + " did not run"
		if errors.Is(e.Err, guard.ErrReplaced) {
			text = "activity " + kind + " did not keep its lock"
		}
		return named(text, e.Err, temporal.ApplicationErrorOptions{NonRetryable: e.Never, NextRetryDelay: e.After})
	case *guard.Error:
		if own, ok := errors.AsType[*temporal.ApplicationError](e.Cause); errors.Is(e.Err, guard.ErrLost) {
			return named("activity "+kind+" did not keep its lock", e, temporal.ApplicationErrorOptions{NonRetryable: ok && own.NonRetryable()})
		}
	}
	return err
}

// named gives what a guard has said its type.
func named(text string, cause error, o temporal.ApplicationErrorOptions) error {
	e, ok := errors.AsType[*guard.Error](cause)
	if !ok { // the context has ended
		return cause
	}
	o.Cause = cause
	name := TypeLost
	switch {
	case errors.Is(e.Err, guard.ErrBusy):
		name, o.Category = TypeBusy, temporal.ApplicationErrorCategoryBenign // which nobody need look at, like a newer one
	case errors.Is(e.Err, guard.ErrReplaced):
		name, o.Category = TypeReplaced, temporal.ApplicationErrorCategoryBenign
	case errors.Is(e.Err, guard.ErrOutage):
		name = TypeOutage
	case errors.Is(e.Err, guard.ErrKey):
		name = TypeKey
	}
	return temporal.NewApplicationErrorWithOptions(text, name, o)
}

// heartbeat heartbeats until stop is called, for an activity that waits for its lock and can't do it yet. Without that, the server would try it again
// while it is in line, and could not tell it that it is cancelled.
func heartbeat(ctx context.Context, timeout time.Duration) (stop func()) {
	if timeout <= 0 {
		return func() {}
	}
	over := make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() {
		defer func() { _ = recover() }() // the SDK panics where details can't be encoded
		ticker := time.NewTicker(max(timeout/3, time.Millisecond))
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			details, err := progress(ctx)
			if err != nil {
				return
			}
			activity.RecordHeartbeat(ctx, details...) // with a context that lasts, as the SDK may send it later
		}
	})
	return sync.OnceFunc(func() {
		close(over)
		beats.Wait()
	})
}

// progress returns the details that an earlier attempt has recorded. A heartbeat without them would erase them.
func progress(ctx context.Context) (details []any, err error) {
	if !activity.HasHeartbeatDetails(ctx) {
		return nil, nil
	}
	for n := 1; ; n *= 2 {
		raw, into := make([]converter.RawValue, n), make([]any, n)
		for i := range raw {
			into[i] = &raw[i]
		}
		if err := activity.GetHeartbeatDetails(ctx, into...); err != nil {
			return nil, err
		}
		if raw[n-1].Payload() != nil { // there may be more
			continue
		}
		for _, r := range raw {
			if r.Payload() != nil {
				details = append(details, r)
			}
		}
		return details, nil
	}
}
