package redisson_test

import (
	"os"
	"strings"
	"testing"
)

// TestSimRepeats holds the simulation to its word: the same seed gives the same trace each time. Other scenes are run by
// the option.
func TestSimRepeats(t *testing.T) {
	text, given := os.LookupEnv(simVariable)
	o, err := parseSimOptions(text)
	if err != nil {
		t.Fatal(err)
	}
	var runs []simOptions
	for i := range o.seeds {
		runs = append(runs, o.one(i))
	}
	if !given {
		runs = runs[:0]
		for _, scene := range []string{"plain", "fair", "rw", "multi", "permit", "levels", "semaphore", "latch"} {
			runs = append(runs, simOptions{seed: 1, scene: scene, rounds: 1, faults: "rough", ctx: "off"}.one(0))
		}
	}
	for _, one := range runs {
		first := traceOf(t, one)
		for range o.again - 1 {
			if again := traceOf(t, one); again != first {
				t.Errorf("%v: two traces of one seed differ:\n%s", one, difference(first, again))
				break
			}
		}
	}
}

func traceOf(t *testing.T, o simOptions) string {
	var b strings.Builder
	_, _ = simulate(t, o).sim.Trace().WriteTo(&b)
	return b.String()
}

// difference shows where two traces part.
func difference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	at := 0
	for at < min(len(as), len(bs)) && as[at] == bs[at] {
		at++
	}
	around := func(lines []string) string {
		return strings.Join(lines[max(at-5, 0):min(at+10, len(lines))], "\n")
	}
	return around(as) + "\n\n" + around(bs)
}
