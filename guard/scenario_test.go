package guard_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/scenario"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// TestScenarios plays the one table with each way to put a guard before a function.
func TestScenarios(t *testing.T) {
	for name, d := range map[string]scenario.Driver{
		"Func":        {Fact: "req.ID", Mount: mountFunc, Fallback: with(mountFunc, guard.Fallback(settleInstead))},
		"Action":      {Fact: "req.ID", Mount: mountAction, Fallback: with(mountAction, guard.Fallback(dropInstead)), SilentSkip: true},
		"Job":         {Fact: "id()", Mount: mountJob, Fallback: with(mountJob, guard.Fallback(cleanInstead)), SilentSkip: true},
		"TryJob":      {Fact: "id()", Mount: mountTryJob, Fallback: with(mountTryJob, guard.Fallback(cleanInstead))},
		"Do":          {Fact: "req.ID", Mount: mountDo, Fallback: with(mountDo, guard.Fallback(settleInstead))},
		"Try":         {Fact: "req.ID", Mount: mountTry, Fallback: with(mountTry, guard.Fallback(settleInstead))},
		"Bind":        {Fact: "req.ID", Mount: mountBind, Fallback: with(mountBind, guard.Fallback(settleInstead))},
		"Args":        {Fact: "id", Mount: mountArgs, Fallback: with(mountArgs, guard.Fallback(argsInstead))},
		"Stack first": {Fact: "req.ID", Mount: mountFirst, Fallback: with(mountFirst, guard.Fallback(settleInstead))},
		"Stack last":  {Fact: "req.ID", Mount: mountLast(), Fallback: mountLast(guard.Fallback(settleInstead))},
	} {
		t.Run(name, func(t *testing.T) { scenario.Run(t, d) })
	}
}

// with is mount with one more option.
func with(mount scenario.Mount, opt guard.Option) scenario.Mount {
	return func(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
		t.Helper()
		return mount(t, l, append(opts, opt), work)
	}
}

// errFell is what fallbacks of functions without a result return.
var errFell = errors.New("the fallback ran")

// Fallbacks, each of which wants to know why it runs.
func settleInstead(_ context.Context, _ Order, refused error) (string, error) { return fell(refused) }
func argsInstead(_ context.Context, _ string, refused error) (string, error)  { return fell(refused) }
func dropInstead(_ context.Context, _ Order, refused error) error             { return fellWith(refused) }
func cleanInstead(_ context.Context, refused error) error                     { return fellWith(refused) }

func fell(refused error) (string, error) {
	if err := fellWith(refused); !errors.Is(err, errFell) {
		return "", err
	}
	return "fallback", nil
}

func fellWith(refused error) error {
	if _, ok := errors.AsType[*guard.Error](refused); !ok {
		return fmt.Errorf("the fallback runs for %v", refused)
	}
	return errFell
}

// classOf is the class of what a function without a result has returned.
func classOf(err error) scenario.Class {
	if errors.Is(err, errFell) {
		return scenario.Fell
	}
	return scenario.Of(err)
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

func mountAction(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
	settle := must(guard.Action(must(guard.New(l, opts...))(t), func(ctx context.Context, _ Order) error { return work(ctx) }))(t)
	return func(ctx context.Context, id string) scenario.Class { return classOf(settle(ctx, Order{ID: id})) }
}

// idKey is the key under which a context has the id of a job, which has no request.
type idKey struct{}

// readsID is the function of templates that returns it.
func readsID() guard.Option {
	return guard.TemplateFunc("id", func(ctx context.Context) string { return ctx.Value(idKey{}).(string) })
}

func mountJob(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
	clean := must(guard.Job(must(guard.New(l, append(opts, readsID())...))(t), work))(t)
	return func(ctx context.Context, id string) scenario.Class {
		return classOf(clean(context.WithValue(ctx, idKey{}, id)))
	}
}

func mountTryJob(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
	clean := must(guard.TryJob(must(guard.New(l, append(opts, readsID())...))(t), work))(t)
	return func(ctx context.Context, id string) scenario.Class {
		ran, err := clean(context.WithValue(ctx, idKey{}, id))
		if !ran && err == nil {
			return scenario.Skipped
		}
		return classOf(err)
	}
}

// mountFirst has another guard behind the one in question, which is in nobody's way.
func mountFirst(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
	g := must(guard.Stack(must(guard.New(l, opts...))(t), free(t)))(t)
	return settledBy(must(guard.Func(g, settling(work)))(t))
}

// mountLast has that other guard in front, where the fallback is declared for both.
func mountLast(fallback ...guard.Option) scenario.Mount {
	return func(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
		g := must(guard.Stack(free(t, fallback...), must(guard.New(l, opts...))(t)))(t)
		return settledBy(must(guard.Func(g, settling(work)))(t))
	}
}

// free is a guard whose lock is always free.
func free(t *testing.T, opts ...guard.Option) *guard.Guard {
	calls := 0
	each := guard.KeyFunc(func(Order) (string, error) { calls++; return fmt.Sprint(calls), nil })
	return must(guard.New(memlock.New(), append(opts, guard.Name("order.free"), guard.Fenced(), each)...))(t)
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
		switch {
		case res.Err != nil || res.Ran:
		case res.Value == "fallback":
			return scenario.Fell
		default:
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
