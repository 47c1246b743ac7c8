package guardtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

var errDown = errors.New("dial: connection refused")

// TestFaults takes one lock under each fault.
func TestFaults(t *testing.T) {
	request := lock.Request{Key: "a", Wait: time.Second}
	for _, tt := range []struct {
		name    string
		faults  []guardtest.Fault
		wait    time.Duration
		err     error         // of Acquire
		took    time.Duration // by Acquire
		lost    time.Duration // when the context ended after that; 0 is never
		release error
	}{
		{name: "none", wait: time.Second},
		{name: "busy for longer", faults: []guardtest.Fault{guardtest.BusyFor(2 * time.Second)}, wait: time.Second, err: lock.ErrBusy, took: time.Second},
		{name: "busy for less", faults: []guardtest.Fault{guardtest.BusyFor(time.Second)}, wait: 2 * time.Second, took: time.Second},
		{name: "busy, waiting for ever", faults: []guardtest.Fault{guardtest.BusyFor(time.Second)}, wait: -1, took: time.Second},
		{name: "busy, and nobody waits", faults: []guardtest.Fault{guardtest.BusyFor(time.Second)}, err: lock.ErrBusy},
		{name: "busy for ever", faults: []guardtest.Fault{guardtest.Busy()}, wait: time.Second, err: lock.ErrBusy, took: time.Second},
		{name: "busy for another key", faults: []guardtest.Fault{guardtest.On(guardtest.Busy(), "b")}, wait: time.Second},
		{name: "outage", faults: []guardtest.Fault{guardtest.Outage(errDown)}, err: errDown},
		{name: "outage until now", faults: []guardtest.Fault{guardtest.OutageFor(0, errDown)}},
		{name: "outage for a while", faults: []guardtest.Fault{guardtest.OutageFor(1, errDown)}, err: errDown},
		{name: "slow", faults: []guardtest.Fault{guardtest.Slow(time.Second)}, took: time.Second},
		{name: "deaf", faults: []guardtest.Fault{guardtest.Deaf(time.Second)}, took: time.Second},
		{name: "lost", faults: []guardtest.Fault{guardtest.LostAfter(time.Second)}, lost: time.Second, release: lock.ErrLost},
		{name: "lost unnoticed", faults: []guardtest.Fault{guardtest.LostUnnoticed()}, release: lock.ErrLost},
		{name: "release fails", faults: []guardtest.Fault{guardtest.ReleaseFails(errDown)}, release: errDown},
		{name: "slow, then busy", faults: []guardtest.Fault{guardtest.Slow(time.Second), guardtest.BusyFor(2 * time.Second)}, wait: time.Second, took: 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := guardtest.New(tt.faults...)
			start := time.Now()
			r := request
			r.Wait = tt.wait
			h, err := l.Acquire(t.Context(), r)
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || time.Since(start) != tt.took {
				t.Fatalf("%s: Acquire = %v after %v, want %v after %v", tt.name, err, time.Since(start), tt.err, tt.took)
			}
			if err != nil {
				return
			}
			start = time.Now()
			select {
			case <-h.Context().Done():
				if time.Since(start) != tt.lost || !errors.Is(context.Cause(h.Context()), lock.ErrLost) {
					t.Errorf("%s: lost after %v for %v, want %v", tt.name, time.Since(start), context.Cause(h.Context()), tt.lost)
				}
			case <-time.After(time.Minute):
				if tt.lost != 0 {
					t.Errorf("%s: not lost", tt.name)
				}
			}
			if err := h.Release(t.Context()); !errors.Is(err, tt.release) || (err == nil) != (tt.release == nil) {
				t.Errorf("%s: Release = %v, want %v", tt.name, err, tt.release)
			}
			l.WantNothingHeld(t)
			l.WantKeys(t, "a")
		})
	}
}

func TestFaultsEndWithTheCaller(t *testing.T) {
	for _, f := range []guardtest.Fault{guardtest.Busy(), guardtest.BusyFor(time.Hour), guardtest.Slow(time.Hour)} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			if _, err := guardtest.New(f).Acquire(ctx, lock.Request{Key: "a", Wait: -1}); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
				t.Errorf("Acquire = %v after %v", err, time.Since(start))
			}
		})
	}
}

func TestSetHealsAndLoseLoses(t *testing.T) {
	l := guardtest.New(guardtest.Outage(errDown))
	if _, err := l.Acquire(t.Context(), lock.Request{Key: "a"}); !errors.Is(err, errDown) {
		t.Fatalf("Acquire = %v", err)
	}
	l.Set()
	h, err := l.Acquire(t.Context(), lock.Request{Key: "a", Kind: lock.Fenced})
	if err != nil {
		t.Fatal(err)
	}
	if token, ok := h.(interface{ Token() int64 }); !ok || token.Token() == 0 {
		t.Error("the token is gone")
	}
	if !l.Lose("a") || l.Lose("b") || !errors.Is(context.Cause(h.Context()), lock.ErrLost) {
		t.Errorf("Lose: cause %v", context.Cause(h.Context()))
	}
	if err := l.Await(t.Context(), guardtest.Lost, "a", 1); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Await(ctx, guardtest.Lost, "a", 2); !errors.Is(err, context.Canceled) {
		t.Errorf("Await = %v", err)
	}
}

