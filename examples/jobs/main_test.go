package main

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/robfig/cron/v3"

	"github.com/latchkey-go/latchkey/examples/internal/exampletest"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/jobs/cronguard"
)

// All instances reach one tick together, and one of them runs the job.
func TestOneInstanceRunsATick(t *testing.T) {
	c := exampletest.Clients(t, 1)[0]
	var ran atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		g, err := onceATick(c, "report")
		if err != nil {
			t.Fatal(err)
		}
		job := cron.NewChain(guard.Must(cronguard.Wrapper(t.Context(), g, cron.DiscardLogger))).Then(cron.FuncJob(func() { ran.Add(1) }))
		all.Go(job.Run)
	}
	all.Wait()
	if n := ran.Load(); n != 1 {
		t.Errorf("%d instances ran the job, want 1", n)
	}
}

// The schedulers themselves start the jobs: five instances that know nothing of each other would make fifteen runs.
func TestSchedulers(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), exampletest.Clients(t, 1)[0], &out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		t.Log(strings.TrimSpace(line))
		for _, bad := range []string{" 0 runs", " 5 runs", "10 runs", "15 runs"} {
			if strings.HasSuffix(strings.TrimSpace(line), bad) {
				t.Errorf("it printed %q", line)
			}
		}
	}
}
