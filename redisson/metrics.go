package redisson

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

const scope = "github.com/latchkey-go/latchkey/redisson"

// The names that docs/telemetry.md lists. A test compares them with what a client really tells.
const (
	metricHeld          = "latchkey.redisson.held"
	metricWaiting       = "latchkey.redisson.waiting"
	metricLosses        = "latchkey.redisson.losses"
	metricRenewals      = "latchkey.redisson.renewals"
	metricLateness      = "latchkey.redisson.renewal.lateness"
	metricQuestions     = "latchkey.redisson.question.duration"
	metricRepeats       = "latchkey.redisson.repeats"
	metricSubscriptions = "latchkey.redisson.subscriptions"

	attrKind      = "latchkey.kind"
	attrReason    = "latchkey.reason"
	attrResult    = "latchkey.result"
	attrScript    = "latchkey.script"
	attrErrorType = "error.type"
)

// The bounds of the histograms. A question takes a tenth of a millisecond on one machine, and is given up after [Timeout]; a renewal that
// is later than two thirds of the watchdog's timeout comes too late.
var (
	questionSeconds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	latenessSeconds = []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60}
)

// MeterProvider has the client measure what it does: what is held, what waits, what is lost and why, how late renewals are, and how
// long Redis takes. docs/telemetry.md lists the instruments. No label is ever a key. Without this option, or with nil, nothing is
// measured. Clients that share a provider are added up.
func MeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(s *settings) { s.meters = p })
}

// metrics are the instruments of one Client. Nil measures nothing. Its methods are called without any mutex held, because a provider is
// foreign code.
type metrics struct {
	held, waiting             metric.Int64UpDownCounter
	losses, renewals, repeats metric.Int64Counter
	lateness, questions       metric.Float64Histogram
	subscriptions             metric.Int64ObservableUpDownCounter
	subscriber                atomic.Pointer[pubsub.Subscriber] // nil before watch
	watching                  metric.Registration

	// Labels are made once; which there are is bounded by constants.
	ofKind   map[lock.Kind][]metric.AddOption
	ofReason map[string][]metric.AddOption
	ofResult map[string][]metric.AddOption
	ofScript sync.Map // *script to *scriptLabels
}

// scriptLabels are the labels of one script, with each of failures.
type scriptLabels struct {
	repeated []metric.AddOption
	asked    [len(failures)][]metric.RecordOption
}

// failures are why a question can fail, as error.type; the first one is that it has not.
var failures = [...]string{"", "no_answer", "not_ready", "refused", "not_replicated", "no_memory", "no_disk", "no_replicas", "_OTHER"}

// waitKinds are the kinds of what is waited for, beside those of locks.
var waitKinds = map[lock.Kind]string{
	latchLine: "latch", semaphoreLine: "semaphore", permitsLine: "expirable_semaphore", limiterLine: "rate_limiter",
}

// lossReasons are the reasons of a loss, as latchkey.reason. The first that matches counts.
var lossReasons = []struct {
	reason error
	name   string
}{
	{ErrClosed, "closed"}, {lock.ErrMaxHold, "max_hold"}, {errUnrenewed, "unrenewed"}, {ErrForced, "forced"}, {errGone, "removed"}, {errLease, "lease"},
}

const otherReason = "other"

// The results of a renewal, as latchkey.result.
const (
	renewedOK     = "ok"
	renewedGone   = "gone"
	renewedFailed = "failed"
)

func newMetrics(p metric.MeterProvider) (*metrics, error) {
	if p == nil {
		return nil, nil
	}
	m, meter := &metrics{}, p.Meter(scope)
	m.label()
	if err := errors.Join(m.instruments(meter), m.histograms(meter)); err != nil {
		return nil, err
	}
	m.zero()
	var err error
	m.watching, err = meter.RegisterCallback(m.observe, m.subscriptions)
	return m, err
}

// zero has counters begin at 0. A rare event that is the first of its series would otherwise be no increase to who reads them.
func (m *metrics) zero() {
	for _, reason := range m.ofReason {
		m.losses.Add(context.Background(), 0, reason...)
	}
	for _, result := range m.ofResult {
		m.renewals.Add(context.Background(), 0, result...)
	}
}

func (m *metrics) instruments(meter metric.Meter) error {
	var errs [6]error
	m.held, errs[0] = meter.Int64UpDownCounter(metricHeld,
		metric.WithDescription("Locks and permits that are held now, re-entries included."), metric.WithUnit("{hold}"))
	m.waiting, errs[1] = meter.Int64UpDownCounter(metricWaiting,
		metric.WithDescription("Calls that sleep now until they may get what they want."), metric.WithUnit("{call}"))
	m.losses, errs[2] = meter.Int64Counter(metricLosses,
		metric.WithDescription("Holds that ended before they were released, by reason."), metric.WithUnit("{hold}"))
	m.renewals, errs[3] = meter.Int64Counter(metricRenewals,
		metric.WithDescription("Attempts of the watchdog to renew a lease, by result."), metric.WithUnit("{renewal}"))
	m.repeats, errs[4] = meter.Int64Counter(metricRepeats,
		metric.WithDescription("Questions asked again, because the answer was lost or the server not ready."), metric.WithUnit("{question}"))
	m.subscriptions, errs[5] = meter.Int64ObservableUpDownCounter(metricSubscriptions,
		metric.WithDescription("Channels that the client listens to now."), metric.WithUnit("{channel}"))
	return errors.Join(errs[:]...)
}

