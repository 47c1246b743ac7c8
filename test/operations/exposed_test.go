package operations

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// labelsOf are the labels that a metric was seen with, by its name.
type labelsOf map[string]map[string]bool

// exposed runs a program that does everything that is measured, once for all tests, and returns what a scrape of it sees.
func exposed(t *testing.T) labelsOf {
	t.Helper()
	once.Do(func() { seen = run(t) })
	if len(seen) == 0 {
		t.Fatal("the program exposed nothing")
	}
	return seen
}

var (
	once sync.Once
	seen labelsOf
)

// run is the program. The exporter and its strategy are those that README.md gives.
func run(t *testing.T) labelsOf {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		t.Fatal(err)
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	s := redistest.Start(t)
	p := s.Front(t)
	client, err := redisson.Open("redis://"+p.Addr, redisson.MeterProvider(meters), redisson.WatchdogTimeout(600*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	use(t, s, p, client, guard.MeterProvider(meters))
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return parse(t, answer.Body.String())
}

// order is what the guards lock by.
type order struct{ ID string }

type work = func(context.Context, order) (string, error)

func nothing(context.Context, order) (string, error) { return "", nil }

// use has calls end well, busy, skipped and with a failure, and has a wait, a renewal, a repeat, a refusal and a loss.
func use(t *testing.T, s *redistest.Server, p *redistest.Proxy, client *redisson.Client, metered guard.Option) {
	t.Helper()
	guarded := func(w work, opts ...guard.Option) func(ctx context.Context, id string) error {
		g := guard.Must(guard.New(client, append(opts, guard.Name("order.settle"), guard.Key("order:#{req.ID}"), metered)...))
		settle := guard.Must(guard.Func(g, w))
		return func(ctx context.Context, id string) error {
			_, err := settle(ctx, order{id})
			return err
		}
	}
	expect := func(what string, got, want error) {
		t.Helper()
		if !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	expect("a call", guarded(func(ctx context.Context, o order) (string, error) {
		stranger := lock.NewOwner(ctx)
		expect("a stranger", guarded(nothing, guard.Wait(50*time.Millisecond))(stranger, o.ID), guard.ErrBusy)
		expect("a stranger that skips", guarded(nothing, guard.Busy(guard.Skip))(stranger, o.ID), nil)
		return "", nil
	})(t.Context(), "1"), nil)

	p.CutReply("order:2", 3)
	expect("a call whose answer is lost", guarded(nothing)(t.Context(), "2"), nil)

	if err := s.Client(t).Set(t.Context(), "order:3", "a word", 0).Err(); err != nil {
		t.Fatal(err)
	}
	expect("a call at a key that is no lock", guarded(nothing)(t.Context(), "3"), guard.ErrUnsupported)

	expect("a call whose lock is deleted", guarded(func(ctx context.Context, _ order) (string, error) {
		rdb := s.Client(t)
		for left := time.Duration(0); rdb.PTTL(ctx, "order:4").Val() <= left || left == 0; time.Sleep(5 * time.Millisecond) {
			left = rdb.PTTL(ctx, "order:4").Val() // until it is renewed
		}
		rdb.Del(ctx, "order:4")
		<-ctx.Done() // when a renewal finds it gone
		return "", ctx.Err()
	})(t.Context(), "4"), guard.ErrLost)
}

// parse reads the text format of an exposition.
func parse(t *testing.T, text string) labelsOf {
	t.Helper()
	families, err := expfmtParser().TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all := labelsOf{}
	for name, family := range families {
		labels := map[string]bool{"job": true, "instance": true} // which Prometheus adds
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		if family.GetType().String() != "HISTOGRAM" {
			all[name] = labels
			continue
		}
		all[name+"_count"], all[name+"_sum"], all[name+"_bucket"] = labels, labels, with(labels, "le")
	}
	return all
}

func expfmtParser() *expfmt.TextParser {
	p := expfmt.NewTextParser(model.LegacyValidation)
	return &p
}

func with(labels map[string]bool, more string) map[string]bool {
	all := map[string]bool{more: true}
	for l := range labels {
		all[l] = true
	}
	return all
}
