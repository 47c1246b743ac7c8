package keyexpr

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// A reason is one line below its place, with tabs kept.
func TestDetail(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"order:#{req.OrdreID}", "keyexpr: unknown field OrdreID of payRequest, did you mean OrderID?\n    order:#{req.OrdreID}\n                ^"},
		{"é→#{reqq.x}", "keyexpr: unknown name reqq, did you mean req?\n    é→#{reqq.x}\n        ^"},
		{"o:#{\n\treq.Nope}!", "\n    \treq.Nope}!\n    \t    ^"},
		{"o:#{", "    o:#{\n      ^"},
	} {
		_, err := Parse(tt.text, testRoots())
		fault, ok := errors.AsType[*Error](err)
		if !ok || !strings.HasSuffix(fault.Detail(), tt.want) {
			t.Errorf("Detail of %q is\n%v\nwant\n%s", tt.text, fault, tt.want)
		}
	}
	if got := (&Error{Text: "", Reason: "r"}).Detail(); got != "keyexpr: r\n    \n    ^" {
		t.Errorf("Detail = %q", got)
	}
}

func TestTextsAreBounded(t *testing.T) {
	for _, text := range []string{strings.Repeat("a", maxText+1), "o:#{" + strings.Repeat("!", 300) + "true}"} {
		_, err := Parse(text, testRoots())
		if _, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("Parse(%.20q) = %v, want an *Error", text, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, text := range []string{"o:#{anything.at.all}", "#{f(x)}", "fixed"} {
		if err := Check(text); err != nil {
			t.Errorf("Check(%q) = %v", text, err)
		}
	}
	for _, text := range []string{"", "o:#{", "o:#{a b}", "{#x}", "#{a matches '('}"} {
		if _, ok := errors.AsType[*Error](Check(text)); !ok {
			t.Errorf("Check(%q) finds nothing", text)
		}
	}
	if err := CheckCondition("anything.at > 5"); err != nil {
		t.Errorf("CheckCondition = %v", err)
	}
	if _, ok := errors.AsType[*Error](CheckCondition("a &&")); !ok {
		t.Error("CheckCondition finds nothing")
	}
}

// A condition that names no fact is the same for all requests, unless a function may say something else each time.
func TestConstantConditions(t *testing.T) {
	funcs := []Option{Func("next", func() int { return 7 }), Func("ok", func(string) bool { return true })}
	for _, tt := range []struct {
		text      string
		holds, ok bool
	}{
		{"true", true, true},
		{"not (1 == 1)", false, true},
		{"'a' in ['a', 'b']", true, true},
		{"1.5 > 2", false, true},
		{"int('x') == 1", false, false}, // it fails for all
		{"req.OrderID == 'refund'", false, false},
		{"req.OrderID != req.OrderID", false, false},
		{"next() < next()", false, false},
		{"ok('x')", false, false},
		{"now() > now()", false, false},
	} {
		c, err := ParseCondition(tt.text, testRoots(), funcs...)
		if err != nil {
			t.Errorf("ParseCondition(%q): %v", tt.text, err)
			continue
		}
		if holds, ok := c.Constant(); holds != tt.holds || ok != tt.ok {
			t.Errorf("Constant(%q) = %v, %v, want %v, %v", tt.text, holds, ok, tt.holds, tt.ok)
		}
	}
	c, err := ParseCondition("req.seq > 5 && header.Tenant == 'acme'", testRoots())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Fields(), []string{"header.Tenant", "req.Seq"}; !slices.Equal(got, want) {
		t.Errorf("Fields() = %q, want %q", got, want)
	}
}

func TestFactsAreAskedOnceAndOnlyIfUsed(t *testing.T) {
	tmpl := mustParse(t, "#{req.OrderID}:#{lower(req.Tenant)}:#{header.Tenant}:#{coalesce(req.OrderID, body.id)}")
	if got, want := tmpl.Roots(), []string{"body", "header", "req"}; !slices.Equal(got, want) {
		t.Errorf("Roots() = %v, want %v", got, want)
	}
	asked := map[string]int{}
	facts := testFacts(nil)
	for range 2 {
		clear(asked)
		_, err := tmpl.Expand(t.Context(), func(root string) (any, error) {
			asked[root]++
			return facts(root)
		})
		if err != nil || len(asked) != 2 || asked["req"] != 1 || asked["header"] != 1 {
			t.Errorf("asked for %v, %v, want req and header once", asked, err)
		}
	}
}

func TestErrorOfFactsIsTheCallers(t *testing.T) {
	for _, text := range []string{"o:#{body.id}", "o:#{lower(body.id)}", "#{map(body, .id)}", "#{coalesce(body.id, 'x')}"} {
		_, err := mustParse(t, text).Expand(t.Context(), func(string) (any, error) { return nil, io.ErrUnexpectedEOF })
		if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrValue) {
			t.Errorf("Expand(%q) = %v, want the error of facts alone", text, err)
		}
	}
}

// An error of a Lookup is the caller's, also where a default stands ready.
func TestErrorOfALookup(t *testing.T) {
	twice := errors.New("there twice")
	facts := func(string) (any, error) {
		return Lookup(func(string) (string, bool, error) { return "", false, twice }), nil
	}
	for _, text := range []string{"#{header.A}", "#{header.A ?? 'none'}", "#{coalesce(header.A, 'none')}", "#{lower(header.A)}"} {
		_, err := mustParse(t, text).Expand(t.Context(), facts)
		if !errors.Is(err, twice) || errors.Is(err, ErrValue) {
			t.Errorf("Expand(%q) = %v, want the error of the lookup alone", text, err)
		}
	}
	c, err := ParseCondition("header.A == nil", testRoots())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Eval(t.Context(), facts); !errors.Is(err, twice) {
		t.Errorf("Eval = %v, want the error of the lookup", err)
	}
}

func TestPanicOfFactsGoesOn(t *testing.T) {
	for _, text := range []string{"o:#{body.id}", "o:#{lower(body.id)}", "#{map(body, .id)}"} {
		func() {
			defer func() {
				if r := recover(); r != "mine" {
					t.Errorf("%s: recovered %v, want the panic of facts", text, r)
				}
			}()
			_, _ = mustParse(t, text).Expand(t.Context(), func(string) (any, error) { panic("mine") })
		}()
	}
}

func TestWrongFactIsNoFaultOfTheRequest(t *testing.T) {
	for _, text := range []string{"o:#{method}", "o:#{header.A}"} {
		_, err := mustParse(t, text).Expand(t.Context(), func(string) (any, error) { return 7, nil })
		if err == nil || errors.Is(err, ErrValue) || !strings.Contains(err.Error(), "was declared as") {
			t.Errorf("Expand(%q) = %v, want an error that is not ErrValue", text, err)
		}
	}
}

// The words of the engine may quote a value, and are in no error of a request.
func TestErrorsHideValues(t *testing.T) {
	req := &payRequest{OrderID: "secret", Any: map[string]string{"secret": "secret"}}
	for _, text := range []string{
		"#{int(req.OrderID)}", "#{req.Any}", "#{req.Any.x.y}", "#{req.Broken()}", "#{req.Any < 5}", "#{lower(req.Any)}", "#{req.Any ? 1 : 2}", "#{not req.Any}",
		"#{req.Any contains 'x'}", "#{'x' contains req.Any}", "#{map(req.Any, #)}", "#{fmtTime(req.Any, '2006')}", "#{mod(req.Any, 5)}",
		"#{first(req.Any)}", "#{req.Any[5]}", "#{req.Any.secret.x}",
	} {
		_, err := expand(t, text, req)
		if !errors.Is(err, ErrValue) || strings.Contains(err.Error(), "secret ") || strings.HasSuffix(err.Error(), "secret") {
			t.Errorf("Expand(%q) = %v, want ErrValue without the value", text, err)
		}
	}
}

// AppendKeysOf is given a place and not a value, and there is one for all roots.
func TestAppendKeysOfMistakes(t *testing.T) {
	tmpl := mustParse(t, "order:#{req.OrderID}")
	for _, tt := range []struct {
		request any
		want    string
	}{
		{payRequest{OrderID: "7"}, "is given by a keyexpr.payRequest, want a pointer to it"},
		{(*payRequest)(nil), "is given by a *keyexpr.payRequest, want a pointer to it"},
		{nil, "is given by a <nil>, want a pointer to it"},
		{new("7"), "is of type string, and was declared as *keyexpr.payRequest"},
		{&payRequest{OrderID: "7"}, "is of type keyexpr.payRequest, and was declared as *keyexpr.payRequest"},
	} {
		keys, err := tmpl.AppendKeysOf(t.Context(), nil, tt.request)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, ErrValue) {
			t.Errorf("AppendKeysOf(%T) = %q, %v; want an error that says %q, and is not the request's", tt.request, keys, err, tt.want)
		}
	}
	req := &payRequest{OrderID: "7"}
	keys, err := tmpl.AppendKeysOf(t.Context(), []string{"before"}, &req)
	if err != nil || !slices.Equal(keys, []string{"before", "order:7"}) {
		t.Errorf("AppendKeysOf = %q, %v", keys, err)
	}
}

