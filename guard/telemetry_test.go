package guard_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
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

// told is what telemetry says about one call, which may panic.
func told(t *testing.T, l lock.Locker, fn work, o Order, opts ...guard.Option) (tracetest.SpanStubs, map[string]metricdata.Metrics) {
	t.Helper()
	r := record()
	settle, _ := guarded(t, l, fn, append(opts, r.options...)...)
	func() {
		defer func() { _ = recover() }()
		_, _ = settle(t.Context(), o)
	}()
	return r.spans.GetSpans(), r.collect(t)
}

// TestTelemetry runs calls that end in every way, and looks at what is told about them: the outcome, and never a key.
func TestTelemetry(t *testing.T) {
	const secret = "customer-4711"
	leaky := fmt.Errorf("WRONGTYPE %s", secret)
	crowded := fmt.Errorf("%w: %s", lock.ErrOverload, secret)
	loses := func(l *spy) { l.failing = map[string]error{"order:" + secret: lock.ErrLost} }
	refuses := func(err error) func(*spy) {
		return func(l *spy) { l.refuse = map[string]error{"order:" + secret: err} }
	}
	tests := []struct {
		outcome string
		refused string // latchkey.refused
		failed  bool   // as a span, with an error.type
		held    bool
		work    work
		set     func(*spy)
		opts    []guard.Option
	}{
		{guard.OutcomeOK, "", false, true, settled, nil, nil},
		{guard.OutcomeError, "", false, true, func(context.Context, Order) (string, error) { return "", leaky }, nil, nil},
		{guard.OutcomePanic, "", true, true, func(context.Context, Order) (string, error) { panic(secret) }, nil, nil},
		{guard.OutcomeConditionFalse, "", false, false, settled, nil, []guard.Option{guard.When("req.Free")}},
		{guard.OutcomeBusy, "", false, false, settled, refuses(lock.ErrBusy), nil},
		{guard.OutcomeOutage, "", true, false, settled, refuses(leaky), nil},
		{guard.OutcomeOverload, "", true, false, settled, refuses(crowded), nil},
		{guard.OutcomeUnsupported, "", true, false, settled, refuses(lock.ErrUnsupported), nil},
		{guard.OutcomeSkipped, "outage", false, false, settled, refuses(leaky), []guard.Option{guard.Outage(guard.Skip)}},
		{guard.OutcomeSkipped, "busy", false, false, settled, refuses(lock.ErrBusy), []guard.Option{guard.Busy(guard.Skip)}},
		{guard.OutcomeUnlocked, "outage", false, false, settled, refuses(leaky), []guard.Option{guard.Outage(guard.RunUnlocked)}},
		{guard.OutcomeUnlocked, "overload", false, false, settled, refuses(crowded), []guard.Option{guard.Outage(guard.RunUnlocked)}},
		{guard.OutcomeLost, "", true, true, settled, loses, nil},
	}
	for _, tt := range tests {
		l := newSpy()
		if tt.set != nil {
			tt.set(l)
		}
		spans, metrics := told(t, l, tt.work, Order{ID: secret}, tt.opts...)
		if len(spans) != 1 {
			t.Errorf("%s: %d spans", tt.outcome, len(spans))
			continue
		}
		want, ofSpan := labelsOf(tt.outcome, tt.refused, tt.failed)
		span, set := spans[0], attribute.NewSet(spans[0].Attributes...)
		if span.Name != "guard order.settle" || !set.Equals(&ofSpan) || (span.Status.Code == codes.Error) != tt.failed {
			t.Errorf("%s: span %s with %v, %v", tt.outcome, span.Name, span.Attributes, span.Status)
		}
		if got := eventNames(span); slices.Equal(got, []string{"lock.acquired", "lock.released"}) != tt.held || !tt.held && got != nil {
			t.Errorf("%s: span events %v; held: %v", tt.outcome, got, tt.held)
		}
		calls := slices.DeleteFunc(metrics["latchkey.guard.calls"].Data.(metricdata.Sum[int64]).DataPoints, func(p metricdata.DataPoint[int64]) bool { return p.Value == 0 })
		if len(calls) != 1 || calls[0].Value != 1 || !calls[0].Attributes.Equals(&want) {
			t.Errorf("%s: calls %+v", tt.outcome, calls)
		}
		if _, held := metrics["latchkey.guard.hold.duration"]; held != tt.held {
			t.Errorf("%s: histogram of held times: %v, want %v", tt.outcome, held, tt.held)
		}
		if text := fmt.Sprintf("%+v %+v", spans, metrics); strings.Contains(text, secret) {
			t.Errorf("%s: telemetry tells the key: %s", tt.outcome, text)
		}
	}
}

// labelsOf are the labels of metrics and the attributes of the span of a call.
func labelsOf(outcome, refused string, failed bool) (ofMetrics, ofSpan attribute.Set) {
	labels := []attribute.KeyValue{attribute.String("latchkey.guard", "order.settle"), attribute.String("latchkey.outcome", outcome)}
	if refused != "" {
		labels = append(labels, attribute.String("latchkey.refused", refused))
	}
	if failed {
		labels = append(labels, attribute.String("error.type", outcome))
	}
	return attribute.NewSet(labels...), attribute.NewSet(append(labels, attribute.String("latchkey.template", "order:#{req.ID}"))...)
}

func eventNames(span tracetest.SpanStub) []string {
	var names []string
	for _, e := range span.Events {
		names = append(names, e.Name)
	}
	return names
}

