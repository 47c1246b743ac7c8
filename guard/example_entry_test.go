package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

func ExampleAction() {
	g := guard.Must(guard.New(memlock.New(), guard.Name("order.cancel"), guard.Key("order:#{req.OrderID}")))
	cancel := guard.Must(guard.Action(g, func(_ context.Context, req PayRequest) error {
		fmt.Println("canceled", req.OrderID)
		return nil
	}))
	fmt.Println(cancel(context.Background(), PayRequest{OrderID: "42"}))
	// Output:
	// canceled 42
	// <nil>
}

// Of all processes that start the job at the same time, one runs it.
func ExampleJob() {
	g := guard.Must(guard.New(memlock.New(), guard.Name("report"), guard.Key("nightly-report"), guard.Busy(guard.Skip)))
	report := guard.Must(guard.Job(g, func(context.Context) error {
		fmt.Println("reporting")
		return nil
	}))
	fmt.Println(report(context.Background()))
	// Output:
	// reporting
	// <nil>
}

// Of all processes that stand, one leads. Here it is alone, fails once, and leads again with a greater token.
func ExampleLead() {
	g := guard.Must(guard.New(memlock.New(), guard.Name("scheduler"), guard.Key("leader:scheduler"), guard.Fenced()))
	terms := 0
	err := guard.Lead(context.Background(), g, func(ctx context.Context) error {
		token, _ := guard.Token(ctx) // for stores that refuse smaller ones
		fmt.Println("leads with token", token)
		if terms++; terms == 1 {
			return errors.New("the queue is not there yet")
		}
		return nil // the work is done; most leaders return when ctx ends
	})
	fmt.Println(err)
	// Output:
	// leads with token 1
	// leads with token 2
	// <nil>
}

// Work that is no function of its own.
func ExampleDo() {
	g := guard.Must(guard.New(memlock.New(), guard.Name("order.pay"), guard.Key("order:#{req.OrderID}")))
	req := PayRequest{OrderID: "42"}
	receipt, err := guard.Do(context.Background(), g, req, func(context.Context) (Receipt, error) {
		return Receipt{"paid " + req.OrderID}, nil
	})
	fmt.Println(receipt.Text, err)
	// Output: paid 42 <nil>
}

// Check finds mistakes when the program starts that Do would find at its first call.
func ExampleCheck() {
	g := guard.Must(guard.New(memlock.New(), guard.Name("order.pay"), guard.Key("order:#{req.OrdreID}")))
	fmt.Println(guard.Check[PayRequest, Receipt](g))
	// Output:
	// guard "order.pay": key: keyexpr: unknown field OrdreID of PayRequest, did you mean OrderID? (at offset 12 of "order:#{req.OrdreID}")
}

// A skipped call has no error, and Try tells it from one that was done.
func ExampleTry() {
	locker := memlock.New()
	g := guard.Must(guard.New(locker, guard.Name("order.pay"), guard.Key("order:#{req.OrderID}"), guard.Busy(guard.Skip)))
	pay := guard.Must(guard.Try(g, pay))

	ctx := context.Background()
	fmt.Println(pay(ctx, PayRequest{OrderID: "42"}))
	hold := guard.Must(locker.Acquire(ctx, lock.Request{Key: "order:42"}))
	fmt.Println(pay(ctx, PayRequest{OrderID: "42"}))
	_ = hold.Release(ctx)
	// Output:
	// {true {paid 42} <nil>}
	// {false {} <nil>}
}

// One of two processes at the same time does the job, and the other one knows that it did not.
func ExampleTryJob() {
	locker := memlock.New()
	g := guard.Must(guard.New(locker, guard.Name("report"), guard.Key("nightly-report"), guard.Busy(guard.Skip)))
	report := guard.Must(guard.TryJob(g, func(context.Context) error {
		fmt.Println("reporting")
		return nil
	}))

	ctx := context.Background()
	fmt.Println(report(ctx))
	hold := guard.Must(locker.Acquire(ctx, lock.Request{Key: "nightly-report"}))
	fmt.Println(report(ctx))
	_ = hold.Release(ctx)
	// Output:
	// reporting
	// true <nil>
	// false <nil>
}

