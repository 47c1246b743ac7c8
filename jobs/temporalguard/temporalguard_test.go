package temporalguard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/jobs/jobtest"
	"github.com/latchkey-go/latchkey/jobs/temporalguard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// newSuite returns a suite that logs nothing.
func newSuite() *testsuite.WorkflowTestSuite {
	s := new(testsuite.WorkflowTestSuite)
	s.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	return s
}

// newEnv returns a worker's place for activities, behind these interceptors.
func newEnv(interceptors ...interceptor.WorkerInterceptor) *testsuite.TestActivityEnvironment {
	env := newSuite().NewTestActivityEnvironment()
	return env.SetWorkerOptions(worker.Options{Interceptors: interceptors})
}

// named is how an activity is registered.
func named(name string) activity.RegisterOptions { return activity.RegisterOptions{Name: name} }

// newGuard returns a guard with a key of that template.
func newGuard(locks lock.Locker, template string, opts ...guard.Option) *guard.Guard {
	return guard.Must(guard.New(locks, append([]guard.Option{guard.Name("order.settle"), guard.Key(template)}, opts...)...))
}

// All facts of an activity are there for keys, of one type or all, and two guards stand behind one another.
func TestFacts(t *testing.T) {
	locks := guardtest.New()
	env := newEnv(
		guard.Must(temporalguard.New[any](newGuard(locks, "#{job.Kind}:#{job.ID}:#{job.Attempt}:#{job.Queue}"))),
		guard.Must(temporalguard.New[jobtest.Order](newGuard(locks, "order:#{req.ID}"), "settle", "refund")),
		guard.Must(temporalguard.New[struct{}](newGuard(locks, "other", guard.OneKey()), "other")),
	)
	var info activity.Info
	var held []string
	env.RegisterActivityWithOptions(func(ctx context.Context, _ jobtest.Order, _ int) (string, error) {
		info, held = activity.GetInfo(ctx), locks.Held()
		return "settled", nil
	}, named("settle"))
	res, err := env.ExecuteActivity("settle", jobtest.Order{ID: "7"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var word string
	if err := res.Get(&word); err != nil || word != "settled" {
		t.Errorf("result %q, %v", word, err)
	}
	want := []string{fmt.Sprintf("settle:%s%%3A%s:1:%s", info.WorkflowExecution.ID, info.ActivityID, info.TaskQueue), "order:7"}
	if !slices.Equal(held, want) {
		t.Errorf("held %q, want %q", held, want)
	}
	locks.WantNothingHeld(t)
}

// An activity of another type than the guard's runs without it.
func TestOthersPass(t *testing.T) {
	locks := guardtest.New()
	env := newEnv(guard.Must(temporalguard.New[jobtest.Order](newGuard(locks, "order:#{req.ID}"), "settle")))
	env.RegisterActivityWithOptions(func(context.Context) error { return nil }, named("sweep"))
	if _, err := env.ExecuteActivity("sweep"); err != nil {
		t.Error(err)
	}
	if asked := locks.AskedFor(); len(asked) > 0 {
		t.Errorf("locks asked for: %q", asked)
	}
}

// The first argument is found in whatever form an activity has it.
func TestArguments(t *testing.T) {
	byID := func(locks lock.Locker) interceptor.WorkerInterceptor {
		return guard.Must(temporalguard.New[jobtest.Order](newGuard(locks, "#{req.ID}")))
	}
	ofAny := func(locks lock.Locker) interceptor.WorkerInterceptor {
		return guard.Must(temporalguard.New[any](newGuard(locks, `#{req ?? "none"}`)))
	}
	ofNothing := func(locks lock.Locker) interceptor.WorkerInterceptor {
		return guard.Must(temporalguard.New[struct{}](newGuard(locks, "#{job.Kind}")))
	}
	for _, tt := range []struct {
		name     string
		guarded  func(lock.Locker) interceptor.WorkerInterceptor
		activity any
		args     []any
		want     string // the key; empty if there is none
	}{
		{"value", byID, func(jobtest.Order) error { return nil }, []any{jobtest.Order{ID: "7"}}, "7"},
		{"pointer", byID, func(context.Context, *jobtest.Order) error { return nil }, []any{&jobtest.Order{ID: "7"}}, "7"},
		{"nil pointer", byID, func(context.Context, *jobtest.Order) error { return nil }, []any{(*jobtest.Order)(nil)}, ""},
		{"nil of an interface", byID, func(context.Context, any) error { return nil }, []any{nil}, ""},
		{"another type", byID, func(context.Context, int) error { return nil }, []any{7}, ""},
		{"none", byID, func(context.Context) error { return nil }, nil, ""},
		{"any", ofAny, func(context.Context, int) error { return nil }, []any{7}, "7"},
		{"any nil", ofAny, func(context.Context, any) error { return nil }, []any{nil}, "none"},
		{"none wanted", ofNothing, func(context.Context) error { return nil }, nil, "settle"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			locks := guardtest.New()
			env := newEnv(tt.guarded(locks))
			env.RegisterActivityWithOptions(tt.activity, named("settle"))
			_, err := env.ExecuteActivity("settle", tt.args...)
			if tt.want == "" {
				own, ok := errors.AsType[*temporal.ApplicationError](err)
				if !ok || own.Type() != temporalguard.TypeKey {
					t.Errorf("error %v, want one of TypeKey", err)
				}
				return
			}
			if err != nil {
				t.Error(err)
			}
			locks.WantKeys(t, tt.want)
		})
	}
}

// A local activity is guarded as any other.
func TestLocalActivity(t *testing.T) {
	locks := guardtest.New()
	local := func() error {
		env := newSuite().NewTestWorkflowEnvironment()
		env.SetWorkerOptions(worker.Options{
			Interceptors: []interceptor.WorkerInterceptor{guard.Must(temporalguard.New[jobtest.Order](newGuard(locks, "#{job.Kind}:#{job.Attempt}:#{req.ID}"), "settle"))},
		})
		env.RegisterActivityWithOptions(func(context.Context, jobtest.Order) error { locks.WantHeld(t, "settle:1:7"); return nil }, named("settle"))
		env.ExecuteWorkflow(func(ctx workflow.Context) error {
			ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}})
			return workflow.ExecuteLocalActivity(ctx, "settle", jobtest.Order{ID: "7"}).Get(ctx, nil)
		})
		return env.GetWorkflowError()
	}
	if err := local(); err != nil {
		t.Error(err)
	}
	locks.WantKeys(t, "settle:1:7")
	locks.Set(guardtest.Busy())
	checkFailure(t, local(), temporalguard.TypeBusy, time.Second, false, true, "held by others")
}

