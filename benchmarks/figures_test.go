package main

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// threeRounds are made-up samples in which the machine is twice as slow in the second round.
func threeRounds() samples {
	s := samples{}
	for round, slow := range []float64{1, 2, 1} {
		s.add("pair_us", "go-redis", round, 50*slow)
		s.add("pair_us", "bare", round, 60*slow)
		s.add("pair_us", "latchkey", round, []float64{63, 126, 66}[round])
	}
	return s
}

// madeUp is why figures with a goal are missing.
func madeUp(p planned, peer string) string {
	if peer == p.peer {
		return "made up"
	}
	return ""
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	s := threeRounds()
	s.add("pair_us", "latchkey", 3, 1000) // the base has no such round
	got := s.ratios("pair_us", "latchkey", "bare")
	if len(got) != 3 || median(got) != 1.05 {
		t.Errorf("ratios = %v with median %v, want three with 1.05", got, median(got))
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 2, 100}, 3},
	} {
		if got := median(tt.values); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing = %v, want NaN", got)
	}
}

func TestABusyMachineIsAnError(t *testing.T) {
	b := &bench{samples: threeRounds()}
	if err := b.quiet(); err == nil || !strings.Contains(err.Error(), "go-redis spreads over 100 % in pair_us") {
		t.Errorf("quiet = %v, want an error: the base takes 50, 100 and 50 µs", err)
	}
	b.samples.add("pair_us", "go-redis", 1, 60)
	if err := b.quiet(); err != nil {
		t.Errorf("quiet = %v, want nil: the base takes 50, 60 and 50 µs", err)
	}
}

// The second round is void, because the base was twice as slow. What was measured once, and who was stuck, stays.
func TestVoidRounds(t *testing.T) {
	s := threeRounds()
	for _, metric := range []string{"held_bytes_1k", "stuck"} {
		s.add(metric, "latchkey", 1, 7)
	}
	void := s.void(maxSpread)
	if !slices.Equal(void, []int{1}) {
		t.Fatalf("void rounds = %v, want the second", void)
	}
	s.drop(void)
	if n := len(s.values("pair_us", base)); n != 2 || len(s.values("stuck", "latchkey")) != 1 {
		t.Errorf("%d rounds of the base are left, and %v of stuck", n, s["stuck"])
	}
	if err := (&bench{samples: s}).quiet(); err != nil {
		t.Errorf("quiet = %v without the void round", err)
	}
	if void := (samples{"pair_us": {base: {0: 100, 1: 50, 2: 55, 3: 210, 4: 52}}}).void(maxSpread); !slices.Equal(void, []int{0, 3}) {
		t.Errorf("void rounds = %v, want those apart from the three at 50 to 55", void)
	}
}

func TestGoals(t *testing.T) {
	for _, tt := range []struct {
		goal         *goal
		value, floor float64
		want         bool
		text         string
	}{
		{atMost(1.1), 1.1, 0, true, "≤ 1.10"},
		{atMost(1.1), 1.11, 0, false, "≤ 1.10"},
		{atLeast(4), 4, 0, true, "≥ 4"},
		{atLeast(4), 3.9, 0, false, "≥ 4"},
		{timesFloor(1.1), 1.3, 1.2, true, "≤ 1.10 × floor"},
		{timesFloor(1.1), 1.33, 1.2, false, "≤ 1.10 × floor"},
	} {
		if got := tt.goal.met(tt.value, tt.floor); got != tt.want || tt.goal.String() != tt.text {
			t.Errorf("%v met by %v of %v = %v, want %v and the text %q", tt.goal, tt.value, tt.floor, got, tt.want, tt.text)
		}
	}
}

