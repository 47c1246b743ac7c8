package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/faults/check"
	"github.com/latchkey-go/latchkey/faults/history"
)

// sums is what came of a run, in all its worlds.
type sums struct {
	worlds     []string
	results    []*check.Result
	sections   int
	waited     int
	violations int
	strikes    map[string]int // kind of fault → sections inside which it struck
	void       []string
	took       time.Duration
}

// judge reads and checks the history of a world. Whether the run is void is decided for all of them together.
func judge(dir string, p plan) (*check.Result, error) {
	events, err := history.Read(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, k := range p.kinds {
		names = append(names, k.name)
	}
	r := check.Check(events, check.Options{Share: -1, Kinds: names, Live: liveTimeout})
	for _, k := range p.kinds {
		if k.lacks != nil && k.lacks(r) != "" {
			r.Void = append(r.Void, k.name+": "+k.lacks(r))
		}
	}
	return r, nil
}

func (s *sums) add(world string, r *check.Result) {
	s.worlds, s.results = append(s.worlds, world), append(s.results, r)
	s.sections += r.Sections
	s.waited += r.Waited
	s.violations += r.Count
	for k, n := range r.Strikes {
		s.strikes[k] += n
	}
	for _, v := range r.Void {
		s.void = append(s.void, world+": "+v)
	}
}

func (s *sums) rate() float64 { return float64(s.sections) / s.took.Seconds() }

// verdict returns what was broken, or why the run is void: at fewer than least sections a second it proves nothing.
func (s *sums) verdict(least float64) error {
	var errs []error
	for _, r := range s.results {
		for _, v := range r.Violations {
			errs = append(errs, fmt.Errorf("VIOLATION %s: %s", v.Rule, v.Text))
		}
	}
	if s.rate() < least {
		s.void = append(s.void, fmt.Sprintf("%.0f sections a second are fewer than %.0f", s.rate(), least))
	}
	if 3*s.waited < s.sections {
		s.void = append(s.void, fmt.Sprintf("only %d of %d sections waited for another owner", s.waited, s.sections))
	}
	for _, v := range s.void {
		errs = append(errs, errors.New("void: "+v))
	}
	return errors.Join(errs...)
}

// report prints the sums. The last line is for those who read no other.
func (s *sums) report(out io.Writer) {
	for _, k := range slices.Sorted(maps.Keys(s.strikes)) {
		fmt.Fprintf(out, "%-34s struck inside %d sections\n", k, s.strikes[k])
	}
	for i, r := range s.results {
		fmt.Fprintf(out, "%s: %d sections, %d lost, overrun: %d while stopped, %d after a loss of data; %d passes; latest for a deadline %v, without a processor for %v; models: %v, %d undecided\n",
			s.worlds[i], r.Sections, r.Lost, r.Stopped, r.AfterLoss, r.Passes, r.Latest, r.Delayed, r.Histories, r.Undecided)
		if r.Updates > 0 {
			fmt.Fprintf(out, "%s: %d of %d updates are missing, all without a fence; with one, %d writes were refused\n", s.worlds[i], r.Missing, r.Updates, r.Refused)
		}
	}
	fmt.Fprintf(out, "%.0fs, %.0f sections a second, %d%% of them waited for another owner\n", s.took.Seconds(), s.rate(), 100*s.waited/max(1, s.sections))
	fmt.Fprintf(out, "faults: %d kinds, %d critical sections, %d violations\n", len(s.strikes), s.sections, s.violations)
}