// A method with arguments of its own gives them names, which its templates use.
func ExampleBind_args() {
	type Bank struct {
		Move func(ctx context.Context, from, to string, cents int) error `guard:"#{[from, to]}; args=from,to,cents; when=cents > 0"`
	}
	bank := Bank{Move: func(_ context.Context, from, to string, cents int) error {
		fmt.Println(from, "pays", to, cents)
		return nil
	}}
	if err := guard.Bind(guard.Must(guard.New(memlock.New())), &bank); err != nil {
		fmt.Println(err)
	}
	fmt.Println(bank.Move(context.Background(), "ann", "bob", 100))
	// Output:
	// ann pays bob 100
	// <nil>
}

// A guard without a name and a key has defaults for many functions. Their tags have the last word.
func ExampleBind_defaults() {
	type Orders struct {
		Pay    func(context.Context, PayRequest) (Receipt, error) `guard:"order:#{req.OrderID}"`
		Cancel func(context.Context, PayRequest) error            `guard:"order:#{req.OrderID}; busy=fail"`
	}
	locker := memlock.New()
	defaults := guard.Must(guard.New(locker, guard.MaxHold(time.Minute), guard.Busy(guard.Skip)))
	orders := Orders{Pay: pay, Cancel: func(context.Context, PayRequest) error { return nil }}
	if err := guard.Bind(defaults, &orders); err != nil {
		fmt.Println(err)
	}

	ctx := context.Background()
	hold := guard.Must(locker.Acquire(ctx, lock.Request{Key: "order:42"}))
	_, err := orders.Pay(ctx, PayRequest{OrderID: "42"})
	fmt.Println(err)
	err = orders.Cancel(ctx, PayRequest{OrderID: "42"})
	fmt.Println(errors.Is(err, guard.ErrBusy))
	_ = hold.Release(ctx)
	// Output:
	// <nil>
	// true
}

func ExampleKeysFunc() {
	type Cart struct{ SKUs []string }
	g := guard.Must(guard.New(memlock.New(), guard.Name("reserve"), guard.KeysFunc(func(c Cart) ([]string, error) {
		var keys []string
		for _, sku := range c.SKUs {
			keys = append(keys, "stock:"+sku)
		}
		return keys, nil
	})))
	reserve := guard.Must(guard.Func(g, func(_ context.Context, c Cart) (int, error) { return len(c.SKUs), nil }))
	fmt.Println(reserve(context.Background(), Cart{[]string{"hat", "coat"}}))
	// Output: 2 <nil>
}

// A Spec reads back from its text and from JSON.
func ExampleSpec() {
	s := guard.Spec{Name: "order.pay", Key: "order:#{req.OrderID}", Wait: 2 * time.Second, Busy: guard.Skip}
	fmt.Println(s)
	object, err := json.Marshal(s)
	fmt.Println(string(object), err)
	var back guard.Spec
	fmt.Println(back.UnmarshalText([]byte(s.String())), back == s)
	fmt.Println(back.UnmarshalText([]byte("order:#{req.OrderID}; wiat=2s")))
	// Output:
	// order:#{req.OrderID}; name=order.pay; wait=2s; busy=skip
	// {"name":"order.pay","key":"order:#{req.OrderID}","wait":"2s","busy":"skip"} <nil>
	// <nil> true
	// guard: tag "order:#{req.OrderID}; wiat=2s": unknown attribute "wiat", did you mean wait? (at offset 22)
}

// What operations override when a program starts, as in an environment variable. Registry.Override takes it.
func ExampleParseSpecs() {
	specs, err := guard.ParseSpecs("order.pay: wait=5s; busy=skip | report: limit=3")
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		fmt.Println(name, specs[name])
	}
	fmt.Println(err)
	_, err = guard.ParseSpecs("order.pay: wait=5s | report: limt=3")
	fmt.Println(err)
	// Output:
	// order.pay ; wait=5s; busy=skip
	// report ; kind=permit; limit=3
	// <nil>
	// guard: specs: guard "report": unknown attribute "limt", did you mean limit? (line 1, column 30)
}
