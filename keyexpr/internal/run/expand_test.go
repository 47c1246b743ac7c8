package run

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// linesProgram is a program that makes a key of each element of a list, between two literals.
func linesProgram(list any, item ...Part) (*Program, func(string) (any, error)) {
	p := &Program{
		Text:  "o:#{list}:x",
		Roots: []Root{{Name: "list"}},
		At:    1,
		Parts: []Part{text("o:"), text(":x")},
		Items: &Items{Src: "list", Item: item[0], List: func(st *State) (reflect.Value, error) {
			at, err := st.root(0)
			if err != nil {
				return reflect.Value{}, err
			}
			return at.value, nil
		}},
	}
	p.Finish()
	return p, func(string) (any, error) { return list, nil }
}

// element is a part that is the element itself.
func element(follow ...rune) Part {
	return Part{Src: "#", Path: &Path{Elem: true}, Escape: Before(follow)}
}

// A list makes a set of keys: sorted, so that all requests take their locks in one order, and each of them once.
func TestListsOfKeys(t *testing.T) {
	long := strings.Repeat("x", 600)
	for _, tt := range []struct {
		name  string
		list  any
		item  []Part
		want  []string
		fault string
	}{
		{"in order", []string{"b", "a"}, []Part{element(':')}, []string{"o:a:x", "o:b:x"}, ""},
		{"once", []string{"a", "b", "a"}, []Part{element(':')}, []string{"o:a:x", "o:b:x"}, ""},
		{"escaped", []string{"a:b"}, []Part{element(':')}, []string{"o:a%3Ab:x"}, ""},
		{"numbers", []int{10, 9}, []Part{element(':')}, []string{"o:10:x", "o:9:x"}, ""},
		{"equal as texts", []any{1, "1", int8(1)}, []Part{element(':')}, []string{"o:1:x"}, ""},
		{"an array", [2]string{"b", "a"}, []Part{element(':')}, []string{"o:a:x", "o:b:x"}, ""},
		{"a pointer", &[]string{"a"}, []Part{element(':')}, []string{"o:a:x"}, ""},
		{"none", []string{}, []Part{element(':')}, nil, "is empty"},
		{"nil", nil, []Part{element(':')}, nil, "is nil"},
		{"no list", "a", []Part{element(':')}, nil, "is no list, but of type string"},
		{"an empty element", []string{"a", ""}, []Part{element(':')}, nil, "has an element that is empty"},
		{"a nil element", []any{"a", nil}, []Part{element(':')}, nil, "has an element that is nil"},
		{"an element that is no key", []any{1.5}, []Part{element(':')}, nil, "has an element that is a float"},
		{"as many as there may be", make([]bool, MaxKeys), []Part{element(':')}, []string{"o:false:x"}, ""},
		{"one too many", make([]bool, MaxKeys+1), []Part{element(':')}, nil, "makes more than 1024 keys"},
	} {
		p, facts := linesProgram(tt.list, tt.item...)
		got, err := p.Expand(context.Background(), nil, facts, nil)
		if tt.fault == "" && (err != nil || !slices.Equal(got, tt.want)) {
			t.Errorf("%s: Expand = %q, %v, want %q", tt.name, got, err, tt.want)
		}
		if tt.fault != "" && (!errors.Is(err, ErrValue) || !strings.Contains(err.Error(), tt.fault)) {
			t.Errorf("%s: Expand = %q, %v, want %q", tt.name, got, err, tt.fault)
		}
	}
	// A long key of a list is shortened like any other, and stays another one than its neighbour.
	p, facts := linesProgram([]string{long + "a", long + "b"}, element(':'))
	got, err := p.Expand(context.Background(), nil, facts, nil)
	if err != nil || len(got) != 2 || len(got[0]) > MaxKey || !strings.Contains(got[0], DigestMark) {
		t.Errorf("Expand of long elements = %q, %v", got, err)
	}
}

// Keys are appended to what the caller has, which stays as it is: only the new ones are sorted, and none is taken for an old one.
func TestExpandAppends(t *testing.T) {
	had := []string{"z", "o:a:x"}
	p, facts := linesProgram([]string{"b", "a"}, element(':'))
	got, err := p.Expand(context.Background(), slices.Clone(had), facts, nil)
	if want := append(had, "o:a:x", "o:b:x"); err != nil || !slices.Equal(got, want) {
		t.Errorf("Expand = %q, %v, want %q", got, err, want)
	}
	// The bound is on the keys of one template, and not on those that the caller has.
	p, facts = linesProgram(make([]bool, MaxKeys), element(':'))
	if got, err := p.Expand(context.Background(), make([]string, 5), facts, nil); err != nil || len(got) != 6 {
		t.Errorf("Expand behind 5 keys = %d keys, %v", len(got), err)
	}
}

// What an escape makes is undone by Unescape, and by nothing that Unescape would take for another text.
func TestEscapesAreUndone(t *testing.T) {
	values := []string{"a", "%", "%41", "a%", "%%", "é", "→", "\xff", "\xe2\x86", "\u00a0", "\x00", "\n", "{}", ":", "-7", "0", "😀", "a:b→c d"}
	for _, follow := range [][]rune{nil, {':'}, {'→'}, {'-'}, {'7', ':'}, {'é', 'a'}} {
		for _, e := range []*Escape{Before(follow)} {
			seen := map[string]string{}
			for _, v := range values {
				escaped := string(e.Append([]byte("x"), v))[1:]
				if back, ok := Unescape(escaped); !ok || back != v {
					t.Errorf("before %q, %q becomes %q and then %q, %v", follow, v, escaped, back, ok)
				}
				if other, ok := seen[escaped]; ok {
					t.Errorf("before %q, %q and %q become %q", follow, v, other, escaped)
				}
				seen[escaped] = v
				for _, r := range follow {
					if strings.ContainsRune(escaped, r) && r != '7' && r != 'a' { // a hex digit is no end of a value
						t.Errorf("before %q, %q becomes %q", follow, v, escaped)
					}
				}
			}
		}
	}
}
