package guardtest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
)

// A call that finds its lock held by somebody else.
func ExampleBusyFor() {
	l := guardtest.New(guardtest.BusyFor(time.Hour))
	_, err := newPay(l)(context.Background(), Payment{OrderID: "7"})
	fmt.Println(errors.Is(err, guard.ErrBusy), l.AskedFor())
	// Output: true [order:7]
}

// A lock that is lost while the work runs.
func ExampleLostAfter() {
	l := guardtest.New(guardtest.LostAfter(time.Millisecond))
	_, err := newPay(l)(context.Background(), Payment{OrderID: "7"})
	fmt.Println(errors.Is(err, guard.ErrLost), l.Held())
	// Output: true []
}

// How calls ended, and which keys they took.
func ExampleEvents() {
	l, events := guardtest.New(), new(guardtest.Events)
	g := guard.Must(guard.New(l, guard.Name("order.close"), guard.Key("order:#{req.OrderID}"), guard.Observe(events.Observe)))
	closeOrder := guard.Must(guard.Func(g, func(context.Context, Payment) (string, error) { return "closed", nil }))
	_, _ = closeOrder(context.Background(), Payment{OrderID: "7"})
	_, _ = closeOrder(context.Background(), Payment{})
	fmt.Println(l.Keys(), events.Outcomes("order.close"))
	// Output: [order:7] [ok key]
}

// A program that runs without locks, in staging.
func ExamplePassThrough() {
	l := guardtest.PassThrough()
	ctx := context.Background()
	g := guard.Must(guard.New(l, guard.Name("job"), guard.Key("job"), guard.OneKey()))
	job := guard.Must(guard.Func(g, func(ctx context.Context, _ struct{}) (bool, error) { return guard.Held(ctx, "job"), nil }))
	fmt.Println(job(ctx, struct{}{}))
	// Output: true <nil>
}
