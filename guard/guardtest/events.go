package guardtest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
)

// Events records how guarded calls ended. Its zero value is ready, and is given to guards as an observer:
//
//	var events guardtest.Events
//	g, err := guard.New(locker, guard.Key(…), guard.Observe(events.Observe))
//
// It is safe for concurrent use.
type Events struct {
	mu       sync.Mutex
	all      []guard.Event
	contexts []context.Context // of all, by index
}

// Observe records e.
func (e *Events) Observe(ctx context.Context, event guard.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
	e.contexts = append(e.contexts, ctx)
}

// All returns the events so far. A nested call is before the one around it, because it ends first.
func (e *Events) All() []guard.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

// Outcomes returns how the calls of the named guard ended so far; an empty name is any guard.
func (e *Events) Outcomes(name string) []string {
	var outcomes []string
	for _, event := range e.All() {
		if name == "" || event.Guard == name {
			outcomes = append(outcomes, event.Outcome)
		}
	}
	return outcomes
}

// WantOutcomes fails t unless the calls of the named guard ended like this, in this order; an empty name is any guard.
func (e *Events) WantOutcomes(t testing.TB, name string, outcomes ...string) {
	t.Helper()
	if got := e.Outcomes(name); !slices.Equal(got, outcomes) {
		t.Errorf("calls of guard %q ended as %q, want %q", name, got, outcomes)
	}
}

// Only returns the only event so far, and fails t if there are none or several.
func (e *Events) Only(t testing.TB) guard.Event {
	t.Helper()
	all := e.All()
	if len(all) != 1 {
		t.Fatalf("%d events, want 1: %+v", len(all), all)
	}
	return all[0]
}

// WantOneOrder fails t if guards were taken under one another in opposite orders: stock under order in one call, and order
// under stock in another. Whatever their keys were in this test, in production two such calls can meet, and then wait for
// each other until one of them gives up.
func (e *Events) WantOneOrder(t testing.TB) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	names := make(map[string]bool)
	for _, event := range e.all {
		names[event.Guard] = true
	}
	var o orders
	for i, event := range e.all {
		if event.Keys == 0 {
			continue
		}
		for name := range names {
			if guard.Held(e.contexts[i], name) {
				o.add(name, event.Guard)
			}
		}
	}
	for _, circle := range o.circles() {
		t.Errorf("guards are taken in opposite orders: %s", circle)
	}
}
