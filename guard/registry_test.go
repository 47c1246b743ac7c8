package guard_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

func newRegistry(t *testing.T, opts ...guard.Option) *guard.Registry {
	t.Helper()
	reg, err := guard.NewRegistry(opts...)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// infos returns what reg lists, by name.
func infos(reg *guard.Registry) map[string]guard.Info {
	all := make(map[string]guard.Info)
	for info := range reg.All() {
		all[info.Spec.Name] = info
	}
	return all
}

func TestRegistryListsItsGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := newRegistry(t)
		settle, _ := guarded(t, newSpy(), func(_ context.Context, o Order) (string, error) {
			time.Sleep(time.Minute)
			return "", nil
		}, guard.In(reg), guard.Wait(time.Hour))
		if _, err := guard.New(newSpy(), guard.In(reg), guard.Name("unused"), guard.Key("b")); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 2)
		for range 2 {
			go func() { _, err := settle(t.Context(), Order{ID: "7"}); done <- err }()
		}
		synctest.Wait()
		got := infos(reg)
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"order.settle"}) {
			t.Fatalf("guards %q, want those that stand somewhere: order.settle", names)
		}
		info := got["order.settle"]
		want := guard.Spec{Name: "order.settle", Key: "order:#{req.ID}", Wait: time.Hour}
		if info.Spec != want || info.Shape != "order:<string>" || info.Waiting != 1 || info.Held != 1 || len(info.Outcomes) != 0 {
			t.Errorf("while one holds and one waits: %+v", info)
		}
		if !strings.HasPrefix(info.Place, "guard/spy_test.go:") { // where guarded calls New
			t.Errorf("place %q, want guard/spy_test.go", info.Place)
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		_, _ = settle(t.Context(), Order{})
		info = infos(reg)["order.settle"]
		if info.Waiting != 0 || info.Held != 0 || !maps.Equal(info.Outcomes, map[string]int64{"ok": 2, "key": 1}) {
			t.Errorf("afterwards: %+v", info)
		}
	})
}

// TestRegistryRefusesANameTwice holds that two declarations never share a name, while one declaration may stand in
// several places.
func TestRegistryRefusesANameTwice(t *testing.T) {
	reg := newRegistry(t)
	first := guard.Must(guard.New(newSpy(), guard.In(reg), guard.Name("a"), guard.Key("#{req.ID}")))
	again := guard.Must(guard.New(newSpy(), guard.In(reg), guard.Name("a"), guard.Key("#{req.ID}")))
	defaults := guard.Must(guard.New(newSpy(), guard.In(reg)))
	for range 2 {
		if _, err := guard.Func(first, settled); err != nil {
			t.Errorf("the same guard before two functions: %v", err)
		}
	}
	if _, err := guard.Func(again, settled); err == nil || !strings.Contains(err.Error(), `guard "a": the name is taken by the guard declared at guard/registry_test.go:`) {
		t.Errorf("another guard of that name: %v", err)
	}
	type Ship struct {
		_  struct{} `guard:"ship:#{req.ID}"`
		ID string
	}
	ship := func(context.Context, Ship) (string, error) { return "", nil }
	if _, err := guard.Func(defaults, ship); err != nil {
		t.Errorf("defaults: %v", err)
	}
	if _, err := guard.Func(defaults, ship); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Errorf("two functions whose default name is one: %v", err)
	}
	other := newRegistry(t)
	if _, err := guard.Func(guard.Must(guard.New(newSpy(), guard.In(other), guard.Name("a"), guard.Key("#{req.ID}"))), settled); err != nil {
		t.Errorf("another registry: %v", err)
	}
}

