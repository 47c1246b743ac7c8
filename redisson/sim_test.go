package redisson_test

import (
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestSim runs so many seeds by itself, from one with which rare faults are reached early. "make sim" runs more, and holds that each
// fault is reached.
const (
	simSeeds = 40
	simFirst = 601
)

// simLine is the last line that the tests of this package print, if any.
var simLine atomic.Value

func TestMain(m *testing.M) {
	code := m.Run()
	if line := simLine.Load(); line != nil {
		fmt.Println(line)
	}
	os.Exit(code)
}

// TestSim runs a simulation for each of some seeds. See simOptions for how to run others.
func TestSim(t *testing.T) {
	text, given := os.LookupEnv(simVariable)
	o, err := parseSimOptions(text)
	switch {
	case err != nil:
		t.Fatal(err)
	case o.realtime: // see TestSimOnServer
		return
	case !given:
		o.seed, o.seeds, o.rounds, o.parts = simFirst, simSeeds, 3, 2 // fewer rounds than in longer runs, for the race detector
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // half of the time goes into Lua states
	r := o.run(t)
	if o.verbose {
		for _, what := range slices.Sorted(maps.Keys(r.Reached)) {
			t.Logf("%6d %s", r.Reached[what], what)
		}
	}
	if o.mutants && o.mutant == "" {
		for _, what := range missed(r.Reached) {
			t.Errorf("no seed has reached: %s", what)
		}
	}
	if o.part > 0 {
		r.send()
		return
	}
	line := r.String()
	if o.mutants {
		mutants := slices.DeleteFunc(slices.Clone(simMutants), func(m mutant) bool { return !strings.Contains(m.name, o.mutant) })
		line += fmt.Sprintf(", %d of %d mutants found", hunt(t, mutants, 2), len(mutants))
	}
	t.Log(line)
	if given {
		simLine.Store(line)
	}
}

// simResult is what came of some seeds.
type simResult struct {
	Seeds, Violations int
	Sections          int64
	Reached           map[string]int
}

// run runs the simulations, in other processes if there are to be several, and reports what they find.
func (o simOptions) run(t *testing.T) simResult {
	r := simResult{Reached: map[string]int{}}
	if o.parts > 1 && o.part == 0 {
		o.share(t, &r)
		return r
	}
	began := time.Now()
	for i := range o.seeds {
		if o.until && r.Violations > 0 {
			break
		}
		if o.part > 0 && i%o.parts != o.part-1 {
			continue
		}
		one := o.one(i)
		w := simulate(t, one)
		r.add(simResult{1, len(w.judge.violations), w.sections.Load(), w.sim.Reached()})
		w.report(t, time.Since(began))
	}
	return r
}

// report reports what a world has found, and how to find it again.
func (w *world) report(t *testing.T, after time.Duration) {
	if found := w.judge.violations; len(found) > 0 {
		t.Errorf("%s\nfound after %v; repeat it with\n%s=%v go test -run 'TestSim$' ./redisson",
			strings.Join(found[:min(3, len(found))], "\n"), after.Round(time.Millisecond), simVariable, w.options)
	}
	if w.options.trace {
		_, _ = w.sim.Trace().WriteTo(os.Stderr)
	}
}

func (r *simResult) add(o simResult) {
	r.Seeds += o.Seeds
	r.Violations += o.Violations
	r.Sections += o.Sections
	for what, n := range o.Reached {
		r.Reached[what] += n
	}
}

// String is the line that a run ends with.
func (r simResult) String() string {
	return fmt.Sprintf("sim: %d seeds, %d sections, %d violations", r.Seeds, r.Sections, r.Violations)
}
