package run

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

type lookupFunc func(name string) (string, bool, error)

func (f lookupFunc) Find(name string) (string, bool, error) { return f(name) }

type order struct {
	ID    string
	Owner *owner
	Any   any
	Map   map[string]int
	Keys  map[label]string
	List  []string
	owner *owner
}

type owner struct {
	Login string
	Next  *owner
}

type label string

var orderRoots = []Root{
	{Name: "req", Type: reflect.TypeFor[*order]()},
	{Name: "header", Lookup: true},
	{Name: "any"},
}

func orderFacts(o *order) func(string) (any, error) {
	return func(root string) (any, error) {
		switch root {
		case "req":
			return o, nil
		case "header":
			return lookupFunc(func(name string) (string, bool, error) {
				switch name {
				case "none":
					return "", false, nil
				case "bad":
					return "", false, io.ErrUnexpectedEOF
				}
				return "h-" + name, true, nil
			}), nil
		}
		return o.Any, nil
	}
}

func TestFollow(t *testing.T) {
	o := &order{
		ID: "7", Owner: &owner{Login: "ada"}, Any: map[string]any{"id": "x", "list": []any{"a", nil}, "order": order{ID: "8", owner: &owner{}}, "pointer": &owner{Login: "p"}},
		Map: map[string]int{"n": 3}, Keys: map[label]string{"k": "v"}, List: []string{"a", "b"},
	}
	field := func(i int) Step { return Step{Src: "src", Field: i} }
	by := func(x any) Step { return Step{Src: "src", Fetch: true, By: x} }
	maybe := func(s Step) Step { s.Optional = true; return s }
	for _, tt := range []struct {
		name  string
		root  int
		steps []Step
		want  any
		fault string
	}{
		// Fields of a known type.
		{"a field", 0, []Step{field(0)}, "7", ""},
		{"a field of a field", 0, []Step{field(1), field(0)}, "ada", ""},
		{"through nil", 0, []Step{field(1), field(1), field(0)}, nil, "can't go on: src is nil"},
		{"through nil, behind ?.", 0, []Step{field(1), field(1), maybe(field(0))}, nil, ""},
		{"nothing behind ?. either", 0, []Step{field(1), field(1), maybe(field(1)), field(0)}, nil, ""},
		// Entries and elements.
		{"an entry", 0, []Step{field(3), by("n")}, 3, ""},
		{"an entry that is not there", 0, []Step{field(3), by("m")}, nil, ""},
		{"an entry by a named type", 0, []Step{field(4), by(label("k"))}, "v", ""},
		{"an entry by the text of one", 0, []Step{field(4), by("k")}, "v", ""},
		{"an entry by a number", 0, []Step{field(4), by(1)}, nil, "asks a map by run.label for an entry by int"},
		{"an element", 0, []Step{field(5), by(1)}, "b", ""},
		{"the last element", 0, []Step{field(5), by(-1)}, "b", ""},
		{"beyond the end", 0, []Step{field(5), by(2)}, nil, "asks a list of 2 elements for number 2"},
		{"beyond the beginning", 0, []Step{field(5), by(-3)}, nil, "for number -3"},
		{"an element by text", 0, []Step{field(5), by("x")}, nil, "where a whole number is wanted"},
		// What is not known at start.
		{"of any", 2, []Step{by("id")}, "x", ""},
		{"deeper in any", 2, []Step{by("list"), by(0)}, "a", ""},
		{"nil in any", 2, []Step{by("list"), by(1)}, nil, ""},
		{"a struct in any", 2, []Step{by("order"), by("ID")}, "8", ""},
		{"a struct behind a pointer in any", 2, []Step{by("pointer"), by("Login")}, "p", ""},
		{"a field that is not there", 2, []Step{by("order"), by("Nope")}, nil, "for a field that it does not have"},
		{"a field that is not exported", 2, []Step{by("order"), by("owner")}, nil, "for a field that it does not have"},
		{"a field by number", 2, []Step{by("order"), by(1)}, nil, "for a field by int"},
		{"of a text", 2, []Step{by("id"), by("x")}, nil, "no fields or entries"},
		// Lookups.
		{"a name", 1, []Step{{Lookup: true, By: "a"}}, "h-a", ""},
		{"a name that is not there", 1, []Step{{Lookup: true, By: "none"}}, nil, ""},
		{"something of one that is not there", 1, []Step{{Lookup: true, By: "none"}, by("x")}, nil, "can't go on: src is nil"},
		{"something of one that is not there, behind ?.", 1, []Step{{Lookup: true, By: "none"}, maybe(by("x"))}, nil, ""},
	} {
		st := NewState(context.Background(), orderFacts(o), orderRoots)
		p := &Path{Root: tt.root, Steps: tt.steps}
		v, err := p.Follow(&st.Source, nil)
		got, _ := st.Plain(v)
		switch {
		case tt.fault != "":
			if _, ok := errors.AsType[*Fault](err); !ok || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%s: %v, want a fault with %q", tt.name, err, tt.fault)
			}
		case err != nil || got != tt.want:
			t.Errorf("%s = %v, %v, want %v", tt.name, got, err, tt.want)
		}
		st.Release()
	}
}

