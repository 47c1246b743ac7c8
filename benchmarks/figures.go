package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
)

// samples are what was measured: by metric, then by peer, then by round.
type samples map[string]map[string]map[int]float64

func (s samples) add(metric, peer string, round int, value float64) {
	if s[metric] == nil {
		s[metric] = map[string]map[int]float64{}
	}
	if s[metric][peer] == nil {
		s[metric][peer] = map[int]float64{}
	}
	s[metric][peer][round] = value
}

// peers returns the contestants, and who else has the metric.
func (s samples) peers(metric string) []string {
	all := names(everyone)
	for _, peer := range slices.Sorted(maps.Keys(s[metric])) {
		if !slices.Contains(all, peer) {
			all = append(all, peer)
		}
	}
	return all
}

// values returns what a peer has reached, in no order.
func (s samples) values(metric, peer string) []float64 {
	var all []float64
	for _, v := range s[metric][peer] {
		all = append(all, v)
	}
	return all
}

// ratios returns what a peer has reached divided by what base has reached in the same round: what slows down the machine for
// a whole round is not in them.
func (s samples) ratios(metric, peer, base string) []float64 {
	var all []float64
	for round, v := range s[metric][peer] {
		if d, ok := s[metric][base][round]; ok && d != 0 {
			all = append(all, v/d)
		}
	}
	return all
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 0:
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[n/2]
}

// spread is how far the values of one metric lie apart, as a part of their median.
func spread(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return (slices.Max(values) - slices.Min(values)) / median(values)
}

// baseMetrics are what the base is judged by.
var baseMetrics = []string{"pair_us", "own_keys_64_rate"}

