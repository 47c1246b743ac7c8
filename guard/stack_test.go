package guard_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// stacked puts three guards around fn: tenant, user and order, each with its options.
func stacked(t *testing.T, l lock.Locker, fn work, tenant, user, order []guard.Option) (work, map[string]*events) {
	t.Helper()
	seen := map[string]*events{}
	member := func(name, key string, opts []guard.Option) *guard.Guard {
		seen[name] = new(events)
		return guard.Must(guard.New(l, append([]guard.Option{guard.Name(name), guard.Key(key), guard.Observe(seen[name].add)}, opts...)...))
	}
	g, err := guard.Stack(
		member("tenant", "tenant", append(tenant, guard.OneKey())), member("user", "#{req.Items}", user), member("order", "order:#{req.ID}", order))
	if err != nil {
		t.Fatal(err)
	}
	f, err := guard.Func(g, fn)
	if err != nil {
		t.Fatal(err)
	}
	return f, seen
}

func TestStack(t *testing.T) {
	l := newSpy()
	own := errors.New("own")
	settle, seen := stacked(t, l, func(ctx context.Context, _ Order) (string, error) {
		for _, name := range []string{"tenant", "user", "order"} {
			if err := guard.RequireHeld(ctx, name); err != nil {
				t.Errorf("within: %v", err)
			}
		}
		return "some", own
	}, nil, nil, nil)
	if got, err := settle(t.Context(), Order{ID: "7", Items: []string{"b", "a"}}); got != "some" || err != own {
		t.Errorf("settle = %q, %v", got, err)
	}
	l.check(t, "acquire tenant", "acquire a", "acquire b", "acquire order:7", "release order:7", "release b", "release a", "release tenant")
	for name, e := range seen {
		if got := e.only(t); got.Guard != name || got.Outcome != guard.OutcomeError || got.Err != own {
			t.Errorf("%s: event %+v", name, got)
		}
	}
}

// The guards of TestStackRollsBack take these keys.
var stackKeys = []string{"tenant", "a", "order:7"}

var skip, unlocked = guard.Busy(guard.Skip), guard.Busy(guard.RunUnlocked)

// rollBacks are the ways in which a stack of three can lack a lock.
var rollBacks = []struct {
	busy     string // the key that another holds
	policy   guard.Option
	fallback bool
	result   string
	err      error
	outcomes []string // of tenant, user and order; of those that the call came to
	held     []string // while the work runs, or the fallback
}{
	{"", nil, true, "settled", nil, []string{"ok", "ok", "ok"}, stackKeys},
	{"order:7", nil, false, "", guard.ErrBusy, []string{"busy", "busy", "busy"}, nil},
	{"order:7", skip, false, "", nil, []string{"skipped", "skipped", "skipped"}, nil},
	{"order:7", unlocked, false, "settled", nil, []string{"ok", "ok", "unlocked"}, []string{"tenant", "a"}},
	{"order:7", nil, true, "fallback", nil, []string{"fallback", "fallback", "fallback"}, nil},
	{"a", nil, false, "", guard.ErrBusy, []string{"busy", "busy"}, nil},
	{"a", skip, false, "", nil, []string{"skipped", "skipped"}, nil},
	{"a", unlocked, false, "settled", nil, []string{"ok", "unlocked", "ok"}, []string{"tenant", "order:7"}},
	{"a", nil, true, "fallback", nil, []string{"fallback", "fallback"}, nil},
	{"tenant", nil, false, "", guard.ErrBusy, []string{"busy"}, nil},
	{"tenant", unlocked, false, "settled", nil, []string{"unlocked", "ok", "ok"}, []string{"a", "order:7"}},
	{"tenant", nil, true, "fallback", nil, []string{"fallback"}, nil},
}

// TestStackRollsBack is a lock that can't be had: nothing runs under the others, and they are free when anything runs
// instead.
func TestStackRollsBack(t *testing.T) {
	for _, tt := range rollBacks {
		l := memlock.New()
		if tt.busy != "" {
			if _, err := l.Acquire(t.Context(), lock.Request{Key: tt.busy}); err != nil {
				t.Fatal(err)
			}
		}
		check := func(what string) {
			for _, key := range stackKeys {
				hold, err := l.Acquire(context.Background(), lock.Request{Key: key})
				if held := err != nil; key != tt.busy && held != slices.Contains(tt.held, key) {
					t.Errorf("%s busy, %v: while the %s runs, %s is held: %v", tt.busy, tt.outcomes, what, key, held)
				}
				if err == nil {
					_ = hold.Release(context.Background())
				}
			}
		}
		var first, opts []guard.Option
		if tt.policy != nil {
			first, opts = []guard.Option{tt.policy}, []guard.Option{tt.policy}
		}
		if tt.fallback {
			first = append(first, guard.Fallback(func(_ context.Context, _ Order, err error) (string, error) {
				if !errors.Is(err, guard.ErrBusy) {
					t.Errorf("fallback for %v", err)
				}
				check("fallback")
				return "fallback", nil
			}))
		}
		settle, seen := stacked(t, l, func(context.Context, Order) (string, error) {
			check("work")
			return "settled", nil
		}, first, opts, opts)
		got, err := settle(t.Context(), Order{ID: "7", Items: []string{"a"}})
		if got != tt.result || !errors.Is(err, tt.err) {
			t.Errorf("%s busy, %v: settle = %q, %v, want %q, %v", tt.busy, tt.outcomes, got, err, tt.result, tt.err)
		}
		var outcomes []string
		for _, name := range []string{"tenant", "user", "order"} {
			outcomes = append(outcomes, seen[name].outcomes()...)
		}
		if !slices.Equal(outcomes, tt.outcomes) {
			t.Errorf("%s busy: outcomes %v, want %v", tt.busy, outcomes, tt.outcomes)
		}
		if e, ok := errors.AsType[*guard.Error](err); ok && !strings.HasPrefix(tt.busy, map[string]string{"tenant": "tenant", "user": "a", "order": "order"}[e.Guard]) {
			t.Errorf("%s busy: %v names another guard", tt.busy, err)
		}
		tt.held = nil
		check("next call")
	}
}

