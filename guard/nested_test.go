package guard_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// A guard around a handler does not switch off a guard that the handler's calls share.
func TestCallsUnderOneGuardTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New()
		running := 0
		reserve, _ := guarded(t, l, func(context.Context, Order) (string, error) {
			running++
			if running != 1 {
				t.Errorf("%d reserve at once", running)
			}
			time.Sleep(time.Minute)
			running--
			return "reserved", nil
		}, guard.Name("stock"), guard.Key("stock:#{req.ID}"), guard.Wait(guard.Forever))
		settle, _ := guarded(t, l, func(ctx context.Context, _ Order) (string, error) {
			var lines sync.WaitGroup
			for range 4 {
				lines.Go(func() {
					if _, err := reserve(ctx, Order{ID: "sku1"}); err != nil {
						t.Errorf("reserve: %v", err)
					}
				})
			}
			lines.Wait()
			return "settled", nil
		})
		start := time.Now()
		if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
			t.Errorf("settle: %v", err)
		}
		if got := time.Since(start); got != 4*time.Minute {
			t.Errorf("settled after %v, want 4m", got)
		}
	})
}

// All keys of the outer guard are re-entered, whichever of them the inner one takes.
func TestNestedGuardReenters(t *testing.T) {
	l := memlock.New()
	inner, _ := guarded(t, l, settled, guard.Key("#{req.Items}"))
	outer, _ := guarded(t, l, func(ctx context.Context, o Order) (string, error) {
		for _, item := range o.Items {
			if _, err := inner(ctx, Order{Items: []string{item}}); err != nil {
				t.Errorf("inner of %s: %v", item, err)
			}
		}
		return inner(context.WithoutCancel(ctx), o)
	}, guard.Key("#{req.Items}"))
	if _, err := outer(t.Context(), Order{Items: []string{"a", "b", "c"}}); err != nil {
		t.Errorf("outer: %v", err)
	}
}

// The work that calls a guard without the context that it was given waits for itself, and is told why.
func TestDroppedContextIsNamed(t *testing.T) {
	l := memlock.New()
	var outermost context.Context
	inner, _ := guarded(t, l, settled)
	middle, _ := guarded(t, l, func(_ context.Context, o Order) (string, error) { return inner(outermost, o) })
	outer, _ := guarded(t, l, func(ctx context.Context, o Order) (string, error) {
		outermost = ctx
		return middle(ctx, o)
	}, guard.Key("request:#{req.ID}"))
	_, err := outer(t.Context(), Order{ID: "7"})
	busy, ok := errors.AsType[*lock.BusyError](err)
	if !errors.Is(err, guard.ErrBusy) || !ok || !busy.Related {
		t.Errorf("outer: %v, want busy with a relative", err)
	}
}

// TestHolderOfThisProcessIsNamed has work that calls a guard with the context of the request in place of its own, and so waits for
// itself. The error, the event and the log say which call of this process has the lock, where that is known, and never its key.
func TestHolderOfThisProcessIsNamed(t *testing.T) {
	const here, hint = "a call of this process", "to re-enter, pass on its context"
	byGuard := func(name string, opts ...guard.Option) func(t *testing.T, l lock.Locker, then func()) {
		return func(t *testing.T, l lock.Locker, then func()) {
			outer, _ := guarded(t, l, func(context.Context, Order) (string, error) { then(); return "", nil }, append(opts, guard.Name(name))...)
			if _, err := outer(t.Context(), Order{ID: "7"}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		holder func(t *testing.T, l lock.Locker, then func()) // holds order:7 while then runs
		opts   []guard.Option
		says   []string
		not    string
	}{
		{"another guard", byGuard("order.close"), nil, []string{here, `guard "order.close"`, hint}, ""},
		{"another guard, after a wait", byGuard("order.close"), []guard.Option{guard.Wait(time.Millisecond)},
			[]string{here, `guard "order.close"`, hint}, ""},
		{"the same guard", byGuard("order.settle"), nil, []string{here + ` (guard "order.settle")`}, ""},
		{"a fair lock", byGuard("order.close", guard.Fair()), []guard.Option{guard.Fair()}, []string{here, `guard "order.close"`}, ""},
		{"a reader", byGuard("order.show", guard.Read()), []guard.Option{guard.Write()}, []string{here, `guard "order.show"`}, ""},
		{"a permit", byGuard("order.show", guard.Limit(1)), []guard.Option{guard.Limit(1)}, []string{here, `guard "order.show"`}, ""},
		{"no guard", func(t *testing.T, l lock.Locker, then func()) {
			hold, err := l.Acquire(t.Context(), lock.Request{Key: "order:7"})
			if err != nil {
				t.Fatal(err)
			}
			then()
			_ = hold.Release(t.Context())
		}, nil, []string{here, hint}, "process ("},
		{"a call that has ended, which the lock outlives", func(t *testing.T, l lock.Locker, then func()) {
			byGuard("order.close", guard.HoldAtLeast(time.Minute))(t, l.(*spy).Locker, func() {})
			then()
		}, nil, []string{"held by others"}, "process"},
		{"another process", func(_ *testing.T, l lock.Locker, then func()) {
			l.(*spy).refuse = map[string]error{"order:7": &lock.BusyError{Remaining: time.Second}}
			then()
		}, nil, []string{"held by others (waited 0s, remaining lease 1s)"}, "process"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newSpy()
			tt.holder(t, l, func() {
				for what, text := range refusals(t, l, tt.opts...) {
					for _, want := range tt.says {
						if !strings.Contains(text, want) {
							t.Errorf("%s is %s, want %s in it", what, text, want)
						}
					}
					if tt.not != "" && strings.Contains(text, tt.not) || strings.Contains(text, "order:7") {
						t.Errorf("%s is %s, want no %q and no key", what, text, tt.not)
					}
				}
			})
		})
	}
}

// refusals are the texts in which a call of order.settle says why it is refused.
func refusals(t *testing.T, l lock.Locker, opts ...guard.Option) map[string]string {
	t.Helper()
	logger, line := logText()
	settle, seen := guarded(t, l, settled, append(opts, guard.Log(logger))...)
	_, err := settle(t.Context(), Order{ID: "7"})
	if !errors.Is(err, guard.ErrBusy) {
		t.Fatalf("settle: %v, want busy", err)
	}
	return map[string]string{
		"the error": err.Error(), "the event": seen.only(t).Refused.Error(), "the log": strings.ReplaceAll(line.String(), `\"`, `"`),
	}
}

// A reader that calls a writer of its own key would wait for itself: a fault of the declarations, not of the moment.
func TestReaderCallsWriter(t *testing.T) {
	l := memlock.New()
	write, seen := guarded(t, l, settled, guard.Write(), guard.Wait(guard.Forever), guard.Busy(guard.RunUnlocked))
	read, _ := guarded(t, l, write, guard.Read())
	_, err := read(t.Context(), Order{ID: "7"})
	kinds, ok := errors.AsType[*lock.KindError](err)
	if !errors.Is(err, guard.ErrUnsupported) || !ok || kinds.Held != lock.Read || kinds.Wanted != lock.Write {
		t.Errorf("read: %v, want ErrUnsupported that names both kinds", err)
	}
	if e := seen.only(t); e.Outcome != guard.OutcomeUnsupported {
		t.Errorf("event of the writer %+v, want unsupported", e)
	}
}
