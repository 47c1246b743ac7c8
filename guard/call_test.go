package guard_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := 0
		settle, seen := guarded(t, memlock.New(), func(ctx context.Context, o Order) (string, error) {
			running++
			if running != 1 {
				t.Errorf("%d at once", running)
			}
			time.Sleep(time.Minute)
			running--
			return "settled " + o.ID, nil
		}, guard.Wait(guard.Forever))
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				if got, err := settle(t.Context(), Order{ID: "7"}); got != "settled 7" || err != nil {
					t.Errorf("settle = %q, %v", got, err)
				}
			})
		}
		calls.Wait()
		for i, e := range seen.all {
			want := guard.Event{
				Guard: "order.settle", Template: "order:#{req.ID}", Outcome: guard.OutcomeOK,
				Wait: time.Duration(i) * time.Minute, Held: time.Minute, Keys: 1,
			}
			if e != want {
				t.Errorf("event %d = %+v, want %+v", i, e, want)
			}
		}
		if len(seen.all) != 3 {
			t.Errorf("%d events, want 3", len(seen.all))
		}
	})
}

func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New()
		hold, err := l.Acquire(t.Context(), lock.Request{Key: "order:7", Lease: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		settle, seen := guarded(t, l, func(context.Context, Order) (string, error) {
			t.Error("ran without the lock")
			return "", nil
		}, guard.Wait(time.Second))
		start := time.Now()
		_, err = settle(t.Context(), Order{ID: "7"})
		if got := time.Since(start); got != time.Second {
			t.Errorf("waited %v, want 1s", got)
		}
		e, ok := errors.AsType[*guard.Error](err)
		if !ok || e.Err != guard.ErrBusy || e.Guard != "order.settle" || e.RetryAfter <= 0 || e.RetryAfter > 29*time.Second {
			t.Errorf("settle: %#v, want busy for a moment", err)
		}
		if !errors.Is(err, guard.ErrBusy) || !errors.Is(err, lock.ErrBusy) || errors.Is(err, guard.ErrOutage) {
			t.Errorf("settle: %v, want both ErrBusy", err)
		}
		got := seen.only(t)
		if got.Outcome != guard.OutcomeBusy || got.Wait != time.Second || got.Held != 0 || got.Err != err || got.Refused != err {
			t.Errorf("event %+v", got)
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestPolicies is what becomes of a call without its lock, by policy.
func TestPolicies(t *testing.T) {
	down := errors.New("no route to host")
	fallback := guard.Fallback(func(ctx context.Context, o Order, err error) (string, error) {
		if guard.Held(ctx, "") {
			t.Error("fallback under the lock")
		}
		return "fallback for " + o.ID, err
	})
	tests := []struct {
		refused error // by the locker
		opts    []guard.Option
		result  string
		err     error
		outcome string
	}{
		{lock.ErrBusy, nil, "", guard.ErrBusy, guard.OutcomeBusy},
		{lock.ErrBusy, []guard.Option{guard.Busy(guard.Skip)}, "", nil, guard.OutcomeSkipped},
		{lock.ErrBusy, []guard.Option{guard.Busy(guard.RunUnlocked)}, "unlocked", nil, guard.OutcomeUnlocked},
		{lock.ErrBusy, []guard.Option{guard.Outage(guard.RunUnlocked)}, "", guard.ErrBusy, guard.OutcomeBusy},
		{lock.ErrBusy, []guard.Option{fallback}, "fallback for 7", guard.ErrBusy, guard.OutcomeFallback},
		{down, nil, "", guard.ErrOutage, guard.OutcomeOutage},
		{down, []guard.Option{guard.Outage(guard.Skip)}, "", nil, guard.OutcomeSkipped},
		{down, []guard.Option{guard.Outage(guard.RunUnlocked)}, "unlocked", nil, guard.OutcomeUnlocked},
		{down, []guard.Option{guard.Busy(guard.RunUnlocked)}, "", guard.ErrOutage, guard.OutcomeOutage},
		{down, []guard.Option{fallback}, "fallback for 7", guard.ErrOutage, guard.OutcomeFallback},
		// Overload is an outage to who calls, and has an outcome of its own.
		{lock.ErrOverload, nil, "", guard.ErrOutage, guard.OutcomeOverload},
		{lock.ErrOverload, []guard.Option{fallback}, "fallback for 7", guard.ErrOutage, guard.OutcomeFallback},
		// The lock service's own timeouts are not the caller's.
		{context.DeadlineExceeded, nil, "", guard.ErrOutage, guard.OutcomeOutage},
		// Nothing but a change of the program helps, so no policy may paper over it.
		{lock.ErrUnsupported, nil, "", guard.ErrUnsupported, guard.OutcomeUnsupported},
		{lock.ErrUnsupported, []guard.Option{fallback}, "", guard.ErrUnsupported, guard.OutcomeUnsupported},
		{
			lock.ErrUnsupported, []guard.Option{guard.Busy(guard.Skip), guard.Outage(guard.RunUnlocked)},
			"", guard.ErrUnsupported, guard.OutcomeUnsupported,
		},
	}
	for _, tt := range tests {
		l := newSpy()
		l.refuse = map[string]error{"order:7": tt.refused}
		settle, seen := guarded(t, l, func(ctx context.Context, _ Order) (string, error) {
			if guard.Held(ctx, "") {
				t.Error("Held without a lock")
			}
			return "unlocked", nil
		}, tt.opts...)
		got, err := settle(t.Context(), Order{ID: "7"})
		if got != tt.result || !errors.Is(err, tt.err) {
			t.Errorf("%v, %s: settle = %q, %v, want %q, %v", tt.refused, tt.outcome, got, err, tt.result, tt.err)
		}
		e := seen.only(t)
		if e.Outcome != tt.outcome || e.Err != err || e.Held != 0 {
			t.Errorf("%v: event %+v, want outcome %s", tt.refused, e, tt.outcome)
		}
		if tt.refused != lock.ErrUnsupported && !errors.Is(e.Refused, tt.refused) {
			t.Errorf("%v: event says refused for %v", tt.refused, e.Refused)
		}
		l.check(t, "acquire order:7")
	}
}

func TestErrorTellsTheCause(t *testing.T) {
	l := newSpy()
	down := errors.New("connection refused")
	l.refuse = map[string]error{"order:7": down}
	settle, _ := guarded(t, l, settled)
	_, err := settle(t.Context(), Order{ID: "7"})
	if !errors.Is(err, down) {
		t.Errorf("%v does not match its cause", err)
	}
	if got, want := err.Error(), `guard "order.settle": lock service did not answer: connection refused`; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	bare := &guard.Error{Guard: "g", Err: guard.ErrBusy}
	if got, want := bare.Error(), `guard "g": lock held by others`; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if errs := bare.Unwrap(); len(errs) != 1 {
		t.Errorf("Unwrap() = %v, want the sentinel only", errs)
	}
}

func TestNoKey(t *testing.T) {
	l := newSpy()
	settle, seen := guarded(t, l, settled)
	_, err := settle(t.Context(), Order{})
	if !errors.Is(err, guard.ErrKey) || !errors.Is(err, keyexpr.ErrValue) {
		t.Errorf("settle without an ID: %v, want ErrKey", err)
	}
	if e := seen.only(t); e.Outcome != guard.OutcomeKey || e.Err != err || e.Keys != 0 {
		t.Errorf("event %+v", e)
	}
	l.check(t)
}

func TestKeyFunc(t *testing.T) {
	l := newSpy()
	bad := fmt.Errorf("%w: no such tenant", guard.ErrKey)
	key := guard.KeyFunc(func(o Order) (string, error) {
		if o.ID == "bad" {
			return "", bad
		}
		return strings.ToLower(o.ID), nil
	})
	settle, _ := guarded(t, l, settled, guard.Key(""), key)
	if got, err := settle(t.Context(), Order{ID: "A"}); got != "settled" || err != nil {
		t.Errorf("settle = %q, %v", got, err)
	}
	if _, err := settle(t.Context(), Order{ID: "bad"}); !errors.Is(err, guard.ErrKey) || !errors.Is(err, bad) {
		t.Errorf("settle: %v, want ErrKey for %v", err, bad)
	}
	if _, err := settle(t.Context(), Order{}); !errors.Is(err, guard.ErrKey) {
		t.Errorf("settle with an empty key: %v, want ErrKey", err)
	}
	l.check(t, "acquire a", "release a")
}

func TestWhen(t *testing.T) {
	l := newSpy()
	own := errors.New("own")
	settle, seen := guarded(t, l, func(ctx context.Context, o Order) (string, error) {
		if guard.Held(ctx, "order.settle") == o.Free {
			t.Errorf("free %v: Held = %v", o.Free, guard.Held(ctx, "order.settle"))
		}
		return "", own
	}, guard.When("!req.Free"))
	for _, o := range []Order{{ID: "7"}, {ID: "8", Free: true}} {
		if _, err := settle(t.Context(), o); err != own {
			t.Errorf("settle: %v, want %v", err, own)
		}
	}
	l.check(t, "acquire order:7", "release order:7")
	if got := seen.outcomes(); got[0] != guard.OutcomeError || got[1] != guard.OutcomeConditionFalse {
		t.Errorf("outcomes %v", got)
	}
}

// TestOwnError holds that what the work returns comes back as it is, whatever it looks like.
func TestOwnError(t *testing.T) {
	l := newSpy()
	l.failing = map[string]error{"order:7": errors.New("connection reset")}
	for _, own := range []error{
		errors.New("own"), guard.ErrBusy, lock.ErrLost, context.Canceled,
		&guard.Error{Guard: "other", Err: guard.ErrOutage},
	} {
		settle, seen := guarded(t, l, func(context.Context, Order) (string, error) { return "half", own })
		if got, err := settle(t.Context(), Order{ID: "7"}); got != "half" || err != own {
			t.Errorf("settle = %q, %v, want %v untouched", got, err, own)
		}
		e := seen.only(t)
		if e.Outcome != guard.OutcomeError || !errors.Is(e.Release, l.failing["order:7"]) {
			t.Errorf("event %+v, want the failed release in it", e)
		}
	}
}

func TestFailedReleaseIsNoFailure(t *testing.T) {
	l := newSpy()
	l.failing = map[string]error{"order:7": errors.New("connection reset")}
	settle, seen := guarded(t, l, settled)
	if got, err := settle(t.Context(), Order{ID: "7"}); got != "settled" || err != nil {
		t.Errorf("settle = %q, %v", got, err)
	}
	if e := seen.only(t); e.Outcome != guard.OutcomeOK || !errors.Is(e.Release, l.failing["order:7"]) {
		t.Errorf("event %+v, want the failed release in it", e)
	}
}

// TestOwnDeadline holds that a deadline that the work sets itself is its own error.
func TestOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settle, _ := guarded(t, newSpy(), func(ctx context.Context, _ Order) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			<-ctx.Done()
			return "", ctx.Err()
		})
		if _, err := settle(t.Context(), Order{ID: "7"}); err != context.DeadlineExceeded {
			t.Errorf("settle: %v, want the work's own deadline", err)
		}
	})
}

