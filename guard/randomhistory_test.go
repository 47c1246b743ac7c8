package guard_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

type historyKey struct{}

func historyOf(ctx context.Context) *history { return ctx.Value(historyKey{}).(*history) }

// history is the request of a call, and what really happened to it.
type history struct {
	Keys []string
	Free bool

	play  *play
	depth int
	names []string // of the guards

	over           time.Time // when it ended
	inside         bool      // inside when its Registry began to drain
	outer          *history
	ran, fallbacks int
	workErr        error
	workPanicked   bool
	returned       time.Time
	err            error
	panicked       any

	mu           sync.Mutex
	events       map[string][]guard.Event
	holds        map[string][]*chaosHold // by guard
	shadows      []*chaosHold
	under        map[string]bool // the guards whose locks were held when the work began
	lockPanicked bool
	kept         []context.Context // by observers and the fallback of the first guard
}

// keep keeps what somebody started with, by the guard of that name.
func (r *history) keep(ctx context.Context, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name == r.names[0] { // those behind it in a Stack have the context of its work
		r.kept = append(r.kept, ctx)
	}
}

func (r *history) add(e guard.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events == nil {
		r.events = make(map[string][]guard.Event)
	}
	r.events[e.Guard] = append(r.events[e.Guard], e)
}

func (r *history) begin(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran++
	r.under = make(map[string]bool)
	for name, holds := range r.holds {
		for _, h := range holds {
			h.used = true
			r.under[name] = r.under[name] || h.released == 0
		}
	}
	if cause := context.Cause(ctx); errors.Is(cause, guard.ErrDraining) {
		r.play.t.Errorf("%v: the work runs with a context that ended with %v", r.names, cause)
	}
	for _, name := range r.names {
		if r.depth == 0 && guard.Held(ctx, name) != r.under[name] {
			r.play.t.Errorf("%v: Held of %s = %v, but under its locks: %v", r.names, name, !r.under[name], r.under[name])
		}
	}
}

// end notes for how long the locks are still good when the work returns.
func (r *history) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workErr, r.returned = err, time.Now()
	for _, holds := range r.holds {
		for _, h := range holds {
			h.used, h.left = false, h.Remaining()
		}
	}
}

// loss reports whether a lock of the guard was over when the work returned, and whether a release has answered so while
// all of them were good.
func (r *history) loss(name string) (lost, answered bool) {
	good := guard.Forever
	for _, h := range r.holds[name] {
		good = min(good, h.left)
	}
	for _, h := range r.holds[name] {
		answered = answered || h.gone && (good == guard.Forever || h.answered.Before(r.returned.Add(good)))
	}
	return good == 0, answered
}

// check compares what the guards have said with what happened.
func (r *history) check(t *testing.T) {
	for name, holds := range r.holds {
		for _, h := range holds {
			if h.released != 1 {
				t.Errorf("%s: a lock was released %d times", name, h.released)
			}
		}
	}
	for _, h := range r.shadows {
		if h.released != 1 {
			t.Errorf("%s: a shadow was released %d times", h.guard, h.released)
		}
	}
	if r.ran > 1 || r.fallbacks > 1 || r.ran > 0 && r.fallbacks > 0 {
		t.Errorf("%v: the work ran %d times, the fallback %d times", r.names, r.ran, r.fallbacks)
	}
	for i, name := range r.names {
		switch n := len(r.events[name]); {
		case n == 1:
			if why := r.contradicts(name, r.events[name][0]); why != "" {
				lost, answered := r.loss(name)
				t.Errorf("%s: %s: %+v\nof a call that ran %d times (under its locks: %v, over when it returned: %v, so answered: %v), with %v, and returned %v, panic %v",
					name, why, r.events[name][0], r.ran, r.under[name], lost, answered, r.workErr, r.err, r.panicked)
			}
		case n > 1, i == 0, r.ran > 0:
			t.Errorf("%s: %d events", name, n)
		}
	}
}

// contradicts says what is wrong with the event of a guard, if anything is.
func (r *history) contradicts(name string, e guard.Event) string {
	ran, under := r.ran > 0, r.ran > 0 && r.under[name]
	lost, answered := r.loss(name)
	// Behind another guard, or in front of one, an error is not the last word. Neither is one before a panic of the locker.
	same := e.Err == r.err || len(r.names) > 1 && (ran || name != r.names[0]) || r.panicked != nil && r.lockPanicked
	want := func(holds bool, why string) string {
		if holds {
			return ""
		}
		return why
	}
	refused := func(sentinel error) string {
		return want(!ran && r.fallbacks == 0 && errors.Is(e.Err, sentinel) && !errors.Is(e.Err, guard.ErrLost) && same, "refused for another reason")
	}
	if under && lost && e.Outcome != guard.OutcomeLost && e.Outcome != guard.OutcomeMaxHold && e.Outcome != guard.OutcomePanic {
		return "a loss was not reported"
	}
	switch e.Outcome {
	case guard.OutcomeOK:
		return want(under && r.workErr == nil && !r.workPanicked && e.Err == nil, "not OK")
	case guard.OutcomeError:
		return want(under && e.Err != nil && (r.workErr != nil || len(r.names) > 1) && same, "not the work's error")
	case guard.OutcomeLost, guard.OutcomeMaxHold:
		return want(under && (lost || answered) && errors.Is(e.Err, guard.ErrLost) && (r.workErr == nil || len(r.names) > 1 || errors.Is(e.Err, r.workErr)), "not lost")
	case guard.OutcomePanic:
		return want((r.workPanicked || r.lockPanicked) && r.panicked != nil, "no panic")
	case guard.OutcomeConditionFalse, guard.OutcomeUnlocked, guard.OutcomeOff, guard.OutcomeShadow:
		return want(ran && !under && same, "not without the lock")
	case guard.OutcomeSkipped:
		return want(!ran && r.fallbacks == 0 && e.Err == nil && r.err == nil, "not skipped")
	case guard.OutcomeFallback:
		return want(!ran && (r.fallbacks == 1 && r.err == nil || r.lockPanicked), "no fallback")
	case guard.OutcomeBusy:
		return refused(guard.ErrBusy)
	case guard.OutcomeOutage:
		if errors.Is(e.Err, lock.ErrRefused) || errors.Is(e.Err, lock.ErrReplaced) {
			return "it passes for an outage"
		}
		return refused(guard.ErrOutage)
	case guard.OutcomeDraining:
		if r.outer != nil && r.outer.inside {
			return "refused under a call that was let go on"
		}
		return want(!ran && r.fallbacks == 0 && errors.Is(e.Err, guard.ErrDraining) && same, "not draining")
	case guard.OutcomeFault:
		return refused(guard.ErrFault)
	case guard.OutcomeUnsupported:
		return refused(guard.ErrUnsupported)
	case guard.OutcomeReplaced:
		return want(errors.Is(e.Err, guard.ErrReplaced) && !errors.Is(e.Err, guard.ErrFault) && (!ran || r.workErr != nil), "not replaced")
	case guard.OutcomeCanceled:
		return want(!ran && e.Err != nil && same, "not canceled")
	}
	return "an outcome that nobody expects"
}