func TestFiguresHaveAGoalOrAReason(t *testing.T) {
	r := report{Figures: figures(threeRounds(), madeUp)}
	f, ok := r.find("uncontended_floor_ratio", we)
	if !ok || *f.Value != 1.05 || *f.Min != 1.05 || *f.Max != 1.1 || f.Rounds != 3 || f.Goal != "≤ 1.10" || !*f.Met {
		t.Errorf("uncontended_floor_ratio = %+v", f)
	}
	f, ok = r.find("uncontended_pair", we)
	if !ok || *f.Value != 1.26 || f.Floor == nil || *f.Floor != 1.2 || !*f.Met {
		t.Errorf("uncontended_pair = %+v, want 1.26 and the floor 1.2", f)
	}
	f, ok = r.find("own_keys_64", we)
	if !ok || f.Value != nil || f.Reason != "made up" || f.Met != nil {
		t.Errorf("own_keys_64 = %+v, want no value and a reason", f)
	}
	for _, p := range goals {
		if _, ok := r.find(p.id, p.peer); !ok {
			t.Errorf("%s is missing", p.id)
		}
	}
}

func TestTheWorstRoundCounts(t *testing.T) {
	s := samples{}
	for round, n := range []float64{0, 0, 3} {
		s.add("stuck", we, round, n)
	}
	r := report{Figures: figures(s, madeUp)}
	if f, _ := r.find("stuck", we); f.Value == nil || *f.Value != 3 || *f.Met {
		t.Errorf("stuck = %+v, want 3", f)
	}
}

func TestReportsCanBeReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.json")
	want := report{Machine: "made up", Rounds: 3, Figures: figures(threeRounds(), madeUp)}
	if err := want.write(path); err != nil {
		t.Fatal(err)
	}
	got, err := readReport(path)
	if err != nil || len(got.Figures) != len(want.Figures) || got.goals().rows[0][2] != "1.05 (1.05–1.10)" {
		t.Errorf("read back: %v, %d figures, first row %v", err, len(got.Figures), got.goals().rows[0])
	}
}

