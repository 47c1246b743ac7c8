package keyexpr

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"maps"
	"math"
	"net"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// hashed returns what hash makes of a value of no known type, in a list so that an empty one is no error.
func hashOf(t *testing.T, v any) string {
	t.Helper()
	tmpl, err := Parse("#{hash([v])}", Roots{"v": {}})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := expandOf(t, tmpl, v)
	if err != nil {
		t.Fatalf("hash(%#v): %v", v, err)
	}
	return keys[0]
}

// The encoding is written down, so that a hash is the same in the next release, and can be made elsewhere.
func TestHashEncoding(t *testing.T) {
	type point struct{ X, Y int }
	type octet byte
	for _, tt := range []struct {
		name string
		v    any
		want string // the bytes that are digested, behind those of a list of one
	}{
		{"nil", nil, "n"},
		{"text", "abc", "s\x03abc"},
		{"an empty text", "", "s\x00"},
		{"a long text", string(make([]byte, 300)), "s\xac\x02" + string(make([]byte, 300))},
		{"bytes that are no UTF-8", "\xff", "s\x01\xff"},
		{"true", true, "t"},
		{"false", false, "F"},
		{"a number", 42, "i\x0242"},
		{"a negative number", int8(-7), "i\x02-7"},
		{"the largest number", uint64(math.MaxUint64), "i\x1418446744073709551615"},
		{"a float", 1.5, "f\x3f\xf8\x00\x00\x00\x00\x00\x00"},
		{"a float that is whole, as in JSON", math.Copysign(0, -1), "i\x010"},
		{"bytes", []byte("ab"), "b\x02ab"},
		{"an array of bytes", [2]byte{'a', 'b'}, "b\x02ab"},
		{"bytes of a named type", []octet{'a', 'b'}, "b\x02ab"},
		{"an array of such bytes", [2]octet{'a', 'b'}, "b\x02ab"},
		{"a list", []string{"a", "b"}, "l\x02s\x01as\x01b"},
		{"an array", [2]int{1, 2}, "l\x02i\x011i\x012"},
		{"a list in a list", [][]int{{1}, {}}, "l\x02l\x01i\x011l\x00"},
		{"a map", map[string]int{"b": 2, "a": 1}, "m\x02s\x01ai\x011s\x01bi\x012"},
		{"an empty map", map[string]int{}, "m\x00"},
		{"what spells itself", uuid{1}, "s\x2401000000-0000-0000-0000-000000000000"},
		{"an enum", level(2), "s\x07level-2"},
		{"a named text", tenant("acme"), "s\x04acme"},
		{"a struct", point{1, 2}, "r\x0dkeyexpr.points\x01Xi\x011s\x01Yi\x012"},
		{"a pointer", &point{1, 2}, "r\x0dkeyexpr.points\x01Xi\x011s\x01Yi\x012"},
	} {
		sum := sha256.Sum256(append([]byte("l\x01"), tt.want...))
		if got, want := hashOf(t, tt.v), hex.EncodeToString(sum[:16]); got != want {
			t.Errorf("hash of %s = %s, want %s, of %q", tt.name, got, want, tt.want)
		}
	}
}

// What is the same fact has the same hash, whatever type or order it comes in.
func TestHashIsCanonical(t *testing.T) {
	type inner struct{ ID string }
	text, number, in := "x", 7, inner{"a"}
	pointer := &number
	var none *int
	for _, same := range [][]any{
		{7, int8(7), uint64(7), int64(7), &number, &pointer},
		{"x", &text, tenant("x"), any("x")},
		{nil, none, any(nil)},
		{0.0, math.Copysign(0, -1), float32(0)},
		{math.NaN(), -math.NaN(), math.Float64frombits(0x7ff8000000000002)},
		{float32(1.5), 1.5},
		{[]string{"a"}, [1]string{"a"}, []any{"a"}, []tenant{"a"}, &[]string{"a"}},
		{[]byte{1}, [1]byte{1}},
		{map[string]int{"a": 1, "b": 2}, map[tenant]int{"b": 2, "a": 1}, map[string]any{"a": 1, "b": int64(2)}},
		{map[int]string{1: "a"}, map[int8]any{1: "a"}},
		{in, &in, any(in), any(&in)},
		{[]string{}, []string(nil), [0]int{}},
		{map[string]int{}, map[string]int(nil)},
		{nil, sql.NullString{}, sql.NullString{String: "stale"}, nullUUID{}, time.Month(0), netip.Addr{}, net.IPNet{}},
		{uuid{1}, "01000000-0000-0000-0000-000000000000"},
	} {
		first := hashOf(t, same[0])
		for _, v := range same[1:] {
			if got := hashOf(t, v); got != first {
				t.Errorf("hash(%#v) = %s, and hash(%#v) = %s", same[0], first, v, got)
			}
		}
	}
}

