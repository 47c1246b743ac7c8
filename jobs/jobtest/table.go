package jobtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/guard"
)

type row struct {
	name    string
	options []guard.Option
	also    []guard.Option // of a second guard
	play    func(s *scene)
}

var table = []row{
	{name: "free", play: func(s *scene) { s.wantDone(s.add("7"), 0, 1) }},
	{name: "own error", play: func(s *scene) {
		s.work = func(_ context.Context, run int32) error { return map[int32]error{1: errOwn}[run] }
		s.wantDone(s.add("7"), 1, 2)
	}},
	{name: "busy", play: func(s *scene) { comesLater(s, false) }},
	{name: "busy at the last attempt", play: func(s *scene) { comesLater(s, true) }},
	{name: "skip", options: []guard.Option{guard.Busy(guard.Skip)}, play: func(s *scene) {
		defer s.hold()()
		s.wantDone(s.add("7"), 0, 0)
	}},
	{name: "lost", play: func(s *scene) {
		s.work = func(ctx context.Context, run int32) error {
			if run == 1 {
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), guard.ErrLost) {
					s.Errorf("the context ended with %v", context.Cause(ctx))
				}
			}
			return nil // which is no success the first time
		}
		j := s.add("7")
		s.runs(1)
		time.Sleep(100 * time.Millisecond) // a client that has just got its lock does not listen yet
		if ok, err := s.hand.ForceUnlock(context.Background(), "order:7"); !ok || err != nil {
			s.Fatal(ok, err)
		}
		s.wantDone(j, 1, 2)
	}},
	{name: "outage", play: func(s *scene) {
		s.server.Kill(s.T)
		j := s.add("7")
		s.sees(guard.OutcomeOutage)
		s.server.Restart(s.T)
		s.wantDone(j, 0, 1)
	}},
	{name: "bad key", play: func(s *scene) {
		j := s.add("")
		s.eventually("it is dead", func() bool { state, _ := j.State(s.T); return state == Dead })
		if n := s.outcomes(guard.OutcomeKey); n != 1 || s.ran.Load() > 0 {
			s.Errorf("it was tried %d times, and ran %d times", n, s.ran.Load())
		}
	}},
	{name: "cancel", options: []guard.Option{guard.Wait(guard.Forever)}, play: func(s *scene) {
		defer s.hold()()
		j := s.add("7")
		s.eventually("it waits", func() bool { return j.Running(s.T) })
		s.runner.Cancel(s.T, j)
		s.sees(guard.OutcomeCanceled)
		if state, _ := j.State(s.T); state == Done || s.ran.Load() > 0 {
			s.Errorf("%s after %d runs", state, s.ran.Load())
		}
	}},
	{name: "runner stops", options: []guard.Option{guard.Wait(guard.Forever)}, play: func(s *scene) {
		release := s.hold()
		j := s.add("7")
		s.eventually("it waits", func() bool { return j.Running(s.T) })
		began := time.Now()
		s.runner.Stop()
		if took := time.Since(began); took > 10*time.Second || s.ran.Load() > 0 {
			s.Errorf("stopped after %v, with %d runs", took, s.ran.Load())
		}
		release()
		s.start()
		s.wantDone(j, 0, 1)
	}},
	{name: "drain", play: func(s *scene) {
		if _, err := s.registry.Drain(s.Context()); err != nil {
			s.Fatal(err)
		}
		j := s.add("7")
		s.sees(guard.OutcomeDraining)
		s.runner.Stop()
		s.start()
		s.wantDone(j, 0, 1)
	}},
	{name: "replaced", options: []guard.Option{guard.Busy(guard.Replace), guard.Wait(10 * time.Second)}, play: func(s *scene) {
		s.work = func(ctx context.Context, run int32) error {
			if run == 1 {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		}
		first := s.add("7")
		s.runs(1)
		second := s.add("7")
		s.eventually("the newer one is done", func() bool { state, _ := second.State(s.T); return state == Done })
		s.eventually("the older one is dead", func() bool { state, _ := first.State(s.T); return state == Dead })
		if n := s.ran.Load(); n != 2 {
			s.Errorf("%d runs", n)
		}
	}},
	{name: "replaced within", play: func(s *scene) { // by a guard of the handler's own, which is an error like any other
		s.work = func(_ context.Context, run int32) error {
			if run == 1 {
				return &guard.Error{Guard: "within", Err: guard.ErrReplaced}
			}
			return nil
		}
		s.wantDone(s.add("7"), 1, 2)
	}},
	{name: "delivered twice", play: func(s *scene) {
		over := make(chan struct{})
		s.work = func(_ context.Context, run int32) error {
			if run == 1 {
				<-over
			}
			return nil
		}
		j := s.add("7")
		s.runs(1)
		s.runner.Again(s.T, j)
		s.sees(guard.OutcomeBusy)
		close(over)
		s.eventually("the job is done", func() bool { state, _ := j.State(s.T); return state == Done })
		s.alone(1)
	}},
	{name: "one key", play: func(s *scene) { crowd(s, "7", "7", "7", "7", "7", "7"); s.alone(1) }},
	{name: "two guards", also: []guard.Option{guard.Name("ledger"), guard.Key("ledger"), guard.OneKey()}, play: func(s *scene) {
		crowd(s, "1", "2", "3", "4", "5", "6")
		s.alone(1)
	}},
	{name: "levels", options: []guard.Option{guard.Limit(1), guard.Level(2, "all")}, play: func(s *scene) {
		s.work = func(context.Context, int32) error { time.Sleep(300 * time.Millisecond); return nil }
		crowd(s, "1", "1", "2", "3", "4", "5")
		s.alone(2)
	}},
	{name: "hold", options: []guard.Option{guard.HoldAtLeast(2 * time.Second)}, play: func(s *scene) {
		var mu sync.Mutex
		var begun []time.Time
		s.work = func(context.Context, int32) error {
			mu.Lock()
			defer mu.Unlock()
			begun = append(begun, time.Now())
			return nil
		}
		crowd(s, "7", "7")
		if apart := begun[1].Sub(begun[0]); apart < 1900*time.Millisecond {
			s.Errorf("the second one began %v after the first", apart)
		}
	}},
}

// comesLater is a job that finds its lock held.
func comesLater(s *scene, last bool) {
	release := s.hold()
	j := s.runner.Add(s.T, Order{"7"}, last)
	s.sees(guard.OutcomeBusy)
	release()
	s.wantDone(j, 0, 1)
}

// crowd adds many jobs at once, and waits for their end.
func crowd(s *scene, ids ...string) {
	var all []Job
	for _, id := range ids {
		all = append(all, s.add(id))
	}
	for _, j := range all {
		s.eventually("all are done", func() bool { state, _ := j.State(s.T); return state == Done })
		if _, failures := j.State(s.T); failures > 0 && !s.driver.Counts {
			s.Errorf("a job failed %d times", failures)
		}
	}
	if n := int(s.ran.Load()); n != len(ids) {
		s.Errorf("%d runs of %d jobs", n, len(ids))
	}
}

// alone checks that never more than n were inside at a time.
func (s *scene) alone(n int32) {
	s.Helper()
	if most := s.most.Load(); most > n {
		s.Errorf("%d were inside at once", most)
	}
}
