package run

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// finder is what keyexpr.Lookup is.
type finder func(name string) (string, bool, error)

func (f finder) Find(name string) (string, bool, error) { return f(name) }

// The quick way and the way with a state refuse the same facts, in the same words and at the same place.
func TestBothWaysRefuseTheSame(t *testing.T) {
	var noOrder *order
	texts := []Root{{Name: "v", Type: reflect.TypeFor[string]()}}
	orders := []Root{{Name: "v", Type: reflect.TypeFor[*order]()}}
	hole := func(leaf Leaf, via func(string) string, steps ...Step) Part {
		return Part{Src: "v.hole", Path: &Path{Steps: steps}, Leaf: leaf, Via: via, Escape: Before(nil)}
	}
	headers := []Root{{Name: "v", Lookup: true}}
	header := Step{Lookup: true, By: "hole"}
	has := func(value string) finder {
		return func(string) (string, bool, error) { return value, value != "none", nil }
	}
	fails := finder(func(string) (string, bool, error) { return "x", true, io.ErrUnexpectedEOF })
	login := []Step{{Src: "v", Field: 1}, {Src: "v.Owner", Field: 0}}
	maybe := []Step{{Src: "v", Field: 1}, {Src: "v.Owner", Field: 0, Optional: true}}
	for _, tt := range []struct {
		name  string
		roots []Root
		part  Part
		valid bool
		v     any
		want  string // the key, or the end of the error
	}{
		{"a text", texts, hole(LeafString, nil), false, "a b", "o:a%20b"},
		{"an empty text", texts, hole(LeafString, nil), false, "", "v.hole is empty"},
		{"a text that becomes another", texts, hole(LeafString, strings.ToUpper), false, "a", "o:A"},
		{"one that becomes empty", texts, hole(LeafString, strings.TrimSpace), false, "  ", "v.hole is empty"},
		{"no UTF-8", texts, hole(LeafString, nil), false, "\xff", "o:%FF"},
		{"no UTF-8, and no escape", texts, Part{Src: "v.hole", Path: &Path{}, Leaf: LeafString}, true, "\xff", "is no UTF-8, which no text of Java is"},
		{"as long as a key", texts, hole(LeafString, nil), false, strings.Repeat("x", MaxKey-2), "o:" + strings.Repeat("x", MaxKey-2)},
		{"a nil field on the way", orders, hole(LeafString, nil, login...), false, &order{}, "v.hole can't go on: v.Owner is nil"},
		{"a nil field, behind ?.", orders, hole(LeafString, nil, maybe...), false, &order{}, ErrNil.Error()},
		{"a nil argument", orders, hole(LeafString, strings.ToUpper, maybe...), false, &order{}, "v.hole has nil where a string is wanted"},
		{"a typed nil", orders, hole(LeafString, nil, Step{Src: "v", Field: 0}), false, noOrder, "can't go on: v is nil"},
		{"a fact of another type", orders, hole(LeafString, nil, login...), false, 7, "root v: is of type int, and was declared as *run.order"},
		{"a header", headers, hole(LeafLookup, nil, header), false, has("a b"), "o:a%20b"},
		{"a header that becomes another text", headers, hole(LeafLookup, strings.ToUpper, header), false, has("a"), "o:A"},
		{"a header that is long", headers, hole(LeafLookup, nil, header), false, has(strings.Repeat("x", MaxKey-2)), "o:" + strings.Repeat("x", MaxKey-2)},
		{"one that is empty", headers, hole(LeafLookup, nil, header), false, has(""), "v.hole is empty"},
		{"one that is not there", headers, hole(LeafLookup, nil, header), false, has("none"), ErrNil.Error()},
		{"an argument that is not there", headers, hole(LeafLookup, strings.ToUpper, header), false, has("none"), "v.hole has nil where a string is wanted"},
		{"one that is there twice", headers, hole(LeafLookup, nil, header), false, fails, "root v: unexpected EOF"},
		{"a header that is none", headers, hole(LeafLookup, nil, header), false, "x", "root v: is of type string, and was declared as a Lookup"},
		{"a number", []Root{{Name: "v", Type: reflect.TypeFor[int]()}}, hole(LeafInt, nil), false, -7, "o:-7"},
		{"a large number", []Root{{Name: "v", Type: reflect.TypeFor[uint64]()}}, hole(LeafUint, nil), false, uint64(1<<64 - 1), "o:18446744073709551615"},
	} {
		p := &Program{Text: "o:#{v.hole}", Roots: tt.roots, Parts: []Part{text("o:"), tt.part}, Valid: tt.valid}
		p.Finish()
		facts := func(string) (any, error) { return tt.v, nil }
		quick, quickErr := p.Expand(context.Background(), nil, facts, nil)
		st := NewState(context.Background(), facts, p.Roots)
		slow, slowErr := p.ExpandWith(st, nil)
		st.Release()
		if quickErr == nil && !slices.Equal(quick, []string{tt.want}) || quickErr != nil && !strings.HasSuffix(quickErr.Error(), tt.want) {
			t.Errorf("%s: %.40q, %v, want %.40q", tt.name, quick, quickErr, tt.want)
		}
		if !p.plain || !slices.Equal(quick, slow) || (quickErr == nil) != (slowErr == nil) || quickErr != nil && quickErr.Error() != slowErr.Error() {
			t.Errorf("%s: quickly (%v) %.40q, %v, and slowly %.40q, %v", tt.name, p.plain, quick, quickErr, slow, slowErr)
		}
	}
}

