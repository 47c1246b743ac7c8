package guard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// All guards of a program are in one Registry, which knows what each of them is doing.
func ExampleRegistry() {
	reg := guard.Must(guard.NewRegistry())
	specs := guard.Must(guard.ParseSpecs("order.pay: wait=5s")) // from a file, for this guard alone
	if err := reg.Override(specs); err != nil {
		fmt.Println(err)
	}
	g := guard.Must(guard.New(memlock.New(), guard.In(reg), guard.Name("order.pay"), guard.Key("order:#{req.OrderID}")))
	pay := guard.Must(guard.Func(g, pay))

	_, _ = pay(context.Background(), PayRequest{OrderID: "42"})
	for info := range reg.All() {
		fmt.Println(info.Spec)
		fmt.Println(info.Mode, info.Shape, info.Outcomes)
	}
	fmt.Println(reg.Check()) // is every name in the file that of a guard?
	// Output:
	// order:#{req.OrderID}; name=order.pay; wait=5s
	// on order:<string> map[ok:1]
	// <nil>
}

// When the program ends, nobody gets a lock anymore, and calls that have theirs finish.
func ExampleRegistry_Drain() {
	reg := guard.Must(guard.NewRegistry())
	g := guard.Must(guard.New(memlock.New(), guard.In(reg), guard.Name("order.pay"), guard.Key("order:#{req.OrderID}")))
	pay := guard.Must(guard.Func(g, pay))

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	report, err := reg.Drain(ctx)
	fmt.Println(len(report.Running), err)
	_, err = pay(ctx, PayRequest{OrderID: "42"})
	fmt.Println(errors.Is(err, guard.ErrDraining))
	// Output:
	// 0 <nil>
	// true
}

// One call at a time of an order, and at most three of all.
func ExampleStack() {
	locker := memlock.New()
	few := guard.Must(guard.New(locker, guard.Name("pay.few"), guard.Key("pay"), guard.OneKey(), guard.Limit(3)))
	one := guard.Must(guard.New(locker, guard.Name("pay.one"), guard.Key("order:#{req.OrderID}")))
	pay := guard.Must(guard.Func(guard.Must(guard.Stack(few, one)), pay))

	ctx := context.Background()
	fmt.Println(pay(ctx, PayRequest{OrderID: "42"}))
	hold := guard.Must(locker.Acquire(ctx, lock.Request{Key: "order:42"}))
	defer func() { _ = hold.Release(ctx) }()
	_, err := pay(ctx, PayRequest{OrderID: "42"})
	if busy, ok := errors.AsType[*guard.Error](err); ok {
		fmt.Println(busy.Guard, errors.Is(err, guard.ErrBusy))
	}
	// Output:
	// {paid 42} <nil>
	// pay.one true
}

// The work asks whether it still has its lock, just before what can't be undone.
func ExampleHoldFrom() {
	g := guard.Must(guard.New(memlock.New(), guard.Name("order.pay"), guard.Key("order:#{req.OrderID}"), guard.Fenced()))
	pay := guard.Must(guard.Action(g, func(ctx context.Context, req PayRequest) error {
		hold, ok := guard.HoldFrom(ctx)
		if !ok {
			return fmt.Errorf("order %s is paid under a lock only", req.OrderID)
		}
		if err := hold.Check(ctx); err != nil {
			return err
		}
		fmt.Println("commits under", hold.Name(), "with token", hold.Token())
		return nil
	}))
	fmt.Println(pay(context.Background(), PayRequest{OrderID: "42"}))
	// Output:
	// commits under order.pay with token 1
	// <nil>
}

// A log has a line for each call that somebody may want to look at: here for one that was skipped.
func ExampleLog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "reason" || a.Key == "wait" {
			return slog.Attr{} // not the same in each run, or too long for here
		}
		return a
	}}))
	locker := memlock.New()
	g := guard.Must(guard.New(locker, guard.Name("report"), guard.Key("nightly"), guard.Busy(guard.Skip), guard.Log(logger)))
	report := guard.Must(guard.Job(g, func(context.Context) error { return nil }))

	ctx := context.Background()
	hold := guard.Must(locker.Acquire(ctx, lock.Request{Key: "nightly"}))
	defer func() { _ = hold.Release(ctx) }()
	fmt.Println(report(ctx))
	// Output:
	// level=INFO msg="guard: skipped without the lock" guard=report outcome=skipped
	// <nil>
}

// A condition is about the request: a test order needs no lock.
func ExampleWhen() {
	g := guard.Must(guard.New(memlock.New(), guard.Name("order.pay"), guard.Key("order:#{req.OrderID}"),
		guard.When(`not (req.OrderID startsWith "test-")`)))
	pay := guard.Must(guard.Action(g, func(ctx context.Context, req PayRequest) error {
		fmt.Println(req.OrderID, guard.Held(ctx, "order.pay"))
		return nil
	}))
	_ = pay(context.Background(), PayRequest{OrderID: "42"})
	_ = pay(context.Background(), PayRequest{OrderID: "test-1"})
	// Output:
	// 42 true
	// test-1 false
}

// A guard that says Switchable can be switched off while the program runs, or watched in shadow mode before it is on.
func ExampleSwitchable() {
	reg := guard.Must(guard.NewRegistry())
	g := guard.Must(guard.New(memlock.New(), guard.In(reg), guard.Name("order.pay"), guard.Key("order:#{req.OrderID}"), guard.Switchable()))
	pay := guard.Must(guard.Action(g, func(ctx context.Context, _ PayRequest) error {
		fmt.Println("held:", guard.Held(ctx, "order.pay"))
		return nil
	}))
	_ = pay(context.Background(), PayRequest{OrderID: "42"})
	fmt.Println(reg.Switch("order.pay", guard.Off))
	_ = pay(context.Background(), PayRequest{OrderID: "42"})
	// Output:
	// held: true
	// <nil>
	// held: false
}
