package guard_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

// recorded is telemetry that stays in memory.
type recorded struct {
	spans   *tracetest.InMemoryExporter
	metrics *sdkmetric.ManualReader
	options []guard.Option
}

func record() *recorded {
	r := &recorded{spans: tracetest.NewInMemoryExporter(), metrics: sdkmetric.NewManualReader()}
	r.options = []guard.Option{
		guard.TracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans))),
		guard.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.metrics))),
	}
	return r
}

// collect returns the metrics by name.
func (r *recorded) collect(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.metrics.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]metricdata.Metrics)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			byName[m.Name] = m
		}
	}
	return byName
}

func label(set attribute.Set, key attribute.Key) string {
	v, _ := set.Value(key)
	return v.AsString()
}

// TestTelemetry runs calls that end in every way, and looks at what is told about them: the outcome, and never a key.
func TestTelemetry(t *testing.T) {
	const secret = "customer-4711"
	leaky := fmt.Errorf("WRONGTYPE %s", secret)
	loses := func(l *spy) { l.failing = map[string]error{"order:" + secret: lock.ErrLost} }
	refuses := func(err error) func(*spy) {
		return func(l *spy) { l.refuse = map[string]error{"order:" + secret: err} }
	}
	tests := []struct {
		outcome string
		failed  bool // as a span
		held    bool
		work    work
		set     func(*spy)
		opts    []guard.Option
	}{
		{guard.OutcomeOK, false, true, settled, nil, nil},
		{guard.OutcomeError, true, true, func(context.Context, Order) (string, error) { return "", leaky }, nil, nil},
		{guard.OutcomePanic, true, true, func(context.Context, Order) (string, error) { panic(secret) }, nil, nil},
		{guard.OutcomeConditionFalse, false, false, settled, nil, []guard.Option{guard.When("req.Free")}},
		{guard.OutcomeBusy, false, false, settled, refuses(lock.ErrBusy), nil},
		{guard.OutcomeOutage, true, false, settled, refuses(leaky), nil},
		{guard.OutcomeUnsupported, true, false, settled, refuses(lock.ErrUnsupported), nil},
		{guard.OutcomeSkipped, false, false, settled, refuses(leaky), []guard.Option{guard.OnOutage(guard.Skip)}},
		{guard.OutcomeUnlocked, false, false, settled, refuses(leaky), []guard.Option{guard.OnOutage(guard.RunUnlocked)}},
		{guard.OutcomeLost, true, true, settled, loses, nil},
	}
	for _, tt := range tests {
		l, r := newSpy(), record()
		if tt.set != nil {
			tt.set(l)
		}
		settle, _ := guarded(t, l, tt.work, append(tt.opts, r.options...)...)
		func() {
			defer func() { _ = recover() }()
			_, _ = settle(t.Context(), Order{ID: secret})
		}()

		spans, metrics := r.spans.GetSpans(), r.collect(t)
		if len(spans) != 1 {
			t.Errorf("%s: %d spans", tt.outcome, len(spans))
			continue
		}
		span, set := spans[0], attribute.NewSet(spans[0].Attributes...)
		want := attribute.NewSet(
			attribute.String("latchkey.guard", "order.settle"),
			attribute.String("latchkey.template", "order:#{req.ID}"),
			attribute.String("latchkey.outcome", tt.outcome),
		)
		if span.Name != "guard order.settle" || !set.Equals(&want) || (span.Status.Code == codes.Error) != tt.failed {
			t.Errorf("%s: span %s with %v, %v", tt.outcome, span.Name, span.Attributes, span.Status)
		}
		calls := metrics["latchkey.guard.calls"].Data.(metricdata.Sum[int64]).DataPoints
		if len(calls) != 1 || calls[0].Value != 1 || !calls[0].Attributes.Equals(&want) {
			t.Errorf("%s: calls %+v", tt.outcome, calls)
		}
		if _, held := metrics["latchkey.guard.held"]; held != tt.held {
			t.Errorf("%s: histogram of held times: %v, want %v", tt.outcome, held, tt.held)
		}
		if told := fmt.Sprintf("%+v %+v", spans, metrics); strings.Contains(told, secret) {
			t.Errorf("%s: telemetry tells the key: %s", tt.outcome, told)
		}
	}
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record()
		settle, _ := guarded(t, newSpy(), func(context.Context, Order) (string, error) {
			time.Sleep(20 * time.Second)
			return "", nil
		}, append(r.options, guard.WaitForever())...)
		waiting := func() int64 {
			return r.collect(t)["latchkey.guard.waiting"].Data.(metricdata.Sum[int64]).DataPoints[0].Value
		}
		done := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := settle(t.Context(), Order{ID: "7"})
				done <- err
			}()
		}
		synctest.Wait()
		if got := waiting(); got != 2 {
			t.Errorf("%d waiting, want 2", got)
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if got := waiting(); got != 0 {
			t.Errorf("%d waiting afterwards", got)
		}
		for name, want := range map[string]float64{"latchkey.guard.wait": 0 + 20 + 40, "latchkey.guard.held": 60} {
			m := r.collect(t)[name]
			points := m.Data.(metricdata.Histogram[float64]).DataPoints
			if len(points) != 1 || points[0].Count != 3 || points[0].Sum != want || m.Unit != "s" {
				t.Errorf("%s: %+v in %s, want 3 with a sum of %v s", name, points, m.Unit, want)
			}
			if got := label(points[0].Attributes, "latchkey.outcome"); got != guard.OutcomeOK {
				t.Errorf("%s: outcome %q", name, got)
			}
		}
		names := slices.Sorted(maps.Keys(r.collect(t)))
		want := []string{"latchkey.guard.calls", "latchkey.guard.held", "latchkey.guard.wait", "latchkey.guard.waiting"}
		if !slices.Equal(names, want) {
			t.Errorf("metrics %v, want %v", names, want)
		}
	})
}

// TestSpanIsParent holds that what the locker, the work and an observer trace belongs to the guard's span.
func TestSpanIsParent(t *testing.T) {
	r := record()
	var ids []trace.SpanID
	see := func(ctx context.Context) { ids = append(ids, trace.SpanContextFromContext(ctx).SpanID()) }
	l := newSpy()
	l.release = see
	settle, _ := guarded(t, l, func(ctx context.Context, _ Order) (string, error) {
		see(ctx)
		return "", errors.New("own")
	}, append(r.options, guard.Observe(func(ctx context.Context, _ guard.Event) { see(ctx) }))...)
	_, _ = settle(t.Context(), Order{ID: "7"})
	span := r.spans.GetSpans()[0].SpanContext.SpanID()
	if !slices.Equal(ids, []trace.SpanID{span, span, span}) {
		t.Errorf("work, release and observer saw spans %v, want %v", ids, span)
	}
}
