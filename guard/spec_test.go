package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// TestMistakes is what a programmer hears at start: the guard, what is wrong, and where it can be guessed, what was meant.
func TestMistakes(t *testing.T) {
	key, name := guard.Key("order:#{req.ID}"), guard.Name("order.settle")
	fallback := guard.Fallback(func(context.Context, Order, error) (string, error) { return "", nil })
	checkMistakes(t, []mistake{
		{opts{name, key, guard.Wait(-1)}, []string{"negative wait -1ns", "Forever"}},
		{opts{name, key, guard.Lease(-time.Second)}, []string{"negative lease -1s"}},
		{opts{name, key, guard.Lease(time.Microsecond)}, []string{"lease 1µs is under 1ms"}},
		{opts{name, key, guard.MaxHold(-time.Second)}, []string{"negative max-hold -1s"}},
		{opts{name, key, guard.Wait(-1), guard.Lease(-2)}, []string{"wait -1ns", "lease -2ns"}},
		{opts{name, key, guard.Kind(9)}, []string{"unknown kind 9", "0 to 6"}},
		{opts{name, key, guard.Kind(lock.Permit)}, []string{"permit needs a limit"}},
		{opts{name, key, guard.Limit(0)}, []string{"limit of at least 1, not 0"}},
		{opts{name, key, guard.Limit(3), guard.Fair()}, []string{"limit 3", "kind fair"}},
		{opts{name, key, guard.Busy(7)}, []string{"unknown busy policy 7", "fail, skip, run-unlocked"}},
		{opts{name, key, guard.Outage(-1)}, []string{"unknown outage policy -1"}},
		{opts{name, key, fallback, guard.Busy(guard.Skip), guard.Outage(guard.Fail)}, []string{"Fallback that never runs", "busy=skip"}},
		{opts{name, key, guard.Outage(guard.RunFallback)}, []string{"fallback without a fallback"}},
		{opts{name, key, guard.KeyFunc(func(Order) (string, error) { return "", nil })}, []string{"two sources", "KeyFunc"}},
		{opts{name, guard.KeyFunc[Order](nil)}, []string{"KeyFunc without"}},
		{opts{name, key, guard.Fallback[func(context.Context, Order, error) (string, error)](nil)}, []string{"Fallback without"}},
		{opts{name, key, guard.Observe(nil)}, []string{"Observe without"}},
		{opts{name, key, nil}, []string{"option 3 of 3 is nil"}},
		{opts{name, guard.Key("order:#{req.ID")}, []string{"key:", "offset 6"}},
		{opts{name, guard.Key("order:#{req.IDD}")}, []string{"key:", "offset", "did you mean ID?"}},
		{opts{name, guard.Key("order:#{rec.ID}")}, []string{"key:", "offset 8", "did you mean req?"}},
		{opts{name, guard.Key("order:#{req}")}, []string{"key:", "offset", "Order"}},
		{opts{name, key, guard.When("req.Free &&")}, []string{"when:", "offset"}},
		{opts{name, key, guard.When("req.ID")}, []string{"when:", "condition", "string"}},
		{opts{name, key, guard.When("req.Fre")}, []string{"when:", "offset", "did you mean Free?"}},
		{opts{name}, []string{"no key", "guard.Key"}},
		{
			opts{name, guard.KeyFunc(func(int) (string, error) { return "", nil })},
			[]string{"key:", "KeyFunc takes requests of type int"},
		},
		{
			opts{name, key, guard.Fallback(func(context.Context, Order, error) (int, error) { return 0, nil })},
			[]string{"Fallback is a func(context.Context, guard_test.Order, error) (int, error)", "(string, error)"},
		},
	})
}

