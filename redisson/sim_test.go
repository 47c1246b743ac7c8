package redisson_test

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestSim runs a simulation for each of some seeds.
func TestSim(t *testing.T) {
	o, err := parseSimOptions(os.Getenv(simVariable))
	if err != nil {
		t.Fatal(err)
	}
	began, sections, failed := time.Now(), int64(0), 0
	for i := range o.seeds {
		one := o.one(i)
		w := simulate(t, one)
		sections += w.sections.Load()
		if len(w.judge.violations) > 0 {
			failed++
			t.Errorf("%s\nafter %v; repeat with %s=%v go test -run 'TestSim$' ./redisson", strings.Join(w.judge.violations[:min(3, len(w.judge.violations))], "\n"), time.Since(began).Round(time.Millisecond), simVariable, one)
		}
		if o.trace {
			_, _ = w.net.Trace().WriteTo(os.Stderr)
		}
		if o.until && failed > 0 {
			break
		}
	}
	t.Logf("sim: %d seeds, %d sections, %d failed, %v", o.seeds, sections, failed, time.Since(began).Round(time.Millisecond))
}
