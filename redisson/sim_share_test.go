package redisson_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// simResultMark begins the line in which a process that has a part of the seeds says what came of them.
const simResultMark = "sim-part: "

// share runs the seeds in several processes. Each has its own randomness, which is one for all goroutines of a process, and
// uses one processor: a bubble does nearly all of its work in one goroutine after the other.
func (o simOptions) share(t *testing.T, r *simResult) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for part := 1; part <= o.parts; part++ {
		all.Go(func() {
			got, failed := o.runPart(part)
			mu.Lock()
			defer mu.Unlock()
			r.add(got)
			if failed != "" {
				t.Errorf("part %d:\n%s", part, failed)
			}
		})
	}
	all.Wait()
}

// runPart runs one of the processes, and returns what it printed if it failed.
func (o simOptions) runPart(part int) (r simResult, failed string) {
	run := exec.Command(os.Args[0], "-test.run=^TestSim$", "-test.timeout=30m")
	options, given := os.LookupEnv(simVariable)
	if !given {
		options = fmt.Sprintf("seed=%d,seeds=%d,rounds=%d,parts=%d", o.seed, o.seeds, o.rounds, o.parts)
	}
	options = fmt.Sprintf("%s,part=%d", strings.ReplaceAll(options, "mutants", ""), part)
	run.Env = append(os.Environ(), "GOMAXPROCS=1", simVariable+"="+options)
	out, err := run.CombinedOutput()
	var rest []string
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), simResultMark); ok {
			_ = json.Unmarshal([]byte(text), &r)
			continue
		}
		rest = append(rest, lines.Text())
	}
	if err != nil {
		failed = strings.Join(append(rest, err.Error()), "\n")
	}
	return r, failed
}

// send prints what share reads.
func (r simResult) send() {
	text, _ := json.Marshal(r)
	fmt.Printf("\n%s%s\n", simResultMark, text)
}
