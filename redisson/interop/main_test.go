package interop

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/latchkey-go/latchkey/redisson"
)

// scenario is one entry of the list in TestInterop. Its name starts with its number.
type scenario struct {
	name string
	play func(t *testing.T, on setting)
	long bool // it takes its time, and does not measure it to a tenth of a second, so that it runs beside others
}

// setting is where a scenario is played.
type setting struct {
	version  string // of Redisson
	cluster  bool   // of three masters
	replicas int    // of each master
	// mode and javaMode are the kind of channels that the two sides use in a cluster.
	mode     redisson.ShardedMode
	javaMode string // AUTO if empty
	beside   bool   // other scenarios, which keep the machine busy
}

// sharded reports which of them those use who look on.
func (s setting) sharded() bool { return s.cluster && s.mode != redisson.ShardedOff }

// oldVersions are the versions of Redisson that scenario 50 repeats the first twelve with.
var oldVersions = []string{"3.17.7", "3.23.5", "3.27.2", "3.45.1", "3.52.0"}

// The scenarios whose times are measured to a tenth of a second run one by one; the others run together, after them. So do the old
// versions, each of which plays its scenarios one by one.
func TestInterop(t *testing.T) {
	if !wanted() {
		t.Skip("builds and runs a Java program; set LATCHKEY_INTEROP=1, or use make interop")
	}
	buildAhead(t)
	for _, s := range slices.Concat(plainScenarios, fairScenarios, rwScenarios, readScenarios, downgradeScenarios, fencedScenarios, multiScenarios, redScenarios, mappedScenarios, reentryScenarios, leaseScenarios, kindScenarios, keyScenarios, syncScenarios, levelScenarios, setnxScenarios) {
		run(t, s.name, setting{version: newest}, s)
	}
	for _, s := range clusterScenarios {
		run(t, "cluster_"+s.name, setting{version: newest, cluster: true}, s)
	}
	playHerds(t)
	for _, version := range oldVersions {
		t.Run("50_Redisson_"+version, func(t *testing.T) {
			t.Parallel()
			for _, s := range plainScenarios[:12] {
				run(t, s.name, setting{version: version, beside: true}, s)
			}
		})
	}
}

// buildAhead builds the Java program for all versions while scenarios with the first one run, if all are to run. Those who need it
// say what fails.
func buildAhead(t *testing.T) {
	if flag.Lookup("test.run").Value.String() != "" {
		return
	}
	var builds sync.WaitGroup
	builds.Go(func() {
		for _, version := range append([]string{newest}, oldVersions...) {
			_, _ = build(version)
		}
	})
	t.Cleanup(builds.Wait)
}

var passed, failed, skipped atomic.Int64

func run(t *testing.T, name string, on setting, s scenario) {
	t.Run(name, func(t *testing.T) {
		t.Cleanup(func() { count(t) })
		demand(t)
		if s.long {
			on.beside = true
			t.Parallel()
		}
		s.play(t, on)
	})
}

func count(t *testing.T) {
	switch {
	case t.Failed():
		failed.Add(1)
	case t.Skipped():
		skipped.Add(1)
	default:
		passed.Add(1)
	}
}

// required reports whether LATCHKEY_REQUIRE, a comma-separated list, names redisson.
func required() bool {
	return slices.Contains(strings.Split(os.Getenv("LATCHKEY_REQUIRE"), ","), "redisson")
}

func wanted() bool { return required() || os.Getenv("LATCHKEY_INTEROP") == "1" }

// demand skips the scenario where the programs that it needs are not there, or fails it if they are required.
func demand(t *testing.T) {
	t.Helper()
	var missing []error
	for _, name := range []string{"javac", "java", "mvn", "redis-server"} {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, err)
		}
	}
	switch err := errors.Join(missing...); {
	case err != nil && required():
		t.Fatalf("LATCHKEY_REQUIRE has redisson, but this needs a JDK 17, Maven and redis-server: %v", err)
	case err != nil:
		t.Skipf("needs a JDK 17, Maven and redis-server: %v (LATCHKEY_REQUIRE=redisson makes this a failure)", err)
	}
}

func TestMain(m *testing.M) {
	if order := os.Getenv(childOrder); order != "" {
		runChild(order)
	}
	code := m.Run()
	killPeers()
	if n := passed.Load() + failed.Load() + skipped.Load(); wanted() && n > 0 {
		fmt.Printf("interop: %d passed, %d failed, %d skipped\n", passed.Load(), failed.Load(), skipped.Load())
	}
	os.Exit(code)
}
