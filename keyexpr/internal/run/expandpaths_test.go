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
		{"a header that is none", headers, hole(LeafLookup, nil, header), false, "x", "root v: is no Lookup, and was declared as one"},
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
			if hole, ok := errors.AsType[*Blamed](err); !ok || hole.Fact() != "v.first" {
				t.Errorf("%s: %v, want it of v.first", name, err)
			}
		}
	}
}
