package guard_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// Order is the request of these tests.
type Order struct {
	ID    string
	Items []string
	Free  bool
}

// spy is a memlock that keeps a log, and fails where it is told to.
type spy struct {
	*memlock.Locker
	refuse  map[string]error          // by key: the answer of Acquire, in place of a lock
	after   func(lock.Request)        // called when Acquire got a lock
	failing map[string]error          // by key: the answer of Release, though the lock was given back
	release func(ctx context.Context) // called by Release

	mu       sync.Mutex
	log      []string
	requests []lock.Request // without their Holder, which is the guard of each
}

func newSpy() *spy { return &spy{Locker: memlock.New()} }

func (s *spy) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	s.note("acquire "+r.Key, r)
	if err := s.refuse[r.Key]; err != nil {
		return nil, err
	}
	hold, err := s.Locker.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	if s.after != nil {
		s.after(r)
	}
	return &spyHold{Hold: hold, spy: s, key: r.Key}, nil
}

func (s *spy) note(what string, r ...lock.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, what)
	for _, r := range r {
		r.Holder = ""
		s.requests = append(s.requests, r)
	}
}

// inAnyOrder sorts what happens at the same time: the releases of one call.
func inAnyOrder(log []string) []string {
	log = slices.Clone(log)
	for start := 0; start < len(log); start++ {
		end := start
		for end < len(log) && strings.HasPrefix(log[end], "release ") {
			end++
		}
		slices.Sort(log[start:end])
		start = max(start, end-1)
	}
	return log
}

// check fails t if the log is not want, or if one of keys is still held.
func (s *spy) check(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(inAnyOrder(s.log), inAnyOrder(want)) {
		t.Errorf("locker saw %q, want %q", s.log, want)
	}
	for _, r := range s.requests {
		hold, err := s.Locker.Acquire(t.Context(), lock.Request{Key: r.Key})
		if err != nil {
			t.Errorf("afterwards, %s: %v", r.Key, err)
			continue
		}
		_ = hold.Release(t.Context())
	}
}

type spyHold struct {
	lock.Hold
	spy *spy
	key string
}

func (h *spyHold) Release(ctx context.Context) error {
	h.spy.note("release " + h.key)
	err := h.Hold.Release(ctx)
	if h.spy.release != nil {
		h.spy.release(ctx)
	}
	return cmp.Or(h.spy.failing[h.key], err)
}

type work = func(context.Context, Order) (string, error)

// guarded puts a guard named "order.settle" with the key of Order.ID in front of fn. Its events go to the result.
func guarded(t *testing.T, l lock.Locker, fn work, opts ...guard.Option) (work, *events) {
	t.Helper()
	seen := new(events)
	g, err := guard.New(l, append([]guard.Option{
		guard.FromSpec(guard.Spec{Name: "order.settle", Key: "order:#{req.ID}"}), guard.Observe(seen.add),
	}, opts...)...)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	f, err := guard.Func(g, fn)
	if err != nil {
		t.Fatalf("Func: %v", err)
	}
	return f, seen
}

// events is what an observer saw.
type events struct {
	mu  sync.Mutex
	all []guard.Event
}

func (e *events) add(_ context.Context, event guard.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

// outcomes returns how the calls ended so far.
func (e *events) outcomes() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for _, event := range e.all {
		all = append(all, event.Outcome)
	}
	return all
}

// only returns the event of the only call.
func (e *events) only(t *testing.T) guard.Event {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.all) != 1 {
		t.Fatalf("%d events, want 1: %+v", len(e.all), e.all)
	}
	return e.all[0]
}

// settled is work that succeeds.
func settled(context.Context, Order) (string, error) { return "settled", nil }
