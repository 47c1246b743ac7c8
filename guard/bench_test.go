package guard_test

import (
	"context"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// noop returns a guarded function that does nothing, and a counter of its runs.
func noop(tb testing.TB, opts ...guard.Option) (func(context.Context, Order) (int, error), *int) {
	tb.Helper()
	runs := new(int)
	g, err := guard.New(memlock.New(), append(opts, guard.Name("noop"), guard.Key("order:#{req.ID}"))...)
	if err != nil {
		tb.Fatal(err)
	}
	f, err := guard.Func(g, func(context.Context, Order) (int, error) {
		*runs++
		return *runs, nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return f, runs
}

// BenchmarkFunc is a guard around nothing: the template, the lock of memlock and its release, and no-op telemetry.
func BenchmarkFunc(b *testing.B) {
	f, runs := noop(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f(b.Context(), Order{ID: "4711"}); err != nil {
			b.Fatal(err)
		}
	}
	if *runs < b.N {
		b.Errorf("%d runs of %d", *runs, b.N)
	}
}

// BenchmarkTold is a guard around nothing of whose calls somebody is told.
func BenchmarkTold(b *testing.B) {
	for _, who := range []struct {
		name string
		opt  guard.Option
	}{
		{"observer", guard.Observe(func(context.Context, guard.Event) {})},
		{"registry", guard.In(guard.Must(guard.NewRegistry()))},
		{"metrics", guard.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())))},
	} {
		b.Run(who.name, func(b *testing.B) {
			f, _ := noop(b, who.opt)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f(b.Context(), Order{ID: "4711"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAllocations holds the price of a guard, memlock included, under the bound that the project has set itself.
func TestAllocations(t *testing.T) {
	f, _ := noop(t)
	got := testing.AllocsPerRun(100, func() {
		if _, err := f(t.Context(), Order{ID: "4711"}); err != nil {
			t.Error(err)
		}
	})
	if got > 3 {
		t.Errorf("%v allocations a call, want 3", got)
	}
}

// idle is a shop that does nothing.
type idle struct{ shop }

func (idle) Pay(context.Context, string, *Order, int64) (string, error) { return "", nil }

// wrapped returns the method Pay of a shop that does nothing, behind a generated guard.
func wrapped(tb testing.TB) func(context.Context, shopPay) (string, error) {
	tb.Helper()
	texts := goodTexts
	texts.pay = "order:#{id}:#{o.ID}-#{cents}"
	w, err := guardShop(memlock.New(), idle{}, texts)
	if err != nil {
		tb.Fatal(err)
	}
	return w.pay
}

// TestWrapAllocations holds the price of a generated guard at that of Func, and a box for each of several arguments.
func TestWrapAllocations(t *testing.T) {
	pay, order := wrapped(t), &Order{ID: "7"}
	got := testing.AllocsPerRun(100, func() {
		if _, err := pay(t.Context(), shopPay{"4711", order, 42}); err != nil {
			t.Error(err)
		}
	})
	if got > 7 {
		t.Errorf("%v allocations a call, want 6, or 7 with the race detector", got)
	}
}

// BenchmarkDeclared compares the ways to declare a guard, each around nothing and with the same key.
func BenchmarkDeclared(b *testing.B) {
	type payRequest struct {
		ID    string
		Order *Order
		Cents int64
	}
	var api struct {
		Pay func(context.Context, string, *Order, int64) (string, error) `guard:"order:#{id}:#{o.ID}-#{cents}; args=id,o,cents"`
	}
	api.Pay = idle{}.Pay
	if err := guard.Bind(guard.Must(guard.New(memlock.New())), &api); err != nil {
		b.Fatal(err)
	}
	g := guard.Must(guard.New(memlock.New(), guard.Name("Pay"), guard.Key("order:#{req.ID}:#{req.Order.ID}-#{req.Cents}")))
	byFunc := guard.Must(guard.Func(g, func(ctx context.Context, r payRequest) (string, error) {
		return idle{}.Pay(ctx, r.ID, r.Order, r.Cents)
	}))
	generated, order := wrapped(b), &Order{ID: "7"}
	for _, way := range []struct {
		name string
		pay  func(ctx context.Context) (string, error)
	}{
		{"generated", func(ctx context.Context) (string, error) { return generated(ctx, shopPay{"4711", order, 42}) }},
		{"Func", func(ctx context.Context) (string, error) { return byFunc(ctx, payRequest{"4711", order, 42}) }},
		{"Bind", func(ctx context.Context) (string, error) { return api.Pay(ctx, "4711", order, 42) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := way.pay(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
