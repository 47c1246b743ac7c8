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
