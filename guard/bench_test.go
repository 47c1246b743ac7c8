package guard_test

import (
	"context"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// noop returns a guarded function that does nothing, and a counter of its runs.
func noop(tb testing.TB) (func(context.Context, Order) (int, error), *int) {
	tb.Helper()
	runs := new(int)
	g, err := guard.New(memlock.New(), guard.Name("noop"), guard.Key("order:#{req.ID}"))
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

// TestAllocations holds the price of a guard, memlock included, under the bound that the project has set itself.
func TestAllocations(t *testing.T) {
	f, _ := noop(t)
	got := testing.AllocsPerRun(100, func() {
		if _, err := f(t.Context(), Order{ID: "4711"}); err != nil {
			t.Error(err)
		}
	})
	if got > 5 {
		t.Errorf("%v allocations a call, want 5", got)
	}
}
