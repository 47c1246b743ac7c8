package guard_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// A call that is under way when Override comes ends as it began, and the next one has the new declaration.
func TestOverrideIsForTheNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := memlock.New(), newRegistry(t)
		var seen events
		settle, _ := guarded(t, l, aSecond, guard.In(reg), guard.Wait(time.Hour), guard.Observe(seen.add))
		var calls sync.WaitGroup
		for range 2 { // the second one waits
			calls.Go(func() {
				if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
					t.Errorf("under way: %v", err)
				}
			})
			synctest.Wait()
		}
		if err := reg.Override(map[string]guard.Spec{"order.settle": {Key: "v2:#{req.ID}:#{req.Free}", Wait: time.Millisecond, Busy: guard.Skip}}); err != nil {
			t.Fatal(err)
		}
		other := guard.Must(l.Acquire(t.Context(), lock.Request{Key: "v2:8:false"}))
		if res, err := settle(t.Context(), Order{ID: "8"}); err != nil || res != "" {
			t.Errorf("next call = %q, %v, want it to be skipped for the new key", res, err)
		}
		_ = other.Release(t.Context())
		calls.Wait()
		if got := infos(reg)["order.settle"]; got.Shape != "v2:<string>:<bool>" || got.Spec.Busy != guard.Skip || got.Outcomes["ok"] != 2 || got.Outcomes["skipped"] != 1 {
			t.Errorf("%+v", got)
		}
		if names := reg.Match("v2:7:false"); len(names) != 1 {
			t.Errorf("the new key is that of %q", names)
		}
		if got := reg.String(); !strings.Contains(got, "busy=skip") {
			t.Errorf("String = %q", got)
		}
	})
}

// One fault in the map, and nothing changes. Each fault says which guard it is about, and what to do.
func TestOverrideIsAllOrNothing(t *testing.T) {
	fallback := func(context.Context, Order, error) (string, error) { return "", nil }
	for _, tt := range []struct {
		opts []guard.Option
		spec guard.Spec
		want string
	}{
		{nil, guard.Spec{Name: "b"}, `guard "a": Override can't change the name to "b"`},
		{nil, guard.Spec{Key: "order:#{req.Idd}"}, `guard "a": key: keyexpr: unknown field Idd of Order, did you mean ID?`},
		{nil, guard.Spec{When: "req.Fre"}, `guard "a": when: keyexpr: unknown field Fre of Order, did you mean Free?`},
		{nil, guard.Spec{Lease: 10 * time.Second}, `guard "a": lease 10s is over max-hold 1s`},
		{nil, guard.Spec{Kind: lock.Fair}, `guard "a": kind=exclusive can't become fair while the guard is in use: restart the program with it`},
		{nil, guard.Spec{Limit: 3}, `guard "a": kind=exclusive can't become permit while the guard is in use`},
		{nil, guard.Spec{Busy: guard.RunFallback}, `guard "a": policy fallback without a fallback: give Fallback`},
		{[]guard.Option{guard.Fallback(fallback), guard.Busy(guard.RunFallback)}, guard.Spec{Outage: guard.RunFallback}, ""},
		{[]guard.Option{guard.KeyFunc(func(o Order) (string, error) { return o.ID, nil })}, guard.Spec{Key: "#{req.ID}"}, `guard "a": two sources of keys`},
		{nil, guard.Spec{Methods: "POST"}, `guard "a": methods=POST is about requests of HTTP`},
		{nil, guard.Spec{Wait: 5 * time.Second}, ""},
	} {
		reg := newRegistry(t)
		if tt.opts == nil || tt.spec.Key == "" {
			tt.opts = append(tt.opts, guard.Key("#{req.ID}"))
		}
		for name, opts := range map[string][]guard.Option{"a": tt.opts, "fine": {guard.Key("#{req.ID}")}} {
			g := guard.Must(guard.New(newSpy(), append(opts, guard.In(reg), guard.Name(name), guard.MaxHold(time.Second))...))
			guard.Must(guard.Func(g, settled))
		}
		before := reg.String()
		err := reg.Override(map[string]guard.Spec{"a": tt.spec, "fine": {Wait: time.Minute}, "later": {Wait: time.Minute}})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Override to %v = %v, want %q", tt.spec, err, tt.want)
		}
		if changed := reg.String() != before; changed != (err == nil) {
			t.Errorf("Override to %v = %v, and the guards are\n%s\nafter\n%s", tt.spec, err, reg, before)
		}
		if later := reg.Check() != nil; later != (err == nil) {
			t.Errorf("Override to %v = %v, and remembers a guard that is yet to be made: %t", tt.spec, err, later)
		}
	}
}

// A guard that never wanted its fallback may stand before functions that it does not fit.
func TestOverrideAsksForNoFallbackLater(t *testing.T) {
	type api struct {
		Pay func(context.Context, Order) error `guard:"#{req.ID}; name=pay; busy=skip; outage=fail"`
		See func(context.Context, Order) error `guard:"#{req.ID}; name=see"`
	}
	reg := newRegistry(t)
	none := func(context.Context, Order) error { return nil }
	g := guard.Must(guard.New(newSpy(), guard.In(reg), guard.Fallback(func(context.Context, Order, error) error { return nil })))
	if err := guard.Bind(g, &api{none, none}); err != nil {
		t.Fatal(err)
	}
	err := reg.Override(map[string]guard.Spec{"pay": {Busy: guard.RunFallback}})
	if err == nil || !strings.Contains(err.Error(), `guard "pay": busy=skip can't become fallback while the guard is in use`) {
		t.Errorf("Override = %v", err)
	}
}

