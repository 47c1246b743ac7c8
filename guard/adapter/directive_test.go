package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/internal/gotype"
	"github.com/latchkey-go/latchkey/internal/gotype/gotypetest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// shop is an interface with directives, and guardedShop what latchkey-gen makes of it, with less around it.
type shop interface {
	Pay(ctx context.Context, id string, o *Order, cents int64) (string, error)
	Refund(ctx context.Context, o Order) error
	Mark(ctx context.Context, req marked) error
	Clean(ctx context.Context) error
}

type guardedShop struct {
	pay    func(context.Context, shopPay) (string, error)
	refund func(context.Context, Order) (struct{}, error)
	mark   func(context.Context, marked) (struct{}, error)
	clean  func(context.Context, struct{}) (struct{}, error)
}

type shopPay struct {
	id    string
	o     *Order
	cents int64
}

// shopTexts are the texts of the directives.
type shopTexts struct{ pay, refund, mark, clean string }

var goodTexts = shopTexts{
	pay: "order:#{id}:#{o.ID}-#{cents}; wait=2s; lease=30s", refund: "refund:#{o.ID}; busy=skip", mark: "; wait=1s; name=mark", clean: "nightly",
}

func guardShop(l lock.Locker, next shop, texts shopTexts, opts ...guard.Option) (*guardedShop, error) {
	w := &guardedShop{}
	return w, adapter.Wrap(l, opts,
		adapter.Directive[shopPay, string]{
			Name: "shop.Pay", Text: texts.pay, Of: shop.Pay, Args: "id,o,cents",
			Call: func(ctx context.Context, a shopPay) (string, error) { return next.Pay(ctx, a.id, a.o, a.cents) },
			Fact: payFact,
			To:   &w.pay,
		},
		adapter.Directive[Order, struct{}]{
			Name: "shop.Refund", Text: texts.refund, Of: shop.Refund, Args: "o",
			Call: func(ctx context.Context, o Order) (struct{}, error) { return struct{}{}, next.Refund(ctx, o) },
			To:   &w.refund,
		},
		adapter.Directive[marked, struct{}]{
			Name: "shop.Mark", Text: texts.mark, Of: shop.Mark,
			Call: func(ctx context.Context, req marked) (struct{}, error) { return struct{}{}, next.Mark(ctx, req) },
			To:   &w.mark,
		},
		adapter.Directive[struct{}, struct{}]{
			Name: "shop.Clean", Text: texts.clean, Of: shop.Clean,
			Call: func(ctx context.Context, _ struct{}) (struct{}, error) { return struct{}{}, next.Clean(ctx) },
			To:   &w.clean,
		},
	)
}

func payFact(a *shopPay, name string) any {
	switch name {
	case "id":
		return a.id
	case "o":
		return a.o
	}
	return a.cents
}

// fakeShop notes under which guards it was called.
type fakeShop struct {
	calls []string
	free  int // how many of them without a lock
	err   error
}

func (s *fakeShop) called(ctx context.Context, name string) error {
	s.calls = append(s.calls, name)
	if !guard.Held(ctx, name) {
		s.free++
	}
	return s.err
}

func (s *fakeShop) Pay(ctx context.Context, id string, _ *Order, _ int64) (string, error) {
	return "paid " + id, s.called(ctx, "shop.Pay")
}
func (s *fakeShop) Refund(ctx context.Context, _ Order) error { return s.called(ctx, "shop.Refund") }
func (s *fakeShop) Mark(ctx context.Context, _ marked) error  { return s.called(ctx, "mark") }
func (s *fakeShop) Clean(ctx context.Context) error           { return s.called(ctx, "shop.Clean") }

func TestWrap(t *testing.T) {
	l, seen, next := newSpy(), new(events), &fakeShop{err: errors.New("own")}
	w, err := guardShop(l, next, goodTexts, guard.MaxHold(time.Hour), guard.Observe(seen.add))
	if err != nil {
		t.Fatal(err)
	}
	receipt, errPay := w.pay(t.Context(), shopPay{"a:b", &Order{ID: "7"}, -42})
	_, errRefund := w.refund(t.Context(), Order{ID: "7"})
	_, errMark := w.mark(t.Context(), marked{Region: "eu", ID: 7})
	_, errClean := w.clean(t.Context(), struct{}{})
	for i, err := range []error{errPay, errRefund, errMark, errClean} {
		if err != next.err {
			t.Errorf("call %d: %v, want the work's own error", i, err)
		}
	}
	if receipt != "paid a:b" || next.free != 0 {
		t.Errorf("Pay = %q, and %d calls ran without a lock", receipt, next.free)
	}
	want := []lock.Request{
		{Key: "order:a%3Ab:7--42", Wait: 2 * time.Second, Lease: 30 * time.Second, MaxHold: time.Hour},
		{Key: "refund:7", MaxHold: time.Hour},
		{Key: "mark:eu:7", Wait: time.Second, MaxHold: time.Hour},
		{Key: "nightly", MaxHold: time.Hour},
	}
	if !reflect.DeepEqual(l.requests, want) || len(seen.all) != 4 {
		t.Errorf("requests %+v, want %+v; events %+v", l.requests, want, seen.all)
	}
	if e := seen.all[0]; e.Guard != "shop.Pay" || e.Template != "order:#{id}:#{o.ID}-#{cents}" {
		t.Errorf("event %+v", e)
	}
}

