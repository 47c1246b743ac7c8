package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/lock"
)

// The labels that docs/telemetry.md lists. A test compares these, and the instruments, with the output of a client.
const (
	attrKind      = attribute.Key("latchkey.kind")
	attrReason    = attribute.Key("latchkey.reason")
	attrResult    = attribute.Key("latchkey.result")
	attrScript    = attribute.Key("latchkey.script")
	attrErrorType = attribute.Key("error.type")
)

// The bounds of the histograms. A question takes a tenth of a millisecond on one machine, and is given up after [Timeout]; a renewal that
// is later than two thirds of the watchdog's timeout comes too late.
var (
	questionSeconds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	latenessSeconds = []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60}
)

// MeterProvider makes the client measure its work: holds, waiters, losses and their reasons, the lateness of renewals,
// and the time that Redis takes. docs/telemetry.md lists the instruments. No label is ever a key. Without this option,
// or with nil, nothing is measured. Clients that share a provider are added up.
func MeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(s *settings) { s.meters = p })
}

// metrics are the instruments of one Client. Nil measures nothing. Its methods are called without any mutex held, because a provider is
// foreign code.
type metrics struct {
	held, waiting             metric.Int64UpDownCounter
	losses, renewals, repeats metric.Int64Counter
	lateness, questions       metric.Float64Histogram
	client                    atomic.Pointer[Client] // nil until there is one to observe
	watching                  metric.Registration

	subscriptions, queued, connections metric.Int64ObservableUpDownCounter
}

// waitKinds are the kinds of waits, beside those for locks.
var waitKinds = map[lock.Kind]string{
	latchQueue: "latch", semaphoreQueue: "semaphore", permitsQueue: "expirable_semaphore", limiterQueue: "rate_limiter",
}

type lossReason struct {
	reason error
	name   string
}

// lossReasons are the reasons of a loss, as latchkey.reason. The first that matches counts.
var lossReasons = []lossReason{
	{ErrClosed, "closed"}, {lock.ErrMaxHold, "max_hold"}, {errUnrenewed, "unrenewed"}, {ErrForced, "forced"}, {errGone, "removed"}, {errLease, "lease"},
	{lock.ErrLost, "other"},
}

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
	m, meter := &metrics{}, p.Meter("github.com/latchkey-go/latchkey/redisson")
	if err := m.instruments(meter); err != nil {
		return nil, err
	}
	// Counters of rare events begin at 0. Otherwise the first event of a series would not show as an increase.
	for _, l := range lossReasons {
		m.losses.Add(context.Background(), 0, metric.WithAttributes(attrReason.String(l.name)))
	}
	for _, result := range []string{renewedOK, renewedGone, renewedFailed} {
		m.renewals.Add(context.Background(), 0, metric.WithAttributes(attrResult.String(result)))
	}
	var err error
	m.watching, err = meter.RegisterCallback(m.observe, m.subscriptions, m.queued, m.connections)
	return m, err
}

func (m *metrics) instruments(meter metric.Meter) error {
	var errs [10]error
	m.held, errs[0] = meter.Int64UpDownCounter("latchkey.redisson.held",
		metric.WithDescription("Locks and permits that are held now, re-entries included."), metric.WithUnit("{hold}"))
	m.waiting, errs[1] = meter.Int64UpDownCounter("latchkey.redisson.waiting",
		metric.WithDescription("Calls that sleep now until they may get what they want."), metric.WithUnit("{call}"))
	m.losses, errs[2] = meter.Int64Counter("latchkey.redisson.losses",
		metric.WithDescription("Holds that ended before they were released, by reason."), metric.WithUnit("{hold}"))
	m.renewals, errs[3] = meter.Int64Counter("latchkey.redisson.renewals",
		metric.WithDescription("Attempts of the watchdog to renew a lease, by result."), metric.WithUnit("{renewal}"))
	m.repeats, errs[4] = meter.Int64Counter("latchkey.redisson.repeats",
		metric.WithDescription("Questions asked again after a pause, because the answer was lost or the server not ready."), metric.WithUnit("{question}"))
	m.subscriptions, errs[5] = meter.Int64ObservableUpDownCounter("latchkey.redisson.subscriptions",
		metric.WithDescription("Channels that the client listens to now."), metric.WithUnit("{channel}"))
	m.queued, errs[6] = meter.Int64ObservableUpDownCounter("latchkey.redisson.queued",
		metric.WithDescription("Questions that are in line for a connection now."), metric.WithUnit("{question}"))
	m.connections, errs[7] = meter.Int64ObservableUpDownCounter("latchkey.redisson.connections",
		metric.WithDescription("Connections of go-redis' pools that are in use now, by whomever."), metric.WithUnit("{connection}"))
	m.lateness, errs[8] = meter.Float64Histogram("latchkey.redisson.renewal.lateness", metric.WithExplicitBucketBoundaries(latenessSeconds...),
		metric.WithDescription("Time from when a lease was due to be renewed until Redis confirmed it."), metric.WithUnit("s"))
	m.questions, errs[9] = meter.Float64Histogram("latchkey.redisson.question.duration", metric.WithExplicitBucketBoundaries(questionSeconds...),
		metric.WithDescription("Time from sending a script to Redis until its answer, or until it was given up."), metric.WithUnit("s"))
	return errors.Join(errs[:]...)
}