func TestBadUserFunctions(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fn     any
		reason string
	}{
		{"", strings.ToLower, "can't be called"},
		{"a-b", strings.ToLower, "can't be called"},
		{"or", strings.ToLower, "can't be called"},
		{"$env", strings.ToLower, "can't be called"},
		{"lower", strings.ToLower, "already"},
		{"join", strings.ToLower, "already"},
		{"map", strings.ToLower, "already"},
		{"req", strings.ToLower, "already"},
		{"f", nil, "is of type <nil>"},
		{"f", "x", "is of type string"},
		{"f", (func() string)(nil), "is of type func() string"},
		{"f", func() {}, "must return a value"},
		{"f", func() error { return nil }, "must return a value"},
		{"f", func() (string, string) { return "", "" }, "must return a value"},
	} {
		if _, err := Parse("x", Roots{"req": {}}, Func(tt.name, tt.fn)); err == nil || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("Func(%q, %T) = %v, want %q", tt.name, tt.fn, err, tt.reason)
		}
	}
}

// A user's function that sorts what it gets does not sort the request.
func TestFunctionsGetCopies(t *testing.T) {
	head := Func("head", func(list []string) string { slices.Sort(list); return list[0] })
	least := Func("least", func(list any) string { l := list.([]string); slices.Sort(l); return l[0] })
	deep := Func("deep", func(lists [][]string) string { slices.Sort(lists[0]); return lists[0][0] })
	req, lists := &payRequest{Tags: []string{"b", "a"}}, [][]string{{"d", "c"}}
	roots := Roots{"req": TypeFor[*payRequest](), "lists": TypeFor[[][]string]()}
	tmpl, err := Parse("#{head(req.Tags)}:#{least(req.Tags)}:#{deep(lists)}", roots, head, least, deep)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := tmpl.Expand(t.Context(), func(root string) (any, error) {
		if root == "lists" {
			return lists, nil
		}
		return req, nil
	})
	if err != nil || keys[0] != "a:a:c" || req.Tags[0] != "b" || lists[0][0] != "d" {
		t.Errorf("Expand = %q, %v; the request became %q, %q", keys, err, req.Tags, lists)
	}
}

