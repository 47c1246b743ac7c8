package guard

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/lock"
)

const scope = "github.com/latchkey-go/latchkey/guard"

// The names that docs/telemetry.md lists. A test compares them with the output of a guard.
const (
	metricCalls   = "latchkey.guard.calls"
	metricWaiting = "latchkey.guard.waiting"
	metricHeld    = "latchkey.guard.held"
	metricWait    = "latchkey.guard.wait.duration"
	metricHold    = "latchkey.guard.hold.duration"

	attrGuard     = "latchkey.guard"
	attrTemplate  = "latchkey.template" // of spans only
	attrOutcome   = "latchkey.outcome"
	attrRefused   = "latchkey.refused"
	attrErrorType = "error.type"
	attrKeys      = "latchkey.keys" // of span events only

	eventAcquired = "lock.acquired"
	eventReleased = "lock.released"
)

// seconds are the bounds of the histograms: a lock in the same data centre takes a millisecond, a wait up to a minute.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// telemetry is the instruments of one Guard.
type telemetry struct {
	spans         spans
	unset         metric.MeterProvider // as spans.unset
	calls         metric.Int64Counter
	waiting, held metric.Int64UpDownCounter
	wait, hold    metric.Float64Histogram
}

func newTelemetry(tracers trace.TracerProvider, meters metric.MeterProvider) (*telemetry, error) {
	meters = cmp.Or(meters, otel.GetMeterProvider())
	meter := meters.Meter(scope)
	calls, err1 := meter.Int64Counter(metricCalls,
		metric.WithDescription("Guarded calls, by how they ended."), metric.WithUnit("{call}"))
	waiting, err2 := meter.Int64UpDownCounter(metricWaiting,
		metric.WithDescription("Guarded calls that are waiting for their locks now."), metric.WithUnit("{call}"))
	held, err3 := meter.Int64UpDownCounter(metricHeld,
		metric.WithDescription("Guarded calls that hold their locks now."), metric.WithUnit("{call}"))
	wait, err4 := meter.Float64Histogram(metricWait, metric.WithExplicitBucketBoundaries(seconds...),
		metric.WithDescription("Time that guarded calls spent to get their locks, or to fail to."), metric.WithUnit("s"))
	hold, err5 := meter.Float64Histogram(metricHold, metric.WithExplicitBucketBoundaries(seconds...),
		metric.WithDescription("Time that guarded calls held their locks."), metric.WithUnit("s"))
	t := &telemetry{spans: newSpans(tracers), unset: standIn(meters), calls: calls, waiting: waiting, held: held, wait: wait, hold: hold}
	return t, errors.Join(err1, err2, err3, err4, err5)
}

// labels are all labels of a guard's telemetry, made once: its name and template, and never a key.
type labels struct {
	spanName string
	span     []trace.SpanStartOption
	now      []metric.AddOption // of waiting and held
	ended    map[ending]endLabels
	rare     []ending // for alerts
	begun    atomic.Bool
}

// ending is how a call ended. Both texts come from lists of constants, so the labels are bounded.
type ending struct {
	outcome string
	refused string // the outcome that a policy or a mode kept from the caller
}

type endLabels struct {
	span   []attribute.KeyValue
	add    []metric.AddOption
	record []metric.RecordOption
	failed bool
}

func newLabels(s Spec) *labels {
	name := attribute.String(attrGuard, s.Name)
	l := &labels{
		spanName: "guard " + s.Name,
		span:     []trace.SpanStartOption{trace.WithAttributes(name, attribute.String(attrTemplate, s.Key))},
		now:      []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(name))},
		ended:    make(map[ending]endLabels, len(outcomes)),
	}
	for _, refused := range []string{OutcomeOutage, OutcomeOverload} {
		if policy, ok := policyOutcomes[s.Outage]; ok {
			l.rare = append(l.rare, ending{policy, refused})
		} else {
			l.rare = append(l.rare, ending{refused, ""})
		}
	}
	l.rare = append(l.rare, ending{OutcomeFault, ""}, ending{OutcomeUnsupported, ""}, ending{OutcomePanic, ""})
	for _, outcome := range outcomes {
		l.add(name, ending{outcome, ""})
		if traits[outcome].handled {
			for _, r := range refusals {
				l.add(name, ending{outcome, r.outcome})
			}
		}
	}
	return l
}