func (m *metrics) observe(_ context.Context, o metric.Observer) error {
	if c := m.client.Load(); c != nil {
		o.ObserveInt64(m.subscriptions, int64(c.subscriber.Channels()))
		queued, connections, _ := c.road.Load()
		o.ObserveInt64(m.queued, int64(queued))
		o.ObserveInt64(m.connections, int64(connections))
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
		m.held.Add(context.Background(), n, metric.WithAttributes(attrKind.String(k.String())))
	}
}

// waits counts calls that begin to wait, or end to if n is negative.
func (m *metrics) waits(k lock.Kind, n int64) {
	if m != nil {
		m.waiting.Add(context.Background(), n, metric.WithAttributes(attrKind.String(cmp.Or(waitKinds[k], k.String()))))
	}
}

// ended notes the end of a hold; the cause is nil if it was released.
func (m *metrics) ended(e ending) {
	m.holds(e.hold.kind, -1)
	m.lost(e.cause)
}

// lost counts a loss, if err is one.
func (m *metrics) lost(err error) {
	if m == nil || !errors.Is(err, lock.ErrLost) {
		return
	}
	first := slices.IndexFunc(lossReasons, func(l lossReason) bool { return errors.Is(err, l.reason) })
	m.losses.Add(context.Background(), 1, metric.WithAttributes(attrReason.String(lossReasons[first].name)))
}

// renewed records the outcomes of the watchdog's tasks. Removals are no renewals.
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
		m.renewals.Add(context.Background(), 1, metric.WithAttributes(attrResult.String(result)))
	}
}

// Asked implements transport.Observer: it notes the answer to a call.
func (m *metrics) Asked(sent time.Time, cl call, a answer) {
	if m != nil {
		labels := []attribute.KeyValue{attrScript.String(cl.Script.Name)}
		if a.Err != nil {
			labels = append(labels, attrErrorType.String(failureOf(a.Err)))
		}
		m.questions.Record(context.Background(), time.Since(sent).Seconds(), metric.WithAttributes(labels...))
	}
}

// Repeated counts a call that goes out again.
func (m *metrics) Repeated(cl call) {
	if m != nil {
		m.repeats.Add(context.Background(), 1, metric.WithAttributes(attrScript.String(cl.Script.Name)))
	}
}

// failureOf returns the error.type of an attempt's error.
func failureOf(err error) string {
	switch {
	case errors.Is(err, ErrNotReplicated):
		return "not_replicated"
	case errors.Is(err, lock.ErrOverload):
		return "overload"
	}
	return reply.Classify(err).Type
}

// ErrTooManyWaiters says that a call had to wait where as many calls as [MaxWaiters] allows were waiting already.
var ErrTooManyWaiters = errors.New("redisson: too many waiters")

// waiters counts the calls of a client that wait.
type waiters struct {
	mostOfKey, most int // 0 sets no bound
	metrics         *metrics

	mu    sync.Mutex
	ofKey map[string]int // by the name of the object, as mapped
	all   int
}

// admit counts one more call that waits for name. It returns an error, and counts nothing, where a bound is reached.
func (ws *waiters) admit(name string) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	switch {
	case ws.mostOfKey > 0 && ws.ofKey[name] >= ws.mostOfKey:
		return fmt.Errorf("%w: %d calls wait for this key", ErrTooManyWaiters, ws.mostOfKey)
	case ws.most > 0 && ws.all >= ws.most:
		return fmt.Errorf("%w: %d calls of this client wait", ErrTooManyWaiters, ws.most)
	}
	ws.ofKey[name]++
	ws.all++
	return nil
}

// stay is one call's part in the count. It belongs to the call's goroutine.
type stay struct {
	waiters *waiters
	name    string
	kind    lock.Kind // or that of a line
	began   bool
}

// begin counts the call before it waits for the first time.
func (s *stay) begin() (err error) {
	if s.began {
		return nil
	}
	if err = s.waiters.admit(s.name); err == nil {
		s.began = true
		s.waiters.metrics.waits(s.kind, 1)
	}
	return err
}

// end follows the wait, however that ended.
func (s *stay) end() {
	if !s.began {
		return
	}
	ws := s.waiters
	ws.metrics.waits(s.kind, -1)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all--
	if ws.ofKey[s.name]--; ws.ofKey[s.name] == 0 {
		delete(ws.ofKey, s.name)
	}
}