// TestRegistryKnowsInstancesOfAStruct binds structs of one type.
func TestRegistryKnowsInstancesOfAStruct(t *testing.T) {
	type Orders struct {
		Settle func(context.Context, Order) (string, error) `guard:"order:#{req.ID}"`
	}
	reg := newRegistry(t)
	made := func(opts ...guard.Option) *guard.Guard {
		return guard.Must(guard.New(memlock.New(), append(opts, guard.In(reg))...))
	}
	bind := func(g *guard.Guard, target any) error { return guard.Bind(g, target) }
	defaults := made()
	first, second, third := Orders{settled}, Orders{settled}, Orders{settled}
	if err := errors.Join(bind(defaults, &first), bind(defaults, &second), bind(made(), &third)); err != nil {
		t.Fatal(err)
	}
	for i, o := range []Orders{first, second, third} {
		if _, err := o.Settle(t.Context(), Order{ID: "7"}); err != nil {
			t.Error(err)
		}
		if all := infos(reg); len(all) != 1 || all["Orders.Settle"].Outcomes["ok"] != int64(i+1) {
			t.Errorf("after %d calls: %+v", i+1, all)
		}
	}
	err := bind(made(guard.Wait(time.Second)), &Orders{settled})
	if err == nil || !strings.Contains(err.Error(), "for another guard_test.Orders, with another Spec") {
		t.Errorf("another Spec: %v", err)
	}
	type Second struct{ Second *Orders }
	if err := bind(made(guard.Wait(time.Second)), &Second{&Orders{settled}}); err != nil {
		t.Error(err)
	}
	if got := slices.Sorted(maps.Keys(infos(reg))); !slices.Equal(got, []string{"Orders.Settle", "Second.Second.Settle"}) {
		t.Errorf("guards %q", got)
	}
	type Other struct {
		Settle func(context.Context, Order) (string, error) `guard:"order:#{req.ID}; name=Orders.Settle"`
	}
	if err := bind(defaults, &Other{settled}); err == nil || !strings.Contains(err.Error(), "name=... in the tag") {
		t.Errorf("another type: %v", err)
	}
}

func TestRegistryObservesAllGuards(t *testing.T) {
	var order []string
	note := func(who string) guard.Option {
		return guard.Observe(func(_ context.Context, e guard.Event) { order = append(order, who+" "+e.Guard) })
	}
	r := record()
	reg := newRegistry(t, append(r.options, note("registry"))...)
	for _, name := range []string{"a", "b"} {
		g := guard.Must(guard.New(newSpy(), guard.In(reg), guard.Name(name), guard.Key("#{req.ID}"), note("own")))
		if _, err := guard.Must(guard.Func(g, settled))(t.Context(), Order{ID: "7"}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"registry a", "own a", "registry b", "own b"}; !slices.Equal(order, want) {
		t.Errorf("observers: %q, want %q", order, want)
	}
	if len(r.spans.GetSpans()) != 2 {
		t.Errorf("%d spans went to the registry's provider, want 2", len(r.spans.GetSpans()))
	}
}

func TestRegistryOverrides(t *testing.T) {
	reg := newRegistry(t)
	if err := reg.Override(map[string]guard.Spec{
		"order.settle": {Wait: 5 * time.Second, Busy: guard.Skip},
		"order.setle":  {Wait: time.Second},
	}); err != nil {
		t.Fatal(err)
	}
	l := newSpy()
	settle, _ := guarded(t, l, settled, guard.In(reg), guard.Wait(time.Second))
	if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
		t.Fatal(err)
	}
	if got := l.requests[0].Wait; got != 5*time.Second {
		t.Errorf("wait %v, want the override's 5s", got)
	}
	if got := infos(reg)["order.settle"].Spec; got.Busy != guard.Skip || got.Key != "order:#{req.ID}" {
		t.Errorf("Spec %+v", got)
	}
	if err := reg.Check(); err == nil || !strings.Contains(err.Error(), `Override of "order.setle", which is the name of no guard`) || !strings.Contains(err.Error(), "order.settle") {
		t.Errorf("Check = %v, want the misspelled name and the nearest", err)
	}
	if _, err := guard.New(l, guard.Name("order.setle"), guard.Key("order:#{req.ID}"), guard.In(reg)); err != nil {
		t.Fatal(err)
	}
	if err := reg.Check(); err == nil || !strings.Contains(err.Error(), `Override of "order.setle", which was made and is in front of nothing`) {
		t.Errorf("Check = %v, want a guard in front of nothing", err)
	}
}