func TestRequest(t *testing.T) {
	l := newSpy()
	settle, _ := guarded(t, l, settled,
		guard.Limit(3), guard.Wait(guard.Forever), guard.Lease(time.Minute), guard.MaxHold(time.Hour))
	if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
		t.Fatal(err)
	}
	want := lock.Request{
		Key: "order:7", Kind: lock.Permit, Wait: -1, Lease: time.Minute, MaxHold: time.Hour, Limit: 3,
	}
	if got := l.requests[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("request %+v, want %+v", got, want)
	}
}

func TestHeld(t *testing.T) {
	l := memlock.New()
	inner, _ := guarded(t, l, func(ctx context.Context, _ Order) (string, error) {
		for name, want := range map[string]bool{"": true, "inner": true, "order.settle": true, "other": false} {
			if got := guard.Held(ctx, name); got != want {
				t.Errorf("Held(%q) = %v, want %v", name, got, want)
			}
		}
		return "", nil
	}, guard.Name("inner"))
	outer, _ := guarded(t, l, inner)
	if guard.Held(t.Context(), "") {
		t.Error("Held outside of a guard")
	}
	if _, err := outer(t.Context(), Order{ID: "7"}); err != nil {
		t.Errorf("re-entering the key: %v", err)
	}
}

func TestNestedErrorsStayTheirOwn(t *testing.T) {
	l := newSpy()
	l.refuse = map[string]error{"order:inner": lock.ErrBusy}
	inner, _ := guarded(t, l, settled, guard.Name("inner"))
	outer, seen := guarded(t, l, func(ctx context.Context, _ Order) (string, error) {
		return inner(ctx, Order{ID: "inner"})
	}, guard.Busy(guard.RunUnlocked))
	_, err := outer(t.Context(), Order{ID: "7"})
	if e, ok := errors.AsType[*guard.Error](err); !ok || e.Guard != "inner" {
		t.Errorf("outer: %v, want the inner guard's error", err)
	}
	if e := seen.only(t); e.Outcome != guard.OutcomeError {
		t.Errorf("outer's event %+v, want an ordinary error", e)
	}
	l.check(t, "acquire order:7", "acquire order:inner", "release order:7")
}

