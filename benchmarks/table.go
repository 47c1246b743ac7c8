package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// grid is a table: a name for each row and column, and a text in each cell.
type grid struct {
	title string
	head  []string
	rows  [][]string
}

// text prints the grid for a terminal.
func (g grid) text(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", g.title)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range slices.Concat([][]string{g.head}, g.rows) {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush() // to a writer that has taken all so far
}

// markdown prints the grid for the README.
func (g grid) markdown(w io.Writer) {
	fmt.Fprintf(w, "\n### %s\n\n", g.title)
	rule := strings.Repeat("---|", len(g.head))
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(g.head, " | "), rule)
	for _, row := range g.rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
}

// grids are the tables of a report. Those without a row are left out.
func (r report) grids() []grid {
	all := []grid{r.goals()}
	for _, t := range tables {
		all = append(all, r.grid(t))
	}
	all = append(all, r.ahead())
	return slices.DeleteFunc(all, func(g grid) bool { return len(g.rows) == 0 })
}

// notRun is the reason for a figure that nobody asked for.
const notRun = "not run"

// goals is the table of all figures that have a goal.
func (r report) goals() grid {
	g := grid{title: "Goals", head: []string{"figure", "what", "measured", "goal", "met"}}
	for _, p := range goals {
		f, ok := r.find(p.id, p.peer)
		if !ok || f.Reason == notRun {
			continue
		}
		g.rows = append(g.rows, []string{p.id, p.about, f.String(), f.bound(), f.verdict()})
	}
	return g
}

// bound is the goal, with the floor that it is a factor of.
func (f figure) bound() string {
	switch {
	case f.Floor == nil:
		return f.Goal
	case strings.HasSuffix(f.Goal, "floor"):
		return fmt.Sprintf("%s of %s", f.Goal, number(*f.Floor))
	}
	return fmt.Sprintf("%s; floor %s", f.Goal, number(*f.Floor))
}

func (f figure) verdict() string {
	switch {
	case f.Met == nil:
		return "? " + f.Reason
	case *f.Met:
		return "yes"
	}
	no := "no"
	switch {
	case f.nearFloor():
		no = fmt.Sprintf("no, but within 10 %% of the floor (%s of it)", number(*f.OfFloor))
	case f.OfFloor != nil:
		no = fmt.Sprintf("no (%s of the floor)", number(*f.OfFloor))
	}
	if f.Reason != "" {
		no += ": " + f.Reason
	}
	return no
}

// nearFloor reports whether the floor was reached within 10 %, which is the best to expect where the goal is out of
// reach.
func (f figure) nearFloor() bool {
	switch {
	case f.OfFloor == nil:
		return false
	case strings.HasPrefix(f.Goal, "≥"):
		return *f.OfFloor >= 0.9
	}
	return *f.OfFloor <= 1.1
}

// table says which figures stand side by side, with a row for each peer.
type table struct {
	title   string
	columns []column
	medians bool // without the lowest and the highest value
}

type column struct{ head, id string }