// What ends a call before its work ends the whole stack; a condition that is false passes one guard.
func TestStackWithoutWork(t *testing.T) {
	l := newSpy()
	settle, seen := stacked(t, l, settled, nil, []guard.Option{guard.When("!req.Free")}, []guard.Option{guard.HoldAtLeast(time.Minute)})
	if _, err := settle(t.Context(), Order{Items: []string{"a"}}); !errors.Is(err, guard.ErrKey) {
		t.Errorf("settle without an ID: %v, want ErrKey", err)
	}
	l.check(t, "acquire tenant", "acquire a", "release a", "release tenant")
	if _, err := settle(t.Context(), Order{ID: "7", Free: true}); !errors.Is(err, guard.ErrUnsupported) {
		t.Errorf("settle with a lock that can't be kept: %v, want ErrUnsupported", err)
	}
	for name, want := range map[string][]string{"tenant": {"key", "unsupported"}, "user": {"key", "unsupported"}, "order": {"key", "unsupported"}} {
		if got := seen[name].outcomes(); !slices.Equal(got, want) {
			t.Errorf("%s: outcomes %v, want %v", name, got, want)
		}
	}
	if e := seen["tenant"].all[0]; e.Fact != "req.ID" {
		t.Errorf("event %+v does not name the fact", e)
	}
}

// A guard that keeps its lock after success gives it back if the work has not run.
func TestStackThatKeepsIsRolledBack(t *testing.T) {
	l := memlock.New()
	if _, err := l.Acquire(t.Context(), lock.Request{Key: "order:7"}); err != nil {
		t.Fatal(err)
	}
	settle, _ := stacked(t, l, settled, []guard.Option{guard.HoldAtLeast(time.Hour)}, nil, []guard.Option{guard.Busy(guard.Skip)})
	if _, err := settle(t.Context(), Order{ID: "7", Items: []string{"a"}}); err != nil {
		t.Errorf("settle: %v", err)
	}
	if _, err := l.Acquire(t.Context(), lock.Request{Key: "tenant"}); err != nil {
		t.Errorf("the lock of a call that was skipped is kept: %v", err)
	}
}

func TestStackIsLost(t *testing.T) {
	for _, key := range []string{"tenant", "a", "order:7"} {
		synctest.Test(t, func(t *testing.T) {
			l := memlock.New()
			settle, _ := stacked(t, l, func(ctx context.Context, _ Order) (string, error) {
				l.ForceUnlock(key)
				<-ctx.Done()
				return "some", nil
			}, nil, nil, nil)
			got, err := settle(t.Context(), Order{ID: "7", Items: []string{"a"}})
			if got != "some" || !errors.Is(err, guard.ErrLost) {
				t.Errorf("%s is lost: settle = %q, %v, want ErrLost", key, got, err)
			}
		})
	}
}

func TestStackMistakes(t *testing.T) {
	l := memlock.New()
	named := func(name string, opts ...guard.Option) *guard.Guard {
		return guard.Must(guard.New(l, append([]guard.Option{guard.Name(name), guard.Key(name), guard.OneKey()}, opts...)...))
	}
	a, b := named("a"), named("b")
	for want, guards := range map[string][]*guard.Guard{
		"at least two":         {a},
		"number 2 is a nil":    {a, nil},
		"New did not make":     {a, new(guard.Guard)},
		"twice":                {a, b, a},
		"a Name and a Key":     {a, guard.Must(guard.New(l))},
		"Stack itself":         {a, guard.Must(guard.Stack(named("c"), b))},
		"with the first guard": {a, named("d", guard.Fallback(func(context.Context, Order, error) (string, error) { return "", nil }))},
	} {
		if _, err := guard.Stack(guards...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Stack: %v, want %q", err, want)
		}
	}
}

