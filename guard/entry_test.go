package guard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

var errOwn = errors.New("own")

func TestAction(t *testing.T) {
	l := newSpy()
	g := guard.Must(guard.New(l, guard.Name("drop"), guard.Key("order:#{req.ID}")))
	drop := guard.Must(guard.Action(g, func(ctx context.Context, o Order) error {
		if !guard.Held(ctx, "drop") {
			t.Error("not held")
		}
		if o.Free {
			return errOwn
		}
		return nil
	}))
	if err := drop(t.Context(), Order{ID: "7"}); err != nil {
		t.Errorf("drop = %v", err)
	}
	if err := drop(t.Context(), Order{ID: "7", Free: true}); err != errOwn {
		t.Errorf("drop = %v, want the work's own error", err)
	}
	l.check(t, "acquire order:7", "release order:7", "acquire order:7", "release order:7")
}

func TestJob(t *testing.T) {
	l := newSpy()
	g := guard.Must(guard.New(l, guard.Name("report"), guard.Key("nightly"), guard.Busy(guard.Skip)))
	ran := 0
	report := guard.Must(guard.Job(g, func(context.Context) error { ran++; return errOwn }))
	if err := report(t.Context()); err != errOwn {
		t.Errorf("report = %v, want the work's own error", err)
	}
	l.refuse = map[string]error{"nightly": lock.ErrBusy}
	if err := report(t.Context()); err != nil || ran != 1 {
		t.Errorf("report while busy = %v after %d runs, want it skipped", err, ran)
	}
}

func TestTry(t *testing.T) {
	l := newSpy()
	fallback := guard.Fallback(func(context.Context, Order, error) (string, error) { return "instead", nil })
	for _, tt := range []struct {
		name   string
		opts   []guard.Option
		refuse error
		want   guard.Result[string]
		err    error
	}{
		{"done", nil, nil, guard.Result[string]{Ran: true, Value: "settled"}, nil},
		{"skipped", opts{guard.Busy(guard.Skip)}, lock.ErrBusy, guard.Result[string]{}, nil},
		{"refused", nil, lock.ErrBusy, guard.Result[string]{}, guard.ErrBusy},
		{"unlocked", opts{guard.Busy(guard.RunUnlocked)}, lock.ErrBusy, guard.Result[string]{Ran: true, Value: "settled"}, nil},
		{"fallback", opts{fallback}, lock.ErrBusy, guard.Result[string]{Value: "instead"}, nil},
		{"other policy", opts{fallback, guard.Busy(guard.Skip)}, lock.ErrBusy, guard.Result[string]{}, nil},
		{"fallback of the other", opts{fallback, guard.Busy(guard.Skip)}, errors.New("down"), guard.Result[string]{Value: "instead"}, nil},
		{"condition false", opts{guard.When("req.Free")}, nil, guard.Result[string]{Ran: true, Value: "settled"}, nil},
	} {
		l.refuse = map[string]error{"order:7": tt.refuse}
		g := guard.Must(guard.New(l, append(tt.opts, guard.Name("settle"), guard.Key("order:#{req.ID}"))...))
		got := guard.Must(guard.Try(g, settled))(t.Context(), Order{ID: "7"})
		err := got.Err
		if got.Err = nil; got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %+v, %v, want %+v, %v", tt.name, got, err, tt.want, tt.err)
		}
	}
}

func TestTryJobTellsWhetherItRan(t *testing.T) {
	l := newSpy()
	down := errors.New("down")
	for _, tt := range []struct {
		name   string
		opts   []guard.Option
		refuse error
		ran    bool
		err    error
	}{
		{"done", nil, nil, true, errOwn},
		{"skipped", opts{guard.Busy(guard.Skip)}, lock.ErrBusy, false, nil},
		{"refused", nil, lock.ErrBusy, false, guard.ErrBusy},
		{"unlocked", opts{guard.Outage(guard.RunUnlocked)}, down, true, errOwn},
		{"fallback", opts{guard.Fallback(func(context.Context, error) error { return nil })}, down, false, nil},
	} {
		l.refuse = map[string]error{"nightly": tt.refuse}
		g := guard.Must(guard.New(l, append(tt.opts, guard.Name("report"), guard.Key("nightly"))...))
		ran, err := guard.Must(guard.TryJob(g, func(context.Context) error { return errOwn }))(t.Context())
		if ran != tt.ran || !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, %v, want %v, %v", tt.name, ran, err, tt.ran, tt.err)
		}
	}
}