// A panic in what a text calls is an error with the value and the place, for the log. The request is to blame for its own
// methods, and a function for itself.
func TestPanicsSayWhere(t *testing.T) {
	roots := Roots{"req": TypeFor[*rudeRequest]()}
	boom := Func("boom", func(string) string { panic("secret function") })
	facts := func(string) (any, error) { return &rudeRequest{ID: "7", Any: panicsAsString{}}, nil }
	for _, text := range []string{"#{req.Boom()}", "#{req.Any}", "#{hash(req.Text)}", "#{map(['x'], req.Boom())}", "#{boom(req.ID)}", "#{coalesce(boom(req.ID), 'x')}"} {
		tmpl, err := Parse(text, roots, boom, OneKey())
		if err != nil {
			t.Fatal(err)
		}
		_, err = tmpl.Expand(t.Context(), facts)
		if err == nil || !strings.Contains(err.Error(), "panicked: secret ") || !strings.Contains(err.Error(), "_test.go:") || errors.Is(err, ErrValue) == strings.Contains(text, "boom") {
			t.Errorf("Expand(%q) = %v, want the value and the place", text, err)
		}
	}
	for _, text := range []string{"req.Boom() == 'x'", "req.Index() != ''", "any(['x'], req.Boom() == #)"} {
		c, err := ParseCondition(text, roots)
		if err != nil {
			t.Fatal(err)
		}
		if holds, err := c.Eval(context.Background(), facts); holds || !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), "panicked: ") {
			t.Errorf("Eval(%q) = %v, %v", text, holds, err)
		}
	}
}

// A template works after a panic as before: the state that it ran with is given back clean.
func TestAfterAPanic(t *testing.T) {
	tmpl, err := Parse("#{map(['a', 'b'], req.ID == 'bad' ? req.Boom() : key(#, req.ID))}", Roots{"req": TypeFor[*rudeRequest]()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		id := []string{"7", "bad"}[i%2]
		keys, err := expandOf(t, tmpl, &rudeRequest{ID: id})
		if id == "bad" && err == nil || id == "7" && (err != nil || len(keys) != 2 || keys[1] != "b:7") {
			t.Fatalf("Expand for %s = %q, %v", id, keys, err)
		}
	}
}