func (m *metrics) histograms(meter metric.Meter) error {
	var errs [2]error
	m.lateness, errs[0] = meter.Float64Histogram(metricLateness, metric.WithExplicitBucketBoundaries(latenessSeconds...),
		metric.WithDescription("Time from when a lease was due to be renewed until Redis confirmed it."), metric.WithUnit("s"))
	m.questions, errs[1] = meter.Float64Histogram(metricQuestions, metric.WithExplicitBucketBoundaries(questionSeconds...),
		metric.WithDescription("Time from sending a script to Redis until its answer, or until it was given up."), metric.WithUnit("s"))
	return errors.Join(errs[:]...)
}

// label makes the labels that are known from the start.
func (m *metrics) label() {
	m.ofKind, m.ofReason, m.ofResult = map[lock.Kind][]metric.AddOption{}, map[string][]metric.AddOption{}, map[string][]metric.AddOption{}
	for k := lock.Exclusive; k <= lock.Permit; k++ {
		m.ofKind[k] = labels(attribute.String(attrKind, k.String()))
	}
	for k, name := range waitKinds {
		m.ofKind[k] = labels(attribute.String(attrKind, name))
	}
	for _, l := range lossReasons {
		m.ofReason[l.name] = labels(attribute.String(attrReason, l.name))
	}
	m.ofReason[otherReason] = labels(attribute.String(attrReason, otherReason))
	for _, r := range []string{renewedOK, renewedGone, renewedFailed} {
		m.ofResult[r] = labels(attribute.String(attrResult, r))
	}
}

func labels(l attribute.KeyValue) []metric.AddOption {
	return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(l))}
}

// of returns the labels of a script.
func (m *metrics) of(s *script) *scriptLabels {
	if known, ok := m.ofScript.Load(s); ok {
		return known.(*scriptLabels)
	}
	name := attribute.String(attrScript, s.Name)
	made := &scriptLabels{repeated: labels(name)}
	for i, failure := range failures {
		set := attribute.NewSet(name)
		if failure != "" {
			set = attribute.NewSet(name, attribute.String(attrErrorType, failure))
		}
		made.asked[i] = []metric.RecordOption{metric.WithAttributeSet(set)}
	}
	known, _ := m.ofScript.LoadOrStore(s, made)
	return known.(*scriptLabels)
}

// watch begins to tell how many channels s listens to, until close.
func (m *metrics) watch(s *pubsub.Subscriber) {
	if m != nil {
		m.subscriber.Store(s)
	}
}

func (m *metrics) observe(_ context.Context, o metric.Observer) error {
	if s := m.subscriber.Load(); s != nil {
		o.ObserveInt64(m.subscriptions, int64(s.Channels()))
	}
	return nil
}

// close follows everything else.
func (m *metrics) close() {
	if m != nil {
		_ = m.watching.Unregister() // that of an SDK never fails
	}
}

// holds counts holds that begin, or end if n is negative.
func (m *metrics) holds(k lock.Kind, n int64) {
	if m != nil {
		m.held.Add(context.Background(), n, m.ofKind[k]...)
	}
}

// waits counts calls that begin to wait, or end to if n is negative.
func (m *metrics) waits(k lock.Kind, n int64) {
	if m != nil {
		m.waiting.Add(context.Background(), n, m.ofKind[k]...)
	}
}

// ended notes the end of a hold; the cause is nil if it was released.
func (m *metrics) ended(e ending) {
	if m == nil {
		return
	}
	m.holds(e.hold.kind, -1)
	m.lost(e.cause)
}

// released notes what the release of a hold has found out. If the hold had ended before, its loss is known.
func (m *metrics) released(h *hold, err error) {
	if m != nil && h.loss == nil {
		m.lost(err)
	}
}

// lost counts a loss, if err is one.
func (m *metrics) lost(err error) {
	if !errors.Is(err, lock.ErrLost) {
		return
	}
	name := otherReason
	for _, l := range lossReasons {
		if errors.Is(err, l.reason) {
			name = l.name
			break
		}
	}
	m.losses.Add(context.Background(), 1, m.ofReason[name]...)
}

// renewed notes what became of the watchdog's tasks. Removals are no renewals.
func (m *metrics) renewed(tasks []task, answers []answer) {
	if m == nil {
		return
	}
	now := present()
	for i, t := range tasks {
		if _, ok := t.of.(*holder); !ok {
			continue
		}
		result := renewedFailed
		switch a := answers[i]; {
		case a.Yes():
			result = renewedOK
			m.lateness.Record(context.Background(), now.sub(t.due).Seconds())
		case a.Gone():
			result = renewedGone
		}
		m.renewals.Add(context.Background(), 1, m.ofResult[result]...)
	}
}

// Asked implements transport.Observer: it notes the answers to calls that were sent together.
func (m *metrics) Asked(sent time.Time, calls []call, answers []answer) {
	if m == nil {
		return
	}
	took := time.Since(sent).Seconds()
	for i, cl := range calls {
		m.questions.Record(context.Background(), took, m.of(cl.Script).asked[failureOf(answers[i].Err)]...)
	}
}

// AskedOne is Asked for one call.
func (m *metrics) AskedOne(sent time.Time, cl call, a answer) {
	if m != nil {
		m.questions.Record(context.Background(), time.Since(sent).Seconds(), m.of(cl.Script).asked[failureOf(a.Err)]...)
	}
}

// Repeated notes that a call is asked again.
func (m *metrics) Repeated(cl call) {
	if m != nil {
		m.repeats.Add(context.Background(), 1, m.of(cl.Script).repeated...)
	}
}

// failureOf returns the index in failures of what an attempt has met.
func failureOf(err error) int {
	name := ""
	switch {
	case errors.Is(err, ErrNotReplicated):
		name = "not_replicated"
	case err != nil:
		name = reply.Classify(err).Type
	}
	return slices.Index(failures[:], name)
}
