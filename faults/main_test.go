package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/faults/server"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// The test binary is also the worker that it starts.
func TestMain(m *testing.M) {
	if text := os.Getenv(workerVariable); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	hush()
	os.Exit(m.Run())
}

// A few kinds of fault, with real processes. Beside other tests they are not held to a rate.
func TestLocksSurvive(t *testing.T) {
	redistest.NeedServers(t)
	c := config{seed: 1, dir: t.TempDir(), only: regexp.MustCompile("^(holder stopped|request late|server killed, data kept)$")}
	p := plan{name: "short", config: server.Config{Keep: true}, mixes: mixes, kinds: slices.Concat(workerKinds, wireKinds, serverKinds)}
	out := new(strings.Builder)
	if err := c.play(context.Background(), []plan{p}, out); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(out.String(), "faults: 3 kinds, ") || !strings.HasSuffix(out.String(), " critical sections, 0 violations\n") {
		t.Errorf("the output is %s", out)
	}
}

// Workers that at times enter without their lock are found, and the command is named that does it again.
func TestBrokenLockIsFound(t *testing.T) {
	redistest.NeedServers(t)
	c := config{seed: 2, dir: t.TempDir(), only: regexp.MustCompile("latency")}
	p := plan{name: "broken", mixes: [][]string{{"lock", "write", "permit"}}, kinds: linkKinds, broken: true}
	out := new(strings.Builder)
	err := c.play(context.Background(), []plan{p}, out)
	if err == nil || !strings.Contains(err.Error(), "two holders of") {
		t.Errorf("the error is %v, want two holders", err)
	}
	if again := `go -C faults run . -seed 2 -only "latency"`; !strings.Contains(out.String(), again) {
		t.Errorf("the output lacks %q:\n%s", again, out)
	}
}