// TestOverridesAddUp gives what stands in a file, and then what stands in the environment.
func TestOverridesAddUp(t *testing.T) {
	reg := newRegistry(t)
	for _, text := range []string{"order.settle: wait=5s; busy=skip | other: wait=1s", "order.settle: busy=fail; lease=3s"} {
		if err := reg.Override(guard.Must(guard.ParseSpecs(text))); err != nil {
			t.Fatal(err)
		}
	}
	guarded(t, newSpy(), settled, guard.In(reg), guard.Busy(guard.RunUnlocked), guard.Wait(time.Second))
	want := guard.Spec{Name: "order.settle", Key: "order:#{req.ID}", Wait: 5 * time.Second, Lease: 3 * time.Second}
	if got := infos(reg)["order.settle"].Spec; got != want {
		t.Errorf("Spec %+v, want %+v", got, want)
	}
}

// TestOverridesAreChecked holds that an override is checked together with the declaration that it changes.
func TestOverridesAreChecked(t *testing.T) {
	for _, tt := range []struct {
		spec guard.Spec
		want string
	}{
		{guard.Spec{Key: "order:#{req.Idd}"}, "Idd"},
		{guard.Spec{Lease: 10 * time.Second}, "lease 10s is over max-hold"},
		{guard.Spec{Busy: guard.RunFallback}, "fallback"},
		{guard.Spec{Switchable: true}, ""},
	} {
		reg := newRegistry(t)
		if err := reg.Override(map[string]guard.Spec{"a": tt.spec}); err != nil {
			t.Fatal(err)
		}
		_, err := guard.Func(guard.Must(guard.New(newSpy(), guard.In(reg), guard.Name("a"), guard.Key("#{req.ID}"), guard.MaxHold(time.Second))), settled)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("override %v: %v, want %q", tt.spec, err, tt.want)
		}
	}
	reg := newRegistry(t)
	if err := reg.Override(map[string]guard.Spec{"a": {Name: "b"}}); err == nil {
		t.Error("Override of a name succeeded")
	}
}

func TestRegistryMistakes(t *testing.T) {
	for name, opt := range map[string]guard.Option{
		"nil": nil, "wait": guard.Wait(time.Second), "key": guard.Key("a"), "nil observer": guard.Observe(nil),
		"in another": guard.In(newRegistry(t)),
	} {
		if _, err := guard.NewRegistry(opt); err == nil {
			t.Errorf("NewRegistry with %s succeeded", name)
		}
	}
	if _, err := guard.New(newSpy(), guard.Name("a"), guard.Key("b"), guard.In(nil)); err == nil {
		t.Error("In(nil) succeeded")
	}
	if _, err := guard.New(newSpy(), guard.In(newRegistry(t)), guard.In(newRegistry(t))); err == nil {
		t.Error("In twice succeeded")
	}
	g := guard.Must(guard.New(newSpy(), guard.Name("a"), guard.Key("#{req.ID}"), guard.Switchable()))
	if _, err := guard.Func(g, settled); err == nil || !strings.Contains(err.Error(), "guard.In") {
		t.Errorf("switchable without a registry: %v", err)
	}
}

