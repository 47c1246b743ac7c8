package guard

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/latchkey-go/latchkey/guard"

// seconds are the bounds of the histograms: a lock in the same data centre takes a millisecond, a wait up to a minute.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// telemetry is the instruments of one Guard.
type telemetry struct {
	tracer     trace.Tracer
	calls      metric.Int64Counter
	waiting    metric.Int64UpDownCounter
	wait, held metric.Float64Histogram
}

func newTelemetry(tracers trace.TracerProvider, meters metric.MeterProvider) (*telemetry, error) {
	if tracers == nil {
		tracers = otel.GetTracerProvider()
	}
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	meter := meters.Meter(scope)
	calls, err1 := meter.Int64Counter("latchkey.guard.calls",
		metric.WithDescription("Guarded calls, by how they ended."), metric.WithUnit("{call}"))
	waiting, err2 := meter.Int64UpDownCounter("latchkey.guard.waiting",
		metric.WithDescription("Guarded calls that are waiting for their locks now."), metric.WithUnit("{call}"))
	wait, err3 := meter.Float64Histogram("latchkey.guard.wait", metric.WithExplicitBucketBoundaries(seconds...),
		metric.WithDescription("Time that guarded calls spent to get their locks, or to fail to."), metric.WithUnit("s"))
	held, err4 := meter.Float64Histogram("latchkey.guard.held", metric.WithExplicitBucketBoundaries(seconds...),
		metric.WithDescription("Time that guarded calls held their locks."), metric.WithUnit("s"))
	t := &telemetry{tracer: tracers.Tracer(scope), calls: calls, waiting: waiting, wait: wait, held: held}
	return t, errors.Join(err1, err2, err3, err4)
}

// labels are all that telemetry ever says about a guard, made once: its name and template, and never a key.
type labels struct {
	spanName  string
	span      []trace.SpanStartOption
	waiting   []metric.AddOption
	byOutcome map[string]outcomeLabels
}

type outcomeLabels struct {
	attribute attribute.KeyValue
	add       []metric.AddOption
	record    []metric.RecordOption
	failed    bool
}

func newLabels(s Spec) labels {
	attrs := []attribute.KeyValue{
		attribute.String("latchkey.guard", s.Name),
		attribute.String("latchkey.template", s.Key),
	}
	l := labels{
		spanName:  "guard " + s.Name,
		span:      []trace.SpanStartOption{trace.WithAttributes(attrs...)},
		waiting:   []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attrs...))},
		byOutcome: make(map[string]outcomeLabels, len(outcomes)),
	}
	for _, outcome := range outcomes {
		a := attribute.String("latchkey.outcome", outcome)
		set := metric.WithAttributeSet(attribute.NewSet(attrs[0], attrs[1], a))
		l.byOutcome[outcome] = outcomeLabels{a, []metric.AddOption{set}, []metric.RecordOption{set}, failed(outcome)}
	}
	return l
}

// failed reports whether outcome makes a span an error. Refusing a request that is busy, without a key or given up by
// its caller is the guard's job.
func failed(outcome string) bool {
	switch outcome {
	case OutcomeError, OutcomePanic, OutcomeOutage, OutcomeUnsupported, OutcomeFault, OutcomeLost, OutcomeMaxHold:
		return true
	}
	return false
}

// report writes down a call that has ended; locked says that it got its locks.
func (t *telemetry) report(ctx context.Context, span trace.Span, o outcomeLabels, e *Event, locked bool) {
	t.calls.Add(ctx, 1, o.add...)
	if e.Keys > 0 {
		t.wait.Record(ctx, e.Wait.Seconds(), o.record...)
	}
	if locked {
		t.held.Record(ctx, e.Held.Seconds(), o.record...)
	}
	if span.IsRecording() {
		span.SetAttributes(o.attribute)
		if o.failed { // without the error's text, which can quote the request or the lock service
			span.SetStatus(codes.Error, e.Outcome)
		}
	}
	span.End()
}
