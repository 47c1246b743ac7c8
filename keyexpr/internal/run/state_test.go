package run

import (
	"context"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
)

// The largest value that a function is handed is charged with all of its memory, as Interface copies it.
func TestPlainChargesCopies(t *testing.T) {
	var none *order
	type large struct{ _ [MaxBytes]byte }
	type tooLarge struct{ _ [MaxBytes + 1]byte }
	for _, tt := range []struct {
		name  string
		v     reflect.Value
		want  any
		bytes int
		ok    bool
	}{
		{"nothing", reflect.Value{}, nil, 0, true},
		{"a nil pointer", reflect.ValueOf(none), none, 0, true},
		{"a text, which is shared", reflect.ValueOf(strings.Repeat("x", MaxBytes+1)), strings.Repeat("x", MaxBytes+1), 0, true},
		{"a struct", reflect.ValueOf(buried{"x"}), buried{"x"}, int(reflect.TypeFor[buried]().Size()), true},
		{"an array", reflect.ValueOf([4]byte{1}), [4]byte{1}, 4, true},
		{"an empty struct", reflect.ValueOf(struct{}{}), struct{}{}, 0, true},
		{"all that there is", reflect.Zero(reflect.TypeFor[large]()), large{}, MaxBytes, true},
		{"one byte more", reflect.Zero(reflect.TypeFor[tooLarge]()), nil, 0, false},
	} {
		st := NewState(context.Background(), nil, nil)
		got, err := st.Plain(tt.v)
		if _, bytes := st.Spent(); got != tt.want || (err == nil) != tt.ok || bytes != tt.bytes {
			t.Errorf("%s: Plain = a %T, %v, for %d bytes, want %d", tt.name, got, err, bytes, tt.bytes)
		}
		st.Release()
	}
}

// A state in the pool keeps the room of usual keys, and none of that which one huge request took.
func TestReleaseLetsGoOfLongKeys(t *testing.T) {
	for _, tt := range []struct {
		room int
		kept bool
	}{{0, true}, {MaxKey, true}, {16 * MaxKey, true}, {16*MaxKey + 1, false}, {MaxBytes, false}} {
		st := &State{buf: make([]byte, 0, tt.room)}
		st.Release()
		if (st.buf != nil) != tt.kept {
			t.Errorf("a buffer of %d bytes is kept: %v, want %v", tt.room, st.buf != nil, tt.kept)
		}
	}
}

// A refused charge takes nothing, so that what fits is still there for what comes next.
func TestRefusedChargesTakeNothing(t *testing.T) {
	for _, tt := range []struct {
		name         string
		charge       func(st *State) error
		steps, bytes int
	}{
		{"bytes", func(st *State) error { return st.Spend(MaxBytes + 1) }, 0, 0},
		{"steps", func(st *State) error { return st.Step(MaxSteps + 1) }, 0, 0},
		{"a list", func(st *State) error { return st.List(math.MaxInt / 24) }, 0, 0},
		{"a list of more values than steps", func(st *State) error { return st.List(MaxSteps + 1) }, 0, 0},
		{"a sort", func(st *State) error { return st.Sort(MaxSteps) }, 0, 0},
	} {
		st := NewState(context.Background(), nil, nil)
		err := tt.charge(st)
		if steps, bytes := st.Spent(); err == nil || steps != tt.steps || bytes != tt.bytes {
			t.Errorf("%s: %v, and %d steps and %d bytes are gone", tt.name, err, steps, bytes)
		}
		if err := errors.Join(st.Step(MaxSteps-tt.steps), st.Spend(MaxBytes-tt.bytes)); err != nil {
			t.Errorf("%s: %v for what was left", tt.name, err)
		}
		st.Release()
	}
}

// What the program's own facts panic with is no fault of the request, and is not hidden in an error. What a value of the
// request panics with is one, and says where.
func TestWhosePanicItIs(t *testing.T) {
	roots := []Root{{Name: "v"}, {Name: "header", Lookup: true}}
	byName := Part{Src: "header.a", Path: &Path{Root: 1, Steps: []Step{{Lookup: true, By: "a"}}}, Escape: Before(nil)}
	for _, tt := range []struct {
		name   string
		part   Part
		facts  func(string) (any, error)
		passes bool
	}{
		{"facts", value0(), func(string) (any, error) { panic("secret") }, true},
		{"a lookup", byName, func(string) (any, error) {
			return lookupFunc(func(string) (string, bool, error) { panic("secret") }), nil
		}, true},
		{"a String method", value0(), func(string) (any, error) { return panicking{}, nil }, false},
	} {
		p := &Program{Text: "#{v}", Roots: roots, Parts: []Part{tt.part}}
		var passed any
		var err error
		func() {
			defer func() { passed = recover() }()
			_, err = p.Expand(context.Background(), nil, tt.facts, nil)
		}()
		if tt.passes && passed != "secret" {
			t.Errorf("%s: the panic became %v, %v", tt.name, passed, err)
		}
		if panicked, ok := errors.AsType[*PanicError](err); !tt.passes && (!ok || !strings.Contains(panicked.Place, "state_test.go:") || !errors.Is(err, ErrValue)) {
			t.Errorf("%s: %v, %v, want an error that says where", tt.name, passed, err)
		}
	}
}

