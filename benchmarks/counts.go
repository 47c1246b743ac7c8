package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"
)

// countedJob is something of which the counts are kept, of Latchkey alone.
type countedJob struct {
	name      string
	processes int
	job       job
	skip      int     // milliseconds until it counts
	slack     float64 // how much more than the part of a tenth the counts may grow: who meets whom is chance
}

var countedJobs = []countedJob{
	{"pair", 1, job{Do: "load", OneKey: true, Callers: 1, Millis: 1500}, 500, 0},
	{"64 callers of one client", 1, job{Do: "load", OneKey: true, Callers: 64, Away: 2, Millis: 1500}, 500, 0.2},
	{"16 callers in each of 4 processes", 4, job{Do: "load", OneKey: true, Callers: 16, Away: 2, Millis: 2500}, 500, 0.5},
	{"turns of two processes", 2, job{Do: "turns", Millis: 2500}, 0, 0},
	{"list of 10 keys", 1, job{Do: "together", What: "list", Count: 10, Millis: 2500}, 800, 0.2},
	{"list of 1,000 keys", 1, job{Do: "together", What: "list", Count: 1000, Millis: 3500}, 1500, 0.2},
	{"MultiLock of 10", 1, job{Do: "together", What: "multilock", Count: 10, Millis: 2500}, 800, 0.2},
	{"Stack of 3 guards", 1, job{Do: "together", What: "stack", Count: 3, Millis: 2500}, 800, 0.2},
	{"64 readers of a process", 1, job{Do: "together", What: "readers", Count: 64, Millis: 2500}, 800, 0.2},
	{"herd of 4", 1, herdOf("", 4, 1, 2500*time.Millisecond), 500, 0},
	{"herd of 16", 1, herdOf("", 16, 1, 2500*time.Millisecond), 500, 0},
	{"herd of 64", 1, herdOf("", 64, 1, 3*time.Second), 1000, 0},
	{"herd of 192", 1, herdOf("", 192, 1, 5*time.Second), 1500, 0},
	{"herd of 1000", 1, herdOf("", 1000, 1, 10*time.Second), 5000, 0.1},
	{"herd of 192 on a limit of 4", 1, limited(4, herdOf("", 192, 1, 5*time.Second)), 1500, 0},
	{"herd of 192 that holds for 50 ms", 1, herdOf("", 192, 50, 23*time.Second), 11000, 0.1},
}

// counted is what one acquisition, with its release, takes. Script is the time for which Redis runs scripts, as a multiple of that of a pair in
// the same run, so that it says something on any machine.
type counted struct {
	Name     string  `json:"name"`
	Commands float64 `json:"commands"`
	Scripts  float64 `json:"scripts"`
	Trips    float64 `json:"round_trips"`
	Script   float64 `json:"script_time"`
}

// growth is how much of a count may be added; mostScript is that of a time, which is three times as long where the machine does something else.
const (
	growth     = 0.10
	mostScript = 3
)

// countAll counts what the jobs take, and compares that with a file or writes it.
func countAll(ctx context.Context, c config, out io.Writer) error {
	dir, err := os.MkdirTemp("", "benchmarks")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bench{out: out, dir: dir, samples: samples{}, workers: map[string][]*process{}, failed: map[string]string{}, broken: map[string]bool{}, said: map[string]bool{}}
	defer b.close()
	if b.server, err = startServer(ctx); err != nil {
		return err
	}
	defer b.server.stop()
	var all []counted
	var pair float64
	fmt.Fprintf(out, "%-36s %9s %9s %9s %9s\n", "an acquisition and its release", "commands", "scripts", "trips", "script ÷")
	for _, j := range countedJobs {
		one, micros, err := b.counted(ctx, j)
		if err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		if pair == 0 {
			pair = micros
		}
		one.Script = *round(micros / pair)
		all = append(all, one)
		fmt.Fprintf(out, "%-36s %9.2f %9.2f %9.2f %9.2f\n", one.Name, one.Commands, one.Scripts, one.Trips, one.Script)
	}
	if c.record {
		return writeCounts(c.counts, all)
	}
	return compareCounts(c.counts, all)
}

// counted does a job, and counts once it is under way.
func (b *bench) counted(ctx context.Context, j countedJob) (counted, float64, error) {
	one := counted{Name: j.name}
	counter, err := listenAndCount(b.server.addr) // of its own: thousands of connections take a while to end
	if err != nil {
		return one, 0, err
	}
	defer counter.Close()
	defer b.renew()
	j.job.Addr, j.job.Skip = counter.Addr, j.skip
	if j.job.Do == "together" {
		counter.Delay(far)
	}
	type answer struct {
		r   result
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		r, err := b.do(ctx, we, j.processes, j.job)
		answered <- answer{r, err}
	}()
	sleep(ctx, time.Duration(j.skip)*time.Millisecond)
	if err := b.server.reset(ctx); err != nil {
		return one, 0, err
	}
	counter.Reset()
	sleep(ctx, time.Duration(j.job.Millis-j.skip)*time.Millisecond)
	counts, trips := counter.Counts(), counter.Trips()
	done, err := b.server.calls(ctx)
	a := <-answered
	switch r := a.r; {
	case err != nil:
		return one, 0, err
	case a.err != nil:
		return one, 0, errors.New(b.failed[we])
	case r.Done == 0 || r.Overlap > 0 || r.Failed > 0 || r.Starved > 0:
		return one, 0, fmt.Errorf("%d acquisitions, %d at once, %d failed: %s; %d callers never had the lock", r.Done, r.Overlap, r.Failed, r.Failure, r.Starved)
	}
	n := float64(a.r.Done)
	if j.job.Do == "together" { // as many as the clock says: many may be under way at once
		trips = int64(math.Round(a.r.Named[0].Value / far.Seconds() * n))
	}
	one.Commands, one.Scripts, one.Trips = *round(float64(total(counts)) / n), *round(float64(counts["evalsha"]+counts["eval"]) / n), *round(float64(trips) / n)
	return one, float64(done.scripts.Microseconds()) / n, err
}

func writeCounts(path string, all []counted) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// compareCounts returns an error for each count that has grown.
func compareCounts(path string, all []counted) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var before []counted
	if err := json.Unmarshal(text, &before); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var grown []error
	for _, now := range all {
		i := slices.IndexFunc(before, func(c counted) bool { return c.Name == now.Name })
		j := slices.IndexFunc(countedJobs, func(c countedJob) bool { return c.name == now.Name })
		if i < 0 {
			grown = append(grown, fmt.Errorf("%s is not in %s", now.Name, path))
			continue
		}
		for _, c := range []struct {
			what        string
			was, is, by float64
		}{
			{"commands", before[i].Commands, now.Commands, growth + countedJobs[j].slack}, {"scripts", before[i].Scripts, now.Scripts, growth + countedJobs[j].slack},
			// By the clock, with what the machine does for each key.
			{"round trips", before[i].Trips, now.Trips, growth + countedJobs[j].slack + float64(countedJobs[j].job.Count)/1000}, {"script time", before[i].Script, now.Script, mostScript},
		} {
			if c.is > c.was*(1+c.by)+0.01 {
				grown = append(grown, fmt.Errorf("%s: %.2f %s, where %s has %.2f", now.Name, c.is, c.what, path, c.was))
			}
		}
	}
	return errors.Join(grown...)
}
