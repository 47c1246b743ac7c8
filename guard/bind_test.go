package guard_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

type handler func(context.Context, Order) (string, error)

type orders struct {
	Settle func(context.Context, Order) (string, error) `guard:"order:#{req.ID}; wait=2s; lease=30s"`
	Cancel func(context.Context, *Order) error          `guard:"order:#{req.ID}; name=cancel"`
	Move   handler                                      `guard:"#{req.Items}; kind=fair"`
	Mark   func(context.Context, marked) error          `guard:"; wait=1s; name=mark"`
	Plain  func(context.Context, Order) (string, error)
	Note   string `json:"note"`
	refunds
	*Extras
}

type refunds struct {
	Refund func(context.Context, Order) error `guard:"order:#{req.ID}"`
}

type Extras struct {
	Extra func(context.Context, Order) error `guard:"order:#{req.ID}"`
}

func TestBind(t *testing.T) {
	own := errors.New("own")
	var names []string
	work := func(ctx context.Context, name string) error {
		if !guard.Held(ctx, name) {
			t.Errorf("%s: not held", name)
		}
		names = append(names, name)
		return own
	}
	api := &orders{
		Settle: func(ctx context.Context, o Order) (string, error) { return o.ID, work(ctx, "orders.Settle") },
		Cancel: func(ctx context.Context, _ *Order) error { return work(ctx, "cancel") },
		Move:   func(ctx context.Context, o Order) (string, error) { return o.ID, work(ctx, "orders.Move") },
		Mark:   func(ctx context.Context, _ marked) error { return work(ctx, "mark") },
		Plain:  func(ctx context.Context, _ Order) (string, error) { return "", nil },
		Extras: &Extras{Extra: func(ctx context.Context, _ Order) error { return work(ctx, "orders.Extras.Extra") }},
	}
	api.Refund = func(ctx context.Context, _ Order) error { return work(ctx, "orders.refunds.Refund") }
	plain := reflect.ValueOf(api.Plain).Pointer()
	l, seen := newSpy(), new(events)
	if err := guard.Bind(guard.Must(guard.New(l, guard.MaxHold(time.Hour), guard.Observe(seen.add))), api); err != nil {
		t.Fatal(err)
	}
	if reflect.ValueOf(api.Plain).Pointer() != plain {
		t.Error("a field without a tag was replaced")
	}

	order := Order{ID: "7", Items: []string{"b", "a"}}
	got, errSettle := api.Settle(t.Context(), order)
	errCancel := api.Cancel(t.Context(), &order)
	_, errMove := api.Move(t.Context(), order)
	for i, err := range []error{
		errSettle, errCancel, errMove, api.Mark(t.Context(), marked{Region: "eu", ID: 7}),
		api.Refund(t.Context(), order), api.Extra(t.Context(), order),
	} {
		if err != own {
			t.Errorf("call %d: %v, want the work's own error", i, err)
		}
	}
	if got != "7" {
		t.Errorf("Settle = %q", got)
	}
	if want := 6; len(names) != want || len(seen.all) != want {
		t.Errorf("ran %v with %d events, want %d", names, len(seen.all), want)
	}
	want := []lock.Request{
		{Key: "order:7", Wait: 2 * time.Second, Lease: 30 * time.Second, MaxHold: time.Hour},
		{Key: "order:7", MaxHold: time.Hour},
		{Key: "a", Kind: lock.Fair, MaxHold: time.Hour},
		{Key: "b", Kind: lock.Fair, MaxHold: time.Hour},
		{Key: "mark:eu:7", Wait: time.Second, MaxHold: time.Hour},
		{Key: "order:7", MaxHold: time.Hour},
		{Key: "order:7", MaxHold: time.Hour},
	}
	if !reflect.DeepEqual(l.requests, want) {
		t.Errorf("requests %+v, want %+v", l.requests, want)
	}
}

func TestBindRefuses(t *testing.T) {
	api := &orders{
		Settle: func(context.Context, Order) (string, error) { t.Error("ran"); return "x", nil },
		Cancel: func(context.Context, *Order) error { t.Error("ran"); return nil },
		Move:   settled,
		Mark:   func(context.Context, marked) error { return nil },
		Extras: &Extras{Extra: func(context.Context, Order) error { return nil }},
	}
	api.Refund = api.Extra
	l := newSpy()
	l.refuse = map[string]error{"order:7": lock.ErrBusy}
	if err := guard.Bind(guard.Must(guard.New(l)), api); err != nil {
		t.Fatal(err)
	}
	if got, err := api.Settle(t.Context(), Order{ID: "7"}); got != "" || !errors.Is(err, guard.ErrBusy) {
		t.Errorf("Settle = %q, %v, want ErrBusy", got, err)
	}
	if err := api.Cancel(t.Context(), &Order{ID: "7"}); !errors.Is(err, guard.ErrBusy) {
		t.Errorf("Cancel: %v, want ErrBusy", err)
	}
	if err := api.Cancel(t.Context(), nil); !errors.Is(err, guard.ErrKey) {
		t.Errorf("Cancel of nil: %v, want ErrKey", err)
	}
	func() {
		api := struct {
			F func(context.Context, Order) error `guard:"order:#{req.ID}"`
		}{func(context.Context, Order) error { panic("boom") }}
		l := newSpy()
		if err := guard.Bind(guard.Must(guard.New(l)), &api); err != nil {
			t.Fatal(err)
		}
		defer l.check(t, "acquire order:7", "release order:7")
		defer func() {
			if got := recover(); got != "boom" {
				t.Errorf("recovered %v", got)
			}
		}()
		_ = api.F(t.Context(), Order{ID: "7"})
	}()
}

