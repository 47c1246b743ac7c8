package run

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

// What an expression hands to a function fits its parameter as it is, or is refused: an argument that was cut would be
// another request's.
func TestArgumentsAtTheirEdges(t *testing.T) {
	var noText *string
	text := "x"
	for _, tt := range []struct {
		name  string
		fn    any
		arg   any
		want  any
		fault string
	}{
		// Texts.
		{"an empty text", func(s string) string { return s }, "", "", ""},
		{"no UTF-8", func(s string) string { return s }, "\xff", "\xff", ""},
		{"a named text", func(s string) string { return s }, tenant("x"), "x", ""},
		{"a text for a named one", func(s tenant) tenant { return s }, "x", tenant("x"), ""},
		{"a pointer to a text", func(s string) string { return s }, &text, "x", ""},
		{"a pointer for a pointer", func(s *string) string { return *s }, &text, "x", ""},
		{"a nil pointer for a text", func(s string) string { return s }, noText, nil, "passes nil to a function"},
		{"a nil pointer for a pointer", func(s *string) bool { return s == nil }, noText, true, ""},
		{"nil", func(s string) string { return s }, nil, nil, "passes nil to a function"},
		{"nil for any", func(x any) bool { return x == nil }, nil, nil, "passes nil to a function"},
		{"a number for a text", func(s string) string { return s }, 65, nil, "passes a value of type int where string is wanted"},
		// Numbers.
		{"the largest that fits", func(n int8) int8 { return n }, 127, int8(127), ""},
		{"one above", func(n int8) int8 { return n }, 128, nil, "passes a number that does not fit"},
		{"the smallest that fits", func(n int8) int8 { return n }, -128, int8(-128), ""},
		{"one below", func(n int8) int8 { return n }, -129, nil, "passes a number that does not fit"},
		{"minus one without a sign", func(n uint64) uint64 { return n }, -1, nil, "passes a number that does not fit"},
		{"the largest with one", func(n int64) int64 { return n }, uint64(math.MaxUint64), nil, "passes a number that does not fit"},
		{"a float for a number", func(n int) int { return n }, 7.0, nil, "of type float64 where int is wanted"},
		{"a text for a number", func(n int) int { return n }, "7", nil, "of type string where int is wanted"},
		// Lists.
		{"a nil list", func(l []string) int { return len(l) }, []string(nil), 0, ""},
		{"an empty list", func(l []string) int { return len(l) }, []string{}, 0, ""},
		{"a list of named texts", func(l []string) string { return strings.Join(l, "+") }, []tenant{"a", "b"}, "a+b", ""},
		{"a list of any", func(l []int8) int8 { return l[1] }, []any{1, 2}, int8(2), ""},
		{"a list of any with nil in it", func(l []string) int { return len(l) }, []any{"a", nil}, nil, "passes nil to a function"},
		{"a list with a number that does not fit", func(l []int8) int { return len(l) }, []int{1, 300}, nil, "passes a number that does not fit"},
		{"a list for any, with its own type", func(x any) bool { _, ok := x.([]tenant); return ok }, []tenant{"a"}, true, ""},
		{"a list for a text", func(s string) string { return s }, []string{"a"}, nil, "of type []string where string is wanted"},
		{"bytes at the limit", func(b []byte) int { return len(b) }, make([]byte, MaxBytes), MaxBytes, ""},
		{"bytes one above", func(b []byte) int { return len(b) }, make([]byte, MaxBytes+1), nil, "takes or makes too much text"},
		{"texts at the limit", func(l []string) int { return len(l) }, make([]string, MaxBytes/16), MaxBytes / 16, ""},
		{"texts one above", func(l []string) int { return len(l) }, make([]string, MaxBytes/16+1), nil, "takes or makes too much text"},
		{"lists of lists above", func(l [][]byte) int { return len(l) }, [][]byte{make([]byte, MaxBytes)}, nil, "takes or makes too much text"},
	} {
		f, err := NewFunction("f", tt.fn)
		if err != nil {
			t.Fatal(err)
		}
		st := NewState(context.Background(), nil, nil)
		got, err := f.Call(st, []any{tt.arg})
		if _, ok := errors.AsType[*Fault](err); got != tt.want || ok != (tt.fault != "") || ok && !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("%s: %v, %v, want %v, %q", tt.name, got, err, tt.want, tt.fault)
		}
		st.Release()
	}
}

// A function gets a copy of a list in a list, too: sorting it changes nothing for the handler.
func TestListsInListsAreCopies(t *testing.T) {
	lines := [][]string{{"b", "a"}, nil}
	f, err := NewFunction("f", func(l [][]string) int { l[0][0], l[1] = "changed", []string{"changed"}; return 0 })
	if err != nil {
		t.Fatal(err)
	}
	st := NewState(context.Background(), nil, nil)
	defer st.Release()
	if _, err := f.Call(st, []any{lines}); err != nil || !reflect.DeepEqual(lines, [][]string{{"b", "a"}, nil}) {
		t.Errorf("the request has become %q, %v", lines, err)
	}
}

// A context that is nil is handed on as nil, and is no panic of reflect.
func TestANilContextIsHandedOn(t *testing.T) {
	f, err := NewFunction("f", func(ctx context.Context) bool { return ctx == nil })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Call(&State{}, nil); err != nil || got != true {
		t.Errorf("Call = %v, %v, want true", got, err)
	}
}

// The number of arguments is known at start, with a context or without one, and of a variadic function at least.
func TestTooManyArguments(t *testing.T) {
	for _, tt := range []struct {
		fn  any
		fit []bool // by the number of arguments
	}{
		{func() int { return 0 }, []bool{true, false}},
		{func(context.Context) int { return 0 }, []bool{true, false}},
		{func(context.Context, string) int { return 0 }, []bool{false, true, false}},
		{func(...string) int { return 0 }, []bool{true, true, true}},
		{func(context.Context, string, ...string) int { return 0 }, []bool{false, true, true, true}},
	} {
		f, err := NewFunction("f", tt.fn)
		if err != nil {
			t.Fatal(err)
		}
		for n, fits := range tt.fit {
			args := make([]reflect.Type, n)
			for i := range args {
				args[i] = anyType // which is looked at when there is a value
			}
			if _, err := f.Check(args); (err == nil) != fits {
				t.Errorf("%T with %d arguments: %v, want it to fit: %v", tt.fn, n, err, fits)
			}
		}
	}
}
