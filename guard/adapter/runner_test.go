package adapter_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// roots are what some server offers.
var roots = keyexpr.Roots{
	"path":   keyexpr.Names("id"),
	"method": keyexpr.TypeFor[string](),
	"body":   {},
}

func prepared(t *testing.T, l lock.Locker, opts ...guard.Option) adapter.Runner {
	t.Helper()
	r, err := adapter.Prepare(guard.Must(guard.New(l, append([]guard.Option{guard.Name("server")}, opts...)...)), roots)
	if err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	return r
}

func TestRun(t *testing.T) {
	l := newSpy()
	r := prepared(t, l, guard.Key("order:#{path.id}"), guard.When(`method == "POST"`))
	var asked []string
	facts := func(root string) (any, error) {
		asked = append(asked, root)
		if root == "method" {
			return "POST", nil
		}
		return keyexpr.Lookup(func(string) (string, bool, error) { return "7", true, nil }), nil
	}
	ran, err := r.Run(t.Context(), facts, func(ctx context.Context) error {
		if !guard.Held(ctx, "server") {
			t.Error("not held")
		}
		return nil
	})
	if !ran || err != nil {
		t.Errorf("Run = %v, %v", ran, err)
	}
	if got := strings.Join(asked, " "); got != "method path" {
		t.Errorf("asked for %s", got)
	}
	l.check(t, "acquire order:7", "release order:7")
}

// TestRan is what Run says about whether the work was called.
func TestRan(t *testing.T) {
	own := errors.New("own")
	tests := []struct {
		refused error
		opts    []guard.Option
		ran     bool
		err     error
	}{
		{nil, nil, true, own},
		{nil, []guard.Option{guard.When("no()"), guard.TemplateFunc("no", func() bool { return false })}, true, own},
		{lock.ErrBusy, nil, false, guard.ErrBusy},
		{lock.ErrBusy, []guard.Option{guard.Busy(guard.Skip)}, false, nil},
		{lock.ErrBusy, []guard.Option{guard.Busy(guard.RunUnlocked)}, true, own},
	}
	for _, tt := range tests {
		l := newSpy()
		l.refuse = map[string]error{"key": tt.refused}
		ran, err := prepared(t, l, append(tt.opts, guard.Key("key"), guard.OneKey())...).Run(t.Context(), nil,
			func(context.Context) error { return own })
		if ran != tt.ran || !errors.Is(err, tt.err) {
			t.Errorf("Run = %v, %v, want %v, %v", ran, err, tt.ran, tt.err)
		}
	}
}

type tooLarge struct{ limit int }

func (*tooLarge) Error() string { return "body too large" }

func (l *tooLarge) Is(target error) bool { return target == guard.ErrKey }

// TestFactsError holds that an adapter finds its own errors behind ErrKey again, from the condition and from the key.
func TestFactsError(t *testing.T) {
	for _, opts := range [][]guard.Option{
		{guard.Key("order:#{body.id}")},
		{guard.Key("constant"), guard.OneKey(), guard.When(`body.id == "7"`)},
	} {
		l := newSpy()
		ran, err := prepared(t, l, opts...).Run(t.Context(),
			func(string) (any, error) { return nil, &tooLarge{10} },
			func(context.Context) error { return nil })
		if e, ok := errors.AsType[*tooLarge](err); ran || !ok || e.limit != 10 || !errors.Is(err, guard.ErrKey) {
			t.Errorf("Run = %v, %v, want ErrKey for tooLarge", ran, err)
		}
		if errors.Is(err, keyexpr.ErrValue) {
			t.Errorf("%v blames the values", err)
		}
		l.check(t)
	}
}

