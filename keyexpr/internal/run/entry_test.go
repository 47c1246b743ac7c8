package run

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

type withNil struct {
	*owner
	ID string
}

// An entry is looked for and nothing else is done: what is not there is nil, and what can't be asked is a fault.
func TestEntryAtItsEdges(t *testing.T) {
	var noMap map[string]int
	var noList []string
	for _, tt := range []struct {
		name  string
		in    any
		by    any
		want  any // nil for what is not there
		fault string
	}{
		// Maps.
		{"a nil map", noMap, "a", nil, ""},
		{"an empty map", map[string]any{}, "", nil, ""},
		{"an empty name", map[string]any{"": 1}, "", 1, ""},
		{"a name that is no UTF-8", map[string]any{"\xff": 1}, "\xff", 1, ""},
		{"another that is none", map[string]any{"\xff": 1}, "\xfe", nil, ""},
		{"nil in a map", map[string]any{"a": nil}, "a", nil, ""},
		{"by nil", map[string]any{"a": 1}, nil, nil, "is nil"},
		{"JSON by a number", map[string]any{"7": 1}, 7, nil, "asks a map by string for an entry by int"},
		{"a small number", map[int8]string{7: "x"}, 7, "x", ""},
		{"a number that would wrap around", map[uint8]string{44: "x"}, 300, nil, ""},
		{"a negative number that would", map[uint8]string{255: "x"}, -1, nil, ""},
		{"the largest number", map[uint64]string{math.MaxUint64: "x"}, uint64(math.MaxUint64), "x", ""},
		{"minus one, whose bits are the same", map[uint64]string{math.MaxUint64: "x"}, -1, nil, ""},
		{"by what can be in any", map[any]string{7: "x"}, 7, "x", ""},
		{"by what can't be compared", map[any]string{7: "x"}, []int{7}, nil, "which can't be compared"},
		{"by a bool", map[bool]string{true: "x"}, true, "x", ""},
		{"a bool by a text", map[bool]string{true: "x"}, "true", nil, "asks a map by bool for an entry by string"},
		// Lists.
		{"an array", [2]string{"a", "b"}, 1, "b", ""},
		{"a nil list", noList, 0, nil, "asks a list of 0 elements for number 0"},
		{"the last of none", noList, -1, nil, "for number -1"},
		{"the largest index", []string{"a"}, math.MaxInt, nil, "asks a list of 1 elements"},
		{"the smallest index", []string{"a"}, math.MinInt, nil, "asks a list of 1 elements"},
		{"an index that is no int64", []string{"a"}, uint64(math.MaxUint64), nil, "too large to calculate with"},
		{"an index by nil", []string{"a"}, nil, nil, "nil where a whole number is wanted"},
		{"an index that is a float", []string{"a"}, 0.0, nil, "of type float64 where a whole number is wanted"},
		// Structs, and what has no parts.
		{"a field beside a nil one", withNil{ID: "7"}, "ID", "7", ""},
		{"a field behind an embedded nil", withNil{}, "Login", nil, "an embedded struct is nil"},
		{"a field behind an embedded pointer", withNil{owner: &owner{Login: "ada"}}, "Login", "ada", ""},
		{"a field in another case", withNil{ID: "7"}, "id", nil, "a field that it does not have"},
		{"no name", withNil{}, "", nil, "a field that it does not have"},
		{"a struct by nil", withNil{}, nil, nil, "for a field by <nil>"},
		{"of a number", 7, "x", nil, "has no fields or entries: it is of type int"},
		{"of a channel", make(chan int), 0, nil, "has no fields or entries"},
	} {
		v, err := Entry(reflect.ValueOf(tt.in), tt.by)
		var got any
		if v.IsValid() {
			got = v.Interface()
		}
		if _, ok := errors.AsType[*Fault](err); got != tt.want || ok != (tt.fault != "") || ok && !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("%s: Entry = %v, %v, want %v, %q", tt.name, got, err, tt.want, tt.fault)
		}
	}
}

// What is read is one level deeper with each pointer, up to a bound.
func TestIndirectCountsPointers(t *testing.T) {
	for n, valid := range map[int]bool{0: true, 1: true, maxPointers - 1: true, maxPointers: false, maxPointers + 1: false} {
		v := reflect.ValueOf("x")
		for range n {
			p := reflect.New(v.Type())
			p.Elem().Set(v)
			v = p
		}
		if got := Indirect(v); got.IsValid() != valid || valid && got.String() != "x" {
			t.Errorf("behind %d pointers is %v", n, got)
		}
	}
	var typedNil *string
	if Indirect(reflect.ValueOf(typedNil)).IsValid() || Indirect(reflect.Value{}).IsValid() {
		t.Error("nil is something")
	}
}

// An escape that is none is no value. What Unescape takes beyond what is made, Match has to find out.
func TestUnescape(t *testing.T) {
	for _, tt := range []struct {
		s, want string
		ok      bool
	}{
		{"", "", true},
		{"a", "a", true},
		{"\xff", "\xff", true},
		{"%25", "%", true},
		{"%FF", "\xff", true},
		{"%00", "\x00", true},
		{"a%3Ab", "a:b", true},
		{"%2525", "%25", true}, // once, and not until nothing is left to undo
		{"%61", "a", true},
		{"%3a", ":", true},
		{"%", "", false},
		{"a%2", "", false},
		{"%zz", "", false},
		{"%+1", "", false},
		{"%-1", "", false},
		{"% 1", "", false},
		{"%0x", "", false},
		{"%é", "", false},
		{DigestMark + "00", "", false},
	} {
		if got, ok := Unescape(tt.s); got != tt.want || ok != tt.ok {
			t.Errorf("Unescape(%q) = %q, %v, want %q, %v", tt.s, got, ok, tt.want, tt.ok)
		}
	}
}
