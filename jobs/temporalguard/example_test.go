package temporalguard_test

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/jobs/temporalguard"
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

// Activities of one order take turns, whichever workflow runs them.
func Example() {
	c := guard.Must(client.Dial(client.Options{}))
	locks := guard.Must(redisson.Open("redis://localhost:6379"))

	settle := guard.Must(guard.New(locks,
		guard.Name("order.settle"),
		guard.Key("order:#{req.OrderID}"),
		guard.MaxHold(time.Minute),
	))
	w := worker.New(c, "orders", worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{guard.Must(temporalguard.New[Order](settle, "Settle"))},
	})
	w.RegisterActivity(Settle)
	guard.Must(0, w.Run(worker.InterruptCh()))
}
