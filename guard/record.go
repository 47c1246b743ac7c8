package guard

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/internal/clock"
)

// telemetryRecord collects a call's telemetry. It is nil if nothing observes the call, which then reads the clock less
// often: both are a good part of the cost of a guard around a lock in memory.
type telemetryRecord struct {
	Event
	span     trace.Span
	measured bool          // by the instruments: it undoes its counts of waiting and held calls
	start    time.Duration // when it began to ask for its locks, by the clock
}

var noSpan = trace.SpanFromContext(context.Background())

// open begins the call's span, and its record if anything observes it. An observer that comes later gets the next call.
func (c *call) open(ctx context.Context) {
	ctx, span := c.tel.spans.start(ctx, c.labels)
	c.ctx, c.request = ctx, &c.runner.request
	measured := (c.tel.unset == nil || otel.GetMeterProvider() != c.tel.unset) && c.tel.measures(ctx)
	alone := c.entry == nil && c.above == nil && c.next == nil
	if alone && span == nil && !measured && len(c.observers) == 0 {
		return
	}
	if measured {
		c.tel.begin(ctx, c.labels) // of a provider that was set after the guard was made
	}
	c.record = &telemetryRecord{span: cmp.Or(span, noSpan), measured: measured}
	// The outcome until a better one is known, which does not happen if anything panics.
	c.record.Event = Event{Guard: c.spec.Name, Template: c.spec.Key, Outcome: OutcomePanic, Lead: c.leads}
}

// beginWait notes that the call asks for the locks of keys from now on, until endWait.
func (c *call) beginWait(keys []string) {
	c.record.want(keys, c.wantKeys)
	c.record.start = clock.Now()
	c.countWaiting(1)
}

// want records how many keys the call has, and the keys themselves if an observer wants them.
func (a *telemetryRecord) want(keys []string, told bool) {
	a.Keys = len(keys)
	if told {
		names := keys // which would be in the heap for all calls otherwise
		a.keys = &names
	}
}

// endWait notes that the call asks no longer, whether or not it has its locks.
func (c *call) endWait() {
	c.countWaiting(-1)
	if !c.locked {
		c.record.Wait = clock.Now() - c.record.start
	}
}

// countWaiting adds n to the calls that ask for their locks now.
func (c *call) countWaiting(n int64) {
	if c.entry != nil {
		c.entry.waiting.Add(n)
	}
	if c.record.measured {
		c.tel.waiting.Add(c.ctx, n, c.labels.now...)
	}
}

// beginHold notes that the call has its locks, until tell.
func (c *call) beginHold() {
	a := c.record
	a.Wait = c.since - a.start
	if c.entry != nil {
		c.entry.held.Add(1)
	}
	if a.measured {
		c.tel.held.Add(c.ctx, 1, c.labels.now...)
	}
	acquired(a.span, a.Keys, a.Wait)
}

// tell reports the call to its observers, now that it has given its locks back.
func (c *call) tell() {
	a := c.record
	if c.entry != nil {
		c.entry.count(&a.Event, c.locked)
	}
	c.tel.report(c.ctx, a, c.locked, c.labels)
	for _, observe := range c.observers {
		observe(c.ctx, a.Event)
	}
}