// tables are those of the peers. A figure's unit is in the head of its column.
var tables = []table{
	{title: "One caller, its own key: a pair", columns: []column{{"µs", "pair_us"}, {"÷ go-redis", "uncontended_pair"}, {"÷ bare", "uncontended_floor_ratio"}, {"p50 µs", "pair_p50_us"}, {"p99 µs", "pair_p99_us"}, {"allocations", "uncontended_allocs"}}},
	{title: "The same over a link, each answer 0.5 ms later", columns: []column{{"µs", "link_pair_us"}, {"÷ go-redis", "uncontended_link"}, {"p99 µs", "link_pair_p99_us"}}},
	{title: "Many callers, each with its own key: pairs a second", columns: []column{{"8 callers", "own_keys_8_rate"}, {"64 callers", "own_keys_64_rate"}, {"512 callers", "own_keys_512_rate"}, {"64 ÷ go-redis", "own_keys_64"}, {"64 ÷ Redisson", "jvm_rate"}}},
	contended("64 callers on one key, each away for 2 ms after its release", "one_key", column{"÷ rueidislock", "one_key_rate"}, column{"÷ Redisson", "jvm_one_key"}),
	contended("64 callers on one key, each back at once", "busy_key"),
	contended("64 callers on one key over a link, each answer 0.5 ms later; 2 ms away", "link_key"),
	contended("4 processes with 16 callers each on one key, 2 ms away", "processes", column{"÷ rueidislock", "processes_rate"}),
	{title: "Two processes in strict turns", columns: []column{{"from release to acquisition, µs", "turns_gap_us"}, {"÷ rueidislock", "turns"}}},
	{title: "Commands an acquisition: sent by clients, and executed, those within scripts included", columns: []column{{"pair", "pair_commands"}, {"executed", "pair_executed"}, {"64 on one key", "one_key_commands"}, {"executed", "one_key_executed"},
		{"4 processes × 16", "processes_commands"}, {"executed", "processes_executed"}, {"a turn", "turns_commands"}, {"executed", "turns_executed"}}},
	{title: "Held locks: memory and goroutines or threads for each", columns: []column{{"1,000: B", "held_1000_bytes"}, {"goroutines", "held_1000_goroutines"}, {"10,000: B", "held_bytes"}, {"goroutines", "held_goroutines"},
		{"100,000: B", "held_100000_bytes"}, {"goroutines", "held_100000_goroutines"}}},
	{title: "Held locks: their renewal", columns: []column{{"1,000: scripts/s", "held_1000_scripts"}, {"kB/s", "held_1000_traffic"}, {"share of Redis' time", "held_1000_share"}, {"10,000: scripts/s", "held_10000_scripts"}, {"kB/s", "held_10000_traffic"},
		{"share", "held_10000_share"}, {"100,000: scripts/s", "held_100000_scripts"}, {"kB/s", "held_100000_traffic"}, {"share", "held_redis_share"}}},
	{title: "64 callers on one key, and a server that is frozen for 100 ms", columns: []column{{"never came back in 2 s", "freeze_lost"}, {"longest wait ms", "freeze_longest_ms"}}},
	{title: "A request over a real connection", columns: []column{{"HTTP µs", "http_us"}, {"gRPC µs", "grpc_us"}}},
	{title: "A key from two fields", columns: []column{{"ns", "key_ns"}}},
	{title: "A guard around nothing, with memlock: by `guard.Func`, `guard.Bind`, a generated wrapper, and a lock taken by hand", columns: []column{{"ns", "guard_ns"}}},
	{title: "Callers left without the lock, the worst round", columns: []column{{"of all workloads on one key", "stuck"}}},
}

func contended(title, prefix string, more ...column) table {
	return table{title: title, columns: append([]column{{"acquisitions/s", prefix + "_per_s"}, {"by another caller", prefix + "_changes"}, {"release to acquisition µs", prefix + "_gap_us"}, {"p99 µs", prefix + "_gap_p99_us"},
		{"longest wait ms", prefix + "_longest_ms"}, {"starved of 64", prefix + "_starved"}}, more...)}
}

func (r report) grid(t table) grid {
	g := grid{title: t.title, head: []string{"peer"}}
	for _, c := range t.columns {
		g.head = append(g.head, c.head)
	}
	for _, peer := range r.peers() {
		row, some := []string{peer}, false
		for _, col := range t.columns {
			f, ok := r.find(col.id, peer)
			some = some || ok && f.Value != nil
			if t.medians && f.Value != nil {
				row = append(row, number(*f.Value))
				continue
			}
			row = append(row, f.cell())
		}
		if some {
			g.rows = append(g.rows, row)
		}
	}
	return g
}

// cell is the figure, or why there is none.
func (f figure) cell() string {
	if f.Value == nil && f.Reason != notRun && f.Reason != "" {
		return f.Reason
	}
	return f.String()
}

// peers are all that have a figure: the contestants first.
func (r report) peers() []string {
	all := names(everyone)
	for _, f := range r.Figures {
		if !slices.Contains(all, f.Peer) {
			all = append(all, f.Peer)
		}
	}
	return all
}
