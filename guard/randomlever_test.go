package guard_test

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/guard"
)

// levers pulls levers of the Registry at random, until the function that it returns is called, which waits for it.
func (p *play) levers() (stop func()) {
	if len(p.names) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	pulled, start := make(chan struct{}), time.Now()
	go func() {
		defer close(pulled)
		for ctx.Err() == nil && time.Since(start) < time.Hour { // so that calls which wait for each other show as a deadlock
			time.Sleep(p.odd(time.Duration(p.n(1000)) * time.Millisecond))
			if p.drains && p.chance(15) {
				p.drain(ctx)
			}
			if err := p.reg.Switch(p.names[p.n(len(p.names))], guard.Mode(p.n(3))); err != nil {
				p.t.Error(err)
			}
		}
	}()
	return func() { cancel(); <-pulled }
}

// drain begins to drain, and looks that nobody is in line some time later.
func (p *play) drain(ctx context.Context) {
	drained, begun := make(chan guard.DrainReport), time.Now()
	before, first := p.inLine(p.calls()), !p.drained
	p.drained = true
	for _, r := range p.calls() {
		r.mu.Lock()
		r.inside = r.over.IsZero() && r.ran > 0 && slices.Contains(p.names, r.names[0])
		r.mu.Unlock()
	}
	go func() {
		report, err := p.reg.Drain(context.WithoutCancel(ctx))
		if err != nil {
			p.t.Errorf("Drain = %v", err)
		}
		drained <- report
	}()
	time.Sleep(p.odd(12 * time.Second)) // for slow releases and observers
	for _, r := range p.inLine(before) {
		p.t.Errorf("%v: still in line while draining", r.names)
	}
	report, ended, shadows := <-drained, 0, 0
	time.Sleep(time.Nanosecond) // who has left the Registry last has returned, too
	for _, r := range p.calls() {
		r.mu.Lock()
		switch {
		case r.over.After(begun) && !r.outcome(guard.OutcomeDraining):
			ended++
		case !r.over.After(begun) && (len(r.names) > 1 || r.outcome(guard.OutcomeShadow, guard.OutcomePanic)):
			shadows++ // may still take or give back
		}
		r.mu.Unlock()
	}
	if p.inside == 100 && first && (report.Ended < ended || report.Ended > ended+shadows) {
		p.t.Errorf("Drain = %+v, but %d calls ended", report, ended)
	}
}

func (p *play) calls() []*history {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

// inLine returns which of calls wait, and would be refused by a Drain.
func (p *play) inLine(calls []*history) (waiting []*history) {
	outside := func(name string) bool { return !slices.Contains(p.names, name) }
	for _, r := range calls {
		r.mu.Lock()
		if r.over.IsZero() && r.ran == 0 && r.depth == 0 && r.names != nil && !slices.ContainsFunc(r.names, outside) {
			waiting = append(waiting, r)
		}
		r.mu.Unlock()
	}
	return waiting
}

// outcome reports whether one of the guards of the call told one of outcomes.
func (r *history) outcome(outcomes ...string) bool {
	events := slices.Concat(slices.Collect(maps.Values(r.events))...)
	return slices.ContainsFunc(events, func(e guard.Event) bool { return slices.Contains(outcomes, e.Outcome) })
}

// hook is what runs after the release of a guard's locks.
func (p *play) hook(r *history, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.holds[name] {
		if h.released != 1 {
			p.t.Errorf("%s: after the release, a lock was released %d times", name, h.released)
		}
	}
}

// observer is slow, or panics.
func (p *play) observer(r *history) {
	if p.chance(30) {
		time.Sleep(p.odd(time.Duration(p.n(2000)) * time.Millisecond))
	}
	if p.chance(3) {
		r.mu.Lock()
		r.lockPanicked = true
		r.mu.Unlock()
		panic(errPanic)
	}
}

// checkRegistry holds that nothing is left, and that all was counted.
func (p *play) checkRegistry() {
	counted := make(map[string]map[string]int64)
	for _, r := range p.all {
		for name, events := range r.events {
			for _, e := range events {
				if counted[name] == nil {
					counted[name] = make(map[string]int64)
				}
				counted[name][e.Outcome]++
			}
		}
	}
	for info := range p.reg.All() {
		if info.Waiting != 0 || info.Held != 0 {
			p.t.Errorf("in the end, %s: %d waiting, %d held", info.Spec.Name, info.Waiting, info.Held)
		}
		if want := counted[info.Spec.Name]; !maps.Equal(info.Outcomes, want) && len(info.Outcomes)+len(want) > 0 {
			p.t.Errorf("%s: outcomes %v, but the events have %v", info.Spec.Name, info.Outcomes, want)
		}
	}
	refused := 0
	for _, r := range p.all {
		if r.outcome(guard.OutcomeDraining) {
			refused++
		}
	}
	report, err := p.reg.Drain(p.t.Context())
	if err != nil || report.Took > 0 || report.Ended != 0 || report.Refused != refused {
		p.t.Errorf("in the end, Drain = %+v, %v, but %d calls were refused", report, err, refused)
	}
}