// instead is a type of its own, which Fallback takes as what it is made of.
type instead func(context.Context, Order, error) error

// A function with several arguments has a fallback, too.
func TestFallbackOfSeveralArguments(t *testing.T) {
	l := newSpy()
	l.refuse = map[string]error{"a:1": lock.ErrBusy}
	api := struct {
		Move func(ctx context.Context, from string, n int) (string, error) `guard:"#{from}:#{n}; args=from,n"`
	}{func(context.Context, string, int) (string, error) { t.Error("ran"); return "", nil }}
	g := guard.Must(guard.New(l, guard.Fallback(func(_ context.Context, from string, n int, refused error) (string, error) {
		return fmt.Sprint(from, n), refused
	})))
	if err := guard.Bind(g, &api); err != nil {
		t.Fatal(err)
	}
	if got, err := api.Move(t.Context(), "a", 1); got != "a1" || !errors.Is(err, guard.ErrBusy) {
		t.Errorf("Move = %q, %v, want the fallback's result", got, err)
	}
}

func TestFallbacksOfActionAndJob(t *testing.T) {
	l := newSpy()
	l.refuse = map[string]error{"order:7": lock.ErrBusy, "nightly": lock.ErrBusy}
	reason := func(err error) error {
		if !errors.Is(err, guard.ErrBusy) {
			t.Errorf("fallback for %v, want ErrBusy", err)
		}
		return errOwn
	}
	drop := guard.Must(guard.Action(guard.Must(guard.New(l, guard.Name("drop"), guard.Key("order:#{req.ID}"),
		guard.Fallback(instead(func(_ context.Context, _ Order, err error) error { return reason(err) })))),
		func(context.Context, Order) error { t.Error("ran"); return nil }))
	if err := drop(t.Context(), Order{ID: "7"}); err != errOwn {
		t.Errorf("drop = %v, want the fallback's error", err)
	}
	report := guard.Must(guard.Job(guard.Must(guard.New(l, guard.Name("report"), guard.Key("nightly"),
		guard.Fallback(func(_ context.Context, err error) error { return reason(err) }))),
		func(context.Context) error { t.Error("ran"); return nil }))
	if err := report(t.Context()); err != errOwn {
		t.Errorf("report = %v, want the fallback's error", err)
	}
	api := struct {
		Drop func(context.Context, Order) error `guard:"order:#{req.ID}"`
	}{func(context.Context, Order) error { t.Error("ran"); return nil }}
	if err := guard.Bind(guard.Must(guard.New(l, guard.Fallback(func(_ context.Context, _ Order, err error) error { return reason(err) }))), &api); err != nil {
		t.Fatal(err)
	}
	if err := api.Drop(t.Context(), Order{ID: "7"}); err != errOwn {
		t.Errorf("bound Drop = %v, want the fallback's error", err)
	}
}

func TestDo(t *testing.T) {
	l := newSpy()
	g := guard.Must(guard.New(l, guard.Name("settle"), guard.Key("order:#{req.ID}"),
		guard.Fallback(func(context.Context, Order, error) (string, error) { return "instead", nil })))
	if err := guard.Check[Order, string](g); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for i := range 4 { // the first ones find out together whether g fits
		calls.Go(func() {
			id := string(rune('a' + i))
			got, err := guard.Do(t.Context(), g, Order{ID: id}, func(ctx context.Context) (string, error) { return id, errOwn })
			if got != id || err != errOwn {
				t.Errorf("Do = %q, %v, want %q and the work's own error", got, err, id)
			}
		})
	}
	calls.Wait()
	l.refuse = map[string]error{"order:7": lock.ErrBusy}
	got, err := guard.Do(t.Context(), g, Order{ID: "7"}, func(context.Context) (string, error) { t.Error("ran"); return "", nil })
	if got != "instead" || err != nil {
		t.Errorf("Do while busy = %q, %v, want the fallback's result", got, err)
	}
	// Another type of request or result needs another fit, and has none here.
	_, err = guard.Do(t.Context(), g, "7", func(context.Context) (string, error) { t.Error("ran"); return "", nil })
	if e, ok := errors.AsType[*guard.Error](err); !ok || e.Err != guard.ErrFault || e.Guard != "settle" {
		t.Errorf("Do with a string = %v, want ErrFault of settle", err)
	}
	if err := guard.Check[Order, int](g); err == nil {
		t.Error("Check has nothing against a fallback with another result")
	}
}

