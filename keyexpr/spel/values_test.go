package spel

import (
	"context"
	"encoding/json"
	"math/big"
	"reflect"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// What a type of Go is in Java: the table of README.md, with the types that are refused, and why.
func TestTypeOf(t *testing.T) {
	const clock = "is a time or a duration, which Java spells in its own way: make it a string or a number on both sides"
	for _, tt := range []struct {
		of   any
		want jkind
		why  string
	}{
		// One type of Java.
		{"", textK, ""},
		{true, boolK, ""},
		{int32(1), intK, ""},
		{int64(1), longK, ""},
		{int8(1), smallK, ""},
		{int16(1), smallK, ""},
		{phase(1), enumK, ""},
		{ident{}, otherK, ""},
		{big.Int{}, otherK, ""},
		{&big.Int{}, otherK, ""},
		{[]byte{}, bytesK, ""},
		{[4]byte{}, bytesK, ""},
		{[]string{}, listK, ""},
		{[2]int32{}, listK, ""},
		{map[string]int{}, mapK, ""},
		{map[status]int{}, refusedK, "is a map whose keys are no texts, or may be enums, which Java may or may not convert"},
		{javaOwner{}, objectK, ""},
		{&javaOwner{}, objectK, ""},
		// Two types of Java.
		{int(1), wholeK, ""},
		{uint(1), wholeK, ""},
		{uint8(1), wholeK, ""},
		{uint64(1), wholeK, ""},
		{json.Number("1"), wholeK, ""},
		{status("x"), nameK, ""},
		{nil, anyK, ""},
		// None, or too many spellings.
		{1.5, refusedK, "is a float, which has many spellings: use a whole number or a string"},
		{float32(1), refusedK, "is a float, which has many spellings: use a whole number or a string"},
		{1i, refusedK, "is a float, which has many spellings: use a whole number or a string"},
		{time.Time{}, refusedK, clock},
		{&time.Time{}, refusedK, clock},
		{struct{ time.Time }{}, refusedK, clock},
		{time.Second, refusedK, clock},
		{coded{}, refusedK, "spells itself, and nobody knows how Java does: make it a string on both sides"},
		{map[int]string{}, refusedK, "is a map whose keys are no texts, or may be enums, which Java may or may not convert"},
		{func() {}, refusedK, "has no counterpart in Java"},
		{make(chan int), refusedK, "has no counterpart in Java"},
	} {
		if got := typeOf(reflect.TypeOf(tt.of)); got.k != tt.want || got.why != tt.why {
			t.Errorf("typeOf(%T) = %d %q, want %d %q", tt.of, got.k, got.why, tt.want, tt.why)
		}
	}
}

// A value has the type of Java that its declaration has. Without one, as in JSON, a number may be an Integer or a Long.
func TestValueOf(t *testing.T) {
	text := "a"
	for _, tt := range []struct {
		name string
		of   any
		want any // nil for an error
	}{
		{"a string", "a", "a"},
		{"a pointer", &text, "a"},
		{"a named string", status("a"), named{"a", reflect.TypeFor[status]()}},
		{"an enum", phase(1), enum{"PAID", reflect.TypeFor[phase]()}},
		{"a boolean", true, true},
		{"an int32", int32(-1), int32(-1)},
		{"an int64", int64(-1), int64(-1)},
		{"an int8", int8(-1), small(-1)},
		{"an int", -1, whole(-1)},
		{"the largest long", uint64(1<<63 - 1), whole(1<<63 - 1)},
		{"more than a long", uint64(1 << 63), nil},
		{"a number of JSON", json.Number("12"), whole(12)},
		{"minus zero", json.Number("-0"), nil},
		{"zeros in front", json.Number("007"), nil},
		{"a fraction", json.Number("1.0"), nil},
		{"an exponent", json.Number("1e3"), nil},
		{"the least long", json.Number("-9223372036854775808"), whole(-1 << 63)},
		{"below the least long", json.Number("-9223372036854775809"), nil},
		{"no number at all", json.Number(""), nil},
		{"a BigInteger", big.NewInt(12), other("12")},
		{"an id", ident{0xff}, other("ff000000-0000-0000-0000-000000000000")},
		{"a nil slice", []string(nil), nil},
		{"a nil map", map[string]string(nil), nil},
		{"a float", 1.5, nil},
		{"a time", time.Time{}, nil},
	} {
		st := run.NewState(context.Background(), nil, nil)
		got, err := valueOf(st, reflect.ValueOf(tt.of), typeOf(reflect.TypeOf(tt.of)))
		st.Release()
		if (tt.want == nil) != (err != nil) || err == nil && got != tt.want {
			t.Errorf("%s is %T(%v), %v, want %T(%v)", tt.name, got, got, err, tt.want, tt.want)
		}
	}
}

// What an any holds is known when it comes. JSON makes an int64 of all numbers, and so it is no Long for sure.
func TestValuesWithoutAType(t *testing.T) {
	st := run.NewState(context.Background(), nil, nil)
	defer st.Release()
	for _, tt := range []struct{ of, want any }{
		{int64(5), whole(5)},
		{int32(5), int32(5)},
		{"a", "a"},
		{status("a"), named{"a", reflect.TypeFor[status]()}},
		{named{text: "a"}, named{text: "a"}}, // of a list that an expression has made
		{enum{name: "A"}, enum{name: "A"}},
		{nil, nil},
		{(*string)(nil), nil},
	} {
		if got, err := valueOf(st, reflect.ValueOf(tt.of), typ{}); err != nil || got != tt.want {
			t.Errorf("valueOf(%T %v) = %T(%v), %v", tt.of, tt.of, got, got, err)
		}
	}
}

// The type of a choice is what both branches have for sure. Two lists are one, if their elements may differ.
func TestJoin(t *testing.T) {
	of := func(x any) typ { return typeOf(reflect.TypeOf(x)) }
	null := typ{k: nullK}
	for _, tt := range []struct {
		name string
		a, b typ
		want jkind
	}{
		{"two texts", of(""), of(""), textK},
		{"two ints", of(int32(1)), of(int32(1)), intK},
		{"an int and a long", of(int32(1)), of(int64(1)), anyK},
		{"a text and an int", of(""), of(int32(1)), anyK},
		{"a text and null", of(""), null, textK},
		{"null and a long", null, of(int64(1)), longK},
		{"null and null", null, null, nullK},
		{"a text and a name", of(""), of(status("")), anyK},
		{"what is refused", of(1.5), of(""), refusedK},
		{"what is refused, on the other side", of(""), of(1.5), refusedK},
		{"two lists", of([]string{}), of([]int32{}), listK},
		{"a list and a text", of([]string{}), of(""), anyK},
		{"two maps", of(map[string]int{}), of(map[string]int{}), mapK},
		{"maps of two types", of(map[string]int{}), of(map[string]bool{}), anyK},
		{"one object", of(javaOwner{}), of(javaOwner{}), objectK},
		{"two objects", of(javaOwner{}), of(javaItem{}), anyK},
		{"unknown and a text", typ{}, of(""), anyK},
	} {
		if got := join(tt.a, tt.b); got.k != tt.want {
			t.Errorf("%s: join = %d, want %d", tt.name, got.k, tt.want)
		}
	}
	if l := join(of([]string{}), of([]int32{})); l.elem.k != anyK {
		t.Errorf("the elements of a list of texts or numbers are of type %d", l.elem.k)
	}
}

// A getter of Java names a property; methods of Object do not, although they look like those of a record.
func TestAccessors(t *testing.T) {
	for _, tt := range []struct {
		method, property string
		ok               bool
	}{
		{"getId", "id", true},
		{"getURL", "uRL", true},
		{"isUrgent", "urgent", true},
		{"id", "id", true},
		{"get", "get", true},
		{"is", "is", true},
		{"getaway", "getaway", true}, // no capital, no getter
		{"isbn", "isbn", true},
		{"issue", "issue", true},
		{"getÉtat", "état", true},
		{"getClass", "getClass", false},
		{"hashCode", "hashCode", false},
		{"notify", "notify", false},
		{"ordinal", "ordinal", false},
	} {
		property, ok := accessor(tt.method)
		if property != tt.property || ok != tt.ok {
			t.Errorf("accessor(%q) = %q, %v, want %q, %v", tt.method, property, ok, tt.property, tt.ok)
		}
	}
}

// Var takes a path: a root, and names behind dots or in brackets.
func TestPathsOfVariables(t *testing.T) {
	for _, tt := range []struct {
		path string
		want []string // nil for no path
	}{
		{"req", []string{"req"}},
		{"path.id", []string{"path", "id"}},
		{"req.a.b", []string{"req", "a", "b"}},
		{`header["X-Tenant"]`, []string{"header", "X-Tenant"}},
		{`header["a.b"].c`, []string{"header", "a.b", "c"}},
		{`m["a"]["b"]`, []string{"m", "a", "b"}},
		{"é.ü1", []string{"é", "ü1"}},
		{"", nil},
		{".a", nil},
		{"a.", nil},
		{"a..b", nil},
		{"a b", nil},
		{"a[b]", nil},
		{"a['b']", nil},
		{`a["b`, nil},
		{`a[""]`, nil},
		{`["a"]`, nil},
		{"a + b", nil},
		{"#a", nil},
	} {
		got, ok := steps(tt.path)
		if ok != (tt.want != nil) || ok && !reflect.DeepEqual(got, tt.want) {
			t.Errorf("steps(%q) = %q, %v, want %q", tt.path, got, ok, tt.want)
		}
	}
}
