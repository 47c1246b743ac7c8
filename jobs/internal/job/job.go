// Package job has what guards in front of the handlers of all job runners have in common: which facts a key has, and what becomes of a job
// that its guard has refused.
package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// Info is a job's description, which keys know as `job`: job.Kind, job.Queue, job.ID, job.Attempt. A field that a
// runner does not have is empty.
type Info struct {
	Kind, Queue, ID string
	Attempt         int // the first is 1
}

// Guard is a guard fitted to jobs whose payload is a T, the root `req`. It is safe for concurrent use.
type Guard[T any] struct{ runner adapter.Runner }

// New fits g. Its error says which fact of the key jobs do not have.
func New[T any](g *guard.Guard) (Guard[T], error) {
	r, err := adapter.Prepare(g, keyexpr.Roots{"req": keyexpr.TypeFor[T](), "job": keyexpr.TypeFor[Info]()})
	return Guard[T]{r}, err
}

// Run runs fn under the guard. The error is that of fn, or says that the lock was lost while it ran; or it is a *Refused where nothing ran, or a newer job
// has replaced this one. A job that is skipped is done: its error is nil.
func (g Guard[T]) Run(ctx context.Context, info Info, payload func() (T, error), fn func(context.Context) error) error {
	var own error
	ran, err := g.runner.Run(ctx, func(root string) (any, error) {
		if root == "job" {
			return info, nil
		}
		v, err := payload()
		if err != nil {
			return nil, fmt.Errorf("%w: the payload of the job: %w", guard.ErrKey, err)
		}
		return v, nil
	}, func(ctx context.Context) error {
		own = fn(ctx)
		return own
	})
	if e, ok := err.(*guard.Error); ok && own != err && errors.Is(e.Err, guard.ErrReplaced) || !ran && err != nil { //nolint:errorlint // not that of a guard in fn
		return refuse(ctx, err)
	}
	return err
}

// How long after a refusal a job comes again where the guard does not know better: a runner that looks for jobs once a second is not kept busy by those
// that wait.
const (
	leastAfter  = time.Second
	outageAfter = 5 * time.Second
)

// Refused is why a job did not run, or not to its end as a newer one has replaced it.
type Refused struct {
	Err   error         // matches one of package guard, or the end of the runner's context
	After time.Duration // when to come again; 0: as soon as a runner is there
	Never bool          // coming again cannot help
}

// Error returns the text of Err.
func (r *Refused) Error() string { return r.Err.Error() }

// Unwrap returns Err.
func (r *Refused) Unwrap() error { return r.Err }

// refuse returns the error of a job that did not run for err. A fault of the program is an error like any other of its
// jobs, which runners count.
func refuse(ctx context.Context, err error) error {
	e, ok := errors.AsType[*guard.Error](err)
	switch {
	case !ok && errors.Is(ctx.Err(), context.Canceled): // it was canceled while it waited
		return &Refused{Err: err}
	case !ok && ctx.Err() != nil: // its time was over while it waited
		return &Refused{Err: err, After: leastAfter}
	case !ok:
		return err
	case errors.Is(e.Err, guard.ErrKey), errors.Is(e.Err, guard.ErrReplaced): // a newer job is there, which it would replace again
		return &Refused{Err: err, Never: true}
	case errors.Is(e.Err, guard.ErrBusy):
		return &Refused{Err: err, After: max(e.RetryAfter, leastAfter)}
	case errors.Is(e.Err, guard.ErrOutage):
		return &Refused{Err: err, After: outageAfter}
	}
	return err
}
