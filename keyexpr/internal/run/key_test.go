package run

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// As in Redis: what is between the first { and the next }, unless that is nothing.
func TestHashTag(t *testing.T) {
	for _, tt := range []struct{ key, tag string }{
		{"", ""},
		{"order:7", ""},
		{"{order}:7", "{order}"},
		{"a{b}c{d}", "{b}"},
		{"{}{b}", ""},
		{"{", ""},
		{"}", ""},
		{"}{b}", "{b}"},
		{"{b", ""},
		{"a{b{c}d}", "{b{c}"},
		{"{→}", "{→}"},
	} {
		open, end := hashTag([]byte(tt.key))
		if got := tt.key[open:end]; got != tt.tag {
			t.Errorf("hashTag(%q) = %q, want %q", tt.key, got, tt.tag)
		}
	}
}

// A cut ends neither within a rune nor within an escape.
func TestCut(t *testing.T) {
	for _, tt := range []struct {
		key  string
		n    int
		want string
	}{
		{"abc", 5, "abc"},
		{"abc", 3, "abc"},
		{"abc", 2, "ab"},
		{"abc", 0, ""},
		{"aé", 2, "a"},
		{"a→", 3, "a"},
		{"a%3Ab", 5, "a%3Ab"},
		{"a%3Abc", 4, "a%3A"},
		{"a%3Ab", 3, "a"},
		{"a%3Ab", 2, "a"},
		{"%3A%3A", 5, "%3A"},
	} {
		if got := string(cut([]byte(tt.key), tt.n)); got != tt.want {
			t.Errorf("cut(%q, %d) = %q, want %q", tt.key, tt.n, got, tt.want)
		}
	}
}

// A long hash tag can't be kept, and a raw key can't be digested.
func TestKeysThatCannotBeShortened(t *testing.T) {
	long := strings.Repeat("x", 600)
	if got, err := (&Program{}).shorten([]byte("o:{" + long + "}")); err == nil || !strings.Contains(err.Error(), "a hash tag of more than 256 bytes") {
		t.Errorf("shorten = %q, %v", got, err)
	}
	if got, err := (&Program{Raw: true}).shorten([]byte(long)); err == nil || !strings.Contains(err.Error(), "more than 512 bytes with raw") {
		t.Errorf("shorten = %q, %v", got, err)
	}
}

// text is a part of the template's own.
func text(s string) Part { return Part{Text: s} }

// The quick way and the way with a state make the same keys of the same facts.
func TestBothWaysMakeOneKey(t *testing.T) {
	for _, id := range []string{"7", "a:b", "a b", "%", "é→", "\xff", strings.Repeat("x", 511), strings.Repeat("x", 600), strings.Repeat("{", 200)} {
		p := &Program{
			Roots: []Root{{Name: "id", Type: reflect.TypeFor[string]()}},
			Parts: []Part{text("o:"), {Path: &Path{}, Leaf: LeafString, Escape: Before([]rune{':'})}, text(":x")},
		}
		p.Finish()
		if !p.plain {
			t.Fatal("the quick way is not taken")
		}
		facts := func(string) (any, error) { return id, nil }
		quick, err := p.Expand(context.Background(), nil, facts, nil)
		if err != nil {
			t.Fatal(err)
		}
		st := NewState(context.Background(), facts, p.Roots)
		slow, err := p.ExpandWith(st, nil)
		st.Release()
		if err != nil || !slices.Equal(quick, slow) {
			t.Errorf("%.20q makes %q and %q, %v", id, quick, slow, err)
		}
	}
}

// Facts are asked for once, also where the quick way finds out that it is none.
func TestFactsAreAskedForOnce(t *testing.T) {
	p := &Program{
		Roots: []Root{{Name: "id", Type: reflect.TypeFor[string]()}},
		Parts: []Part{{Path: &Path{}, Leaf: LeafString, Escape: Before([]rune{':'})}, text(":"), {Path: &Path{}, Leaf: LeafString, Escape: Before(nil)}},
	}
	p.Finish()
	asked := 0
	_, err := p.Expand(context.Background(), nil, func(string) (any, error) {
		asked++
		return strings.Repeat("x", 600), nil
	}, nil)
	if err != nil || asked != 1 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}
