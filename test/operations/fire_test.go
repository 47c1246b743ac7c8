package operations

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"go.yaml.in/yaml/v3"
)

// script is alerts_test.yml, whose format is that of `promtool test rules`.
type script struct {
	Step  model.Duration `yaml:"evaluation_interval"`
	Tests []scene
}

// scene is one course of events: series, and which alerts fire when.
type scene struct {
	Interval model.Duration
	Series   []struct{ Series, Values string } `yaml:"input_series"`
	Alerts   []struct {
		At   model.Duration `yaml:"eval_time"`
		Name string         `yaml:"alertname"`
		Want []struct {
			Labels      map[string]string `yaml:"exp_labels"`
			Annotations map[string]string `yaml:"exp_annotations"`
		} `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

// Each alert fires when alerts_test.yml says so, and at no other time that is named there; and each is shown to fire.
func TestAlertsFire(t *testing.T) {
	var s script
	if err := yaml.Unmarshal([]byte(read(t, "../../docs/operations/alerts_test.yml")), &s); err != nil {
		t.Fatal(err)
	}
	all := rules(t)
	quiet := maps.Clone(all)
	for i, sc := range s.Tests {
		for _, one := range sc.Series {
			if !strings.HasPrefix(one.Values, "_") {
				t.Errorf("scene %d: %s is there before its process", i+1, one.Series)
			}
		}
		p := newPast(t, sc)
		for _, a := range sc.Alerts {
			r, ok := all[a.Name]
			if !ok {
				t.Errorf("scene %d: there is no alert %q", i+1, a.Name)
				continue
			}
			var want []string
			for _, w := range a.Want {
				want = append(want, alert(labels.FromMap(w.Labels), w.Annotations))
				delete(quiet, a.Name)
			}
			slices.Sort(want)
			if got := p.firing(t, r, time.Duration(a.At), time.Duration(s.Step)); !slices.Equal(got, want) {
				t.Errorf("scene %d: after %v, %s fires for\n\t%s\nwant\n\t%s", i+1, a.At, a.Name, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
			}
		}
	}
	for name := range quiet {
		t.Errorf("alerts_test.yml does not show that %s fires", name)
	}
}

// past is what a Prometheus has seen.
type past struct {
	engine *promql.Engine
	series []storage.Series
}

// sample is a number at a time.
type sample struct {
	chunks.Sample // of which nothing else is asked

	t     int64
	value float64
}

// T implements [chunks.Sample].
func (s sample) T() int64 { return s.t }

// ST implements [chunks.Sample].
func (s sample) ST() int64 { return 0 }

// F implements [chunks.Sample].
func (s sample) F() float64 { return s.value }

// Type implements [chunks.Sample].
func (s sample) Type() chunkenc.ValueType { return chunkenc.ValFloat }

// begun is when a scene begins: not at 0, before which nothing can be asked for.
var begun = time.Unix(86400, 0)

func newPast(t *testing.T, sc scene) *past {
	t.Helper()
	p := &past{engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableNegativeOffset: true, EnableAtModifier: true, Parser: promQL,
	})}
	t.Cleanup(func() { _ = p.engine.Close() })
	for _, in := range sc.Series {
		name, values, err := promQL.ParseSeriesDesc(in.Series + " " + in.Values)
		if err != nil {
			t.Fatal(err)
		}
		var samples []chunks.Sample
		for i, v := range values {
			if !v.Omitted {
				samples = append(samples, sample{t: begun.Add(time.Duration(i) * time.Duration(sc.Interval)).UnixMilli(), value: v.Value})
			}
		}
		p.series = append(p.series, storage.NewListSeries(name, samples))
	}
	return p
}

// alert is one that fires, as a line.
func alert(l labels.Labels, annotations map[string]string) string {
	return l.String() + " " + labels.FromMap(annotations).String()
}

// firing returns the alerts of r that fire at a time: they were there at each step of the time that r waits.
func (p *past) firing(t *testing.T, r rulefmt.Rule, at, step time.Duration) (all []string) {
	t.Helper()
	fires := p.ask(t, r, at)
	for back := step; back <= time.Duration(r.For); back += step {
		before := p.ask(t, r, at-back)
		maps.DeleteFunc(fires, func(l string, _ promql.Sample) bool { _, there := before[l]; return !there })
	}
	for _, found := range fires {
		all = append(all, alert(labelled(found, r), p.annotated(t, r, found, at)))
	}
	slices.Sort(all)
	return all
}

// labelled are the labels of an alert of r.
func labelled(found promql.Sample, r rulefmt.Rule) labels.Labels {
	b := labels.NewBuilder(found.Metric).Del(model.MetricNameLabel)
	for name, value := range r.Labels {
		b.Set(name, value)
	}
	return b.Labels()
}

// annotated are the annotations of an alert of r, with all that is between braces written out as Prometheus does it.
func (p *past) annotated(t *testing.T, r rulefmt.Rule, found promql.Sample, at time.Duration) map[string]string {
	t.Helper()
	all := map[string]string{}
	data := template.AlertTemplateData(found.Metric.Map(), nil, "", found)
	for name, text := range r.Annotations {
		e := template.NewTemplateExpander(t.Context(), "{{$labels := .Labels}}{{$value := .Value}}"+text, r.Alert, data, model.TimeFromUnixNano(begun.Add(at).UnixNano()), nil, nil, nil)
		var err error
		if all[name], err = e.Expand(); err != nil {
			t.Errorf("%s: %s: %v", r.Alert, name, err)
		}
	}
	return all
}

// ask evaluates r once, and returns what it finds by its labels.
func (p *past) ask(t *testing.T, r rulefmt.Rule, at time.Duration) map[string]promql.Sample {
	t.Helper()
	q, err := p.engine.NewInstantQuery(context.Background(), p, nil, r.Expr, begun.Add(at))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	result := q.Exec(context.Background())
	vector, err := result.Vector()
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", r.Alert, err))
	}
	all := map[string]promql.Sample{}
	for _, found := range vector {
		all[found.Metric.String()] = found
	}
	return all
}

// Querier implements [storage.Queryable].
func (p *past) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		var found []storage.Series
		for _, s := range p.series {
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels().Get(m.Name)) }) {
				found = append(found, s)
			}
		}
		return &set{series: found, at: -1}
	}}, nil
}

// set is the series that a question is about.
type set struct {
	series []storage.Series
	at     int
}

// Next implements [storage.SeriesSet].
func (s *set) Next() bool { s.at++; return s.at < len(s.series) }

// At implements [storage.SeriesSet].
func (s *set) At() storage.Series { return s.series[s.at] }

// Err implements [storage.SeriesSet].
func (s *set) Err() error { return nil }

// Warnings implements [storage.SeriesSet].
func (s *set) Warnings() annotations.Annotations { return nil }