// panicking is an id whose author was not careful.
type panicking struct{}

func (panicking) String() string { panic("boom") }

// value0 is a part that is the first root itself.
func value0() Part { return Part{Src: "v", Path: &Path{}, Escape: Before(nil)} }

// A header by its name is read without a path: nothing is nil, an empty one is empty, and its error is the adapter's.
func TestLookup(t *testing.T) {
	facts := func(string) (any, error) {
		return lookupFunc(func(name string) (string, bool, error) {
			switch name {
			case "none":
				return "lost", false, nil
			case "bad":
				return "lost", true, io.ErrUnexpectedEOF
			}
			return strings.TrimPrefix(name, "is "), true, nil
		}), nil
	}
	for _, tt := range []struct {
		name   string
		escape *Escape
		want   string
		err    error
	}{
		{"is a", Before(nil), "xa", nil},
		{"is a:b", Before([]rune{':'}), "xa%3Ab", nil},
		{"is a:b", nil, "xa:b", nil},
		{"is \xff", Before(nil), "x%FF", nil},
		{"is ", Before(nil), "x", ErrEmpty},
		{"none", Before(nil), "x", ErrNil},
		{"bad", Before(nil), "x", io.ErrUnexpectedEOF},
		{"is " + strings.Repeat("y", MaxBytes), nil, "x" + strings.Repeat("y", MaxBytes), nil},
		{"is " + strings.Repeat("y", MaxBytes+1), nil, "x", ErrBytes},
	} {
		st := NewState(context.Background(), facts, []Root{{Name: "header", Lookup: true}})
		hole := Part{Path: &Path{Steps: []Step{{Lookup: true, By: tt.name}}}, Leaf: LeafLookup, Escape: tt.escape}
		got, err := st.path([]byte("x"), &hole)
		if string(got) != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("path(%.20q) = %.20q, %v, want %.20q, %v", tt.name, got, err, tt.want, tt.err)
		}
		if fact, ok := errors.AsType[*OutsideError](err); ok != (tt.err == io.ErrUnexpectedEOF) || ok && fact.What != "root header" {
			t.Errorf("path(%.20q): %v is an error of the facts: %v", tt.name, err, ok)
		}
		st.Release()
	}
}

// What a value becomes in the key is charged before it is made: its bytes, and two more for each that may be escaped.
func TestTextIsChargedAsIfItWereEscaped(t *testing.T) {
	for _, tt := range []struct {
		name   string
		s      string
		escape *Escape
		ok     bool
	}{
		{"plain, at the limit", strings.Repeat("x", MaxBytes/3), Before(nil), true},
		{"plain, one above", strings.Repeat("x", MaxBytes/3+1), Before(nil), false},
		{"raw, at the limit", strings.Repeat("{", MaxBytes), nil, true},
		{"escaped, at the limit", strings.Repeat("{", MaxBytes/3), Before(nil), true},
		{"escaped, one above", strings.Repeat("{", MaxBytes/3+1), Before(nil), false},
		{"no UTF-8, at the limit", strings.Repeat("\xff", MaxBytes/3), Before(nil), true},
		{"no UTF-8, one above", strings.Repeat("\xff", MaxBytes/3+1), Before(nil), false},
		{"nothing", "", nil, false},
	} {
		st := NewState(context.Background(), nil, nil)
		got, err := st.Text(nil, tt.s, tt.escape)
		if (err == nil) != tt.ok || err != nil && len(got) > 0 {
			t.Errorf("%s: %d bytes, %v, want it to fit: %v", tt.name, len(got), err, tt.ok)
		}
		if _, bytes := st.Spent(); tt.ok && bytes < len(got) {
			t.Errorf("%s: %d bytes are charged for %d", tt.name, bytes, len(got))
		}
		st.Release()
	}
}

// Bytes are doubled by hex and read once more as text.
func TestBytesAreChargedAsHex(t *testing.T) {
	for n, ok := range map[int]bool{1: true, MaxBytes / 4: true, MaxBytes/4 + 1: false, MaxBytes: false} {
		st := NewState(context.Background(), nil, nil)
		got, err := st.Value(nil, make([]byte, n), nil)
		if (err == nil) != ok || ok && len(got) != 2*n {
			t.Errorf("%d bytes make %d, %v", n, len(got), err)
		}
		st.Release()
	}
}
