package scenario

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/lock"
)

// row is one scenario. Unless it has a script, it is one call.
type row struct {
	name    string
	faults  []guardtest.Fault
	options []guard.Option
	key     string // in place of order:#{FACT}; FACT stands for the driver's Fact
	when    string // likewise
	noID    bool   // the call has an empty id
	work    func(ctx context.Context, s *scene) error
	caller  func(context.Context) (context.Context, context.CancelFunc)
	script  func(s *scene)

	fallback bool // mounted with one

	want   Class // of the only call
	ran    int   // how often the work ran
	took   time.Duration
	keys   []string // of the locks acquired, in order
	events []event  // by time
}

// event has the compared fields of a guard.Event. Times are exact, as the clock is a bubble's.
type event struct {
	outcome    string
	keys       int
	wait, held time.Duration
	refused    error  // a sentinel that Refused matches
	release    error  // likewise
	fact       string // Fact; FACT stands for the driver's
}

// scene is one play of a row.
type scene struct {
	testing.TB
	driver   Driver
	row      *row
	locker   *guardtest.Locker
	registry *guard.Registry
	call     Call
	events   guardtest.Events
	ran      int
}

// play plays r in a bubble, and compares what happened with what should have.
func play(t *testing.T, d Driver, r *row) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, d, r)
		start := time.Now()
		if r.script != nil {
			r.script(s)
		} else {
			s.one()
		}
		if took := time.Since(start); took != r.took {
			t.Errorf("took %v, want %v", took, r.took)
		}
		synctest.Wait()
		if s.ran != r.ran {
			t.Errorf("the work ran %d times, want %d", s.ran, r.ran)
		}
		if got := s.locker.Keys(); !slices.Equal(got, r.keys) {
			t.Errorf("locks of %q, want %q", got, r.keys)
		}
		s.locker.WantNothingHeld(t)
		s.compare(r.events)
	})
}

func newScene(t *testing.T, d Driver, r *row) *scene {
	registry, err := guard.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{TB: t, driver: d, row: r, locker: guardtest.New(r.faults...), registry: registry}
	key := r.key
	if key == "" {
		key = "order:#{FACT}"
	}
	opts := []guard.Option{
		guard.FromSpec(guard.Spec{
			Name: "order.settle", Key: strings.ReplaceAll(key, "FACT", d.Fact), When: strings.ReplaceAll(r.when, "FACT", d.Fact),
		}),
		guard.Observe(s.events.Observe), guard.In(registry),
	}
	mount := d.Mount
	if r.fallback {
		mount = d.Fallback
	}
	s.call = mount(t, s.locker, append(opts, r.options...), func(ctx context.Context) error {
		s.ran++
		if r.work == nil {
			return nil
		}
		return r.work(ctx, s)
	})
	return s
}

// one makes the only call.
func (s *scene) one() {
	ctx := s.Context()
	if s.row.caller != nil {
		var end context.CancelFunc
		ctx, end = s.row.caller(ctx)
		defer end()
	}
	id := "7"
	if s.row.noID {
		id = ""
	}
	s.expect(ctx, id, s.row.want)
}

// expect makes a call.
func (s *scene) expect(ctx context.Context, id string, want Class) {
	s.Helper()
	if want == Skipped && s.driver.SilentSkip {
		want = Done
	}
	got := s.made(ctx, id)
	if s.driver.Client && ctx.Err() != nil && want == Done {
		want = Gone
	}
	if got != want {
		s.Errorf("call of %q: %s, want %s", id, got, want)
	}
}

func (s *scene) made(ctx context.Context, id string) (c Class) {
	defer func() {
		if p := recover(); p == any(errPanic) {
			c = Panicked
		} else if p != nil {
			panic(p)
		}
	}()
	return s.call(ctx, id)
}

// errPanic is the value of the work's panic.
var errPanic = errors.New("panic of the work")

// begin starts a call of id 7, and returns when it sleeps or has ended. The result waits for its end.
func (s *scene) begin(want Class) (end func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.expect(s.Context(), "7", want)
	}()
	synctest.Wait()
	return func() { <-done }
}

func (s *scene) compare(want []event) {
	s.Helper()
	all := s.events.All()
	if len(all) != len(want) {
		s.Fatalf("events %+v, want %+v", all, want)
	}
	for i, e := range all {
		w := want[i]
		if e.Guard != "order.settle" || e.Outcome != w.outcome || e.Keys != w.keys || e.Wait != w.wait || e.Held != w.held {
			s.Errorf("event %d: %+v, want %+v", i, e, w)
		}
		if !matches(e.Refused, w.refused) || !matches(e.Release, w.release) {
			s.Errorf("event %d: refused %v, release %v, want %v and %v", i, e.Refused, e.Release, w.refused, w.release)
		}
		if fact := strings.ReplaceAll(w.fact, "FACT", s.driver.Fact); e.Fact != fact {
			s.Errorf("event %d: fact %q, want %q", i, e.Fact, fact)
		}
	}
}

func matches(err, want error) bool { return errors.Is(err, want) && (err == nil) == (want == nil) }

// Helpers for rows.

func deadline(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
}

func leaves(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(d, cancel)
		return ctx, cancel
	}
}

// heeds is work of d that ends with its context.
func heeds(d time.Duration) func(context.Context, *scene) error {
	return func(ctx context.Context, _ *scene) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ignores is work of d that does not look at its context.
func ignores(d time.Duration) func(context.Context, *scene) error {
	return func(context.Context, *scene) error { <-time.After(d); return nil }
}

// longer is work that takes a second, and one more for each call before.
func longer(_ context.Context, s *scene) error {
	<-time.After(time.Duration(s.ran) * time.Second)
	return nil
}

// lost is work of d that returns with nil, but whose context must have ended with a loss by then.
func lost(d time.Duration) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		<-time.After(d)
		if !errors.Is(context.Cause(ctx), lock.ErrLost) {
			s.Errorf("cause in the work = %v, want ErrLost", context.Cause(ctx))
		}
		return nil
	}
}