// An activity that is skipped has no result.
func TestSkip(t *testing.T) {
	locks := guardtest.New(guardtest.Busy())
	env := newSuite().NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{guard.Must(temporalguard.New[jobtest.Order](newGuard(locks, "order:#{req.ID}", guard.Busy(guard.Skip))))},
	})
	env.RegisterActivityWithOptions(func(context.Context, jobtest.Order) (int, error) { t.Error("it ran"); return 1, nil }, named("settle"))
	env.ExecuteWorkflow(func(ctx workflow.Context) (int, error) {
		n := 7
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		err := workflow.ExecuteActivity(ctx, "settle", jobtest.Order{ID: "7"}).Get(ctx, &n)
		return n, err
	})
	var n int
	if err := env.GetWorkflowResult(&n); err != nil || n != 7 {
		t.Errorf("result %d, %v", n, err)
	}
}

// A session is no activity of the program's. If it were, it would hold its lock for all of its time.
func TestSessionsPass(t *testing.T) {
	locks := guardtest.New()
	env := newSuite().NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{
		EnableSessionWorker: true,
		Interceptors:        []interceptor.WorkerInterceptor{guard.Must(temporalguard.New[any](newGuard(locks, "#{job.Kind}")))},
	})
	env.RegisterActivityWithOptions(func(context.Context) error { return nil }, named("settle"))
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		ctx, err := workflow.CreateSession(ctx, &workflow.SessionOptions{CreationTimeout: time.Minute, ExecutionTimeout: time.Minute})
		if err != nil {
			return err
		}
		defer workflow.CompleteSession(ctx)
		return workflow.ExecuteActivity(ctx, "settle").Get(ctx, nil)
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
	locks.WantKeys(t, "settle")
}

// An activity heartbeats while it waits, and keeps what an earlier attempt has recorded. Once it runs, it does that itself.
func TestHeartbeatsWhileItWaits(t *testing.T) {
	locks := guardtest.New()
	var mu sync.Mutex
	var beats []string
	env := newSuite().NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{guard.Must(temporalguard.New[jobtest.Order](newGuard(locks, "order:#{req.ID}", guard.Wait(guard.Forever))))},
	})
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		mu.Lock()
		defer mu.Unlock()
		var page int
		var word string
		_ = details.Get(&page, &word)
		beats = append(beats, fmt.Sprint(page, word))
		if len(beats) == 2 {
			locks.Set()
		}
	})
	env.RegisterActivityWithOptions(func(ctx context.Context, _ jobtest.Order) error {
		if activity.GetInfo(ctx).Attempt == 1 {
			activity.RecordHeartbeat(ctx, 3, "pages")
			locks.Set(guardtest.BusyFor(time.Second))
			return errOwn
		}
		return nil
	}, named("settle"))
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: 300 * time.Millisecond})
		return workflow.ExecuteActivity(ctx, "settle", jobtest.Order{ID: "7"}).Get(ctx, nil)
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(beats) < 3 || slices.ContainsFunc(beats, func(b string) bool { return b != "3pages" }) {
		t.Errorf("heartbeats %q", beats)
	}
}

func TestMistakes(t *testing.T) {
	for name, opt := range map[string]guard.Option{
		"no such fact":  guard.Key("order:#{path.id}"),
		"no such field": guard.Key("order:#{req.Number}"),
		"no argument":   guard.KeyFunc(func(int) (string, error) { return "", nil }),
	} {
		_, err := temporalguard.New[jobtest.Order](guard.Must(guard.New(memlock.New(), guard.Name("order.settle"), opt)), "settle")
		if err == nil || !strings.Contains(err.Error(), "order.settle") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := temporalguard.New[jobtest.Order](nil); err == nil {
		t.Error("a nil guard is no mistake")
	}
}

// Three activities of two orders, which are tried again as a server does: those of one order take turns.
func TestExample(t *testing.T) {
	settled := guard.Must(settling(memlock.New()))
	var all sync.WaitGroup
	ends := make([]time.Time, 3)
	for i, order := range []string{"42", "42", "43"} {
		all.Go(func() {
			env := newEnv(settled)
			env.RegisterActivity(Settle)
			for {
				_, err := env.ExecuteActivity(Settle, Order{OrderID: order})
				e, ok := errors.AsType[*temporal.ApplicationError](err)
				if err == nil || !ok || e.Type() != temporalguard.TypeBusy {
					if ends[i] = time.Now(); err != nil {
						t.Error(err)
					}
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	all.Wait()
	if apart := ends[0].Sub(ends[1]).Abs(); apart < 950*time.Millisecond { // the work takes a second
		t.Errorf("two activities of one order ended within %v", apart)
	}
}
