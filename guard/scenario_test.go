package guard_test

import (
	"context"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/scenario"
	"github.com/latchkey-go/latchkey/lock"
)

// TestScenarios plays the one table with each way to put a guard before a function.
func TestScenarios(t *testing.T) {
	for name, d := range map[string]scenario.Driver{
		"Func":   {Fact: "req.ID", Mount: mountFunc, Fallback: mountFallback},
		"Action": {Fact: "req.ID", Mount: mountAction, SilentSkip: true},
		"Do":     {Fact: "req.ID", Mount: mountDo},
		"Try":    {Fact: "req.ID", Mount: mountTry},
		"Bind":   {Fact: "req.ID", Mount: mountBind},
		"Args":   {Fact: "id", Mount: mountArgs},
	} {
		t.Run(name, func(t *testing.T) { scenario.Run(t, d) })
	}
}

// settling is work as a function with a result, which is empty if it did not run.
func settling(work scenario.Work) func(context.Context, Order) (string, error) {
	return func(ctx context.Context, _ Order) (string, error) { return "settled", work(ctx) }
}

// settledBy makes a call of such a function.
func settledBy(settle func(context.Context, Order) (string, error)) scenario.Call {
	return func(ctx context.Context, id string) scenario.Class {
		switch res, err := settle(ctx, Order{ID: id}); {
		case err != nil:
			return scenario.Of(err)
		case res == "fallback":
			return scenario.Fell
		case res == "":
			return scenario.Skipped
		}
		return scenario.Done
	}
}

func mountFunc(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
	return settledBy(must(guard.Func(must(guard.New(l, opts...))(t), settling(work)))(t))
}

func mountFallback(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
	return mountFunc(t, l, append(opts, guard.Fallback(func(context.Context, Order, error) (string, error) { return "fallback", nil })), work)
}

func mountAction(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
	settle := must(guard.Action(must(guard.New(l, opts...))(t), func(ctx context.Context, _ Order) error { return work(ctx) }))(t)
	return func(ctx context.Context, id string) scenario.Class { return scenario.Of(settle(ctx, Order{ID: id})) }
}

func mountDo(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
	g := must(guard.New(l, opts...))(t)
	if err := guard.Check[Order, string](g); err != nil {
		t.Fatal(err)
	}
	return settledBy(func(ctx context.Context, o Order) (string, error) {
		return guard.Do(ctx, g, o, func(ctx context.Context) (string, error) { return "settled", work(ctx) })
	})
}

func mountTry(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
	settle := must(guard.Try(must(guard.New(l, opts...))(t), settling(work)))(t)
	return func(ctx context.Context, id string) scenario.Class {
		res := settle(ctx, Order{ID: id})
		if res.Err == nil && !res.Ran {
			return scenario.Skipped
		}
		return scenario.Of(res.Err)
	}
}

func mountBind(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
	api := struct {
		Settle func(context.Context, Order) (string, error) `guard:""`
	}{settling(work)}
	if err := guard.Bind(must(guard.New(l, opts...))(t), &api); err != nil {
		t.Fatal(err)
	}
	return settledBy(api.Settle)
}

func mountArgs(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
	api := struct {
		Settle func(context.Context, string) (string, error) `guard:"; args=id"`
	}{func(ctx context.Context, _ string) (string, error) { return "settled", work(ctx) }}
	if err := guard.Bind(must(guard.New(l, opts...))(t), &api); err != nil {
		t.Fatal(err)
	}
	return settledBy(func(ctx context.Context, o Order) (string, error) { return api.Settle(ctx, o.ID) })
}

// must returns v, or fails the test that it is given.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
