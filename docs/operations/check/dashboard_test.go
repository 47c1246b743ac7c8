package check

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type dashboard struct {
	Title      string
	UID        string
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct{ RefID, Expr, LegendFormat string }
}

// Each panel has a place of its own, and asks for what is exposed.
func TestDashboard(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "../dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	ids := map[int]string{}
	for i, p := range d.Panels {
		if other, taken := ids[p.ID]; taken {
			t.Errorf("%q and %q have one id", other, p.Title)
		}
		ids[p.ID] = p.Title
		for _, other := range d.Panels[:i] {
			if p.overlaps(other) {
				t.Errorf("%q lies on %q", p.Title, other.Title)
			}
		}
		if p.Type != "row" {
			p.check(t, d)
		}
	}
	for _, wanted := range []string{"Held", "Waiting", "Wait, percentiles", "Outcomes", "Losses", "Lateness of renewals", "Question time, p50 and p99"} {
		if !slices.ContainsFunc(d.Panels, func(p panel) bool { return p.Title == wanted }) {
			t.Errorf("there is no panel %q", wanted)
		}
	}
}

func (p panel) overlaps(o panel) bool {
	return p.GridPos.X < o.GridPos.X+o.GridPos.W && o.GridPos.X < p.GridPos.X+p.GridPos.W &&
		p.GridPos.Y < o.GridPos.Y+o.GridPos.H && o.GridPos.Y < p.GridPos.Y+p.GridPos.H
}

// check is for one panel with graphs.
func (p panel) check(t *testing.T, d dashboard) {
	t.Helper()
	if p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
		t.Errorf("%q lacks a description, a unit, a question, or room", p.Title)
	}
	refs := map[string]bool{}
	for _, target := range p.Targets {
		if refs[target.RefID] {
			t.Errorf("%q has two questions %s", p.Title, target.RefID)
		}
		refs[target.RefID] = true
		expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
		for _, v := range d.Templating.List {
			expr = strings.ReplaceAll(expr, fmt.Sprintf("%q", "$"+v.Name), `".*"`)
		}
		if strings.Contains(expr, "$") {
			t.Errorf("%q: a variable that the dashboard does not have: %s", p.Title, expr)
		}
		checkExpression(t, p.Title, expr)
	}
}

// The variables are found by metrics that are exposed, too.
func TestVariables(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "../dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	queries := 0
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		queries++
		m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Definition)
		if m == nil {
			t.Errorf("%s: %s", v.Name, v.Definition)
			continue
		}
		checkExpression(t, v.Name, "count by ("+m[2]+") ("+strings.ReplaceAll(m[1], `"$job"`, `".*"`)+")")
	}
	if queries != 2 {
		t.Errorf("%d variables are asked for, want job and guard", queries)
	}
}