// TestCanceledBeforeTheKey holds that facts which fail because the caller has gone do not make the request a bad one.
func TestCanceledBeforeTheKey(t *testing.T) {
	own := errors.New("client hung up")
	for _, opts := range [][]guard.Option{
		{guard.Key("order:#{method}")},
		{guard.Key("constant"), guard.OneKey(), guard.When(`method == "POST"`)},
	} {
		for _, answer := range []error{context.Canceled, own} {
			ctx, cancel := context.WithCancelCause(t.Context())
			ran, err := prepared(t, newSpy(), opts...).Run(ctx, func(string) (any, error) {
				cancel(own)
				return nil, answer
			}, func(context.Context) error { return nil })
			if ran || !errors.Is(err, context.Canceled) || !errors.Is(err, own) || errors.Is(err, guard.ErrKey) {
				t.Errorf("Run = %v, %v, want canceled", ran, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, err := prepared(t, newSpy(), opts...).Run(ctx, func(string) (any, error) {
			cancel()
			return "", &tooLarge{}
		}, func(context.Context) error { return nil })
		if !errors.Is(err, guard.ErrKey) {
			t.Errorf("Run: %v, want ErrKey for another reason", err)
		}
	}
}

// TestPrepareIgnoresNothing holds that what works with Func only is refused by Prepare.
func TestPrepareIgnoresNothing(t *testing.T) {
	key := guard.Key("order:#{path.id}")
	keyFunc := guard.KeyFunc(func(Order) (string, error) { return "k", nil })
	tests := []struct {
		opts  []guard.Option
		roots keyexpr.Roots
		want  string
	}{
		{[]guard.Option{key, guard.Fallback(func(context.Context, Order, error) (int, error) { return 0, nil })}, roots, "Fallback"},
		{[]guard.Option{keyFunc}, roots, `no request (root "req")`},
		{[]guard.Option{keyFunc}, keyexpr.Roots{"req": keyexpr.TypeFor[string]()}, "requests of type adapter_test.Order"},
		{[]guard.Option{guard.Key("order:#{path.idd}")}, roots, "did you mean id?"},
		{[]guard.Option{guard.Key("order:#{header.X}")}, roots, "header"},
	}
	for _, tt := range tests {
		g := guard.Must(guard.New(newSpy(), append(tt.opts, guard.Name("server"))...))
		if _, err := adapter.Prepare(g, tt.roots); err == nil || !strings.Contains(err.Error(), tt.want) ||
			!strings.Contains(err.Error(), `guard "server"`) {
			t.Errorf("Prepare: %v, want an error with %s and the guard's name", err, tt.want)
		}
	}
}

func TestKeyFuncOfAdapter(t *testing.T) {
	g := guard.Must(guard.New(newSpy(), guard.Name("server"),
		guard.KeyFunc(func(o *Order) (string, error) { return o.ID, nil })))
	r, err := adapter.Prepare(g, keyexpr.Roots{"req": keyexpr.TypeFor[*Order]()})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		request any
		err     error
		want    error
	}{
		{&Order{ID: "7"}, nil, nil},
		{&Order{}, nil, guard.ErrKey},
		{Order{ID: "7"}, nil, guard.ErrFault}, // an adapter that breaks its word
		{nil, &tooLarge{}, guard.ErrKey},
	}
	for _, tt := range tests {
		_, err := r.Run(t.Context(), func(string) (any, error) { return tt.request, tt.err },
			func(context.Context) error { return nil })
		if !errors.Is(err, tt.want) {
			t.Errorf("Run with %T: %v, want %v", tt.request, err, tt.want)
		}
	}
}

func TestStackOfAdapters(t *testing.T) {
	l := newSpy()
	a := guard.Must(guard.New(l, guard.Name("a"), guard.Key("a:#{path.id}")))
	b := guard.Must(guard.New(l, guard.Name("b"), guard.Key("b:#{path.id}"), guard.Busy(guard.Skip)))
	r, err := adapter.Prepare(guard.Must(guard.Stack(a, b)), roots)
	if err != nil {
		t.Fatal(err)
	}
	facts := func(string) (any, error) {
		return keyexpr.Lookup(func(string) (string, bool, error) { return "7", true, nil }), nil
	}
	own := errors.New("own")
	if ran, err := r.Run(t.Context(), facts, func(context.Context) error { return own }); !ran || err != own {
		t.Errorf("Run = %v, %v", ran, err)
	}
	l.refuse = map[string]error{"b:7": lock.ErrBusy}
	if ran, err := r.Run(t.Context(), facts, func(context.Context) error { return own }); ran || err != nil {
		t.Errorf("Run of what is skipped = %v, %v", ran, err)
	}
	l.check(t, "acquire a:7", "acquire b:7", "release b:7", "release a:7", "acquire a:7", "acquire b:7", "release a:7")
	c := guard.Must(guard.New(l, guard.Name("c"), guard.Key("c:#{path.idd}")))
	if _, err := adapter.Prepare(guard.Must(guard.Stack(a, c)), roots); err == nil || !strings.Contains(err.Error(), `guard "c"`) {
		t.Errorf("Prepare: %v, want the mistake of the second", err)
	}
}
