package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// The files that are committed: the figures of record, and the documents made of them.
const (
	readmeFile  = "README.md"
	figuresFile = "figures.json"
	chartsDir   = "charts"
	begin       = "<!-- figures: written by go run . -readme -->"
	end         = "<!-- end of figures -->"
)

// record keeps a report, and brings the README up to date. If only some workloads have run, it replaces their figures,
// and keeps the others of the report that is there.
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

// show prints all that is known of the figures of record, and brings the README up to date with them.
func show(out io.Writer) error {
	r, err := readReport(figuresFile)
	if err != nil {
		return err
	}
	for _, g := range append(r.grids(), openings(), loads()) {
		g.text(out)
	}
	return refresh()
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

// unpublished are peers that the README leaves out: the floor of a floor, a second setting of rueidislock, and what is no lock.
var unpublished = []string{"bare-default", "rueidislock-3", "cel-go", "expr", "fmt.Sprintf"}

// published are the tables that readers compare: fewer figures than in tables.
var published = []table{
	{title: "One caller, its own key: a pair of lock and unlock", medians: true, columns: []column{{"µs", "pair_us"}, {"÷ go-redis", "uncontended_pair"}, {"p99 µs", "pair_p99_us"}, {"allocations", "uncontended_allocs"},
		{"over a link of 0.5 ms: µs", "link_pair_us"}}},
	{title: "Many callers, each with its own key: pairs a second", medians: true, columns: []column{{"8", "own_keys_8_rate"}, {"64", "own_keys_64_rate"}, {"512", "own_keys_512_rate"}}},
	{title: "64 callers on one key, 2 ms away after each turn: acquisitions a second, longest wait in ms, callers that starved", medians: true, columns: contendedShort("one_key", "link_key", "processes")},
	{title: "Two processes in strict turns, and a server that freezes for 100 ms", medians: true, columns: []column{{"release to acquisition, µs", "turns_gap_us"}, {"never came back in 2 s", "freeze_lost"},
		{"longest wait ms", "freeze_longest_ms"}, {"left without the lock, worst round of all", "stuck"}}},
	{title: "A held lock", medians: true, columns: []column{{"B", "held_bytes"}, {"goroutines or threads", "held_goroutines"}, {"share of Redis' time to renew 100,000", "held_redis_share"}}},
	{title: "A request, a key from two fields, and a guard around nothing with memlock", medians: true, columns: []column{{"HTTP µs", "http_us"}, {"gRPC µs", "grpc_us"}, {"key ns", "key_ns"}, {"guard ns", "guard_ns"}}},
}

// contendedShort are three columns for each workload on one key.
func contendedShort(prefixes ...string) []column {
	heads := map[string]string{"one_key": "one process", "link_key": "over a link", "processes": "4 processes"}
	var all []column
	for _, p := range prefixes {
		all = append(all, column{heads[p], p + "_per_s"}, column{"ms", p + "_longest_ms"}, column{"starved", p + "_starved"})
	}
	return all
}

// markdown is a report for the README.
func (r report) markdown() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\nTaken on %s, %d rounds, on %s.\nThe base spreads over %.0f %%.%s\n\n", r.Date, r.Rounds, r.Machine, 100*r.Base, void(r.Void))
	versions := []string{}
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		versions = append(versions, name+" "+r.Versions[name])
	}
	for part := range slices.Chunk(versions, 3) {
		fmt.Fprintln(&b, strings.Join(part, ", "))
	}
	r.ahead().markdown(&b)
	r.missed().markdown(&b)
	for _, t := range published {
		g := r.grid(t)
		g.rows = slices.DeleteFunc(g.rows, func(row []string) bool { return slices.Contains(unpublished, row[0]) })
		g.markdown(&b)
	}
	fmt.Fprintln(&b)
	for _, file := range r.drawn() {
		fmt.Fprintf(&b, "![%s](%s/%s)\n", strings.TrimSuffix(file, ".png"), chartsDir, file)
	}
	return b.String()
}

// missed is the table of goals without those that are met.
func (r report) missed() grid {
	g := grid{head: []string{"what", "measured", "goal", "met"}}
	for _, row := range r.goals().rows {
		if row[len(row)-1] != "yes" {
			g.rows = append(g.rows, row[1:])
		}
	}
	all := len(r.goals().rows)
	g.title = fmt.Sprintf("Goals: %d of %d are met, and not these", all-len(g.rows), all)
	return g
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