type (
	nilFunc struct {
		First  func(context.Context, Order) error `guard:"order:#{req.ID}"`
		Second func(context.Context, Order) error `guard:"order:#{req.ID}"`
	}
	notAFunc struct {
		ID string `guard:"order"`
	}
	unexportedFunc struct {
		f func(context.Context, Order) error `guard:"order"`
	}
	noContext struct {
		F func(Order) error `guard:"order"`
	}
	noError struct {
		F func(context.Context, Order) string `guard:"order"`
	}
	variadic struct {
		F func(context.Context, ...Order) error `guard:"order"`
	}
	typoInTag struct {
		F func(context.Context, Order) error `guard:"order:#{req.ID}; wiat=2s"`
	}
	typoInKey struct {
		F func(context.Context, Order) error `guard:"order:#{req.IDD}"`
	}
	noKey struct {
		F func(context.Context, Order) error `guard:""`
	}
	untagged struct {
		F func(context.Context, Order) error
	}
	nilEmbedded struct{ *Extras }
	embeds      struct{ typoInTag }
	cycle       struct {
		*cycle
		F func(context.Context, Order) error `guard:"order; one-key"`
	}
)

func TestBindMistakes(t *testing.T) {
	f := func(context.Context, Order) error { return nil }
	malformed := reflect.New(reflect.StructOf([]reflect.StructField{ // vet would find it in the source
		{Name: "F", Type: reflect.TypeFor[func(context.Context, Order) error](), Tag: "guard:order"},
	})).Interface()
	comma := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "F", Type: reflect.TypeFor[func(context.Context, Order) error](), Tag: `json:"f",guard:"order:#{req.ID}"`},
	})).Interface()
	tests := []struct {
		target any
		opts   []guard.Option
		want   []string
	}{
		{comma, nil, []string{"Bind of F", "malformed struct tag", "behind a blank"}},
		{nil, nil, []string{"pointer to a struct", "<nil>"}},
		{nilFunc{}, nil, []string{"pointer to a struct", "guard_test.nilFunc"}},
		{(*nilFunc)(nil), nil, []string{"a nil"}},
		{new(int), nil, []string{"pointer to a struct", "*int"}},
		{&nilFunc{First: f}, nil, []string{"nilFunc.Second", "nil"}},
		{&notAFunc{}, nil, []string{"notAFunc.ID", "string"}},
		{&unexportedFunc{f}, nil, []string{"unexportedFunc.f", "not exported"}},
		{&noContext{func(Order) error { return nil }}, nil, []string{"noContext.F", "func(guard_test.Order) error"}},
		{&noError{func(context.Context, Order) string { return "" }}, nil, []string{"noError.F"}},
		{&variadic{func(context.Context, ...Order) error { return nil }}, nil, []string{"variadic.F"}},
		{&typoInTag{f}, nil, []string{"typoInTag.F", `did you mean wait?`, "offset 17"}},
		{&typoInKey{f}, nil, []string{`guard "typoInKey.F"`, "offset 12", "did you mean ID?"}},
		{&typoInKey{f}, []guard.Option{guard.Name("mine")}, []string{`guard "mine"`, "typoInKey.F"}},
		{&noKey{f}, nil, []string{`guard "noKey.F"`, "no key"}},
		{malformed, nil, []string{"Bind of F", "malformed struct tag"}},
		{&untagged{f}, nil, []string{"untagged", "no field"}},
		{&nilEmbedded{}, nil, []string{"Extras", "nil"}},
		{&embeds{typoInTag{f}}, nil, []string{"embeds.typoInTag.F"}},
		{
			&nilFunc{f, f}, []guard.Option{guard.Fallback(func(context.Context, Order, error) (int, error) { return 0, nil })},
			[]string{"Fallback"},
		},
		{
			&nilFunc{f, f}, []guard.Option{guard.KeyFunc(func(int) (string, error) { return "", nil })},
			[]string{"nilFunc.First", "requests of type int"},
		},
	}
	for _, tt := range tests {
		g := guard.Must(guard.New(memlock.New(), tt.opts...))
		err := checkFields(g, tt.target, guard.Bind(g, tt.target))
		for _, want := range append(tt.want, "guard") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Bind(%T): %v, want an error with %s", tt.target, err, want)
			}
		}
	}
}

