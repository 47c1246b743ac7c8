package temporal_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/temporaltest"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/jobs/jobtest"
	"github.com/latchkey-go/latchkey/jobs/temporalguard"
	"github.com/latchkey-go/latchkey/lock"
)

// newClient returns a client of a server of its own.
func newClient(t *testing.T) client.Client {
	t.Helper()
	return temporaltest.NewServer(temporaltest.WithT(t)).NewClientWithOptions(client.Options{
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
}

// newWorker starts a worker of a queue, with what register gives it, behind these interceptors.
func newWorker(t *testing.T, c client.Client, queue string, register func(worker.Registry), interceptors ...interceptor.WorkerInterceptor) worker.Worker {
	t.Helper()
	w := worker.New(c, queue, worker.Options{
		Interceptors: interceptors, WorkerStopTimeout: time.Second, MaxHeartbeatThrottleInterval: 100 * time.Millisecond,
	})
	register(w)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// options are those of all activities, which are tried again at once.
func options(startToClose, heartbeat time.Duration, attempts int32) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout: startToClose, HeartbeatTimeout: heartbeat, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 1, MaximumAttempts: attempts},
	}
}

// settle is a workflow of one activity. It does not heartbeat, so that the server tries it again while it runs if it takes that long.
func settle(ctx workflow.Context, o jobtest.Order, attempts int32) error {
	ctx = workflow.WithActivityOptions(ctx, options(time.Minute, 8*time.Second, attempts))
	return workflow.ExecuteActivity(ctx, "settle", o).Get(ctx, nil)
}

func TestBehaviours(t *testing.T) {
	c := newClient(t)
	jobtest.Run(t, jobtest.Driver{
		Start: func(t *testing.T, queue string, g *guard.Guard, work func(context.Context) error) jobtest.Runner {
			w := newWorker(t, c, queue, func(r worker.Registry) {
				r.RegisterWorkflow(settle)
				r.RegisterActivityWithOptions(func(ctx context.Context, _ jobtest.Order) error { return work(ctx) }, activity.RegisterOptions{Name: "settle"})
			}, guard.Must(temporalguard.New[jobtest.Order](g, "settle")))
			return runner{c, queue, sync.OnceFunc(w.Stop)}
		},
		Counts: true,
		Without: []string{
			"busy at the last attempt", // each try is an attempt, and a RetryPolicy says how many there may be
		},
	})
}

type runner struct {
	client client.Client
	queue  string
	stop   func()
}

func (r runner) Add(t *testing.T, o jobtest.Order, last bool) jobtest.Job {
	t.Helper()
	run, err := r.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: r.queue}, settle, o, map[bool]int32{true: 1}[last])
	if err != nil {
		t.Fatal(err)
	}
	return job{r, run.GetID()}
}

// Again waits, as the server tries an activity again that does not heartbeat.
func (r runner) Again(*testing.T, jobtest.Job) {}

func (r runner) Cancel(t *testing.T, j jobtest.Job) {
	if err := r.client.CancelWorkflow(t.Context(), j.(job).id, ""); err != nil {
		t.Fatal(err)
	}
}

func (r runner) Stop() { r.stop() }

type job struct {
	runner
	id string // of the workflow
}

// State does not know of failures, which the server counts as long as an activity is pending.
func (j job) State(t *testing.T) (jobtest.State, int) {
	switch j.describe(t).GetWorkflowExecutionInfo().GetStatus() {
	case enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return jobtest.Pending, 0
	case enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return jobtest.Done, 0
	}
	return jobtest.Dead, 0
}

func (j job) Running(t *testing.T) bool {
	pending := j.describe(t).GetPendingActivities()
	return len(pending) == 1 && pending[0].GetState() == enums.PENDING_ACTIVITY_STATE_STARTED
}

// describe asks again where there is no answer in time, as on a busy machine.
func (j job) describe(t *testing.T) *workflowservice.DescribeWorkflowExecutionResponse {
	t.Helper()
	for tries := 3; ; tries-- {
		time.Sleep(50 * time.Millisecond) // as many ask, and the server has more to do
		res, err := j.client.DescribeWorkflowExecution(t.Context(), j.id, "")
		if err == nil {
			return res
		}
		if tries == 0 {
			t.Fatal(err)
		}
	}
}

// newGuard returns a guard with a key of that template, which waits for its lock.
func newGuard(locks lock.Locker, template string) *guard.Guard {
	return guard.Must(guard.New(locks, guard.Name("order.settle"), guard.Key(template), guard.Wait(guard.Forever)))
}