// A map has another order in each run, and one hash in all of them.
func TestHashOfMaps(t *testing.T) {
	m := map[any]any{}
	for i := range 100 {
		m[i], m[string(rune('a'+i))] = i, []int{i}
	}
	first := hashOf(t, m)
	for range 20 {
		if got := hashOf(t, maps.Clone(m)); got != first {
			t.Fatalf("one map has two hashes, %s and %s", first, got)
		}
	}
}

// Every exported field counts, whatever its tags say, and a field that is not exported does not.
func TestHashOfFields(t *testing.T) {
	type tagged struct {
		A string `json:"-"`
		B string `json:"a,omitempty"`
		C int    `json:",string"`
		d string
	}
	base := hashOf(t, tagged{})
	for name, v := range map[string]tagged{"A": {A: "x"}, "B": {B: "x"}, "C": {C: 1}} {
		if hashOf(t, v) == base {
			t.Errorf("field %s does not count", name)
		}
	}
	if hashOf(t, tagged{d: "x"}) != base {
		t.Error("a field that is not exported counts")
	}
}

// What can't be hashed is refused for the request, if its type was not known at start.
func TestHashRefusesValues(t *testing.T) {
	type hidden struct{ a string }
	loop := map[string]any{}
	loop["self"] = loop
	tmpl, err := Parse("#{hash(v)}", Roots{"v": {}})
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{
		"nil": nil, "nothing": "", "no month": time.Month(0), "NULL": nullUUID{}, "no address": netip.Addr{}, "a dynamic message": dynamicpb.NewMessage((&wrapperspb.StringValue{}).ProtoReflect().Descriptor()), "an empty list": []string{}, "an empty map": map[string]int{}, "a function": func() {}, "a channel": make(chan int), "a struct of nothing": hidden{"x"}, "a time": time.Now(),
		"a time in a list": []any{time.Now()}, "a time in a struct": struct{ At time.Time }{time.Now()}, "a map in a circle": loop, "a complex number": 1i, "a huge list": make([]int, 1_000_000), "a huge text": string(bytes.Repeat([]byte("x"), 8<<20)),
	} {
		if keys, err := expandOf(t, tmpl, v); err == nil {
			t.Errorf("hash of %s = %q, want an error", name, keys)
		}
	}
}

type hashTagged struct {
	A string `json:"-"`
	B string `json:",omitempty"`
	C any    `json:"c"`
}
type hashOther struct{ A, B string }
type hashEmbedded struct {
	hashOther
	C string
}

// distinct are values of which no two are the same.
var distinct = []any{
	"a", "b", "", "7", 7, int64(8), uint8(9), -7, true, false, 7.5, math.Inf(1), math.NaN(), []byte("a"), []byte{},
	[]string{"a", "b"},
	[]string{"ab"},
	[]string{"a", "", "b"},
	[]any{"a", []string{"b"}},
	[]any{[]string{"a"}, "b"},
	[]any{[]string{"a", "b"}},
	[]any{[]string{"a"}, []string{"b"}},
	[]int{1, 2},
	[]string{"1", "2"},
	[]string{},
	map[string]string{"a": "b"},
	map[string]string{"a": "", "b": ""},
	map[string]string{"b": "a"},
	map[string]int{"a": 1, "b": 2},
	map[string]any{"a": nil},
	map[string]any{},
	[]any{map[string]string{"a": "b"}, "c", "d"},
	[]any{map[string]string{"a": "b", "c": "d"}},
	[]any{map[string]string{"a": "b"}, "c", "d", map[string]string{"e": "f", "g": "h"}}, []any{map[string]string{"a": "b", "c": "d"}, map[string]string{"e": "f"}, "g", "h"},
	hashTagged{A: "x"},
	hashTagged{A: "y"},
	hashTagged{B: "x"},
	hashTagged{C: "x"},
	hashTagged{C: 1},
	hashTagged{C: "1"},
	hashOther{"x", ""},
	hashOther{"", "x"},
	hashEmbedded{hashOther{"x", ""}, ""},
	hashEmbedded{hashOther{}, "x"},
	"\xff", "\xfe", "\ufffd", "null", "s\x01a", []any{nil}, []any{"null"}, uuid{1}, uuid{2}, level(2), "level-3",
	&fakeMessage{name: "x"}, &fakeMessage{name: "y"}, &fakeMessage{}, &fakeMessage{set: true},
}

// Values that differ have hashes that differ, whatever their types are and however JSON would write them.
func TestHashTellsApart(t *testing.T) {
	roots := Roots{"v": {}}
	tmpl, err := Parse("#{hash([v])}", roots)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for i, v := range distinct {
		for range 3 { // a map has another order each time
			keys, err := expandOf(t, tmpl, v)
			if err != nil {
				t.Errorf("hash(%#v): %v", v, err)
				break
			}
			if was, ok := seen[keys[0]]; ok && was != i {
				t.Errorf("%#v and %#v have one hash", distinct[was], v)
			}
			seen[keys[0]] = i
		}
	}
	if len(seen) != len(distinct) {
		t.Errorf("%d values have %d hashes", len(distinct), len(seen))
	}
}
