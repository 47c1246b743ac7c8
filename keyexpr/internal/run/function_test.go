package run

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

// What may be a function of the user's: a value comes back, and perhaps an error.
func TestNewFunction(t *testing.T) {
	var none func() string
	for _, tt := range []struct {
		fn     any
		reason string // "" if it may be one
	}{
		{func() string { return "" }, ""},
		{func(string) (string, error) { return "", nil }, ""},
		{func(context.Context, string) string { return "" }, ""},
		{func(...string) int { return 0 }, ""},
		{nil, "is of type <nil>"},
		{"text", "is of type string"},
		{none, "is of type func() string"},
		{func() {}, "must return a value"},
		{func() error { return nil }, "must return a value"},
		{func() (string, string) { return "", "" }, "must return a value"},
		{func() (string, error, error) { return "", nil, nil }, "must return a value"},
	} {
		f, err := NewFunction("f", tt.fn)
		if tt.reason == "" && (err != nil || f == nil) || tt.reason != "" && (err == nil || !strings.Contains(err.Error(), tt.reason)) {
			t.Errorf("NewFunction(%T) = %v, want %q", tt.fn, err, tt.reason)
		}
	}
}

// Arguments are checked as far as their types are known at start: what may fit is let through.
func TestFunctionCheck(t *testing.T) {
	type stamp struct{ ID string }
	anyOf, text, number := anyType, reflect.TypeFor[string](), reflect.TypeFor[int]()
	for _, tt := range []struct {
		name string
		fn   any
		args []reflect.Type
		ok   bool
	}{
		{"no argument", func() string { return "" }, nil, true},
		{"one too many", func() string { return "" }, []reflect.Type{text}, false},
		{"one too few", func(string) string { return "" }, nil, false},
		{"a context is no argument", func(context.Context, string) string { return "" }, []reflect.Type{text}, true},
		{"a context alone", func(context.Context) string { return "" }, nil, true},
		{"the same type", func(string) string { return "" }, []reflect.Type{text}, true},
		{"a type that is not known", func(string) string { return "" }, []reflect.Type{anyOf}, true},
		{"a named text for a text", func(string) string { return "" }, []reflect.Type{reflect.TypeFor[tenant]()}, true},
		{"a text for a named text", func(tenant) string { return "" }, []reflect.Type{text}, true},
		{"a pointer for what it points to", func(string) string { return "" }, []reflect.Type{reflect.TypeFor[*string]()}, true},
		{"a number for a text", func(string) string { return "" }, []reflect.Type{number}, false},
		{"a text for a number", func(int) string { return "" }, []reflect.Type{text}, false},
		{"a number of another size", func(int8) string { return "" }, []reflect.Type{number}, true},
		{"a bool for a bool", func(bool) string { return "" }, []reflect.Type{reflect.TypeFor[bool]()}, true},
		{"a struct", func(stamp) string { return "" }, []reflect.Type{reflect.TypeFor[stamp]()}, true},
		{"another struct", func(stamp) string { return "" }, []reflect.Type{reflect.TypeFor[order]()}, false},
		{"a list for a list", func([]string) string { return "" }, []reflect.Type{reflect.TypeFor[[]tenant]()}, true},
		{"a list of others", func([]string) string { return "" }, []reflect.Type{reflect.TypeFor[[]int]()}, false},
		{"a list for any", func(any) string { return "" }, []reflect.Type{reflect.TypeFor[[]int]()}, true},
		{"none of many", func(...string) string { return "" }, nil, true},
		{"several of many", func(...string) string { return "" }, []reflect.Type{text, text, text}, true},
		{"a wrong one of many", func(...string) string { return "" }, []reflect.Type{text, number}, false},
		{"one in front of many", func(int, ...string) string { return "" }, nil, false},
	} {
		f, err := NewFunction("f", tt.fn)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := f.Check(tt.args); (err == nil) != tt.ok || err == nil && out != text {
			t.Errorf("%s: Check = %v, %v, want it to pass: %v", tt.name, out, err, tt.ok)
		}
	}
}