// A call whose key can't be made fails as it does with Bind, word by word.
func TestWrapFailsAsBindDoes(t *testing.T) {
	next := &fakeShop{}
	w, err := guardShop(newSpy(), next, goodTexts)
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Pay func(context.Context, string, *Order, int64) (string, error) `guard:"order:#{id}:#{o.ID}-#{cents}; name=shop.Pay; args=id,o,cents"`
	}
	api.Pay = next.Pay
	if err := guard.Bind(guard.Must(guard.New(newSpy())), &api); err != nil {
		t.Fatal(err)
	}
	for _, a := range []shopPay{{"", &Order{ID: "7"}, 1}, {"7", nil, 1}, {"7", &Order{}, 1}} {
		_, err := w.pay(t.Context(), a)
		_, want := api.Pay(t.Context(), a.id, a.o, a.cents)
		got, _ := errors.AsType[*guard.Error](err)
		bound, _ := errors.AsType[*guard.Error](want)
		if got == nil || !errors.Is(err, guard.ErrKey) || got.Fact == "" || got.Fact != bound.Fact || got.Error() != bound.Error() {
			t.Errorf("Pay(%+v): %v, want %v", a, err, want)
		}
	}
	if len(next.calls) != 0 {
		t.Errorf("called %v", next.calls)
	}
}

