package temporalguard_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/jobs/jobtest"
	"github.com/latchkey-go/latchkey/jobs/temporalguard"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

var errOwn = errors.New("the work's own error")

// What Temporal is told of an activity that did not run, or lost its lock.
func TestFailures(t *testing.T) {
	loses := func(ctx context.Context, locks *guardtest.Locker, err error) error {
		locks.Lose("order:7")
		<-ctx.Done()
		return err
	}
	for _, tt := range []struct {
		name   string
		faults []guardtest.Fault
		id     string
		work   func(context.Context, *guardtest.Locker) error
		kind   string        // of the failure
		after  time.Duration // at the latest
		final  bool
		benign bool
		text   string // in the message
	}{
		{name: "busy", faults: []guardtest.Fault{guardtest.Busy()}, id: "7", kind: temporalguard.TypeBusy, after: time.Second, benign: true, text: "held by others"},
		{name: "busy for a while", faults: []guardtest.Fault{guardtest.BusyFor(4 * time.Second)}, id: "7", kind: temporalguard.TypeBusy, after: 4 * time.Second, benign: true, text: "did not run"},
		{name: "outage", faults: []guardtest.Fault{guardtest.Outage(errOwn)}, id: "7", kind: temporalguard.TypeOutage, after: 5 * time.Second, text: errOwn.Error()},
		{name: "no key", kind: temporalguard.TypeKey, final: true, text: "req.ID"},
		{
			name: "lost", id: "7", kind: temporalguard.TypeLost, text: "unlocked by force",
			work: func(ctx context.Context, locks *guardtest.Locker) error { return loses(ctx, locks, nil) },
		},
		{
			name: "lost, and failed for good", id: "7", kind: temporalguard.TypeLost, final: true, text: "declined",
			work: func(ctx context.Context, locks *guardtest.Locker) error {
				return loses(ctx, locks, temporal.NewNonRetryableApplicationError("declined", "card", nil))
			},
		},
		{
			name: "own error", id: "7", kind: "card", after: time.Minute, text: "declined",
			work: func(context.Context, *guardtest.Locker) error {
				return temporal.NewApplicationErrorWithOptions("declined", "card", temporal.ApplicationErrorOptions{NextRetryDelay: time.Minute})
			},
		},
		{
			name: "busy within", id: "7", kind: "Error", text: "inner", // as Temporal calls errors of other programs
			work: func(context.Context, *guardtest.Locker) error {
				return &guard.Error{Guard: "inner", Err: guard.ErrBusy}
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			locks := guardtest.New(tt.faults...)
			env := newEnv(guard.Must(temporalguard.New[jobtest.Order](newGuard(locks, "order:#{req.ID}"), "settle")))
			env.RegisterActivityWithOptions(func(ctx context.Context, _ jobtest.Order) (string, error) {
				if tt.work == nil {
					t.Error("it ran")
					return "", nil
				}
				return "res", tt.work(ctx, locks)
			}, named("settle"))
			_, err := env.ExecuteActivity("settle", jobtest.Order{ID: tt.id})
			checkFailure(t, err, tt.kind, tt.after, tt.final, tt.benign, tt.text)
			locks.WantNothingHeld(t)
		})
	}
}

// checkFailure checks what a workflow gets for an activity. The delay may be a fifth less than after.
func checkFailure(t *testing.T, err error, kind string, after time.Duration, final, benign bool, text string) {
	t.Helper()
	failed, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok {
		t.Fatalf("error %v, want an application error", err)
	}
	if failed.Type() != kind || failed.NonRetryable() != final || !strings.Contains(failed.Error(), text) {
		t.Errorf("type %q, final %t: %v", failed.Type(), failed.NonRetryable(), failed)
	}
	if d := failed.NextRetryDelay(); d > after || d < after-after/4 {
		t.Errorf("again after %v, want %v", d, after)
	}
	if got := failed.Category() == temporal.ApplicationErrorCategoryBenign; got != benign {
		t.Errorf("benign: %t", got)
	}
}