// TestSilentMistakes is what would otherwise start, and lock another key than was meant, or wait for nanoseconds.
func TestSilentMistakes(t *testing.T) {
	key, name := guard.Key("order:#{req.ID}"), guard.Name("order.settle")
	checkMistakes(t, []mistake{
		{opts{name, key, guard.Wait(2)}, []string{"wait 2ns is under 1ms", "write 2*time.Second"}},
		{opts{name, key, guard.MaxHold(60)}, []string{"max-hold 60ns is under 1ms", "write 60*time.Second"}},
		{opts{name, guard.Key("order")}, []string{"one key", "OneKey"}},
		{opts{name, guard.Key("order:${req.ID}"), guard.OneKey()}, []string{"write #{req.ID}"}},
		{opts{name, key, guard.When("#{req.Free}")}, []string{"when:", "a condition has no holes"}},
		{opts{name, guard.KeyFrom(spel.Expression("'order:' + "))}, []string{"key:", "unexpected", "offset 11"}},
		{opts{name, guard.KeyFrom(spel.Expression("'order:' + #order.idd", spel.Params("order")))}, []string{"key:", "did you mean ID?", "of \"'order:' + #order.idd\""}},
	})
}

type opts = []guard.Option

// mistake is a declaration, and all that its error must say.
type mistake struct {
	opts opts
	want []string
}

func checkMistakes(t *testing.T, mistakes []mistake) {
	t.Helper()
	for _, tt := range mistakes {
		g, err := guard.New(memlock.New(), tt.opts...)
		if err == nil {
			_, err = guard.Func(g, settled)
		}
		if err == nil {
			t.Errorf("no error, want one with %q", tt.want)
			continue
		}
		for _, want := range append(tt.want, `guard "order.settle": `) {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not say %q", err, want)
			}
		}
		for line := range strings.Lines(err.Error()) {
			if !strings.HasPrefix(line, `guard "order.settle": `) {
				t.Errorf("error %q has a line that does not name the guard", err)
			}
		}
	}
}