// An error of a lookup, or of the facts, is the caller's.
func TestErrorsOfFacts(t *testing.T) {
	st := NewState(context.Background(), orderFacts(&order{}), orderRoots)
	defer st.Release()
	p := &Path{Root: 1, Steps: []Step{{Lookup: true, By: "bad"}}}
	if _, err := p.Follow(&st.Source, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Follow = %v, want the error of the lookup", err)
	}
	for _, wrong := range []struct {
		root Root
		v    any
	}{{orderRoots[0], 7}, {orderRoots[0], order{}}, {orderRoots[1], 7}, {orderRoots[1], nil}} {
		other := NewState(context.Background(), func(string) (any, error) { return wrong.v, nil }, []Root{wrong.root})
		_, err := (&Path{}).Follow(&other.Source, nil)
		if fact, ok := errors.AsType[*OutsideError](err); !ok || !strings.Contains(fact.Error(), "declared as") {
			t.Errorf("a fact %v for root %s: %v", wrong.v, wrong.root.Name, err)
		}
		other.Release()
	}
}

// A pointer that points to itself is nobody's value.
func TestIndirectEnds(t *testing.T) {
	var ring any
	ring = &ring
	if v := Indirect(reflect.ValueOf(ring)); v.IsValid() {
		t.Errorf("Indirect = %v", v)
	}
	if _, err := new(State).TextOf(reflect.ValueOf(ring)); !errors.Is(err, ErrNil) {
		t.Errorf("TextOf = %v, want ErrNil", err)
	}
}

// A state must not hand what is one request's to the next.
func TestNothingStaysInAState(t *testing.T) {
	st := NewState(context.Background(), orderFacts(&order{ID: "secret"}), orderRoots)
	if _, err := (&Path{Steps: []Step{{}}}).Follow(&st.Source, nil); err != nil {
		t.Fatal(err)
	}
	st.Push(reflect.ValueOf("secret"))
	st.Pop()
	st.Push(reflect.ValueOf("secret")) // and a panic leaves it there
	st.machine.Stack = append(st.machine.Stack, "secret")
	_, _ = st.Step(5), st.Spend(5)
	st.Release()
	for _, s := range st.slots[:cap(st.slots)] {
		if s.known || s.value.IsValid() || s.find != nil {
			t.Errorf("slot %v is still held", s)
		}
	}
	for _, v := range st.machine.Stack[:cap(st.machine.Stack)] {
		if v != nil {
			t.Errorf("%v is still held", v)
		}
	}
	for _, v := range st.Elems[:cap(st.Elems)] {
		if v.IsValid() {
			t.Errorf("element %v is still held", v)
		}
	}
	if steps, bytes := st.Spent(); steps+bytes+len(st.Elems) > 0 || st.Facts != nil || st.Ctx != nil {
		t.Errorf("%d steps, %d bytes, or facts or ctx are still held", steps, bytes)
	}
}

func TestBudgets(t *testing.T) {
	for _, tt := range []struct {
		name   string
		charge func(st *State) error
		ok     bool
	}{
		{"all bytes", func(st *State) error { return st.Spend(MaxBytes) }, true},
		{"one byte more", func(st *State) error { return errors.Join(st.Spend(MaxBytes), st.Spend(1)) }, false},
		{"a negative number", func(st *State) error { return st.Spend(-1) }, false}, // as of an overflow
		{"all steps", func(st *State) error { return st.Step(MaxSteps) }, true},
		{"one step more", func(st *State) error { return errors.Join(st.Step(MaxSteps), st.Step(1)) }, false},
		{"steps that overflow", func(st *State) error { return st.Step(-5) }, false},
		{"a list", func(st *State) error { return st.List(10_000) }, true},
		{"a long list", func(st *State) error { return st.List(300_000) }, false},
		{"a list whose size overflows", func(st *State) error { return st.List(1 << 60) }, false},
		{"a sort", func(st *State) error { return st.Sort(10_000) }, true},
		{"a long sort", func(st *State) error { return st.Sort(20_000) }, false},
		{"a sort that overflows", func(st *State) error { return st.Sort(1 << 62) }, false},
	} {
		st := NewState(context.Background(), nil, nil)
		if err := tt.charge(st); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
		st.Release()
	}
}

// A name is a field's in the spellings that are usual, and nobody's where it fits two.
func TestAliases(t *testing.T) {
	type message struct {
		OrderID  string `json:"id"`
		UserName string `protobuf:"bytes,1,opt,name=user_name,json=login"`
		Hidden   string `json:"-"`
		A        string `json:"B"`
		B        string
		Renamed  string `expr:"other"`
		private  string
	}
	_ = message{}.private // which has no name
	for name, want := range map[string]string{
		"order_id":  "OrderID",
		"orderId":   "OrderID",
		"ORDERID":   "OrderID",
		"id":        "OrderID",
		"user_name": "UserName",
		"login":     "UserName",
		"hidden":    "Hidden",
		"-":         "",
		"b":         "B", "B": "A B", "renamed": "", "private": "", "nope": "",
	} {
		if got := strings.Join(Aliases(reflect.TypeFor[message](), name), " "); got != want {
			t.Errorf("Aliases(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestRecoveredSaysWhere(t *testing.T) {
	var err *PanicError
	func() {
		defer func() { err = Recovered(recover()) }()
		var o *order
		_ = o.ID
	}()
	if !strings.Contains(err.Place, "source_test.go:") || !strings.Contains(err.Error(), "nil pointer") {
		t.Errorf("Recovered = %v", err)
	}
}