// slowOrder is a request whose method takes a second.
type slowOrder struct{ ID string }

func (s slowOrder) Slowly() string {
	time.Sleep(time.Second)
	return s.ID
}

// TestWaitIsForTheLock holds that the time to find out which lock is wanted is no time spent waiting for it.
func TestWaitIsForTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []guard.Event
		observe := guard.Observe(func(_ context.Context, e guard.Event) { seen = append(seen, e) })
		made := func(opts ...guard.Option) *guard.Guard {
			return guard.Must(guard.New(memlock.New(), append(opts, observe, guard.Name("n"))...))
		}
		work := func(context.Context, slowOrder) (string, error) { return "", nil }
		for _, opts := range [][]guard.Option{
			{guard.Key("#{req.Slowly()}")},
			{guard.Key("#{req.ID}"), guard.When("req.Slowly() == '7'")},
			{guard.Key("#{req.ID}:#{slowly()}"), guard.TemplateFunc("slowly", slowOrder{"7"}.Slowly)},
			{guard.KeyFunc(func(s slowOrder) (string, error) { return s.Slowly(), nil })},
		} {
			if _, err := guard.Must(guard.Func(made(opts...), work))(t.Context(), slowOrder{"7"}); err != nil {
				t.Error(err)
			}
		}
		r := guard.Must(adapter.Prepare(made(guard.Key("#{body.ID}")), keyexpr.Roots{"body": keyexpr.TypeFor[slowOrder]()}))
		facts := func(string) (any, error) { return slowOrder{slowOrder{"7"}.Slowly()}, nil } // as of a client that uploads it
		if _, err := r.Run(t.Context(), facts, func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		for i, e := range seen {
			if e.Outcome != guard.OutcomeOK || e.Wait != 0 {
				t.Errorf("call %d: %+v, want no wait", i, e)
			}
		}
		if len(seen) != 5 {
			t.Errorf("%d events", len(seen))
		}
	})
}

// slowAnswer is a memlock whose Acquire returns a second after it got the lock.
type slowAnswer struct{ *memlock.Locker }

func (l slowAnswer) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	hold, err := l.Locker.Acquire(ctx, r)
	time.Sleep(time.Second)
	return hold, err
}

// TestHeldFromTheStart holds that a lock which knows its start is held from then on, and not from when the call hears of it.
func TestHeldFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settle, seen := guarded(t, slowAnswer{memlock.New()}, func(context.Context, Order) (string, error) { return "", nil })
		if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
			t.Fatal(err)
		}
		if e := seen.all[0]; e.Wait != 0 || e.Held != time.Second {
			t.Errorf("waited %v and held %v, want 0s and 1s", e.Wait, e.Held)
		}
	})
}