// TestDoInARegistry holds that calls which find out together whether a guard fits register it once.
func TestDoInARegistry(t *testing.T) {
	g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("order:#{req.ID}"), guard.In(guard.Must(guard.NewRegistry()))))
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			if _, err := guard.Do(t.Context(), g, tagged{ID: "7"}, func(context.Context) (int, error) { return 0, nil }); err != nil && !errors.Is(err, guard.ErrBusy) {
				t.Errorf("Do: %v", err)
			}
		})
	}
	calls.Wait()
}

func TestKeysFunc(t *testing.T) {
	l := newSpy()
	g := guard.Must(guard.New(l, guard.Name("stock"), guard.KeysFunc(func(o Order) ([]string, error) {
		if o.Free {
			return nil, errOwn
		}
		return o.Items, nil
	})))
	take := guard.Must(guard.Action(g, func(context.Context, Order) error { return nil }))
	items := []string{"b", "a", "b"}
	if err := take(t.Context(), Order{Items: items}); err != nil {
		t.Fatal(err)
	}
	if got := []string{l.requests[0].Key, l.requests[1].Key}; len(l.requests) != 2 || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("took %v, want a and b", l.requests)
	}
	if !slices.Equal(items, []string{"b", "a", "b"}) {
		t.Errorf("the request's own list became %v", items)
	}
	for _, o := range []Order{{}, {Items: []string{"a", ""}}} {
		if err := take(t.Context(), o); !errors.Is(err, guard.ErrKey) {
			t.Errorf("take(%v) = %v, want ErrKey", o, err)
		}
	}
	if err := take(t.Context(), Order{Free: true}); !errors.Is(err, guard.ErrFault) || !errors.Is(err, errOwn) {
		t.Errorf("take = %v, want ErrFault with the function's error", err)
	}
}

func TestBindOfArguments(t *testing.T) {
	type bank struct {
		Move   func(ctx context.Context, from, to string, cents int64) (int64, string, error) `guard:"#{[from, to]}; args=from,to,cents; when=cents > 0"`
		Count  func(ctx context.Context, ids ...string) (int, error)                          `guard:"#{ids}; args=ids"`
		Close  func(ctx context.Context, account struct{ ID string }) error                   `guard:"#{req.ID}"`
		Tidy   func(context.Context) (string, error)                                          `guard:"tidy"`
		Nested struct {
			Move func(ctx context.Context, from, to string) error `guard:"#{from}; args=from,to"`
		}
	}
	b := &bank{
		Move: func(ctx context.Context, from, to string, cents int64) (int64, string, error) {
			return cents, from + to, errOwn
		},
		Count: func(_ context.Context, ids ...string) (int, error) { return len(ids), nil },
		Close: func(_ context.Context, account struct{ ID string }) error { return nil },
		Tidy:  func(ctx context.Context) (string, error) { return heldName(ctx, "bank.Tidy"), nil },
	}
	b.Nested.Move = func(ctx context.Context, from, to string) error {
		if !guard.Held(ctx, "bank.Nested.Move") {
			t.Error("bank.Nested.Move is not held")
		}
		return nil
	}
	l := newSpy()
	if err := guard.Bind(guard.Must(guard.New(l, guard.Wait(time.Second))), b); err != nil {
		t.Fatal(err)
	}
	if cents, names, err := b.Move(t.Context(), "bob", "ann", 5); cents != 5 || names != "bobann" || err != errOwn {
		t.Errorf("Move = %d, %q, %v", cents, names, err)
	}
	if _, _, err := b.Move(t.Context(), "x", "y", 0); err != errOwn {
		t.Errorf("Move of nothing = %v", err)
	}
	if n, err := b.Count(t.Context(), "c", "d"); n != 2 || err != nil {
		t.Errorf("Count = %d, %v", n, err)
	}
	if err := b.Close(t.Context(), struct{ ID string }{"e"}); err != nil {
		t.Errorf("Close = %v", err)
	}
	if name, err := b.Tidy(t.Context()); name != "bank.Tidy" || err != nil {
		t.Errorf("Tidy = %q, %v", name, err)
	}
	if err := b.Nested.Move(t.Context(), "f", "g"); err != nil {
		t.Errorf("Nested.Move = %v", err)
	}
	if _, _, err := b.Move(t.Context(), "", "ann", 5); !errors.Is(err, guard.ErrKey) {
		t.Errorf("Move from nobody = %v, want ErrKey", err)
	}
	var keys []string
	for _, r := range l.requests {
		keys = append(keys, r.Key)
	}
	if want := []string{"ann", "bob", "c", "d", "e", "tidy", "f"}; !slices.Equal(keys, want) {
		t.Errorf("took %v, want %v", keys, want)
	}
}