// Values are passed as what the function takes, or refused: never cut to size.
func TestFunctionCall(t *testing.T) {
	text := "x"
	var none *string
	for _, tt := range []struct {
		name  string
		fn    any
		args  []any
		want  any
		fault string
	}{
		{"texts", func(a, b string) string { return a + b }, []any{"x", "y"}, "xy", ""},
		{"a named text", func(s string) string { return s + "!" }, []any{tenant("acme")}, "acme!", ""},
		{"for a named text", func(s tenant) tenant { return s }, []any{"acme"}, tenant("acme"), ""},
		{"a pointer", func(s string) string { return s + "!" }, []any{&text}, "x!", ""},
		{"for a pointer", func(s *string) bool { return s == &text }, []any{&text}, true, ""},
		{"a number that fits", func(n int8) int8 { return n }, []any{127}, int8(127), ""},
		{"a number that does not fit", func(n int8) int8 { return n }, []any{128}, nil, "a number that does not fit"},
		{"a negative number for a positive one", func(n uint) uint { return n }, []any{-1}, nil, "a number that does not fit"},
		{"a large number for a signed one", func(n int64) int64 { return n }, []any{uint64(1 << 63)}, nil, "a number that does not fit"},
		{"a number for any", func(v any) any { return v }, []any{7}, 7, ""},
		{"nil", func(s string) string { return s }, []any{nil}, nil, "passes nil"},
		{"a pointer to nothing", func(s string) string { return s }, []any{none}, nil, "passes nil"},
		{"a number for a text", func(s string) string { return s }, []any{7}, nil, "of type int where string is wanted"},
		{"a list", func(l []string) int { return len(l) }, []any{[]string{"a", "b"}}, 2, ""},
		{"a list of named texts", func(l []string) string { return strings.Join(l, ",") }, []any{[]tenant{"a", "b"}}, "a,b", ""},
		{"a list of any", func(l []string) string { return strings.Join(l, ",") }, []any{[]any{"a", tenant("b")}}, "a,b", ""},
		{"a list with a wrong one", func(l []string) string { return strings.Join(l, ",") }, []any{[]any{"a", 7}}, nil, "of type int where string is wanted"},
		{"a list in any", func(v any) int { return len(v.([]int)) }, []any{[]int{1}}, 1, ""},
		{"many", func(l ...string) string { return strings.Join(l, ",") }, []any{"a", "b", tenant("c")}, "a,b,c", ""},
		{"none of many", func(l ...string) int { return len(l) }, nil, 0, ""},
		{"the context", func(ctx context.Context, s string) any { return ctx.Value(label("who")).(string) + s }, []any{"!"}, "ada!", ""},
		{"no error", func() (string, error) { return "x", nil }, nil, "x", ""},
	} {
		f, err := NewFunction("f", tt.fn)
		if err != nil {
			t.Fatal(err)
		}
		st := NewState(context.WithValue(context.Background(), label("who"), "ada"), nil, nil)
		got, err := f.Call(st, tt.args)
		st.Release()
		if tt.fault == "" && (err != nil || got != tt.want) {
			t.Errorf("%s: Call = %v, %v, want %v", tt.name, got, err, tt.want)
		}
		if _, ok := errors.AsType[*Fault](err); tt.fault != "" && (!ok || !strings.Contains(err.Error(), tt.fault)) {
			t.Errorf("%s: Call = %v, %v, want a fault with %q", tt.name, got, err, tt.fault)
		}
	}
}

// An error of a function, and its panic, are the function's and not the request's.
func TestFunctionFails(t *testing.T) {
	for _, tt := range []struct {
		fn   any
		want string
	}{
		{func() (string, error) { return "", io.ErrUnexpectedEOF }, "function f: unexpected EOF"},
		{func() string { panic("boom") }, "function f: panicked: boom (at "},
		{func() string { return []string{}[len("x")] }, "index out of range [1] with length 0 (at "},
		{func() string { panic(io.ErrUnexpectedEOF) }, "panicked: unexpected EOF"},
	} {
		f, err := NewFunction("f", tt.fn)
		if err != nil {
			t.Fatal(err)
		}
		st := NewState(context.Background(), nil, nil)
		_, err = f.Call(st, nil)
		st.Release()
		call, ok := errors.AsType[*OutsideError](err)
		if !ok || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Call = %v, want %q", err, tt.want)
			continue
		}
		if err := Blame("f()", call); errors.Is(err, ErrValue) {
			t.Errorf("Blame = %v, which is not the request's fault", err)
		}
	}
}

// A function that writes to a list it was given writes to its own.
func TestFunctionsGetTheirOwnLists(t *testing.T) {
	write := func(l []string) string { l[0] = "written"; return "" }
	nested := func(l [][]string) string { l[0][0] = "written"; return "" }
	f, _ := NewFunction("f", write)
	g, _ := NewFunction("g", nested)
	flat, deep, named := []string{"a"}, [][]string{{"a"}}, []tenant{"a"}
	st := NewState(context.Background(), nil, nil)
	defer st.Release()
	for _, call := range []func() error{
		func() error { _, err := f.Call(st, []any{flat}); return err },
		func() error { _, err := f.Call(st, []any{&flat}); return err },
		func() error { _, err := f.Call(st, []any{named}); return err },
		func() error { _, err := g.Call(st, []any{deep}); return err },
	} {
		if err := call(); err != nil {
			t.Error(err)
		}
	}
	if flat[0] != "a" || deep[0][0] != "a" || named[0] != "a" {
		t.Errorf("the request became %v, %v, %v", flat, deep, named)
	}
	st.bytes = MaxBytes - 10
	if _, err := f.Call(st, []any{flat}); err == nil {
		t.Error("the copy was not charged")
	}
}