func TestWrapMakesLongKeysAsBindDoes(t *testing.T) {
	l := newSpy()
	w, err := guardShop(l, &fakeShop{}, goodTexts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.pay(t.Context(), shopPay{strings.Repeat("x", 600), &Order{ID: "7"}, 1}); err != nil {
		t.Fatal(err)
	}
	if key := l.requests[0].Key; len(key) != 512 || !strings.Contains(key, "%~") {
		t.Errorf("key %q of %d bytes, want one with a digest", key, len(key))
	}
}

func TestWrapPolicies(t *testing.T) {
	texts := goodTexts
	texts.pay += "; when=cents > 100; busy=fail; outage=fail"
	texts.refund = "refund:#{o.ID}; busy=fallback"
	texts.mark += "; busy=skip; outage=fail"
	texts.clean += "; busy=run-unlocked; outage=fail"
	l, next := newSpy(), &fakeShop{}
	l.refuse = map[string]error{"refund:7": lock.ErrBusy, "mark:eu:7": lock.ErrBusy, "order:7:7-500": lock.ErrBusy, "nightly": lock.ErrBusy}
	var fell error
	w, err := guardShop(l, next, texts, guard.Fallback(func(_ context.Context, _ Order, refused error) error {
		fell = refused
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.pay(t.Context(), shopPay{"7", &Order{ID: "7"}, 500}); !errors.Is(err, guard.ErrBusy) {
		t.Errorf("Pay: %v, want ErrBusy", err)
	}
	if _, err := w.refund(t.Context(), Order{ID: "7"}); err != nil || !errors.Is(fell, guard.ErrBusy) {
		t.Errorf("Refund: %v, and the fallback got %v", err, fell)
	}
	if _, err := w.mark(t.Context(), marked{Region: "eu", ID: 7}); err != nil || len(next.calls) > 0 {
		t.Errorf("Mark: %v, calls %v, want it to be skipped", err, next.calls)
	}
	if _, err := w.clean(t.Context(), struct{}{}); err != nil || next.free != 1 {
		t.Errorf("Clean: %v, calls %v, want it to run without a lock", err, next.calls)
	}
	if _, err := w.pay(t.Context(), shopPay{"7", &Order{ID: "7"}, 1}); err != nil || next.free != 2 {
		t.Errorf("Pay of little: %v, calls %v, want it to run without a lock", err, next.calls)
	}
}

func TestWrapInARegistry(t *testing.T) {
	reg := guard.Must(guard.NewRegistry())
	override := map[string]guard.Spec{"shop.Pay": {Key: "v2:#{o.ID}:#{id}-#{cents}", Wait: time.Minute}, "eu.Pay": {Switchable: true}}
	if err := reg.Override(override); err != nil {
		t.Fatal(err)
	}
	l, next := newSpy(), &fakeShop{}
	first, err := guardShop(l, next, goodTexts, guard.In(reg))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := guardShop(l, next, goodTexts, guard.In(reg)); err != nil {
		t.Errorf("the same once more: %v", err)
	}
	_, err = guardShop(l, next, goodTexts, guard.In(reg), guard.MaxHold(time.Hour))
	if err == nil || !strings.Contains(err.Error(), "for another adapter_test.shop, with other options: guard.Name among them gives this one another") {
		t.Errorf("the same with other options: %v", err)
	}
	eu, err := guardShop(l, next, goodTexts, guard.In(reg), guard.MaxHold(time.Hour), guard.Name("eu"))
	if err != nil {
		t.Fatal(err)
	}
	got := infos(reg)
	if names := slices.Sorted(maps.Keys(got)); strings.Join(names, " ") != "eu.Clean eu.Mark eu.Pay eu.Refund mark shop.Clean shop.Pay shop.Refund" {
		t.Fatalf("guards %q", names)
	}
	pay := got["shop.Pay"]
	if pay.Shape != "v2:<string>:<string>-<int64>" || strings.Join(pay.Roots, " ") != "cents id o" || !strings.HasPrefix(pay.Place, "adapter/directive_test.go:") {
		t.Errorf("%+v", pay)
	}
	if _, err := first.pay(t.Context(), shopPay{"a", &Order{ID: "7"}, 5}); err != nil || l.requests[0].Key != "v2:7:a-5" {
		t.Errorf("Pay: %v, requests %+v, want the key of the override", err, l.requests)
	}
	for _, mode := range []guard.Mode{guard.Off, guard.Shadow} {
		if err := reg.Switch("eu.Pay", mode); err != nil {
			t.Fatal(err)
		}
		if _, err := eu.pay(t.Context(), shopPay{"7", &Order{ID: "7"}, 1}); err != nil {
			t.Error(err)
		}
		if got := infos(reg)["eu.Pay"].Outcomes[mode.String()]; got != 1 {
			t.Errorf("%v: %d calls", mode, got)
		}
	}
}

func TestWrapMistakes(t *testing.T) {
	const fails = "; busy=fail; outage=fail"
	for _, tt := range []struct {
		texts shopTexts
		opts  []guard.Option
		want  string
	}{
		{shopTexts{pay: "order:#{id}; wiat=2s"}, nil, `guard: directive of shop.Pay: tag "order:#{id}; wiat=2s": unknown attribute "wiat", did you mean wait? (at offset 13)`},
		{shopTexts{pay: "order:#{di}"}, nil, `guard "shop.Pay": key: keyexpr: unknown name di, did you mean id?`},
		{shopTexts{pay: "order:#{o.Id}; when=cent > 1"}, nil, `guard "shop.Pay": when: keyexpr: unknown name cent, did you mean cents?`},
		{shopTexts{pay: "order:#{o}"}, nil, `guard "shop.Pay": key: keyexpr: o is a struct, adapter_test.Order: name one of its fields`},
		{shopTexts{pay: "; wait=2s"}, nil, `guard "shop.Pay": no key: give guard.Key`},
		{shopTexts{pay: "order"}, nil, `guard "shop.Pay": key: keyexpr:`},
		{shopTexts{pay: "order:#{id}; args=a,b,c"}, nil, `guard "shop.Pay": args=a,b,c is for functions that Bind finds`},
		{shopTexts{pay: "order:#{id}; methods=POST"}, nil, `guard "shop.Pay": methods=POST is about requests of HTTP`},
		{shopTexts{pay: "order:#{id}; busy=fallback"}, nil, `guard "shop.Pay": policy fallback without a fallback`},
		{shopTexts{pay: "order:#{id}; name=shop.Clean"}, nil, `guard "shop.Clean": two directives have this name`},
		{goodTexts, []guard.Option{guard.Key("x:#{id}")}, "guard: Wrap with a key among the options"},
		{goodTexts, []guard.Option{guard.KeyFunc(func(Order) (string, error) { return "", nil })}, "guard: Wrap with a key among the options"},
		{goodTexts, []guard.Option{guard.Wait(-1)}, "negative wait"},
		{goodTexts, []guard.Option{guard.Fallback(func(context.Context, error) error { return nil })},
			`guard "shop.Refund": Fallback is a func(context.Context, error) error, but this function needs a func(context.Context, adapter_test.Order, error) error`},
		{shopTexts{"order:#{id}" + fails, "a:#{o.ID}" + fails, "a:#{req.ID}; name=mark" + fails, "a" + fails}, []guard.Option{guard.Fallback(func(context.Context, error) error { return nil })},
			"guard: a Fallback that never runs: all directives say busy and outage otherwise"},
	} {
		texts := tt.texts
		for _, text := range []struct{ at, good *string }{
			{&texts.pay, &goodTexts.pay}, {&texts.refund, &goodTexts.refund}, {&texts.mark, &goodTexts.mark}, {&texts.clean, &goodTexts.clean},
		} {
			if *text.at == "" {
				*text.at = *text.good
			}
		}
		w, err := guardShop(memlock.New(), &fakeShop{}, texts, tt.opts...)
		if text := tt.texts.pay; err != nil && tt.opts == nil && !strings.Contains(err.Error(), "two directives") {
			err = checkPay(text, err)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.texts, err, tt.want)
		}
		if w.pay != nil || w.clean != nil {
			t.Errorf("%+v: some were wrapped", tt.texts)
		}
	}
	if _, err := guardShop(nil, &fakeShop{}, goodTexts); err == nil || !strings.Contains(err.Error(), "nil locker") {
		t.Errorf("a nil locker: %v", err)
	}
	if err := adapter.Wrap(memlock.New(), nil, adapter.Directive[Order, string]{Name: "shop.Pay", Text: "a"}); err == nil ||
		!strings.Contains(err.Error(), "directive of shop.Pay is not as latchkey-gen writes it: Of is a <nil>") {
		t.Errorf("an empty Directive: %v", err)
	}
}

// checkPay returns err, which Wrap has said to a directive of shop.Pay, if the checks by type say the same: of the compiled type, and of
// that in the source of these tests.
func checkPay(text string, err error) error {
	for _, t := range []reflect.Type{reflect.TypeFor[func(context.Context, string, *Order, int64) (string, error)](), payInSource()} {
		g := guard.Must(guard.New(memlock.New()))
		if _, said := adapter.CheckDirective(g, "shop.Pay", text, "id,o,cents", t); fmt.Sprint(said) != fmt.Sprint(err) {
			return errors.Join(err, fmt.Errorf("by its type %v alone, the check says %q", t, said))
		}
	}
	return err
}

// payInSource is the type of shop.Pay in the source of these tests, as latchkey-gen sees it.
var payInSource = sync.OnceValue(func() reflect.Type {
	pkg := guard.Must(gotypetest.Load(true))
	pay, _, _ := types.LookupFieldOrMethod(pkg.Types.Scope().Lookup("shop").Type(), false, pkg.Types, "Pay")
	return gotype.New().Of(pay.Type())
})

func TestCheckDirective(t *testing.T) {
	g := guard.Must(guard.New(memlock.New(), guard.Wait(time.Second)))
	for _, tt := range []struct {
		of         any
		args, text string
		want       guard.Spec
	}{
		{(&fakeShop{}).Pay, "id,o,cents", goodTexts.pay, guard.Spec{Name: "x.y", Key: "order:#{id}:#{o.ID}-#{cents}", Wait: 2 * time.Second, Lease: 30 * time.Second}},
		{(&fakeShop{}).Pay, "id,o,cents", "#{o.Items}; name=z", guard.Spec{Name: "z", Key: "#{o.Items}", Wait: time.Second}},
		{(&fakeShop{}).Mark, "", "; name=mark", guard.Spec{Name: "mark", Key: "mark:#{req.Region}:#{req.ID}", Wait: time.Second}},
		{(&fakeShop{}).Clean, "", "nightly", guard.Spec{Name: "x.y", Key: "nightly", Wait: time.Second}},
	} {
		spec, err := adapter.CheckDirective(g, "x.y", tt.text, tt.args, reflect.TypeOf(tt.of))
		if spec != tt.want || err != nil {
			t.Errorf("CheckDirective(%q) = %v, %v, want %v", tt.text, spec, err, tt.want)
		}
	}
	for text, check := range map[string]func() error{
		"a nil guard": func() error {
			_, err := adapter.CheckDirective(nil, "x", "a", "", reflect.TypeFor[func(context.Context) error]())
			return err
		},
		"Wrap with a key among the options": func() error {
			_, err := adapter.CheckDirective(guard.Must(guard.New(memlock.New(), guard.Key("a"))), "x", "a", "", reflect.TypeFor[func(context.Context) error]())
			return err
		},
		"directive of x: func(string) error does not take a context.Context first and return an error last": func() error {
			_, err := adapter.CheckDirective(g, "x", "a", "", reflect.TypeFor[func(string) error]())
			return err
		},
	} {
		if err := check(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
}