// heldName returns name if the guard of that name is held.
func heldName(ctx context.Context, name string) string {
	if guard.Held(ctx, name) {
		return name
	}
	return "not held"
}

// TestDefaults holds that tags override a guard without name and key, and do not override one that has them.
func TestDefaults(t *testing.T) {
	type api struct {
		Pay  func(context.Context, Order) error  `guard:"order:#{req.ID}; wait=2s; lease=5s"`
		Ship func(context.Context, Order) error  `guard:"order:#{req.ID}; wait=0; kind=exclusive"`
		Drop func(context.Context, tagged) error `guard:"; lease=7s"`
	}
	l := newSpy()
	a := api{dropOrder, dropOrder, func(context.Context, tagged) error { return nil }}
	if err := guard.Bind(guard.Must(guard.New(l, guard.Wait(time.Second), guard.Spin())), &a); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{a.Pay(t.Context(), Order{ID: "1"}), a.Ship(t.Context(), Order{ID: "2"}), a.Drop(t.Context(), tagged{ID: "3"})} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []lock.Request{
		{Key: "order:1", Kind: lock.Spin, Wait: 2 * time.Second, Lease: 5 * time.Second},
		{Key: "order:2"},
		{Key: "order:3", Kind: lock.Fair, Wait: 2 * time.Second, Lease: 7 * time.Second}, // of field, request and defaults
	}
	if !reflect.DeepEqual(l.requests, want) {
		t.Errorf("asked for\n%+v, want\n%+v", l.requests, want)
	}
}

// The list that a KeysFunc returned is the request's own, and its work changes it.
func TestListOfKeysFuncIsTheRequestsOwn(t *testing.T) {
	keys := guard.KeysFunc(func(o Order) ([]string, error) { return o.Items, nil })
	changes := func(_ context.Context, o Order) (string, error) { o.Items[0] = "changed"; return "", nil }

	reg := newRegistry(t)
	shadowed := guard.Must(guard.Func(guard.Must(guard.New(memlock.New(), guard.Name("shadow"), guard.In(reg), guard.Switchable(), keys)), changes))
	if err := reg.Switch("shadow", guard.Shadow); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		_, _ = shadowed(t.Context(), Order{Items: []string{"a"}}) // a data race
	}

	var out bytes.Buffer
	l := newSpy()
	l.refuse = map[string]error{"secret": errors.New("no connection for secret")}
	logged := guard.Must(guard.Func(guard.Must(guard.New(l, guard.Name("log"), keys, guard.Outage(guard.RunUnlocked),
		guard.Log(slog.New(slog.NewTextHandler(&out, nil))))), changes))
	_, _ = logged(t.Context(), Order{Items: []string{"secret"}})
	if strings.Contains(out.String(), "secret") {
		t.Errorf("the log has the key: %s", out.String())
	}
}