// void returns the rounds that lie apart from the largest group of rounds in which the base spreads over no more than most.
func (s samples) void(most float64) (rounds []int) {
	var out []int
	for _, metric := range baseMetrics {
		values := s[metric][base]
		sorted := slices.SortedFunc(maps.Keys(values), func(a, b int) int { return cmp.Compare(values[a], values[b]) })
		var best []int
		for i := range sorted {
			for j := len(sorted); j-i > len(best); j-- {
				group := sorted[i:j]
				var of []float64
				for _, round := range group {
					of = append(of, values[round])
				}
				if spread(of) <= most {
					best = group
				}
			}
		}
		for _, round := range sorted {
			if !slices.Contains(best, round) {
				out = append(out, round)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// drop forgets rounds, but not what is measured in the first rounds only, nor callers that were left without the lock.
func (s samples) drop(rounds []int) {
	for _, w := range workloads {
		if w.most > 0 {
			continue
		}
		for _, metric := range w.feeds {
			for _, byRound := range s[metric] {
				maps.DeleteFunc(byRound, func(round int, _ float64) bool { return metric != "stuck" && slices.Contains(rounds, round) })
			}
		}
	}
}

// planned is a figure that every run gives for each peer that has the metric.
type planned struct {
	id     string
	metric string
	base   string // the figure is a ratio to this peer's
	unit   string
	worst  bool // the figure is the highest value of all rounds, and not their median
	about  string

	// peer must reach goal.
	peer  string
	goal  *goal
	floor string // the peer that does only the necessary work: its figure is the floor
}

// goal is a bound on a figure.
type goal struct {
	above  bool // at least, and not at most
	value  float64
	factor bool // of the floor
}

func atMost(v float64) *goal     { return &goal{value: v} }
func atLeast(v float64) *goal    { return &goal{value: v, above: true} }
func timesFloor(v float64) *goal { return &goal{value: v, factor: true} }

func (g *goal) String() string {
	text := "≤ "
	if g.above {
		text = "≥ "
	}
	text += number(g.value)
	if g.factor {
		text += " × floor"
	}
	return text
}

func (g *goal) met(value, floor float64) bool {
	bound := g.value
	if g.factor {
		bound *= floor
	}
	if g.above {
		return value >= bound
	}
	return value <= bound
}

// figure is one line of figures.json. Value, Min and Max are of the rounds; null if there is none, and Reason then says why.
type figure struct {
	ID      string   `json:"id"`
	Peer    string   `json:"peer"`
	Value   *float64 `json:"value"`
	Min     *float64 `json:"min"`
	Max     *float64 `json:"max"`
	Unit    string   `json:"unit"`
	Rounds  int      `json:"rounds"`
	Goal    string   `json:"goal,omitempty"`
	Met     *bool    `json:"met,omitempty"`
	Floor   *float64 `json:"floor,omitempty"`
	OfFloor *float64 `json:"of_floor,omitempty"` // how many times the floor was reached
	Reason  string   `json:"reason,omitempty"`
}

// report is figures.json.
type report struct {
	Machine  string            `json:"machine"`
	Date     string            `json:"date"`
	Versions map[string]string `json:"versions"`
	Rounds   int               `json:"rounds"`
	Void     int               `json:"void_rounds,omitempty"`
	Base     float64           `json:"base_spread"`
	Figures  []figure          `json:"figures"`
}

// figures makes the planned figures of the samples. Why a peer does not have one, missing says, or nothing if it is not meant
// to have it.
func figures(s samples, missing func(p planned, peer string) string) []figure {
	var all []figure
	for _, p := range plan {
		for _, peer := range s.peers(p.metric) {
			f := newFigure(p, peer, s.of(p, peer))
			if f.Value == nil {
				f.Reason = missing(p, peer)
			}
			if peer == p.peer {
				f.judge(p, s)
			}
			if f.Value != nil || f.Reason != "" {
				all = append(all, f)
			}
		}
	}
	return all
}

// of returns what a peer has reached of a figure.
func (s samples) of(p planned, peer string) []float64 {
	if p.base == "" {
		return s.values(p.metric, peer)
	}
	return s.ratios(p.metric, peer, p.base)
}

func newFigure(p planned, peer string, values []float64) figure {
	f := figure{ID: p.id, Peer: peer, Unit: p.unit, Rounds: len(values)}
	if len(values) == 0 {
		return f
	}
	value := median(values)
	if p.worst {
		value = slices.Max(values)
	}
	f.Value, f.Min, f.Max = round(value), round(slices.Min(values)), round(slices.Max(values))
	return f
}

// judge compares a figure with its goal.
func (f *figure) judge(p planned, s samples) {
	if p.goal != nil {
		f.Goal = p.goal.String()
	}
	if floor := s.of(p, p.floor); len(floor) > 0 {
		f.Floor = round(median(floor))
		if own := s.ratios(p.metric, p.peer, p.floor); len(own) > 0 {
			f.OfFloor = round(median(own))
		}
	}
	if f.Value != nil && p.goal != nil && (f.Floor != nil || !p.goal.factor) {
		met := p.goal.met(*f.Value, *cmp.Or(f.Floor, new(float64)))
		f.Met = &met
		if !met {
			f.Reason = reasons[f.ID]
		}
	}
}

// round keeps four digits, which is more than the spread allows.
func round(v float64) *float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return new(float64)
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	r := math.Round(v*scale) / scale
	return &r
}

// number prints a value as short as its size allows.
func number(v float64) string {
	switch {
	case v == math.Trunc(v) && math.Abs(v) < 1e6:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	case math.Abs(v) < 0.01:
		return fmt.Sprintf("%.2g", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func (r report) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func readReport(path string) (r report, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// find returns the figure of a peer.
func (r report) find(id, peer string) (figure, bool) {
	i := slices.IndexFunc(r.Figures, func(f figure) bool { return f.ID == id && f.Peer == peer })
	if i < 0 {
		return figure{}, false
	}
	return r.Figures[i], true
}

// String is the median and, if there were several rounds, the lowest and the highest value.
func (f figure) String() string {
	if f.Value == nil {
		return "–"
	}
	text := number(*f.Value)
	if f.Rounds > 1 && *f.Min != *f.Max {
		text += fmt.Sprintf(" (%s–%s)", number(*f.Min), number(*f.Max))
	}
	return strings.TrimSpace(text)
}