// run runs a workflow of one activity with order 7, behind a guard.
func run(t *testing.T, c client.Client, startToClose, heartbeat time.Duration, guarded interceptor.WorkerInterceptor, work func(context.Context) error) {
	t.Helper()
	flow := func(ctx workflow.Context, order jobtest.Order) error {
		o := options(startToClose, heartbeat, 0) // of its own, as the SDK writes to it
		if strings.Contains(t.Name(), "local") {
			ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
				StartToCloseTimeout: o.StartToCloseTimeout, ScheduleToCloseTimeout: time.Minute, RetryPolicy: o.RetryPolicy,
			})
			return workflow.ExecuteLocalActivity(ctx, "settle", order).Get(ctx, nil)
		}
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), "settle", order).Get(ctx, nil)
	}
	w := newWorker(t, c, t.Name(), func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(flow, workflow.RegisterOptions{Name: "flow"})
		r.RegisterActivityWithOptions(func(ctx context.Context, _ jobtest.Order) error { return work(ctx) }, activity.RegisterOptions{Name: "settle"})
	}, guarded)
	defer w.Stop()
	res, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: t.Name()}, "flow", jobtest.Order{ID: "7"})
	if err == nil {
		err = res.Get(t.Context(), nil)
	}
	if err != nil {
		t.Error(err)
	}
}

// An activity that waits for its lock is heard of. If its time is over, it comes again, and its place in the line is free.
func TestWaits(t *testing.T) {
	c := newClient(t)
	for _, tt := range []struct {
		name         string
		startToClose time.Duration
		heartbeat    time.Duration
		asks         int           // for the lock, while it is held
		held         time.Duration // after the last of these
	}{
		{"heartbeats", time.Minute, 3 * time.Second, 1, 7 * time.Second},
		{"time is over", time.Second, 0, 2, 100 * time.Millisecond},
		{"local", time.Minute, 0, 1, time.Second},
		{"local, and time is over", time.Second, 0, 2, 100 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			locks := guardtest.New()
			other := guard.Must(locks.Acquire(t.Context(), lock.Request{Key: "settle:7"}))
			go func() {
				_ = locks.Await(t.Context(), guardtest.Asked, "settle:7", 1+tt.asks)
				time.Sleep(tt.held)
				_ = other.Release(context.WithoutCancel(t.Context()))
			}()
			guarded := guard.Must(temporalguard.New[jobtest.Order](newGuard(locks, "#{job.Kind}:#{req.ID}"), "settle"))
			run(t, c, tt.startToClose, tt.heartbeat, guarded, func(ctx context.Context) error {
				if got := int(activity.GetInfo(ctx).Attempt); got != tt.asks {
					t.Errorf("attempt %d has it, want %d", got, tt.asks)
				}
				return nil
			})
			locks.WantNothingHeld(t)
		})
	}
}

// An activity that waits for its lock does not erase what it has recorded in an earlier attempt.
func TestDetailsStay(t *testing.T) {
	locks := guardtest.New()
	guarded := guard.Must(temporalguard.New[jobtest.Order](newGuard(locks, "order:#{req.ID}")))
	run(t, newClient(t), time.Minute, 2*time.Second, guarded, func(ctx context.Context) error {
		var page int
		var word string
		switch err := activity.GetHeartbeatDetails(ctx, &page, &word); activity.GetInfo(ctx).Attempt {
		case 1:
			activity.RecordHeartbeat(ctx, 3, "pages")
			locks.Set(guardtest.BusyFor(2 * time.Second))
			return errors.New("later")
		case 2:
			return errors.New("later")
		default:
			if page != 3 || word != "pages" {
				t.Errorf("details %d %q, %v", page, word, err)
			}
			return nil
		}
	})
}

// A dynamic activity decodes its arguments by itself, and its guard knows them, too.
func TestDynamicActivity(t *testing.T) {
	c, locks := newClient(t), guardtest.New()
	flow := func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, options(time.Minute, 0, 1))
		if err := workflow.ExecuteActivity(ctx, "settle", jobtest.Order{ID: "7"}).Get(ctx, nil); err != nil {
			return err
		}
		err := workflow.ExecuteActivity(ctx, "settle").Get(ctx, nil)
		if failed, ok := errors.AsType[*temporal.ApplicationError](err); !ok || failed.Type() != temporalguard.TypeKey {
			t.Errorf("without an argument: %v", err)
		}
		return nil
	}
	w := newWorker(t, c, "dynamic", func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(flow, workflow.RegisterOptions{Name: "flow"})
		r.RegisterDynamicActivity(func(_ context.Context, args converter.EncodedValues) (any, error) {
			locks.WantHeld(t, "7:any", "7")
			var o jobtest.Order
			return nil, args.Get(&o)
		}, activity.DynamicRegisterOptions{})
	},
		guard.Must(temporalguard.New[any](newGuard(locks, "#{req.id}:any"), "settle")),
		guard.Must(temporalguard.New[jobtest.Order](newGuard(locks, "#{req.ID}"))),
	)
	defer w.Stop()
	res, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "dynamic"}, "flow")
	if err == nil {
		err = res.Get(t.Context(), nil)
	}
	if err != nil {
		t.Error(err)
	}
	locks.WantKeys(t, "7:any", "7")
}
