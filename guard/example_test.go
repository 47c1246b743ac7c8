package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

type PayRequest struct{ OrderID string }

type Receipt struct{ Text string }

func pay(_ context.Context, req PayRequest) (Receipt, error) {
	return Receipt{"paid " + req.OrderID}, nil
}

func Example() {
	g := guard.Must(guard.New(memlock.New(), // or redisson.New(...)
		guard.Name("order.pay"),
		guard.Key("order:#{req.OrderID}"),
		guard.Wait(2*time.Second),
	))
	pay := guard.Must(guard.Func(g, pay))

	receipt, err := pay(context.Background(), PayRequest{OrderID: "42"})
	fmt.Println(receipt.Text, err)
	// Output: paid 42 <nil>
}

// A mistake in a declaration shows at start.
func ExampleFunc_mistake() {
	g := guard.Must(guard.New(memlock.New(), guard.Name("order.pay"), guard.Key("order:#{req.OrdreID}")))
	_, err := guard.Func(g, pay)
	fmt.Println(err)
	// Output:
	// guard "order.pay": key: keyexpr: unknown field OrdreID of PayRequest, did you mean OrderID? (at offset 12 of "order:#{req.OrdreID}")
}

// The key of a service in Java, in Java's words: @Lock(key = "'order:' + #order.orderId").
func ExampleKeyFrom() {
	g := guard.Must(guard.New(memlock.New(), guard.Name("order.pay"),
		guard.KeyFrom(spel.Expression("'order:' + #order.orderId", spel.Params("order"))),
	))
	pay := guard.Must(guard.Func(g, pay))

	receipt, err := pay(context.Background(), PayRequest{OrderID: "42"})
	fmt.Println(receipt.Text, err)
	// Output: paid 42 <nil>
}

// A nightly job has one key for all calls, and says so.
func ExampleOneKey() {
	_, err := guard.Func(guard.Must(guard.New(memlock.New(), guard.Name("report"), guard.Key("nightly-report"))), pay)
	fmt.Println(err)
	_, err = guard.Func(guard.Must(guard.New(memlock.New(), guard.Name("report"), guard.Key("nightly-report"), guard.OneKey())), pay)
	fmt.Println(err)
	// Output:
	// guard "report": key: keyexpr: all requests would share one key, as nothing of the request is read: write something like order:#{req.OrderID}; OneKey (one-key in a tag) says that it is meant (at offset 0 of "nightly-report")
	// <nil>
}

// What a refused caller can find out.
func ExampleError() {
	locker := memlock.New()
	g := guard.Must(guard.New(locker, guard.Name("order.pay"), guard.Key("order:#{req.OrderID}")))
	pay := guard.Must(guard.Func(g, pay))

	ctx := context.Background()
	hold := guard.Must(locker.Acquire(ctx, lock.Request{Key: "order:42", Lease: time.Minute}))
	defer func() { _ = hold.Release(ctx) }()

	_, err := pay(ctx, PayRequest{OrderID: "42"})
	if e, ok := errors.AsType[*guard.Error](err); ok && errors.Is(err, guard.ErrBusy) {
		fmt.Println(e.Guard, "is busy, retry within 5s:", e.RetryAfter <= 5*time.Second)
	}
	// Output: order.pay is busy, retry within 5s: true
}

// The declaration can stand on the request: on a blank field, or as marks on the parts of the key, which follow the
// guard's name.
func ExampleFunc_requestTag() {
	type Transfer struct {
		_        struct{} `guard:"; name=transfer; wait=2s; kind=fair"`
		From, To string   `guard:"key"`
		Cents    int
	}
	g := guard.Must(guard.New(memlock.New()))
	transfer := guard.Must(guard.Func(g, func(ctx context.Context, t Transfer) (string, error) {
		return fmt.Sprintf("%s pays %s, under %q: %v", t.From, t.To, "transfer", guard.Held(ctx, "transfer")), nil
	}))
	fmt.Println(transfer(context.Background(), Transfer{From: "ann", To: "bob", Cents: 100}))
	// Output: ann pays bob, under "transfer": true <nil>
}

func ExampleBind() {
	type Orders struct {
		Pay    func(context.Context, PayRequest) (Receipt, error) `guard:"order:#{req.OrderID}; wait=2s"`
		Cancel func(context.Context, PayRequest) error            `guard:"order:#{req.OrderID}; busy=skip"`
	}
	orders := Orders{
		Pay: pay,
		Cancel: func(ctx context.Context, req PayRequest) error {
			fmt.Println("canceled", req.OrderID, guard.Held(ctx, "Orders.Cancel"))
			return nil
		},
	}
	if err := guard.Bind(guard.Must(guard.New(memlock.New())), &orders); err != nil {
		fmt.Println(err)
	}
	fmt.Println(orders.Pay(context.Background(), PayRequest{OrderID: "42"}))
	fmt.Println(orders.Cancel(context.Background(), PayRequest{OrderID: "42"}))
	// Output:
	// {paid 42} <nil>
	// canceled 42 true
	// <nil>
}

func ExampleKeyFunc() {
	g := guard.Must(guard.New(memlock.New(), guard.Name("order.pay"),
		guard.KeyFunc(func(req PayRequest) (string, error) {
			id, ok := strings.CutPrefix(req.OrderID, "DE-")
			if !ok {
				return "", fmt.Errorf("%w: not a German order", guard.ErrKey)
			}
			return "order:" + id, nil
		})))
	pay := guard.Must(guard.Func(g, pay))
	fmt.Println(pay(context.Background(), PayRequest{OrderID: "DE-42"}))
	_, err := pay(context.Background(), PayRequest{OrderID: "42"})
	fmt.Println(errors.Is(err, guard.ErrKey), err)
	// Output:
	// {paid DE-42} <nil>
	// true guard "order.pay": no key from this request: not a German order
}

func ExampleFallback() {
	locker := memlock.New()
	g := guard.Must(guard.New(locker, guard.Name("order.pay"), guard.Key("order:#{req.OrderID}"),
		guard.Fallback(func(_ context.Context, req PayRequest, err error) (Receipt, error) {
			return Receipt{"queued " + req.OrderID}, nil
		})))
	pay := guard.Must(guard.Func(g, pay))

	ctx := context.Background()
	hold := guard.Must(locker.Acquire(ctx, lock.Request{Key: "order:42"}))
	defer func() { _ = hold.Release(ctx) }()
	fmt.Println(pay(ctx, PayRequest{OrderID: "42"}))
	// Output: {queued 42} <nil>
}

func ExampleObserve() {
	g := guard.Must(guard.New(memlock.New(), guard.Name("order.pay"), guard.Key("order:#{req.OrderID}"),
		guard.Observe(func(_ context.Context, e guard.Event) {
			fmt.Println(e.Guard, e.Template, e.Outcome, e.Keys)
		})))
	pay := guard.Must(guard.Func(g, pay))
	_, _ = pay(context.Background(), PayRequest{OrderID: "42"})
	_, _ = pay(context.Background(), PayRequest{})
	// Output:
	// order.pay order:#{req.OrderID} ok 1
	// order.pay order:#{req.OrderID} key 0
}