func TestExplain(t *testing.T) {
	l, reg := memlock.New(), newRegistry(t)
	g := guard.Must(guard.New(l, guard.In(reg), guard.Name("order.settle"), guard.Key("#{req.Items}"), guard.When("!req.Free"), guard.Switchable()))
	ran := 0
	settle := guard.Must(guard.Func(g, func(ctx context.Context, o Order) (string, error) {
		ran++
		e, err := g.Explain(context.Background(), map[string]any{"req": Order{Items: []string{"b", "a"}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Keys) != 2 || !e.Applies || e.Err != nil || e.Spec != g.Spec() {
			t.Fatalf("explanation %+v", e)
		}
		if a, b := e.Keys[0], e.Keys[1]; a.Key != "a" || !a.Known || a.Busy || b.Key != "b" || !b.Known || !b.Busy {
			t.Errorf("keys %+v, want a to be free and b to be held", e.Keys)
		}
		for _, want := range []string{`guard "order.settle", on: `, "<string>", `key "a", free now`, `key "b", held by others`} {
			if !strings.Contains(e.String(), want) {
				t.Errorf("text %q lacks %q", e, want)
			}
		}
		return "", nil
	}))
	if _, err := settle(t.Context(), Order{Items: []string{"b"}}); err != nil || ran != 1 {
		t.Fatal(err)
	}
	if err := reg.Switch("order.settle", guard.Shadow); err != nil {
		t.Fatal(err)
	}
	e, err := g.Explain(t.Context(), map[string]any{"req": Order{Free: true}})
	if err != nil || e.Applies || e.Mode != guard.Shadow || e.Keys != nil {
		t.Errorf("condition is false: %+v, %v", e, err)
	}
	e, err = g.Explain(t.Context(), map[string]any{"req": Order{Items: []string{""}}})
	if err != nil || !errors.Is(e.Err, guard.ErrKey) || !strings.Contains(e.String(), "would fail") {
		t.Errorf("empty: %+v, %v", e, err)
	}
	if _, err := g.Explain(t.Context(), map[string]any{"request": Order{}}); err == nil {
		t.Error("Explain with facts that do not fit succeeded")
	}
	if got := len(infos(reg)["order.settle"].Outcomes); got != 1 {
		t.Errorf("explanations were counted as calls: %d outcomes", got)
	}
}

// All guards of a Stack are explained, each with its own key, condition and locker, also with a mistake in each.
func TestExplainAStack(t *testing.T) {
	l, kinds := memlock.New(), memlock.New()
	outer := guard.Must(guard.New(l, guard.Name("outer"), guard.Key("#{req.ID}"), guard.Busy(guard.Skip)))
	inner := guard.Must(guard.New(l, guard.Name("inner"), guard.Key("order:#{req.ID}")))
	last := guard.Must(guard.New(kinds, guard.Name("last"), guard.Key("#{req.ID}"), guard.When("!req.Free")))
	stack := guard.Must(guard.Stack(outer, inner, last))
	held, err := l.Acquire(t.Context(), lock.Request{Key: "order:7"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kinds.Acquire(t.Context(), lock.Request{Key: "7", Kind: lock.Read}); err != nil {
		t.Fatal(err)
	}
	e, err := stack.Explain(t.Context(), map[string]any{"req": Order{ID: "7"}})
	if err != nil || len(e.Rest) != 2 {
		t.Fatalf("explanation %+v, %v", e, err)
	}
	if a, b, c := e.Keys[0], e.Rest[0].Keys[0], e.Rest[1].Keys[0]; a.Busy || !a.Known || !b.Busy || c.Known || !errors.Is(c.Err, lock.ErrUnsupported) {
		t.Errorf("keys %+v, %+v, %+v: want free, held, refused", a, b, c)
	}
	want := []string{`guard "outer", on: `, `key "7", free now`, `guard "inner", on: `, `key "order:7", held by others`, `guard "last", on: `, `key "7": lock: wanted as exclusive`}
	at := 0
	for _, line := range want {
		i := strings.Index(e.String()[at:], line)
		if i < 0 {
			t.Fatalf("text %q lacks %q, or has it elsewhere", e, line)
		}
		at += i
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	e, err = stack.Explain(t.Context(), map[string]any{"req": Order{ID: "7", Free: true}})
	if err != nil || e.Rest[0].Keys[0].Busy || e.Rest[1].Applies {
		t.Errorf("explanation %+v, %v", e, err)
	}
	_, err = stack.Explain(t.Context(), map[string]any{"request": Order{}})
	for _, name := range []string{"outer", "inner", "last"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Explain with facts that do not fit: %v, want the mistake of %s", err, name)
		}
	}
}

func TestExplainWithALockerThatCannotSay(t *testing.T) {
	g := guard.Must(guard.New(&mute{memlock.New()}, guard.Name("a"), guard.Key("#{req.ID}")))
	e, err := g.Explain(t.Context(), map[string]any{"req": Order{ID: "7"}})
	if err != nil || len(e.Keys) != 1 || e.Keys[0] != (guard.KeyState{Key: "7"}) {
		t.Errorf("explanation %+v, %v", e, err)
	}
}
