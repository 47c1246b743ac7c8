package guard_test

import (
	"context"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

// switched is a meter whose gauges count whatever they are told, and say whether anybody reads them.
type switched struct {
	metricnoop.MeterProvider
	on     atomic.Bool
	gauges map[string]*gauge
}

type switchedMeter struct {
	metricnoop.Meter
	*switched
}

type gauge struct {
	metricnoop.Int64UpDownCounter
	*switched
	now, lowest, highest int64
}

func (s *switched) Meter(string, ...metric.MeterOption) metric.Meter {
	return switchedMeter{switched: s}
}

func (m switchedMeter) Int64UpDownCounter(name string, _ ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	m.gauges[name] = &gauge{switched: m.switched}
	return m.gauges[name], nil
}

func (g *gauge) Enabled(context.Context) bool { return g.on.Load() }

func (g *gauge) Add(_ context.Context, n int64, _ ...metric.AddOption) {
	g.now += n
	g.lowest, g.highest = min(g.lowest, g.now), max(g.highest, g.now)
}

// TestGaugesBalance holds that a call which was not counted when it came is not taken out of a gauge when it leaves.
func TestGaugesBalance(t *testing.T) {
	for _, tt := range []struct {
		from                    string
		before, waiting, during bool
		highest                 int64
	}{
		{"nobody", false, false, false, 0},
		{"from the beginning", true, false, false, 1},
		{"from when it waits", false, true, false, 0},
		{"from when it runs", false, false, true, 0},
	} {
		for how, opts := range map[string][]guard.Option{
			"not observed": nil,
			"observed":     {guard.Observe(func(context.Context, guard.Event) {})},
		} {
			s, l := &switched{gauges: make(map[string]*gauge)}, newSpy()
			l.after = func(lock.Request) { s.on.Store(tt.before || tt.waiting) }
			s.on.Store(tt.before)
			g, err := guard.New(l, append(opts, guard.Name("a"), guard.Key("order:#{req.ID}"), guard.MeterProvider(s))...)
			if err != nil {
				t.Fatal(err)
			}
			settle, err := guard.Func(g, func(context.Context, Order) (string, error) {
				s.on.Store(tt.before || tt.waiting || tt.during)
				return "", nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
				t.Fatal(err)
			}
			for _, gauge := range []string{"latchkey.guard.waiting", "latchkey.guard.held"} {
				if g := s.gauges[gauge]; g.now != 0 || g.lowest != 0 || g.highest != tt.highest {
					t.Errorf("read %s, %s: %s between %d and %d, %d at the end; want %d at most", tt.from, how, gauge, g.lowest, g.highest, g.now, tt.highest)
				}
			}
		}
	}
}
