package adapter_test

import (
	"context"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

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