// A number is escaped where what follows it is one of its own letters, so that -7 before - is not read as nothing and 7.
func TestNumbersBeforeDigits(t *testing.T) {
	for _, tt := range []struct {
		v      int
		escape *Escape
		want   string
	}{
		{-7, Before([]rune{'-'}), "%2D7"},
		{-7, Before([]rune{'7'}), "-%37"},
		{77, Before([]rune{'7'}), "%37%37"},
		{-7, Before([]rune{':'}), "-7"},
		{-7, Before(nil), "-7"},
		{-7, nil, "-7"},
	} {
		if got := string(appendNumber([]byte("x"), reflect.ValueOf(tt.v), LeafInt, tt.escape)); got != "x"+tt.want {
			t.Errorf("%d becomes %q, want %q", tt.v, got, "x"+tt.want)
		}
	}
}

// Several lists of one template share one bound, and an error says which of them it is in.
func TestSeveralLists(t *testing.T) {
	list := func(src string, v any, err error) Items {
		return Items{Src: src, Item: []Part{element(':')}, List: func(*State) (reflect.Value, error) { return reflect.ValueOf(v), err }}
	}
	numbers := func(n, from int) []int {
		all := make([]int, n)
		for i := range all {
			all[i] = from + i
		}
		return all
	}
	single := Items{Src: "one", Item: []Part{text("one")}}
	for _, tt := range []struct {
		name  string
		items []Items
		keys  int
		fault string
	}{
		{"a list and a value", []Items{list("a", numbers(2, 0), nil), single}, 3, ""},
		{"the same twice", []Items{list("a", numbers(2, 0), nil), list("b", numbers(2, 0), nil)}, 2, ""},
		{"one empty", []Items{list("a", []int{}, nil), single}, 1, ""},
		{"both empty", []Items{list("a", []int{}, nil), list("b", []int{}, nil)}, 0, "b is empty"},
		{"as many as there may be", []Items{list("a", numbers(MaxKeys-1, 0), nil), list("b", numbers(1, MaxKeys), nil)}, MaxKeys, ""},
		{"one too many", []Items{list("a", numbers(MaxKeys-1, 0), nil), list("b", numbers(2, MaxKeys), nil)}, 0, "b makes more than 1 keys"},
		{"the second is nil", []Items{single, list("b", nil, nil)}, 0, "b " + ErrNil.Error()},
		{"the second fails", []Items{single, list("b", nil, Faulty("is odd"))}, 0, "b is odd"},
		{"the first has a bad element", []Items{list("a", []any{"x", ""}, nil), single}, 0, "a has an element that is empty"},
		{"nothing in an item", []Items{{Src: "a", Item: []Part{text("")}}}, 0, "a has an element that is empty"},
	} {
		p := &Program{Text: "lists", Items: tt.items}
		p.Finish()
		keys, err := p.Expand(context.Background(), []string{}, nil, nil)
		if len(keys) != tt.keys || !slices.IsSorted(keys) || (err == nil) != (tt.fault == "") {
			t.Errorf("%s: %d keys, %v, want %d", tt.name, len(keys), err, tt.keys)
		}
		if err != nil && (!errors.Is(err, ErrValue) || !strings.HasSuffix(err.Error(), tt.fault)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.fault)
		}
	}
}