// TestRareEndingsBeginAt0 holds that what alerts are about can be seen to increase, from when the guard is made or, of a provider that the
// program sets later, from its first call.
func TestRareEndingsBeginAt0(t *testing.T) {
	work := func(context.Context, Order) (string, error) { return "", nil }
	series := func(r *recorded) (all []string) {
		m, ok := r.collect(t)["latchkey.guard.calls"]
		if !ok {
			return nil
		}
		for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
			all = append(all, fmt.Sprint(label(p.Attributes, "latchkey.outcome"), " ", label(p.Attributes, "latchkey.refused"), " ", p.Value))
		}
		slices.Sort(all)
		return all
	}
	for policy, want := range map[guard.Policy][]string{
		guard.Fail:        {"fault  0", "outage  0", "overload  0", "panic  0", "unsupported  0"},
		guard.Skip:        {"fault  0", "panic  0", "skipped outage 0", "skipped overload 0", "unsupported  0"},
		guard.RunUnlocked: {"fault  0", "panic  0", "unlocked outage 0", "unlocked overload 0", "unsupported  0"},
	} {
		r := record()
		_, _ = guarded(t, newSpy(), work, append(r.options, guard.Outage(policy))...)
		if got := series(r); !slices.Equal(got, want) {
			t.Errorf("outage=%v begins with %q, want %q", policy, got, want)
		}
	}
	was := otel.GetMeterProvider()
	t.Cleanup(func() { otel.SetMeterProvider(was) })
	settle, _ := guarded(t, newSpy(), work)
	r := &recorded{metrics: sdkmetric.NewManualReader()}
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.metrics)))
	if got := series(r); got != nil {
		t.Errorf("a provider that comes later has %q", got)
	}
	if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
		t.Fatal(err)
	}
	if got, want := series(r), []string{"fault  0", "ok  1", "outage  0", "overload  0", "panic  0", "unsupported  0"}; !slices.Equal(got, want) {
		t.Errorf("after the first call there is %q, want %q", got, want)
	}
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record()
		settle, _ := guarded(t, newSpy(), func(context.Context, Order) (string, error) {
			time.Sleep(20 * time.Second)
			return "", nil
		}, append(r.options, guard.Wait(guard.Forever))...)
		now := func(name string) int64 {
			return r.collect(t)[name].Data.(metricdata.Sum[int64]).DataPoints[0].Value
		}
		done := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := settle(t.Context(), Order{ID: "7"})
				done <- err
			}()
		}
		synctest.Wait()
		if waiting, held := now("latchkey.guard.waiting"), now("latchkey.guard.held"); waiting != 2 || held != 1 {
			t.Errorf("%d waiting, %d held, want 2 and 1", waiting, held)
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if waiting, held := now("latchkey.guard.waiting"), now("latchkey.guard.held"); waiting != 0 || held != 0 {
			t.Errorf("%d waiting, %d held afterwards", waiting, held)
		}
		for name, want := range map[string]float64{"latchkey.guard.wait.duration": 0 + 20 + 40, "latchkey.guard.hold.duration": 60} {
			m := r.collect(t)[name]
			points := m.Data.(metricdata.Histogram[float64]).DataPoints
			if len(points) != 1 || points[0].Count != 3 || points[0].Sum != want || m.Unit != "s" {
				t.Errorf("%s: %+v in %s, want 3 with a sum of %v s", name, points, m.Unit, want)
			}
			if got := label(points[0].Attributes, "latchkey.outcome"); got != guard.OutcomeOK {
				t.Errorf("%s: outcome %q", name, got)
			}
		}
	})
}

// TestTelemetryPage compares docs/telemetry.md with what a guard tells: instruments with unit and kind, attributes,
// span events, and outcomes.
func TestTelemetryPage(t *testing.T) {
	text, err := os.ReadFile("../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	page, _, _ := strings.Cut(string(text), "\n## Metrics of package redisson\n") // which has a test of its own
	r := record()
	told := make(map[string]bool)
	for _, opt := range []guard.Option{guard.Outage(guard.Fail), guard.Outage(guard.Skip)} {
		l := newSpy()
		l.refuse = map[string]error{"order:8": errors.New("down")}
		settle, _ := guarded(t, l, settled, append(r.options, opt)...)
		_, _ = settle(t.Context(), Order{ID: "7"})
		_, _ = settle(t.Context(), Order{ID: "8"})
	}
	for name, m := range r.collect(t) {
		kind := map[string]string{
			"metricdata.Sum[int64]":         "counter",
			"metricdata.Histogram[float64]": "histogram",
		}[fmt.Sprintf("%T", m.Data)]
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && !sum.IsMonotonic {
			kind = "up-down counter"
		}
		told[fmt.Sprintf("| `%s` | %s | `%s` |", name, kind, m.Unit)] = true
	}
	for _, span := range r.spans.GetSpans() {
		attributes := slices.Clone(span.Attributes)
		for _, e := range span.Events {
			told[fmt.Sprintf("| `%s` |", e.Name)] = true
			attributes = append(attributes, e.Attributes...)
		}
		for _, a := range attributes {
			if !strings.HasSuffix(string(a.Key), ".duration") {
				told[fmt.Sprintf("| `%s` |", a.Key)] = true
			}
		}
	}
	for _, outcome := range adapter.Outcomes() {
		told[fmt.Sprintf("| `%s` |", outcome)] = true
	}
	listed := 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		listed++
		if !slices.ContainsFunc(slices.Collect(maps.Keys(told)), func(row string) bool { return strings.HasPrefix(line, row) }) {
			t.Errorf("docs/telemetry.md lists what is never told: %s", line)
		}
	}
	for row := range told {
		if !strings.Contains(page, "\n"+row) {
			t.Errorf("docs/telemetry.md has no row %s", row)
		}
	}
	if listed != len(told) {
		t.Errorf("docs/telemetry.md has %d rows, want %d", listed, len(told))
	}
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
