package redisson_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// simSeeds is how many seeds TestSim runs by itself.
const simSeeds = 100

// TestSim runs a simulation for each of some seeds.
func TestSim(t *testing.T) {
	text, given := os.LookupEnv(simVariable)
	o, err := parseSimOptions(text)
	if err != nil {
		t.Fatal(err)
	}
	if !given {
		o.seeds = simSeeds
	}
	if o.mutants {
		wanted := slices.DeleteFunc(slices.Clone(simMutants), func(m mutant) bool { return !strings.Contains(m.name, o.mutant) })
		t.Logf("sim: %d of %d mutants found", hunt(t, wanted, 2), len(wanted))
		return
	}
	r := o.run(t)
	t.Logf("sim: %d seeds, %d sections, %d violations, %v", r.seeds, r.sections, r.violations, r.took.Round(time.Millisecond))
	for _, what := range missed(r.reached) {
		if !given {
			t.Errorf("no seed has reached: %s", what)
		}
	}
	if o.verbose {
		for _, what := range slices.Sorted(maps.Keys(r.reached)) {
			t.Logf("%6d %s", r.reached[what], what)
		}
	}
}

// simResult is what came of some seeds.
type simResult struct {
	seeds, violations int
	sections          int64
	reached           map[string]int
	took              time.Duration
}

// run runs the simulations and reports what they find.
func (o simOptions) run(t *testing.T) simResult {
	began := time.Now()
	r := simResult{reached: map[string]int{}}
	for i := 0; i < o.seeds && (r.violations == 0 || !o.until) && (o.most == 0 || time.Since(began) < o.most); i++ {
		one := o.one(i)
		w := simulate(t, one)
		r.add(w)
		if found := w.judge.violations; len(found) > 0 {
			t.Errorf("%s\nfound after %v; repeat it with\n%s=%v go test -run 'TestSim$' ./redisson",
				strings.Join(found[:min(3, len(found))], "\n"), time.Since(began).Round(time.Millisecond), simVariable, one)
		}
		if o.trace {
			_, _ = w.net.Trace().WriteTo(os.Stderr)
		}
	}
	r.took = time.Since(began)
	return r
}

func (r *simResult) add(w *world) {
	r.seeds++
	r.violations += len(w.judge.violations)
	r.sections += w.sections.Load()
	for what, n := range w.net.Reached() {
		r.reached[what] += n
	}
}

// String is the last line of a run.
func (r simResult) String() string {
	return fmt.Sprintf("sim: %d seeds, %d sections, %d violations", r.seeds, r.sections, r.violations)
}