// A newer activity ends the one before it, which must not come again and end the newer one in turn.
func TestReplaced(t *testing.T) {
	for _, heeds := range []error{context.Canceled, guard.ErrReplaced} {
		guarded := guard.Must(temporalguard.New[jobtest.Order](newGuard(memlock.New(), "order:#{req.ID}", guard.Busy(guard.Replace))))
		runs := make(chan struct{}, 2)
		first := newEnv(guarded)
		first.RegisterActivityWithOptions(func(ctx context.Context, _ jobtest.Order) error {
			runs <- struct{}{}
			<-ctx.Done()
			return heeds
		}, named("settle"))
		second := newEnv(guarded)
		second.RegisterActivityWithOptions(func(context.Context, jobtest.Order) error { return nil }, named("settle"))
		var older sync.WaitGroup
		older.Go(func() {
			_, err := first.ExecuteActivity("settle", jobtest.Order{ID: "7"})
			checkFailure(t, err, temporalguard.TypeReplaced, 0, true, true, "did not keep its lock")
		})
		<-runs
		if _, err := second.ExecuteActivity("settle", jobtest.Order{ID: "7"}); err != nil {
			t.Error(err)
		}
		older.Wait()
	}
}

// An activity that waits for its second lock, and loses its first, was lost.
func TestLostBetweenTwoGuards(t *testing.T) {
	locks := guardtest.New(guardtest.On(guardtest.Busy(), "order:7"))
	env := newEnv(
		guard.Must(temporalguard.New[jobtest.Order](newGuard(locks, "tenant", guard.OneKey()))),
		guard.Must(temporalguard.New[jobtest.Order](newGuard(locks, "order:#{req.ID}", guard.Wait(guard.Forever)))),
	)
	env.RegisterActivityWithOptions(func(context.Context, jobtest.Order) error { t.Error("it ran"); return nil }, named("settle"))
	go func() {
		_ = locks.Await(t.Context(), guardtest.Asked, "order:7", 1)
		locks.Lose("tenant")
	}()
	_, err := env.ExecuteActivity("settle", jobtest.Order{ID: "7"})
	checkFailure(t, err, temporalguard.TypeLost, 0, false, false, "unlocked by force")
	locks.WantNothingHeld(t)
}

// A worker that drains refuses activities as in an outage, so that they come again elsewhere.
func TestDraining(t *testing.T) {
	reg := guard.Must(guard.NewRegistry())
	guarded := guard.Must(temporalguard.New[jobtest.Order](newGuard(memlock.New(), "order:#{req.ID}", guard.In(reg))))
	if _, err := reg.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	env := newEnv(guarded)
	env.RegisterActivityWithOptions(func(context.Context, jobtest.Order) error { return nil }, named("settle"))
	_, err := env.ExecuteActivity("settle", jobtest.Order{ID: "7"})
	checkFailure(t, err, temporalguard.TypeOutage, 5*time.Second, false, false, "draining")
}

// An activity whose worker ends while it waits for its lock fails as one whose context has ended.
func TestWorkerEndsWhileItWaits(t *testing.T) {
	locks := guardtest.New(guardtest.Busy())
	ctx, cancel := context.WithCancelCause(t.Context())
	env := newSuite().NewTestActivityEnvironment().SetWorkerOptions(worker.Options{
		BackgroundActivityContext: ctx,
		Interceptors:              []interceptor.WorkerInterceptor{guard.Must(temporalguard.New[jobtest.Order](newGuard(locks, "order:#{req.ID}", guard.Wait(guard.Forever))))},
	})
	env.RegisterActivityWithOptions(func(context.Context, jobtest.Order) error { t.Error("it ran"); return nil }, named("settle"))
	go func() {
		_ = locks.Await(t.Context(), guardtest.Asked, "order:7", 1)
		cancel(worker.ErrWorkerShutdown)
	}()
	_, err := env.ExecuteActivity("settle", jobtest.Order{ID: "7"})
	failed, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || failed.NonRetryable() || strings.HasPrefix(failed.Type(), "latchkey") || !strings.Contains(failed.Error(), worker.ErrWorkerShutdown.Error()) {
		t.Errorf("error %v", err)
	}
}