// policyOutcomes are the outcomes of calls that a policy has handled.
var policyOutcomes = map[Policy]string{Skip: OutcomeSkipped, RunUnlocked: OutcomeUnlocked, RunFallback: OutcomeFallback}

// begin makes the counters of rare endings start at 0. Otherwise the first event of a series would not show as an
// increase.
func (t *telemetry) begin(ctx context.Context, l *labels) {
	if l.begun.CompareAndSwap(false, true) {
		for _, e := range l.rare {
			t.calls.Add(ctx, 0, l.ended[e].add...)
		}
	}
}

func (l *labels) add(name attribute.KeyValue, e ending) {
	attrs := []attribute.KeyValue{attribute.String(attrOutcome, e.outcome)}
	if e.refused != "" {
		attrs = append(attrs, attribute.String(attrRefused, e.refused))
	}
	failed := traits[e.outcome].failed
	if failed {
		attrs = append(attrs, attribute.String(attrErrorType, e.outcome))
	}
	set := metric.WithAttributeSet(attribute.NewSet(append([]attribute.KeyValue{name}, attrs...)...))
	l.ended[e] = endLabels{attrs, []metric.AddOption{set}, []metric.RecordOption{set}, failed}
}

// refusedBy names the outcome that a call would have had without a policy. It is empty if the locks were acquired.
func (e *Event) refusedBy() string {
	refused, ok := errors.AsType[*Error](e.Refused)
	if !ok || !traits[e.Outcome].handled {
		return ""
	}
	for _, r := range refusals {
		if errors.Is(refused.Err, r.sentinel) {
			return r.outcome
		}
	}
	return outage(refused.Cause)
}

var refusals = [...]struct {
	sentinel error
	outcome  string
}{
	{ErrBusy, OutcomeBusy}, {ErrKey, OutcomeKey}, {ErrFault, OutcomeFault}, {ErrUnsupported, OutcomeUnsupported},
	{nil, OutcomeOutage}, {nil, OutcomeOverload}, // see outage
}

// acquired notes in the span that the call has its locks.
func acquired(span trace.Span, keys int, wait time.Duration) {
	if span.IsRecording() {
		span.AddEvent(eventAcquired, trace.WithAttributes(
			attribute.Int(attrKeys, keys), attribute.Float64(metricWait, wait.Seconds())))
	}
}

// released notes in the span that the call has given its locks back, or has failed to.
func released(span trace.Span, err error, hold time.Duration) {
	if !span.IsRecording() {
		return
	}
	attrs := []attribute.KeyValue{attribute.Float64(metricHold, hold.Seconds())}
	switch {
	case errors.Is(err, lock.ErrLost):
		attrs = append(attrs, attribute.String(attrErrorType, OutcomeLost))
	case err != nil:
		attrs = append(attrs, attribute.String(attrErrorType, outage(err)))
	}
	span.AddEvent(eventReleased, trace.WithAttributes(attrs...))
}

// report writes down a call that has ended and given its locks back, if it had them.
func (t *telemetry) report(ctx context.Context, a *telemetryRecord, locked bool, l *labels) {
	if locked {
		released(a.span, a.Release, a.Held)
	}
	recording := a.span.IsRecording()
	if recording || a.measured {
		o := l.ended[ending{a.Outcome, a.refusedBy()}]
		if a.measured {
			t.measure(ctx, &a.Event, locked, l, &o)
		}
		if recording {
			a.span.SetAttributes(o.span...)
		}
		if recording && o.failed { // without the error's text, which can quote the request or the lock service
			a.span.SetStatus(codes.Error, a.Outcome)
		}
	}
	a.span.End()
}

func (t *telemetry) measure(ctx context.Context, e *Event, locked bool, l *labels, o *endLabels) {
	t.calls.Add(ctx, 1, o.add...)
	if e.Keys > 0 {
		t.wait.Record(ctx, e.Wait.Seconds(), o.record...)
	}
	if locked {
		t.held.Add(ctx, -1, l.now...)
		t.hold.Record(ctx, e.Held.Seconds(), o.record...)
	}
}

// measures reports whether anybody reads the instruments.
func (t *telemetry) measures(ctx context.Context) bool {
	return t.calls.Enabled(ctx) || t.waiting.Enabled(ctx) || t.held.Enabled(ctx) || t.wait.Enabled(ctx) || t.hold.Enabled(ctx)
}
