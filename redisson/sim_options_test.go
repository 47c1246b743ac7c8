package redisson_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/sim"
)

// simVariable is the variable of the environment that says what TestSim runs, as in
//
//	LATCHKEY_SIM=scene=rw,seed=106,faults=none go test -run 'TestSim$' ./redisson
//
// See simOptions for the names. What is not given follows from the seed.
const simVariable = "LATCHKEY_SIM"

// simOptions is a run of the simulation: some seeds, or one of them.
type simOptions struct {
	seed   uint64 // the first one
	seeds  int
	scene  string // one of simScenes
	rounds int    // of each owner
	faults string // one of simFaults
	leases string // "renewed", or "any"
	bounds string // one of simBounds
	ctx    string // go-redis' ContextTimeoutEnabled: "on", "off", or "slow", which is off with a long ReadTimeout

	trace    bool   // print what happened
	again    int    // how often TestSimRepeats runs each seed
	verbose  bool   // print how often what was reached
	until    bool   // stop at the first violation
	parts    int    // processes to share the seeds
	part     int    // the number of this one, from 1 on; 0 starts them all
	mutants  bool   // also find the mutants
	mutant   string // and of these, those whose names have this part
	realtime bool   // on a real server
}

// parseSimOptions reads the variable.
func parseSimOptions(text string) (simOptions, error) {
	o := simOptions{seed: 1, seeds: 1, parts: 1, again: 3}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		if err := o.set(name, value); err != nil {
			return o, fmt.Errorf("%s: %q: %w", simVariable, pair, err)
		}
	}
	return o, o.check()
}

func (o *simOptions) set(name, value string) (err error) {
	switch name {
	case "seed":
		o.seed, err = strconv.ParseUint(value, 10, 64)
	case "seeds":
		o.seeds, err = strconv.Atoi(value)
	case "scene":
		o.scene = value
	case "rounds":
		o.rounds, err = strconv.Atoi(value)
	case "faults":
		o.faults = value
	case "leases":
		o.leases = value
	case "bounds":
		o.bounds = value
	case "ctx":
		o.ctx = value
	case "trace":
		o.trace = true
	case "again":
		o.again, err = strconv.Atoi(value)
	case "verbose":
		o.verbose = true
	case "until":
		o.until = true
	case "parts":
		o.parts, err = strconv.Atoi(value)
	case "part":
		o.part, err = strconv.Atoi(value)
	case "mutants":
		o.mutants, o.mutant = true, value
	case "real":
		o.realtime = true
	case "":
	default:
		err = fmt.Errorf("no such option")
	}
	return err
}

func (o *simOptions) check() error {
	for _, c := range []struct {
		name, value string
		known       []string
	}{
		{"scene", o.scene, slices.Collect(maps.Keys(simScenes))},
		{"faults", o.faults, slices.Collect(maps.Keys(simFaults))},
		{"leases", o.leases, []string{"renewed", "any"}},
		{"bounds", o.bounds, slices.Collect(maps.Keys(simBounds))},
		{"ctx", o.ctx, []string{"on", "off", "slow"}},
	} {
		if c.value != "" && !slices.Contains(c.known, c.value) {
			return fmt.Errorf("%s: %s=%s is none of %v", simVariable, c.name, c.value, slices.Sorted(slices.Values(c.known)))
		}
	}
	return nil
}

// String is what the variable must have for the same run of one seed.
func (o simOptions) String() string {
	return fmt.Sprintf("scene=%s,seed=%d,rounds=%d,faults=%s,leases=%s,bounds=%s,ctx=%s", o.scene, o.seed, o.rounds, o.faults, o.leases, o.bounds, o.ctx)
}

// one returns the options of the seed at i, with all that was left open decided.
func (o simOptions) one(i int) simOptions {
	o.seed += uint64(i)
	r := rand.New(rand.NewPCG(o.seed, 0))
	open := func(value *string, choice ...string) {
		if drawn := choice[r.IntN(len(choice))]; *value == "" {
			*value = drawn
		}
	}
	if o.scene == "" {
		o.scene = simCast[o.seed%uint64(len(simCast))]
	}
	open(&o.faults, "all", "all", "all", "rough", "rough", "lossy", "lossy", "none", "demoted", "away", "back", "behind")
	if o.faults == "behind" && simScenes[o.scene].kinds == nil && o.scene != "multi" { // the numbers of others are wrong after that
		o.faults = "back"
	}
	open(&o.leases, "any", "any", "any", "renewed")
	open(&o.ctx, "on", "on", "off", "slow")
	open(&o.bounds, "strict")
	if o.rounds == 0 {
		o.rounds = 5
	}
	return o
}

// simFaults are the faults by name. With "all", a late copy arrives before the client believes that there is none any more.
var simFaults = map[string]sim.Faults{
	"none": {},
	"all": {
		LoseRequest: 0.01, LoseAnswer: 0.01, CutSubscription: 0.01, Late: 0.7, LateMost: 3 * simTimeout / 2, Tail: 0.01, Drift: 0.01,
		Flush: 5 * time.Second, Silence: 15 * time.Second, Partition: 8 * time.Second, WindowMost: 6 * time.Second,
		Clients: simClients, Span: 10 * time.Minute,
	},
	"demoted": {Demote: 2 * time.Second, Clients: simClients, Span: 10 * time.Minute},
	"away":    {Away: 2 * time.Second, AwayMost: 300 * time.Millisecond, Clients: simClients, Span: 10 * time.Minute},
	"back": {
		Back: 8 * time.Second, BackMost: 2 * time.Second, Past: past("redisson_lock_queue:", "redisson_lock_timeout:"), Clients: simClients, Span: 10 * time.Minute,
	},
	"behind": {Back: 3 * time.Second, BackMost: time.Second, Past: past(""), Clients: simClients, Span: 10 * time.Minute},
	"lossy": {
		LoseRequest: 0.15, LoseAnswer: 0.05, CutSubscription: 0.05, Late: 0.9, LateMost: 3 * simTimeout / 2, Tail: 0.01, Clients: simClients,
	},
	"rough": {
		LoseRequest: 0.1, LoseAnswer: 0.05, CutSubscription: 0.05, Late: 0.7, LateMost: 4 * time.Second, Tail: 0.03, Drift: 0.02,
		Flush: 3 * time.Second, Silence: 10 * time.Second, Partition: 8 * time.Second, WindowMost: 6 * time.Second,
		Clients: simClients, Span: 10 * time.Minute,
	},
}

// bounds is how long a call may take.
type bounds struct {
	leave  time.Duration // after its context has ended
	answer time.Duration // after its wait, until it says that nobody has answered
	slack  time.Duration // after the time to return
}

// simBounds are the bounds by name. The strict ones are those that are promised.
var simBounds = map[string]bounds{
	"strict": {leave: 100 * time.Millisecond, answer: 500 * time.Millisecond, slack: 100 * time.Millisecond},
	"loose":  {leave: simTimeout + 500*time.Millisecond, answer: 2 * simTimeout, slack: 2*simTimeout + 500*time.Millisecond},
}

// most is how long a call may take that waits for so long. Who has never been answered stays a little longer, but no longer than
// the client's timeout.
func (b bounds) most(wait, timeout time.Duration) time.Duration {
	return max(wait, min(wait+b.answer, timeout)) + b.slack
}