func TestMistakesWithoutGuard(t *testing.T) {
	g := guard.Must(guard.New(memlock.New(), guard.Key("order:#{req.ID}")))
	tests := []struct {
		name string
		err  func() error
		want string
	}{
		{"nil locker", func() error { _, err := guard.New(nil); return err }, "nil locker"},
		{"nil guard", func() error { _, err := guard.Func(nil, settled); return err }, "nil guard"},
		{"nil guard", func() error { _, err := adapter.Prepare(nil, nil); return err }, "nil guard"},
		{"nil function", func() error { _, err := guard.Func[Order, string](g, nil); return err }, "nil function"},
		{"no name", func() error { _, err := adapter.Prepare(g, keyexpr.Roots{"req": keyexpr.TypeFor[Order]()}); return err }, "guard.Name"},
		{"no name", func() error {
			g := guard.Must(guard.New(memlock.New(), guard.Key("constant")))
			_, err := guard.Func(g, func(context.Context, string) (string, error) { return "", nil })
			return err
		}, "guard.Name"},
	}
	for _, tt := range tests {
		if err := tt.err(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

func TestParseErrorsKeepTheirType(t *testing.T) {
	_, err := guard.New(memlock.New(), guard.Name("g"), guard.Key("order:#{req.ID"))
	if e, ok := errors.AsType[*keyexpr.Error](err); !ok || e.Offset != 6 {
		t.Errorf("New: %v, want a *keyexpr.Error at offset 6", err)
	}
}

func TestMust(t *testing.T) {
	if got := guard.Must(7, nil); got != 7 {
		t.Errorf("Must(7, nil) = %v", got)
	}
	own := errors.New("own")
	defer func() {
		if got := recover(); got != own {
			t.Errorf("recovered %v, want %v", got, own)
		}
	}()
	guard.Must(7, own)
}

func TestSpec(t *testing.T) {
	want := guard.Spec{
		Name: "n", Key: "k", When: "true", Kind: lock.Permit, Wait: guard.Forever, Lease: time.Second,
		MaxHold: time.Minute, Limit: 2, Busy: guard.Skip, Outage: guard.RunUnlocked,
	}
	for _, opts := range [][]guard.Option{
		{guard.FromSpec(want)},
		{
			guard.FromSpec(guard.Spec{Name: "other", Wait: time.Second}), guard.Name("n"), guard.Key("k"),
			guard.When("true"), guard.Limit(2), guard.Wait(guard.Forever), guard.Lease(time.Second),
			guard.MaxHold(time.Minute), guard.Busy(guard.Skip), guard.Outage(guard.RunUnlocked),
		},
	} {
		if got := guard.Must(guard.New(memlock.New(), opts...)).Spec(); got != want {
			t.Errorf("Spec() = %+v, want %+v", got, want)
		}
	}
	for _, tt := range []struct {
		opt  guard.Option
		kind lock.Kind
	}{
		{guard.Fair(), lock.Fair}, {guard.Read(), lock.Read}, {guard.Write(), lock.Write},
		{guard.Fenced(), lock.Fenced}, {guard.Spin(), lock.Spin}, {guard.Limit(1), lock.Permit},
	} {
		if got := guard.Must(guard.New(memlock.New(), tt.opt)).Spec().Kind; got != tt.kind {
			t.Errorf("Kind = %v, want %v", got, tt.kind)
		}
	}
}

// TestFromSpecMerges holds that a zero field of a Spec is not given, and leaves what came before.
func TestFromSpecMerges(t *testing.T) {
	got := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Wait(time.Second), guard.Fair(),
		guard.FromSpec(guard.Spec{Key: "k", Wait: time.Minute}), guard.FromSpec(guard.Spec{Lease: time.Second}))).Spec()
	want := guard.Spec{Name: "n", Key: "k", Wait: time.Minute, Lease: time.Second, Kind: lock.Fair}
	if got != want {
		t.Errorf("Spec() = %v, want %v", got, want)
	}
}

func TestValidate(t *testing.T) {
	if err := (guard.Spec{}).Validate(); err != nil {
		t.Errorf("zero Spec: %v", err)
	}
	err := guard.Spec{Name: "g", Wait: -time.Second, Limit: 2}.Validate()
	if want := `guard "g": negative wait -1s`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Validate: %v, want %s...", err, want)
	}
	if err := (guard.Spec{Key: "#{"}).Validate(); err == nil {
		t.Error("Validate is happy with an unclosed hole")
	}
	if err := (guard.Spec{When: "("}).Validate(); err == nil {
		t.Error("Validate is happy with an unclosed condition")
	}
	for key, ok := range map[string]bool{
		"order:#{req.ID}; wait=2s": false, "order:#{req.ID}, wait=2s": false, "order:#{req.ID};kind=fair": false,
		"order:#{req.ID};v=2": true, "order:wait=#{req.ID}": true, "order:#{req.ID}": true,
	} {
		if err := (guard.Spec{Key: key}).Validate(); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "would be a part of the key") {
			t.Errorf("Validate of key %q: %v, want that it is right: %v", key, err, ok)
		}
	}
}

func TestPolicyText(t *testing.T) {
	for _, p := range []guard.Policy{guard.Fail, guard.Skip, guard.RunUnlocked, guard.RunFallback, guard.Replace} {
		text, err := json.Marshal(p)
		if err != nil {
			t.Errorf("%v: %v", p, err)
		}
		got := guard.Policy(-1)
		if err := json.Unmarshal(text, &got); err != nil || got != p {
			t.Errorf("%s read back as %v, %v", text, got, err)
		}
	}
	if _, err := json.Marshal(guard.Policy(5)); err == nil {
		t.Error("policy 5 has a text")
	}
	if got := guard.Policy(5).String(); got != "policy(5)" {
		t.Errorf("String() = %q", got)
	}
	var p guard.Policy
	for text, want := range map[string]string{
		"skipp": `did you mean skip?`, "RunUnlocked": `did you mean run-unlocked?`, "x": "there is fail, fallback, replace, run-unlocked, skip",
	} {
		if err := p.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("UnmarshalText(%q): %v, want %s", text, err, want)
		}
	}
}