// Each figure of a table, and each metric of a figure, must be one that exists; a typo would leave a column empty.
func TestTablesAndFiguresFitTogether(t *testing.T) {
	ids, metrics := map[string]bool{}, map[string]bool{}
	for _, w := range workloads {
		for _, m := range w.feeds {
			metrics[m] = true
		}
	}
	for _, p := range plan {
		if ids[p.id] {
			t.Errorf("two figures are called %s", p.id)
		}
		ids[p.id] = true
		if !metrics[p.metric] {
			t.Errorf("%s: no workload feeds %s", p.id, p.metric)
		}
	}
	for _, tb := range tables {
		for _, c := range tb.columns {
			if !ids[c.id] {
				t.Errorf("table %q: there is no figure %s", tb.title, c.id)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		value float64
		want  string
	}{{0, "0"}, {7, "7"}, {1.257, "1.26"}, {12.34, "12.3"}, {972.4, "972"}, {0.0026, "0.0026"}, {1234567.8, "1234568"}} {
		if got := number(tt.value); got != tt.want {
			t.Errorf("number(%v) = %q, want %q", tt.value, got, tt.want)
		}
	}
}

func TestWhereOthersAreAhead(t *testing.T) {
	s := samples{}
	for peer, us := range map[string]float64{base: 40, we: 60, "redislock": 50, bestRival: 90} {
		s.add("pair_us", peer, 0, us)
		s.add("own_keys_64_rate", peer, 0, us)
	}
	got := report{Figures: figures(s, madeUp)}.ahead()
	want := [][]string{{"a pair of one caller, µs", "60", "redislock: 50"}, {"64 callers with own keys, pairs/s", "60", "rueidislock: 90"}}
	if !slices.EqualFunc(got.rows, want, slices.Equal) {
		t.Errorf("ahead = %v, want %v", got.rows, want)
	}
	for _, c := range comparisons {
		if !slices.ContainsFunc(plan, func(p planned) bool { return p.id == c.id }) {
			t.Errorf("there is no figure %s", c.id)
		}
	}
}

func TestWhyAFigureIsMissing(t *testing.T) {
	b := &bench{server: &server{}, failed: map[string]string{java: "there is no JDK on PATH"}, lacks: map[string]string{}}
	b.lack("held_100000", bestRival, errHung)
	for _, tt := range []struct{ metric, peer, base, owner, want string }{
		{"held_100000_bytes", bestRival, "", "", "cut off"},
		{"held_10000_bytes", bestRival, "", "", ""},
		{"pair_us", "redislock", "", we, ""},
		{"one_key_per_s", we, java, we, "redisson: there is no JDK on PATH"},
		{"one_key_per_s", we, base, we, notRun},
	} {
		if got := b.missing(planned{metric: tt.metric, base: tt.base, peer: tt.owner}, tt.peer); got != tt.want {
			t.Errorf("%s of %s is missing because %q, want %q", tt.metric, tt.peer, got, tt.want)
		}
	}
}

func TestPeersWithoutAFigureHaveNoRow(t *testing.T) {
	g := report{Figures: figures(threeRounds(), madeUp)}.grid(tables[0])
	var rows []string
	for _, row := range g.rows {
		rows = append(rows, row[0])
	}
	if want := []string{base, "bare", we}; !slices.Equal(rows, want) {
		t.Errorf("rows of %v, want %v", rows, want)
	}
	if g := (report{Figures: figures(threeRounds(), madeUp)}).grid(tables[len(tables)-1]); len(g.rows) != 0 {
		t.Errorf("rows %v, want none: Latchkey has only a reason there", g.rows)
	}
}

func TestAMissedGoalHasAReason(t *testing.T) {
	value, floor, met := 1000.0, 900.0, false
	for _, tt := range []struct {
		goal string
		of   float64 // the floor
		want string
	}{
		{"≤ 800", 0, "no: made up"},
		{"≤ 800", 1.12, "no (1.12 of the floor): made up"},
		{"≤ 800", 1.1, "no, but within 10 % of the floor (1.10 of it): made up"},
		{"≤ 800", 0.5, "no, but within 10 % of the floor (0.50 of it): made up"},
		{"≥ 8", 0.89, "no (0.89 of the floor): made up"},
		{"≥ 8", 0.9, "no, but within 10 % of the floor (0.90 of it): made up"},
		{"≥ 8", 1.2, "no, but within 10 % of the floor (1.20 of it): made up"},
	} {
		f := figure{Value: &value, Floor: &floor, Goal: tt.goal, Met: &met, Reason: "made up"}
		if tt.of > 0 {
			f.OfFloor = &tt.of
		}
		if f.bound() != tt.goal+"; floor 900" || f.verdict() != tt.want {
			t.Errorf("%q and %q, want %q", f.bound(), f.verdict(), tt.want)
		}
	}
}

// How near the floor a figure is, is told within each round, as all ratios are: the third round of the base is not that of the others.
func TestOfTheFloor(t *testing.T) {
	s := samples{"one_key_per_s": {
		we:        {0: 91, 1: 182, 2: 95},
		floorLine: {0: 100, 1: 200, 2: 100},
		java:      {0: 20, 1: 40, 2: 10},
	}}
	f, ok := report{Figures: figures(s, madeUp)}.find("jvm_one_key", we)
	if !ok || *f.Value != 4.55 || *f.Floor != 5 || *f.OfFloor != 0.91 || *f.Met {
		t.Errorf("jvm_one_key = %+v, want 4.55, which is 0.91 of the floor of 5", f)
	}
}

func TestEachSliceCountsForWhatItHasDone(t *testing.T) {
	var all result
	for _, r := range []result{{Done: 1, Gaps: []int64{60}}, {Done: 1, Gaps: []int64{30}}, {Done: 1, Gaps: []int64{0}}, {Done: 3, Gaps: []int64{10}}, {Starved: 1}} {
		all = all.merge(r, false)
	}
	if all.Done != 6 || len(all.Gaps) != 1 || all.Gaps[0] != 20 || all.Starved != 1 {
		t.Errorf("merged: %+v, want 6 done with gaps of 20 and one starved", all)
	}
}
