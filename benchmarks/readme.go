package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// What is committed: the figures of record, and what is made of them.
const (
	readmeFile  = "README.md"
	figuresFile = "figures.json"
	chartsDir   = "charts"
	begin       = "<!-- figures: written by go run . -readme -->"
	end         = "<!-- end of figures -->"
)

// record keeps a report, and brings the README up to date. Of a run of some workloads, it keeps the figures that those have made, beside
// the others of the report that is there.
func record(r report, some bool) error {
	if some {
		old, err := readReport(figuresFile)
		if err != nil {
			return err
		}
		for _, f := range old.Figures {
			at := planOf(f.ID)
			if at < 0 {
				continue
			}
			worse := plan[at].worst && f.Value != nil
			if own, ok := r.find(f.ID, f.Peer); !ok || own.Value == nil || worse && *own.Value < *f.Value { // of all workloads
				r.Figures = slices.DeleteFunc(r.Figures, func(o figure) bool { return o.ID == f.ID && o.Peer == f.Peer })
				r.Figures = append(r.Figures, f)
			}
		}
		slices.SortStableFunc(r.Figures, func(a, b figure) int { return cmp.Compare(planOf(a.ID), planOf(b.ID)) })
		old.Figures = r.Figures
		r = old
	}
	if err := r.write(figuresFile); err != nil {
		return err
	}
	return refresh()
}

// planOf is the place of a figure in the plan.
func planOf(id string) int {
	return slices.IndexFunc(plan, func(p planned) bool { return p.id == id })
}

// refresh writes the figures of record into the README, and draws their charts.
func refresh() error {
	r, err := readReport(figuresFile)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(readmeFile)
	if err != nil {
		return err
	}
	filled, err := fill(string(text), r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(readmeFile, []byte(filled), 0o644); err != nil {
		return err
	}
	return r.draw(chartsDir)
}

// fill puts the tables of a report between the marks in text.
func fill(text string, r report) (string, error) {
	before, rest, ok := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("%s has no lines %q and %q", readmeFile, begin, end)
	}
	return before + begin + "\n" + r.markdown() + "\n" + end + after, nil
}

// markdown is a report for the README.
func (r report) markdown() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\nTaken on %s, %d rounds, on %s. The base spreads over %.0f %%.%s\n\n", r.Date, r.Rounds, r.Machine, 100*r.Base, void(r.Void))
	fmt.Fprintf(&b, "| | version |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		fmt.Fprintf(&b, "| %s | %s |\n", name, r.Versions[name])
	}
	for _, g := range append(r.grids(), openings(), loads()) {
		g.markdown(&b)
	}
	fmt.Fprintln(&b)
	for _, file := range r.drawn() {
		fmt.Fprintf(&b, "![%s](%s/%s)\n", strings.TrimSuffix(file, ".png"), chartsDir, file)
	}
	return b.String()
}

// openings says how each peer is opened.
func openings() grid {
	g := grid{title: "How each peer is opened", head: []string{"peer", "opened as"}}
	for _, c := range contestants {
		g.rows = append(g.rows, []string{c.name, c.about})
	}
	return g
}

// loads says what each workload is.
func loads() grid {
	g := grid{title: "The workloads", head: []string{"workload", "what it is"}}
	for _, w := range workloads {
		g.rows = append(g.rows, []string{w.name, w.about})
	}
	return g
}

// drawn are the files that draw makes.
func (r report) drawn() []string {
	var files []string
	for _, c := range charts {
		if len(r.rows(c)) > 0 {
			files = append(files, c.file)
		}
	}
	return files
}

// void says how many rounds do not count.
func void(rounds int) string {
	if rounds == 0 {
		return ""
	}
	return fmt.Sprintf(" %d more rounds are void: the machine had another pace.", rounds)
}
