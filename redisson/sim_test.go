package redisson_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/sim"
)

// simVariable is the variable of the environment that changes what TestSim runs, as in
//
//	LATCHKEY_SIM=kinds=rw,seed=106,faults=none go test -run 'TestSim$' ./redisson
const simVariable = "LATCHKEY_SIM"

// simOptions is one simulation.
type simOptions struct {
	kinds  string
	seed   uint64
	seeds  int
	rounds int
	faults string
	leases string // "renewed" or "any"
	trace  bool
}

// String returns the options in the form in which the variable has them.
func (o simOptions) String() string {
	return fmt.Sprintf("kinds=%s,seed=%d,rounds=%d,faults=%s,leases=%s", o.kinds, o.seed, o.rounds, o.faults, o.leases)
}

func parseSimOptions(t *testing.T, text string) simOptions {
	o := simOptions{kinds: "plain", seed: 1, seeds: 1, rounds: 20, faults: "all", leases: "any"}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		n, err := strconv.Atoi(value)
		switch name {
		case "":
			continue
		case "kinds":
			o.kinds, err = value, nil
		case "faults":
			o.faults, err = value, nil
		case "leases":
			o.leases, err = value, nil
		case "seed":
			o.seed = uint64(n)
		case "seeds":
			o.seeds = n
		case "rounds":
			o.rounds = n
		case "trace":
			o.trace = n != 0
		default:
			t.Fatalf("%s: no option %q", simVariable, name)
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", simVariable, name, err)
		}
	}
	return o
}

func simFaults(t *testing.T, name string) sim.Faults {
	all := sim.Faults{
		LoseRequest: 0.01, LoseAnswer: 0.01, CutSubscription: 0.01, Late: 0.7, LateMost: 4 * time.Second, Tail: 0.01,
		Flush: 5 * time.Second, Silence: 30 * time.Second, Partition: 30 * time.Second, WindowMost: 6 * time.Second,
		Clients: 3, Span: 10 * time.Minute,
	}
	switch name {
	case "all":
		return all
	case "rough":
		all.LoseRequest, all.LoseAnswer = 0.1, 0.05
		return all
	case "none":
		return sim.Faults{}
	}
	t.Fatalf("%s: no faults %q", simVariable, name)
	return all
}

func TestSim(t *testing.T) {
	o := parseSimOptions(t, os.Getenv(simVariable))
	began := time.Now()
	sections, failed := 0, 0
	first := o.seed
	for i := range o.seeds {
		o.seed = first + uint64(i)
		w := simulate(t, o)
		sections += w.sections
		if len(w.judge.violations) > 0 {
			failed++
			t.Errorf("%v: %v after %v\nrepeat with %s=%v go test -run 'TestSim$' ./redisson", w.judge.violations[0], o, time.Since(began).Round(time.Millisecond), simVariable, o)
		}
	}
	t.Logf("sim: %d seeds, %d sections, %d failed, %v", o.seeds, sections, failed, time.Since(began).Round(time.Millisecond))
}