// What ends a guard while those behind it wait is told as its own, and nothing ran.
func TestStackEndsWhileItWaits(t *testing.T) {
	tests := []struct {
		name    string
		tenant  guard.Option
		end     func(l *memlock.Locker, again func())
		want    error
		outcome string
	}{
		{"lease", guard.Lease(time.Second), nil, guard.ErrBusy, guard.OutcomeBusy},
		{"taken away", guard.Wait(0), func(l *memlock.Locker, _ func()) { l.ForceUnlock("tenant") }, guard.ErrOutage, guard.OutcomeOutage},
		{"replaced", guard.Busy(guard.Replace), func(_ *memlock.Locker, again func()) { again() }, guard.ErrReplaced, guard.OutcomeReplaced},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			l := memlock.New()
			if _, err := l.Acquire(t.Context(), lock.Request{Key: "order:7"}); err != nil {
				t.Fatal(err)
			}
			settle, seen := stacked(t, l, func(_ context.Context, o Order) (string, error) {
				if o.ID == "7" {
					t.Errorf("%s: ran", tt.name)
				}
				return "", nil
			}, []guard.Option{tt.tenant}, nil, []guard.Option{guard.Wait(time.Minute)})
			if tt.end != nil {
				time.AfterFunc(time.Second, func() {
					tt.end(l, func() { _, _ = settle(t.Context(), Order{ID: "8", Items: []string{"a"}}) })
				})
			}
			start := time.Now()
			_, err := settle(t.Context(), Order{ID: "7", Items: []string{"a"}})
			if e, ok := errors.AsType[*guard.Error](err); !ok || e.Guard != "tenant" || e.Err != tt.want || errors.Is(err, guard.ErrLost) {
				t.Errorf("%s: settle: %v, want %v", tt.name, err, tt.want)
			}
			if got := time.Since(start); got != time.Second {
				t.Errorf("%s: waited %v, want 1s", tt.name, got)
			}
			synctest.Wait()
			if got := seen["tenant"].outcomes(); !slices.Contains(got, tt.outcome) { // beside that of the call which replaced it
				t.Errorf("%s: outcomes %s, want %s", tt.name, got, tt.outcome)
			}
		})
	}
}

// A slow release of one guard does not make the lock of another a loss: the work had returned.
func TestStackIsLostWhenTheWorkReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := guard.Must(guard.New(shy{memlock.New()}, guard.Name("slow"), guard.Key("slow:#{req.ID}")))
		short := guard.Must(guard.New(memlock.New(), guard.Name("short"), guard.Key("short:#{req.ID}"), guard.Lease(2*time.Second)))
		settle := guard.Must(guard.Func(guard.Must(guard.Stack(short, slow)), func(context.Context, Order) (string, error) {
			time.Sleep(time.Second)
			return "settled", nil
		}))
		if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
			t.Errorf("settle: %v", err)
		}
	})
}

// What comes after the work is not the work's time, also where a guard between two has no lock, or the last one has none.
func TestStackIsNotLostToWhatFollowsTheWork(t *testing.T) {
	slow := func(opts ...guard.Option) *guard.Guard {
		l := newSpy()
		l.release = func(context.Context) { time.Sleep(2 * time.Second) }
		return guard.Must(guard.New(l, append(opts, guard.Name("slow"), guard.Key("slow:#{req.ID}"))...))
	}
	observe := guard.Observe(func(context.Context, guard.Event) { time.Sleep(2 * time.Second) })
	for _, tt := range []struct {
		name string
		rest []*guard.Guard
	}{
		{"release behind a condition", []*guard.Guard{
			guard.Must(guard.New(memlock.New(), guard.Name("free"), guard.Key("free:#{req.ID}"), guard.When("req.Free"))), slow(),
		}},
		{"observer without a lock", []*guard.Guard{slow(guard.When("req.Free"), observe)}},
	} {
		synctest.Test(t, func(t *testing.T) {
			short := guard.Must(guard.New(memlock.New(), guard.Name("short"), guard.Key("short:#{req.ID}"), guard.Lease(2*time.Second)))
			settle := guard.Must(guard.Func(guard.Must(guard.Stack(append([]*guard.Guard{short}, tt.rest...)...)), aSecond))
			if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
				t.Errorf("%s: settle: %v", tt.name, err)
			}
		})
	}
}

// A Stack needs no OneKey where a Guard needs none.
func TestStackWithoutARequest(t *testing.T) {
	named := func(n string) *guard.Guard { return guard.Must(guard.New(memlock.New(), guard.Name(n), guard.Key(n))) }
	work := func(context.Context) (int, error) { return 1, nil }
	if _, err := guard.Do(t.Context(), named("a"), struct{}{}, work); err != nil {
		t.Errorf("one guard: %v", err)
	}
	if _, err := guard.Do(t.Context(), guard.Must(guard.Stack(named("d"), named("e"))), struct{}{}, work); err != nil {
		t.Errorf("a Stack: %v", err)
	}
}
