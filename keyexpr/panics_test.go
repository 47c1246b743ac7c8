package keyexpr

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// Types whose methods are the program's own, and go wrong.
type (
	panicsAsText   struct{ ID string }
	panicsAsString struct{ ID string }
	failsAsText    struct{ ID string }
	rudeRequest    struct {
		Text   panicsAsText
		String panicsAsString
		Fails  failsAsText
		Any    any
		Next   *rudeRequest
		ID     string
	}
)

func (panicsAsText) MarshalText() ([]byte, error) { panic("secret text") }
func (panicsAsString) String() string             { panic("secret string") }
func (failsAsText) MarshalText() ([]byte, error)  { return nil, errors.New("secret failure") }
func (r *rudeRequest) Name() string               { return r.ID }
func (*rudeRequest) Boom() string                 { panic(errors.New("secret error")) }
func (*rudeRequest) Index() string                { return []string{}[len("secret")] }

// A panic in what a template calls is an error with the value and the place of the panic, for the log. The request is to blame for
// its own methods, and a function for itself.
func TestPanics(t *testing.T) {
	boom := Func("boom", func(string) string { panic("secret function") })
	beyond := Func("beyond", func(s string) string { return s[len(s)+1:] })
	for _, tt := range []struct {
		text    string
		want    string // what the error says
		request bool   // it matches ErrValue
	}{
		{"#{req.Text}", "panicked: secret text (at ", true},
		{"o:#{string(req.Text) + ':'}", "panicked: secret text (at ", true},
		{"#{hash(req.Text)}", "panicked: secret text (at ", true},
		{"#{shard(req.Text, 3)}", "panicked: secret text (at ", true},
		{"#{req.String}", "panicked: secret string (at ", true},
		{"#{[req.String]}", "panicked: secret string (at ", true},
		{"#{join([req.String], ',')}", "panicked: secret string (at ", true},
		{"#{req.Any}", "panicked: secret string (at ", true},
		{"#{hash(req.Any)}", "panicked: secret string (at ", true},
		{"#{req.Boom()}", "panicked: secret error (at ", true},
		{"#{req.Boom() ?? 'none'}", "panicked: secret error (at ", true},
		{"#{or(req.Boom(), 'none')}", "panicked: secret error (at ", true},
		{"#{req.Index()}", "index out of range [6] with length 0 (at ", true},
		{"#{req.Next.Name()}", "nil pointer dereference (at ", true},
		{"#{map(['x'], req.Boom())}", "panicked: secret error (at ", true},
		{"#{boom(req.ID)}", "function boom: panicked: secret function (at ", false},
		{"#{beyond(req.ID)}", "function beyond: panicked: runtime error: slice bounds out of range", false},
		{"#{boom(req.ID) ?? 'none'}", "function boom: panicked: secret function (at ", false},
		{"#{map(['x'], boom(#))}", "function boom: panicked: secret function (at ", false},
	} {
		tmpl, err := Parse(tt.text, Roots{"req": TypeFor[*rudeRequest]()}, boom, beyond, OneKey())
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.text, err)
			continue
		}
		_, err = expandOf(t, tmpl, &rudeRequest{ID: "7", Any: panicsAsString{}})
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, ErrValue) != tt.request {
			t.Errorf("Expand(%q) = %v, want %q, and ErrValue: %v", tt.text, err, tt.want, tt.request)
		}
		if err != nil && !strings.Contains(err.Error(), "_test.go:") {
			t.Errorf("Expand(%q) = %v, which does not say where", tt.text, err)
		}
	}
}

// An error is not a panic: what it says may be the value, and is left out.
func TestFailuresOfMethodsAreQuiet(t *testing.T) {
	for _, text := range []string{"#{req.Fails}", "#{hash(req.Fails)}", "#{string(req.Fails) + '!'}"} {
		tmpl, err := Parse(text, Roots{"req": TypeFor[*rudeRequest]()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = expandOf(t, tmpl, &rudeRequest{})
		if !errors.Is(err, ErrValue) || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "does not marshal to text") {
			t.Errorf("Expand(%q) = %v", text, err)
		}
	}
}

// Conditions catch what templates catch.
func TestPanicsInConditions(t *testing.T) {
	for _, text := range []string{"req.Boom() == 'x'", "req.Index() != ''", "req.Next.Name() == ''", "any(['x'], req.Boom() == #)"} {
		c, err := ParseCondition(text, Roots{"req": TypeFor[*rudeRequest]()})
		if err != nil {
			t.Fatal(err)
		}
		holds, err := c.Eval(context.Background(), func(string) (any, error) { return &rudeRequest{}, nil })
		if holds || !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), "panicked: ") {
			t.Errorf("Eval(%q) = %v, %v", text, holds, err)
		}
	}
}

// A template works after a panic as before: the state that it ran with is given back clean.
func TestAfterAPanic(t *testing.T) {
	tmpl, err := Parse("#{map(['a', 'b'], req.ID == 'bad' ? req.Boom() : # + ':' + req.ID)}", Roots{"req": TypeFor[*rudeRequest]()})
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