// The guards of a Stack are one call: it ends with the guards with which it began.
func TestOverrideInTheMiddleOfAStack(t *testing.T) {
	reg, l := newRegistry(t), memlock.New()
	var keys []string
	locker := lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		if keys = append(keys, r.Key); r.Key == "first:1:7" {
			if err := reg.Override(map[string]guard.Spec{"first": {Key: "first:2:#{req.ID}"}, "second": {Key: "second:2:#{req.ID}", Wait: time.Second}}); err != nil {
				t.Error(err)
			}
		}
		return l.Acquire(ctx, r)
	})
	declare := func(name string) *guard.Guard {
		return guard.Must(guard.New(locker, guard.In(reg), guard.Name(name), guard.Key(name+":1:#{req.ID}")))
	}
	settle := guard.Must(guard.Func(guard.Must(guard.Stack(declare("first"), declare("second"))), settled))
	for range 2 {
		if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"first:1:7", "second:1:7", "first:2:7", "second:2:7"}; !slices.Equal(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
	if got := infos(reg)["second"]; got.Spec.Wait != time.Second || got.Outcomes["ok"] != 2 {
		t.Errorf("%+v", got)
	}
}

// Calls and what lists the guards go on while they change.
func TestOverrideUnderCalls(t *testing.T) {
	l, reg := memlock.New(), newRegistry(t)
	declare := func(name string) *guard.Guard {
		return guard.Must(guard.New(l, guard.In(reg), guard.Name(name), guard.Key(name+":1:#{req.ID}"), guard.Wait(guard.Forever)))
	}
	alone, first, second := declare("alone"), declare("first"), declare("second")
	running := make(map[string]int)
	var mu sync.Mutex
	work := func(ctx context.Context, _ Order) (string, error) {
		h, _ := guard.HoldFrom(ctx)
		mu.Lock()
		running[h.Name()]++
		mu.Unlock()
		return "", guard.RequireHeld(ctx, "")
	}
	one, two := guard.Must(guard.Func(alone, work)), guard.Must(guard.Func(guard.Must(guard.Stack(first, second)), work))
	three := func(ctx context.Context, o Order) (string, error) {
		return guard.Do(ctx, alone, o, func(ctx context.Context) (string, error) { return work(ctx, o) })
	}
	var calls sync.WaitGroup
	for _, fn := range []func(context.Context, Order) (string, error){one, two, three} {
		for range 4 {
			calls.Go(func() {
				for range 200 {
					if _, err := fn(t.Context(), Order{ID: "7"}); err != nil {
						t.Errorf("call: %v", err)
					}
				}
			})
		}
	}
	for i := range 100 {
		key := ":" + string(rune('1'+i%3)) + ":#{req.ID}"
		spec := func(name string) guard.Spec {
			return guard.Spec{Key: name + key, When: []string{"", "req.ID == '7'"}[i%2]}
		}
		if err := reg.Override(map[string]guard.Spec{"alone": spec("alone"), "first": spec("first"), "second": spec("second")}); err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			_, _, _ = infos(reg), reg.String(), reg.Match("alone:1:7")
			if _, err := alone.Explain(t.Context(), map[string]any{"req": Order{ID: "7"}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	calls.Wait()
	if running["alone"] != 1600 || running["second"] != 800 {
		t.Errorf("ran %v", running)
	}
	if got := infos(reg); got["first"].Spec.Key != "first:1:#{req.ID}" || got["second"].Spec.Key != "second:1:#{req.ID}" || got["second"].Outcomes["ok"] != 800 {
		t.Errorf("%+v", got)
	}
}

// A Stack whose guards are in two registries is one call, and neither of the two can change a part of it.
func TestOverrideOfAStackOfTwoRegistries(t *testing.T) {
	reg, other := newRegistry(t), newRegistry(t)
	stack := guard.Must(guard.Stack(
		guard.Must(guard.New(memlock.New(), guard.In(reg), guard.Name("first"), guard.Key("#{req.ID}"))),
		guard.Must(guard.New(memlock.New(), guard.In(other), guard.Name("second"), guard.Key("#{req.ID}")))))
	guard.Must(guard.Func(stack, settled))
	for name, r := range map[string]*guard.Registry{"first": reg, "second": other} {
		err := r.Override(map[string]guard.Spec{name: {Wait: time.Second}})
		if err == nil || !strings.Contains(err.Error(), "several registries: make all of them In one") {
			t.Errorf("Override of %s = %v", name, err)
		}
	}
}

// sourceThatOverrides is a template that has Override called while a guard with it is made.
type sourceThatOverrides struct {
	meanwhile func()
}

func (o *sourceThatOverrides) String() string { return "order:#{req.ID}" }
func (o *sourceThatOverrides) Check() error   { return nil }
func (o *sourceThatOverrides) Parse(roots keyexpr.Roots, opts ...keyexpr.Option) (*keyexpr.Template, error) {
	if f := o.meanwhile; f != nil {
		o.meanwhile = nil
		f()
	}
	return keyexpr.Parse(o.String(), roots, opts...)
}

func TestOverrideWhileAGuardIsMade(t *testing.T) {
	reg := newRegistry(t)
	var said error
	source := &sourceThatOverrides{meanwhile: func() { said = reg.Override(map[string]guard.Spec{"a": {Wait: time.Hour}}) }}
	l := newSpy()
	fn, err := guard.Func(guard.Must(guard.New(l, guard.In(reg), guard.Name("a"), guard.KeyFrom(source))), settled)
	if err := errors.Join(err, said); err != nil {
		t.Fatal(err)
	}
	if _, err := fn(t.Context(), Order{ID: "7"}); err != nil || l.requests[0].Wait != time.Hour || infos(reg)["a"].Spec.Wait != time.Hour {
		t.Errorf("%v; the guard waits %v, want what was said while it was made", err, l.requests[0].Wait)
	}
}
