package operations

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// load reads dashboard.json as Grafana's own types have it: a field that is missing, of another type or unknown fails, in the panels'
// options and questions, too.
func load(t *testing.T) (d dashboard.Dashboard) {
	t.Helper()
	known := cog.NewRuntime()
	known.RegisterPanelcfgVariant(timeseries.VariantConfig())
	known.RegisterDataqueryVariant(prometheus.VariantConfig())
	if err := d.UnmarshalJSONStrict([]byte(read(t, "../../docs/operations/dashboard.json"))); err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	return d
}

// Each panel has a place of its own, and asks for what is exposed.
func TestDashboard(t *testing.T) {
	d := load(t)
	ids := map[uint32]string{}
	var places []place
	for _, p := range d.Panels {
		id, here := idOf(p), placeOf(p)
		if other, taken := ids[id]; taken {
			t.Errorf("%q and %q have one id", other, here.title)
		}
		ids[id] = here.title
		for _, other := range places {
			if here.overlaps(other) {
				t.Errorf("%q lies on %q", here.title, other.title)
			}
		}
		places = append(places, here)
		if p.Panel != nil {
			checkPanel(t, p.Panel, d)
		}
	}
	for _, wanted := range []string{"Held", "Waiting", "Wait, percentiles", "Outcomes", "Losses", "Lateness of renewals", "Question time, p50 and p99"} {
		if !slices.ContainsFunc(places, func(p place) bool { return p.title == wanted }) {
			t.Errorf("there is no panel %q", wanted)
		}
	}
}

// place is where a panel is, or a row.
type place struct {
	dashboard.GridPos

	title string
}

func placeOf(p dashboard.PanelOrRowPanel) place {
	if p.RowPanel != nil {
		return place{*p.RowPanel.GridPos, *p.RowPanel.Title}
	}
	return place{*p.Panel.GridPos, *p.Panel.Title}
}

func idOf(p dashboard.PanelOrRowPanel) uint32 {
	if p.RowPanel != nil {
		return p.RowPanel.Id
	}
	return *p.Panel.Id
}

func (p place) overlaps(o place) bool {
	return p.X < o.X+o.W && o.X < p.X+p.W && p.Y < o.Y+o.H && o.Y < p.Y+p.H
}

// checkPanel is for one panel with graphs.
func checkPanel(t *testing.T, p *dashboard.Panel, d dashboard.Dashboard) {
	t.Helper()
	title := *p.Title
	if p.Description == nil || p.FieldConfig.Defaults.Unit == nil || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
		t.Errorf("%q lacks a description, a unit, a question, or room", title)
	}
	if _, known := p.Options.(*timeseries.Options); !known {
		t.Errorf("%q is a %s, whose options nobody has checked: let load know them", title, p.Type)
	}
	refs := map[string]bool{}
	for _, target := range p.Targets {
		q, ok := target.(*prometheus.Dataquery)
		if !ok {
			t.Errorf("%q asks something else than Prometheus: %T", title, target)
			continue
		}
		if refs[*q.RefId] {
			t.Errorf("%q has two questions %s", title, *q.RefId)
		}
		refs[*q.RefId] = true
		if of := q.Datasource; of == nil || *of.Uid != "${datasource}" {
			t.Errorf("%q asks a source that is not the reader's", title)
		}
		checkExpression(t, title, expand(t, title, q.Expr, d))
	}
}

// expand puts something in the place of the dashboard's variables.
func expand(t *testing.T, title, expr string, d dashboard.Dashboard) string {
	t.Helper()
	expr = strings.ReplaceAll(expr, "$__rate_interval", "5m")
	for _, v := range d.Templating.List {
		expr = strings.ReplaceAll(expr, fmt.Sprintf("%q", "$"+v.Name), `".*"`)
	}
	if strings.Contains(expr, "$") {
		t.Errorf("%q: a variable that the dashboard does not have: %s", title, expr)
	}
	return expr
}

// The variables are found by metrics that are exposed, too.
func TestVariables(t *testing.T) {
	d := load(t)
	queries := 0
	for _, v := range d.Templating.List {
		if v.Type != dashboard.VariableTypeQuery {
			continue
		}
		queries++
		text, _ := v.Query.Map["query"].(string)
		m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s: %s", v.Name, text)
			continue
		}
		checkExpression(t, v.Name, "count by ("+m[2]+") ("+expand(t, v.Name, m[1], d)+")")
	}
	if queries != 2 {
		t.Errorf("%d variables are asked for, want job and guard", queries)
	}
}
