package operations

import (
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

var promQL = parser.NewParser(parser.Options{})

// rules are those of alerts.yml, by name.
func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile("../../docs/operations/alerts.yml", false, model.LegacyValidation, promQL, slog.Default())
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() {
		t.FailNow()
	}
	all := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if _, twice := all[r.Alert]; twice || r.Alert == "" {
				t.Errorf("%q: an alert without a name, or of a name that is taken", r.Alert)
			}
			all[r.Alert] = r
		}
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each alert speaks of what is exposed, says how urgent it is and what to do, and stands in alerts.md.
func TestAlerts(t *testing.T) {
	page, runbooks := read(t, "../../docs/operations/alerts.md"), read(t, "../../docs/operations/runbooks.md")
	all := rules(t)
	for name, r := range all {
		checkExpression(t, name, r.Expr)
		if s := r.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s: severity %q", name, s)
		}
		if r.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", name)
		}
		file, heading, _ := strings.Cut(r.Annotations["runbook_url"], "#")
		if file != "https://github.com/latchkey-go/latchkey/blob/main/docs/operations/runbooks.md" || !hasHeading(runbooks, heading) {
			t.Errorf("%s: there is no run-book %s", name, r.Annotations["runbook_url"])
		}
		if !strings.Contains(page, "\n| `"+name+"` |") {
			t.Errorf("alerts.md has no row of %s", name)
		}
	}
	if rows := strings.Count(page, "\n| `Latchkey"); rows != len(all) {
		t.Errorf("alerts.md has rows of %d alerts, alerts.yml has %d", rows, len(all))
	}
}

// hasHeading reports whether a page has a heading with that anchor.
func hasHeading(page, anchor string) bool {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		plain := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(plain, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// checkExpression holds that expr is PromQL, and that all metrics and labels in it are exposed.
func checkExpression(t *testing.T, where, expr string) {
	t.Helper()
	root, err := promQL.ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	metrics := exposed(t)
	var named []string // the metrics in expr
	var labels []string
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			named = append(named, n.Name)
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel && !metrics[n.Name][m.Name] {
					t.Errorf("%s: %s has no label %s", where, n.Name, m.Name)
				}
			}
		case *parser.AggregateExpr:
			labels = append(labels, n.Grouping...)
		}
		return nil
	})
	if len(named) == 0 {
		t.Errorf("%s reads no metric", where)
	}
	for _, name := range named {
		if metrics[name] == nil {
			t.Errorf("%s: nothing exposes %s", where, name)
			continue
		}
		for _, l := range labels {
			if !metrics[name][l] {
				t.Errorf("%s groups by %s, which %s does not have", where, l, name)
			}
		}
	}
}

// Prometheus' own tool agrees, where it is installed.
func TestPromtool(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool on PATH; on Debian it is in the package prometheus")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.Command(tool, args...)
		cmd.Dir = "../../docs/operations"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