// A hole around the list is blamed by its own name, and not the list.
func TestFaultsAroundAList(t *testing.T) {
	for at, want := range map[int]string{0: "behind is empty", 1: "before is empty"} {
		src := []string{"behind", "before"}[at]
		p := &Program{
			Text: "lists", At: at, Roots: []Root{{Name: "v"}},
			Parts: []Part{{Src: src, Path: &Path{}, Escape: Before(nil)}},
			Items: []Items{{Src: "list", Item: []Part{text("x")}}},
		}
		keys, err := p.Expand(context.Background(), nil, func(string) (any, error) { return "", nil }, nil)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q, %v, want %q", keys, err, want)
		}
	}
}

// What a function says of itself decides at start what its result may be used for.
func TestFunctionsSayWhatTheyTake(t *testing.T) {
	for _, tt := range []struct {
		fn         any
		contextual bool
		out        reflect.Type
	}{
		{func() string { return "" }, false, reflect.TypeFor[string]()},
		{func(context.Context) int { return 0 }, true, reflect.TypeFor[int]()},
		{func(context.Context, ...string) (any, error) { return nil, nil }, true, reflect.TypeFor[any]()},
		{func(string, context.Context) []byte { return nil }, false, reflect.TypeFor[[]byte]()},
		{func(any) *order { return nil }, false, reflect.TypeFor[*order]()}, // any may hold a context, and gets none
	} {
		f, err := NewFunction("f", tt.fn)
		if err != nil || f.Contextual() != tt.contextual || f.Out() != tt.out {
			t.Errorf("%T: %v, contextual %v, out %v", tt.fn, err, f.Contextual(), f.Out())
		}
	}
}

// What is wrong with a fact is said of the first hole that reads it.
func TestFactIsBlamedOnItsFirstHole(t *testing.T) {
	field := func(src string) Part {
		return Part{Src: src, Path: &Path{Steps: []Step{{Src: "v", Field: 0}}}, Leaf: LeafString, Escape: Before(nil)}
	}
	for _, parts := range [][]Part{
		{text("o:"), field("v.first"), text(":"), field("v.second")},
		{field("v.first"), field("v.second"), text(":o")},
	} {
		p := &Program{Text: "a text", Roots: []Root{{Name: "v", Type: reflect.TypeFor[*order]()}}, Parts: parts}
		p.Finish()
		for name, facts := range map[string]func(string) (any, error){
			"none":         func(string) (any, error) { return nil, io.ErrUnexpectedEOF },
			"another type": func(string) (any, error) { return 7, nil },
			"nil":          func(string) (any, error) { return (*order)(nil), nil },
		} {
			_, err := p.Expand(context.Background(), nil, facts, nil)
			if hole, ok := errors.AsType[*Blamed](err); !ok || hole.Fact() != "v.first" || len(p.own) == 0 {
				t.Errorf("%s: %v, want it of v.first; in short: %v", name, err, p.own)
			}
		}
	}
}