// TestBindAllOrNothing holds that one bad field leaves the good ones as they were.
func TestBindAllOrNothing(t *testing.T) {
	f := func(context.Context, Order) error { return nil }
	api := &nilFunc{First: f}
	if err := guard.Bind(guard.Must(guard.New(memlock.New())), api); err == nil {
		t.Fatal("no error for a nil function")
	}
	if reflect.ValueOf(api.First).Pointer() != reflect.ValueOf(f).Pointer() {
		t.Error("the first field was replaced")
	}
}

// TestBindEmbeddedPointers is what Bind makes of pointers that lead nowhere, or in a circle.
func TestBindEmbeddedPointers(t *testing.T) {
	calls := 0
	ring := &cycle{F: func(context.Context, Order) error { calls++; return nil }}
	ring.cycle = ring
	l := newSpy()
	if err := guard.Bind(guard.Must(guard.New(l)), ring); err != nil {
		t.Fatal(err)
	}
	if err := ring.F(t.Context(), Order{}); err != nil || calls != 1 {
		t.Errorf("F: %v after %d calls", err, calls)
	}
	l.check(t, "acquire order", "release order")

	free := func(context.Context, Order) error { return nil }
	type left struct{ Extras }
	type right struct{ Extras }
	twice := &struct {
		left
		right
	}{left{Extras{free}}, right{Extras{free}}}
	l = newSpy()
	if err := guard.Bind(guard.Must(guard.New(l)), twice); err != nil {
		t.Fatal(err)
	}
	_ = twice.left.Extra(t.Context(), Order{ID: "l"})
	_ = twice.right.Extra(t.Context(), Order{ID: "r"})
	l.check(t, "acquire order:l", "release order:l", "acquire order:r", "release order:r")

	api := &struct {
		*untagged // nil, but has nothing to guard
		nilFunc
	}{}
	api.First = func(context.Context, Order) error { return nil }
	api.Second = api.First
	if err := guard.Bind(guard.Must(guard.New(memlock.New())), api); err != nil {
		t.Error(err)
	}
}

// One named argument that is no struct, and none at all, are functions without a request type.
func TestBindWithoutARequestType(t *testing.T) {
	type api struct {
		Count func(ctx context.Context, shelf string) (int, error) `guard:"shelf:#{shelf}; args=shelf"`
		Tidy  func(ctx context.Context) error                      `guard:"tidy"`
	}
	a := api{
		Count: func(_ context.Context, shelf string) (int, error) { return len(shelf), nil },
		Tidy:  func(context.Context) error { return nil },
	}
	if err := guard.Bind(guard.Must(guard.New(memlock.New())), &a); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Count(t.Context(), "left"); n != 4 || err != nil {
		t.Errorf("Count = %d, %v, want 4", n, err)
	}
	if err := a.Tidy(t.Context()); err != nil {
		t.Errorf("Tidy = %v", err)
	}
}

// bank is a service as many are: its work is in methods.
type bank struct{ name string }

func (*bank) Pay(context.Context, Order) error { return nil }

// Nobody can replace a method, so that a newcomer who tries learns what guards one.
func TestBindOfMethodsNamesTheGenerator(t *testing.T) {
	err := guard.Bind(guard.Must(guard.New(memlock.New())), &bank{"ours"})
	const want = "guard: Bind of *guard_test.bank: no field has a guard tag, and methods can't be replaced: cmd/latchkey-gen guards those of an interface"
	if err == nil || err.Error() != want {
		t.Errorf("Bind = %v, want %s", err, want)
	}
}

// TestBindWithoutTheFallbackOfAll has a field whose tag does without the fallback that the others have.
func TestBindWithoutTheFallbackOfAll(t *testing.T) {
	api := struct {
		Pay  func(context.Context, Order) error `guard:"order:#{req.ID}; name=pay"`
		Drop func(context.Context, Order) error `guard:"order:#{req.ID}; name=drop; busy=fail; outage=fail"`
	}{dropOrder, dropOrder}
	instead := errors.New("instead")
	l := newSpy()
	l.refuse = map[string]error{"order:7": lock.ErrBusy}
	g := guard.Must(guard.New(l, guard.Fallback(func(context.Context, Order, error) error { return instead })))
	if err := guard.Bind(g, &api); err != nil {
		t.Fatal(err)
	}
	if err := api.Pay(t.Context(), Order{ID: "7"}); !errors.Is(err, instead) {
		t.Errorf("Pay = %v, want the fallback", err)
	}
	if err := api.Drop(t.Context(), Order{ID: "7"}); !errors.Is(err, guard.ErrBusy) {
		t.Errorf("Drop = %v, want ErrBusy", err)
	}
}
