package guard_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

type tagged struct {
	_  struct{} `guard:"order:#{req.ID}; wait=2s; kind=fair; lease=1m"`
	ID string
}

type marked struct {
	Region string `guard:"key"`
	Note   string
	ID     int `json:"id" guard:"key"`
}

type markedAndTagged struct {
	_ struct{} `guard:"; wait=2s; name=transfer"`
	Account
	Amount int
}

type node struct {
	*node
	ID string `guard:"key"`
}

type Account struct {
	IBAN string `guard:"key"`
}

// requestOf returns what a guarded call with req asks of the locker, and how its events are labelled.
func requestOf[Req any](t *testing.T, req Req, opts ...guard.Option) (lock.Request, guard.Event) {
	t.Helper()
	l, seen := newSpy(), new(events)
	g, err := guard.New(l, append(opts, guard.Observe(seen.add))...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := guard.Func(g, func(context.Context, Req) (int, error) { return 0, nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return l.requests[0], seen.only(t)
}

func TestRequestTag(t *testing.T) {
	const s = time.Second
	want := func(key string, r lock.Request, name string) func(lock.Request, guard.Event) {
		return func(got lock.Request, e guard.Event) {
			t.Helper()
			r.Key = key
			if !reflect.DeepEqual(got, r) || e.Guard != name {
				t.Errorf("guard %q asks for %+v, want %q for %+v", e.Guard, got, name, r)
			}
		}
	}
	fair := lock.Request{Kind: lock.Fair, Wait: 2 * s, Lease: time.Minute}
	want("order:7", fair, "tagged")(requestOf(t, tagged{ID: "7"}))
	want("order:7", fair, "tagged")(requestOf(t, &tagged{ID: "7"}))
	want("m:eu:7", lock.Request{}, "m")(requestOf(t, marked{Region: "eu", ID: 7}, guard.Name("m")))
	want("n:7", lock.Request{}, "n")(requestOf(t, node{node: nil, ID: "7"}, guard.Name("n")))
	want("n:7", lock.Request{}, "n")(requestOf(t, markedTree{ID: "7", hidden: markedBase{Region: "eu"}}, guard.Name("n")))
	want("transfer:X1", lock.Request{Wait: 2 * s}, "transfer")(requestOf(t, markedAndTagged{Account: Account{"X1"}}))

	// Options win, field by field.
	want("order:7", lock.Request{Wait: 3 * s, Lease: time.Minute}, "n")(requestOf(t, tagged{ID: "7"},
		guard.Name("n"), guard.Wait(3*s), guard.Kind(lock.Exclusive)))
	want("o:7", fair, "n")(requestOf(t, tagged{ID: "7"}, guard.Name("n"), guard.Key("o:#{req.ID}")))
	want("f", fair, "n")(requestOf(t, tagged{ID: "7"}, guard.Name("n"), guard.KeyFunc(func(tagged) (string, error) { return "f", nil })))
	want("#{n}:eu:7", lock.Request{}, "#{n}")(requestOf(t, marked{Region: "eu", ID: 7}, guard.Name("#{n}")))
	want("order:7", lock.Request{Kind: lock.Fair, Wait: s, Lease: time.Minute}, "n")(requestOf(t, tagged{ID: "7"},
		guard.FromSpec(guard.Spec{Name: "n", Wait: s})))

	// Without a name and a key they are defaults, and tags win.
	want("order:7", lock.Request{Kind: lock.Fair, Wait: 2 * s, Lease: time.Minute, MaxHold: time.Hour}, "tagged")(requestOf(t,
		tagged{ID: "7"}, guard.FromSpec(guard.Spec{Wait: s, Kind: lock.Spin, MaxHold: time.Hour})))
}

// Request types with a mistake each.
type (
	typo struct {
		_ struct{} `guard:"order; wiat=2s"`
	}
	unknownField struct {
		_  struct{} `guard:"order:#{req.IDD}"`
		ID string
	}
	unexported struct {
		id string `guard:"key"`
	}
	wrongPlace struct {
		ID string `guard:"order:#{req.ID}"`
	}
	blankKey struct {
		_ struct{} `guard:"key"`
	}
	twoTags struct {
		_ struct{} `guard:"a"`
		_ struct{} `guard:"b"`
	}
	markedInside struct {
		Tenant string `guard:"key"`
		Ref    *struct {
			ID string `guard:"key"`
		}
	}
	markedBase struct {
		Region string `guard:"key"`
	}
	markedHidden struct {
		markedBase
		Region string
	}
	markedTwice struct {
		markedBase
		Next  *markedTwice
		Other markedBase
	}
	markedDeep struct {
		Tenant string `guard:"key"`
		Ref    struct{ markedBase }
	}
	markedTree struct {
		ID     string `guard:"key"`
		Parent *markedTree
		Root   *struct{ Top *markedTree }
		hidden markedBase
	}
	twoSources struct {
		_  struct{} `guard:"order"`
		ID string   `guard:"key"`
	}
	unkeyable struct {
		At struct{ X int } `guard:"key"`
	}
	skips struct {
		_ struct{} `guard:"order; busy=skip; outage=fail; one-key"`
	}
	embedsMistake struct {
		unexported
	}
	shadows struct {
		Account
		IBAN string `guard:"key"`
	}
	plain struct{ ID string }
)

var _ = embedsMistake{unexported{id: ""}} // fields that only reflection uses

func TestRequestTagMistakes(t *testing.T) {
	l := memlock.New()
	fallback := guard.Fallback(func(context.Context, skips, error) (int, error) { return 0, nil })
	tests := []struct {
		err  error
		want []string
	}{
		{tryFunc[typo](l), []string{`guard "typo"`, "typo._", `unknown attribute "wiat"`, `did you mean wait?`, "offset 7"}},
		{tryFunc[unknownField](l), []string{`guard "unknownField"`, "offset 12", "did you mean ID?"}},
		{tryFunc[unexported](l), []string{`guard "unexported"`, "unexported.id", "not exported"}},
		{tryFunc[embedsMistake](l), []string{`guard "embedsMistake"`, "unexported.id"}},
		{tryFunc[shadows](l), []string{`guard "shadows"`, "shadows.IBAN", "another field IBAN"}},
		{tryFunc[wrongPlace](l), []string{"wrongPlace.ID", "want `key`", "blank field"}},
		{tryFunc[blankKey](l), []string{"blankKey._", "no value"}},
		{tryFunc[twoTags](l), []string{"twoTags._", "second"}},
		{tryFunc[twoSources](l), []string{`guard "twoSources"`, "two sources of keys"}},
		{tryFunc[unkeyable](l, guard.Name("n")), []string{`guard "n"`, "key:", "offset"}},
		{tryFunc[skips](l, fallback), []string{`guard "skips"`, "Fallback", "busy=skip"}},
		{tryFunc[plain](l), []string{`guard "plain"`, "no key"}},
		{tryFunc[typo](l, guard.Name("mine")), []string{`guard "mine"`}},
	}
	for _, tt := range tests {
		for _, want := range tt.want {
			if tt.err == nil || !strings.Contains(tt.err.Error(), want) {
				t.Errorf("error %v, want one with %s", tt.err, want)
			}
		}
	}
}

// tryFunc returns what Func says to a request type.
func tryFunc[Req any](l lock.Locker, opts ...guard.Option) error {
	g, err := guard.New(l, opts...)
	if err != nil {
		return err
	}
	_, err = guard.Func(g, func(context.Context, Req) (int, error) { return 0, nil })
	return checkRequest(g, reflect.TypeFor[Req](), err)
}