// failures is a testing.TB that keeps what is reported.
type failures struct {
	testing.TB
	texts []string
}

func (f *failures) Helper() {}
func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

// told calls assert and returns what it reported.
func told(assert func(testing.TB)) string {
	f := new(failures)
	assert(f)
	return strings.Join(f.texts, "; ")
}

// TestAssertionsFail holds that each assertion notices what it is for.
func TestAssertionsFail(t *testing.T) {
	l := guardtest.Record(memlock.New())
	a, err := l.Acquire(t.Context(), lock.Request{Key: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		assert func(testing.TB)
		want   string
	}{
		{func(t testing.TB) { l.WantKeys(t, "a") }, ""},
		{func(t testing.TB) { l.WantKeys(t, "b") }, `locks taken: ["a"], want ["b"]`},
		{func(t testing.TB) { l.WantHeld(t, "a") }, ""},
		{func(t testing.TB) { l.WantHeld(t) }, `locks held: ["a"], want []`},
		{func(t testing.TB) { l.WantNothingHeld(t) }, `locks not released: ["a"]`},
		{func(t testing.TB) { _ = a.Release(t.Context()); _ = a.Release(t.Context()); l.WantNothingHeld(t) }, `lock "a" was released 1 times too often`},
	} {
		if got := told(func(tb testing.TB) { tt.assert(&contextual{tb, t}) }); got != tt.want {
			t.Errorf("reported %q, want %q", got, tt.want)
		}
	}
}

// contextual is a testing.TB with the context of a real one.
type contextual struct {
	testing.TB
	real testing.TB
}

func (c *contextual) Context() context.Context { return c.real.Context() }

type order struct{ ID string }

// nest makes guards of these names, the first around the second and so on, and calls the outermost.
func nest(t *testing.T, l lock.Locker, events *guardtest.Events, id string, names ...string) {
	t.Helper()
	f := func(context.Context, order) (struct{}, error) { return struct{}{}, nil }
	for _, name := range slices.Backward(names) {
		g := guard.Must(guard.New(l, guard.Name(name), guard.Key(name+":#{req.ID}"), guard.Observe(events.Observe)))
		f = guard.Must(guard.Func(g, f))
	}
	if _, err := f(t.Context(), order{id}); err != nil {
		t.Fatal(err)
	}
}

// TestOppositeOrders holds that guards and keys which can wait for each other are found, though nothing waited here.
func TestOppositeOrders(t *testing.T) {
	for _, tt := range []struct {
		name         string
		calls        [][]string // id, then guards from the outside in
		keys, guards string     // what is reported
	}{
		{"one order", [][]string{{"1", "order", "stock"}, {"2", "order", "stock"}, {"1", "stock"}}, "", ""},
		{"opposite orders", [][]string{{"1", "order", "stock"}, {"1", "stock", "order"}},
			"keys are taken in opposite orders: order:1 > stock:1 > order:1", "guards are taken in opposite orders: order > stock > order"},
		{"with other keys", [][]string{{"1", "order", "stock"}, {"2", "stock", "order"}},
			"", "guards are taken in opposite orders: order > stock > order"},
		{"around a third", [][]string{{"1", "a", "b"}, {"1", "b", "c"}, {"1", "c", "a"}},
			"keys are taken in opposite orders: a:1 > b:1 > c:1 > a:1", "guards are taken in opposite orders: a > b > c > a"},
		{"re-entry", [][]string{{"1", "a", "a"}}, "", ""},
	} {
		l, events := guardtest.New(), new(guardtest.Events)
		for _, c := range tt.calls {
			nest(t, l, events, c[0], c[1:]...)
		}
		if got := told(l.WantOneOrder); got != tt.keys {
			t.Errorf("%s: keys: %q, want %q", tt.name, got, tt.keys)
		}
		if got := told(events.WantOneOrder); got != tt.guards {
			t.Errorf("%s: guards: %q, want %q", tt.name, got, tt.guards)
		}
		l.WantNothingHeld(t)
	}
}

// Replace is that of the locker behind, if it has one.
func TestReplacePassesOn(t *testing.T) {
	l := guardtest.New()
	turn, leave, err := l.Replace(t.Context(), lock.Request{Key: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	if _, leave, err = l.Replace(t.Context(), lock.Request{Key: "a"}); err != nil {
		t.Fatal(err)
	}
	defer leave()
	if cause := context.Cause(turn); !errors.Is(cause, lock.ErrReplaced) {
		t.Errorf("the older turn ends with %v, want ErrReplaced", cause)
	}
	bare := guardtest.Record(guardtest.Func(memlock.New().Acquire))
	if _, _, err := bare.Replace(t.Context(), lock.Request{Key: "a"}); !errors.Is(err, lock.ErrUnsupported) {
		t.Errorf("Replace without a way to = %v, want ErrUnsupported", err)
	}
}

// ServesLevels is that of the locker behind, if it has one.
func TestServesLevelsPassesOn(t *testing.T) {
	type server interface{ ServesLevels(keys ...string) error }
	bare := guardtest.Record(struct{ lock.Locker }{memlock.New()})
	if err := bare.ServesLevels("a"); !errors.Is(err, lock.ErrUnsupported) {
		t.Errorf("ServesLevels of a locker without it = %v, want ErrUnsupported", err)
	}
	for _, l := range []lock.Locker{guardtest.New(), guardtest.PassThrough()} {
		if err := l.(server).ServesLevels("a", "b"); err != nil {
			t.Errorf("%T: ServesLevels() = %v", l, err)
		}
		r := lock.Request{Key: "a", Kind: lock.Permit, Limit: 1, Levels: []lock.Level{{Key: "b", Limit: 1}}}
		if _, err := l.Acquire(t.Context(), r); err != nil {
			t.Errorf("%T: Acquire() = %v", l, err)
		}
	}
}

func TestPassThrough(t *testing.T) {
	l, events := guardtest.PassThrough(), new(guardtest.Events)
	nest(t, l, events, "1", "a", "b")
	events.WantOutcomes(t, "", guard.OutcomeOK, guard.OutcomeOK)
	h, err := l.Acquire(t.Context(), lock.Request{Key: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Acquire(t.Context(), lock.Request{Key: "a"}); err != nil {
		t.Errorf("second Acquire = %v", err)
	}
	if err := errors.Join(h.Release(t.Context()), h.Context().Err()); !errors.Is(err, context.Canceled) {
		t.Errorf("Release: %v", err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("second Release = %v", err)
	}
	settle := guard.Must(guard.Func(guard.Must(guard.New(l, guard.Name("g"), guard.Key("a"), guard.OneKey(), guard.Busy(guard.Replace))),
		func(ctx context.Context, again func() error) (string, error) {
			return "", errors.Join(again(), ctx.Err())
		}))
	once := func() error {
		_, err := settle(t.Context(), func() error { return nil })
		return err
	}
	if _, err := settle(t.Context(), once); err != nil {
		t.Errorf("a newer call beside an older one: %v", err)
	}
}

// bare is a hold without more methods than it must have.
type bare struct{ lock.Hold }

// TestRecordedHoldsHaveTheirOwnMethods holds that a record neither hides nor invents what a hold can do.
func TestRecordedHoldsHaveTheirOwnMethods(t *testing.T) {
	for _, tt := range []struct {
		kind          lock.Kind
		bare          bool
		keeps, fenced bool
	}{
		{lock.Exclusive, false, true, false}, {lock.Fenced, false, true, true}, {lock.Fenced, true, false, false},
	} {
		inner := memlock.New()
		l := guardtest.Record(guardtest.Func(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
			h, err := inner.Acquire(ctx, r)
			if tt.bare {
				h = bare{h}
			}
			return h, err
		}))
		h, err := l.Acquire(t.Context(), lock.Request{Key: "a", Kind: tt.kind})
		if err != nil {
			t.Fatal(err)
		}
		_, fenced := h.(interface{ Token() int64 })
		k, keeps := h.(interface {
			Keep(context.Context, time.Duration) error
		})
		if keeps != tt.keeps || fenced != tt.fenced {
			t.Errorf("%v, bare %v: Keep %v, Token %v", tt.kind, tt.bare, keeps, fenced)
		}
		if !keeps {
			continue
		}
		if err := k.Keep(t.Context(), time.Hour); err != nil {
			t.Error(err)
		}
		l.WantNothingHeld(t)
		if err := inner.Peek(t.Context(), lock.Request{Key: "a"}); !errors.Is(err, lock.ErrBusy) {
			t.Errorf("the key is not kept: %v", err)
		}
	}
}

// TestLostAfterTakesNobodyElsesLock has a lock that ends with its lease before it would be taken away, and a second caller by then.
func TestLostAfterTakesNobodyElsesLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := guardtest.New(guardtest.LostAfter(2 * time.Second))
		if _, err := l.Acquire(t.Context(), lock.Request{Key: "k", Lease: time.Second}); err != nil {
			t.Fatal(err)
		}
		second, err := l.Acquire(t.Context(), lock.Request{Key: "k", Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		<-second.Context().Done()
		if held := time.Since(start); held != 2*time.Second {
			t.Errorf("the second caller's lock was taken away after %v, want 2s", held)
		}
	})
}
