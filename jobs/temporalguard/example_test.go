package temporalguard_test

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/jobs/temporalguard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// Order is the argument of an activity.
type Order struct{ OrderID string }

// Settle is an activity.
func Settle(ctx context.Context, o Order) error {
	select {
	case <-time.After(time.Second): // the work
		return nil
	case <-ctx.Done(): // the lock is lost, or the worker is to end
		return context.Cause(ctx)
	}
}

// settling has activities of one order take turns, whichever workflow runs them.
func settling(locks lock.Locker) (interceptor.WorkerInterceptor, error) {
	settle := guard.Must(guard.New(locks,
		guard.Name("order.settle"),
		guard.Key("order:#{req.OrderID}"),
		guard.MaxHold(time.Minute),
	))
	return temporalguard.New[Order](settle, "Settle")
}

// Activities of one order take turns, whichever workflow runs them.
func Example() {
	c := guard.Must(client.Dial(client.Options{}))
	locks := guard.Must(redisson.Open("redis://localhost:6379"))
	w := worker.New(c, "orders", worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{guard.Must(settling(locks))},
	})
	w.RegisterActivity(Settle)
	guard.Must(0, w.Run(worker.InterruptCh()))
}
