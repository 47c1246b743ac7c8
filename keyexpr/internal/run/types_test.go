package run

import (
	"context"
	"encoding/json"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

// What may be in a key is decided by type, at start where the type is known. Each sentence stands behind the source of a hole.
func TestRefusal(t *testing.T) {
	type stamped struct {
		time.Time
		ID string
	}
	for _, tt := range []struct {
		t    reflect.Type
		want string // the beginning; "" if it may be in a key
	}{
		// What has one spelling.
		{reflect.TypeFor[string](), ""},
		{reflect.TypeFor[tenant](), ""},
		{reflect.TypeFor[bool](), ""},
		{reflect.TypeFor[int8](), ""},
		{reflect.TypeFor[uint64](), ""},
		{reflect.TypeFor[level](), ""},
		{reflect.TypeFor[*string](), ""},
		{reflect.TypeFor[[]byte](), ""},
		{reflect.TypeFor[[4]byte](), ""},
		{reflect.TypeFor[json.Number](), ""},
		{reflect.TypeFor[any](), ""},
		// What says itself how it is spelt.
		{reflect.TypeFor[netip.Addr](), ""},
		{reflect.TypeFor[*pointerText](), ""},
		{reflect.TypeFor[pointerText](), ""},
		{reflect.TypeFor[*big.Int](), ""},
		{reflect.TypeFor[*big.Rat](), ""},
		// What has many spellings, or none.
		{reflect.TypeFor[float32](), "is a float, float32"},
		{reflect.TypeFor[*float64](), "is a float, float64"},
		{reflect.TypeFor[*big.Float](), "is a float, big.Float"},
		{reflect.TypeFor[time.Time](), "is a time"},
		{reflect.TypeFor[*time.Time](), "is a time"},
		{reflect.TypeFor[stamped](), "is a time"},
		{reflect.TypeFor[order](), "is a struct, run.order: name one of its fields"},
		{reflect.TypeFor[*order](), "is a struct, run.order: name one of its fields"},
		{reflect.TypeFor[map[string]int](), "is a map, map[string]int: name one of its entries"},
		{reflect.TypeFor[[]string](), "is a list, []string"},
		{reflect.TypeFor[[2]int](), "is a list, [2]int"},
		{reflect.TypeFor[func()](), "is a function: call it"},
		{reflect.TypeFor[chan int](), "is of type chan int, which is no key material"},
		{reflect.TypeFor[complex128](), "is of type complex128"},
	} {
		if got := Refusal(tt.t); tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
			t.Errorf("Refusal(%v) = %q, want %q", tt.t, got, tt.want)
		}
	}
}

// Ids that are made of bytes, or that spell themselves, are no lists.
func TestIsList(t *testing.T) {
	for _, tt := range []struct {
		t    reflect.Type
		want bool
	}{
		{reflect.TypeFor[[]string](), true},
		{reflect.TypeFor[[3]int](), true},
		{reflect.TypeFor[[]any](), true},
		{reflect.TypeFor[[]level](), true},
		{reflect.TypeFor[[]byte](), false},
		{reflect.TypeFor[[16]byte](), false},
		{reflect.TypeFor[string](), false},
		{reflect.TypeFor[map[string]int](), false},
		{reflect.TypeFor[*[]string](), false},
	} {
		if got := IsList(tt.t); got != tt.want {
			t.Errorf("IsList(%v) = %v", tt.t, got)
		}
	}
}

// The quickest way for a type must be one that makes the same text as the slowest.
func TestLeaves(t *testing.T) {
	text, link := "x", &pointerText{"y"}
	for _, tt := range []struct {
		v    any
		leaf Leaf
		want string
	}{
		{"a", LeafString, "a"},
		{tenant("a"), LeafString, "a"},
		{7, LeafInt, "7"},
		{int8(-7), LeafInt, "-7"},
		{uint64(1<<64 - 1), LeafUint, "18446744073709551615"},
		{level(2), LeafAny, "level-2"},
		{json.Number("7"), LeafAny, "7"},
		{Raw("{"), LeafAny, "{"},
		{true, LeafAny, "true"},
		{&text, LeafAny, "x"},
		{link, LeafAny, "y"},
		{[]byte{1, 255}, LeafAny, "01ff"},
		{netip.MustParseAddr("::1"), LeafAny, "::1"},
	} {
		st := NewState(context.Background(), nil, nil)
		leaf := LeafOf(reflect.TypeOf(tt.v))
		got, err := st.Leaf(nil, reflect.ValueOf(tt.v), leaf, Before(nil))
		slow, slowErr := st.Leaf(nil, reflect.ValueOf(tt.v), LeafAny, Before(nil))
		st.Release()
		want := strings.ReplaceAll(tt.want, " ", "%20")
		if leaf != tt.leaf || err != nil || slowErr != nil || string(got) != want || string(slow) != want {
			t.Errorf("%T has leaf %v, and makes %q and %q, %v, want %v and %q", tt.v, leaf, got, slow, err, tt.leaf, want)
		}
	}
}

// Numbers of any size are measured before they are spelt, as that takes the square of their size.
func TestNumbersWithoutEnd(t *testing.T) {
	one := big.NewInt(1)
	for _, tt := range []struct {
		v    any
		want string // of the error
	}{
		{new(big.Int).Lsh(one, maxBits-1), ""},
		{new(big.Int).Lsh(one, maxBits), "of more than 4096 bits"},
		{new(big.Int).Neg(new(big.Int).Lsh(one, 1<<20)), "of more than 4096 bits"},
		{big.NewRat(1, 3), ""},
		{new(big.Rat).SetFrac(one, new(big.Int).Lsh(one, 1<<20)), "of more than 4096 bits"},
		{new(big.Rat).SetInt(new(big.Int).Lsh(one, 1<<20)), "of more than 4096 bits"},
		{new(big.Float).SetMantExp(big.NewFloat(1), 1<<30), "is a float"},
		{json.Number(strings.Repeat("1", 9<<20)), "too much text"},
		{json.Number("1.0"), "many spellings"},
		{json.Number("1e3"), "many spellings"},
		{json.Number("-0"), "many spellings"},
		{json.Number("007"), "many spellings"},
		{json.Number("-7"), ""},
		{json.Number(strings.Repeat("1", 100)), ""},
	} {
		st := NewState(context.Background(), nil, nil)
		_, err := st.TextOf(reflect.ValueOf(tt.v))
		st.Release()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("TextOf(a %T) = %v, want %q", tt.v, err, tt.want)
		}
	}
}

// A number of JSON is compared as the number that it is, if it is one, and is looked at once at most.
func TestTame(t *testing.T) {
	for _, tt := range []struct{ v, want any }{
		{json.Number("7"), int64(7)},
		{json.Number("-9223372036854775808"), int64(-1 << 63)},
		{json.Number("18446744073709551615"), uint64(1<<64 - 1)},
		{json.Number("18446744073709551616"), json.Number("18446744073709551616")},
		{json.Number("7.0"), json.Number("7.0")},
		{json.Number("007"), json.Number("007")},
		{json.Number(strings.Repeat("0", 21)), json.Number(strings.Repeat("0", 21))},
		{"7", "7"},
		{7, 7},
	} {
		if got := Tame(reflect.ValueOf(tt.v)).Interface(); got != tt.want {
			t.Errorf("Tame(%v) = %v of type %T, want %v", tt.v, got, got, tt.want)
		}
	}
	if Tame(reflect.ValueOf([]any{nil}).Index(0)).IsValid() {
		t.Error("nil is something")
	}
}
