package run

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// A number is converted to another type if it comes back as itself.
func TestConvert(t *testing.T) {
	for _, tt := range []struct {
		v  any
		to reflect.Type
		ok bool
	}{
		{7, reflect.TypeFor[int8](), true},
		{-128, reflect.TypeFor[int8](), true},
		{128, reflect.TypeFor[int8](), false},
		{-1, reflect.TypeFor[uint8](), false},
		{-1, reflect.TypeFor[uint64](), false},
		{uint64(math.MaxUint64), reflect.TypeFor[int64](), false},
		{uint64(math.MaxInt64), reflect.TypeFor[int64](), true},
		{300, reflect.TypeFor[uint8](), false},
		{"x", reflect.TypeFor[tenant](), true},
		{tenant("x"), reflect.TypeFor[string](), true},
		{7, reflect.TypeFor[level](), true},
	} {
		x, ok := Convert(reflect.ValueOf(tt.v), tt.to)
		if ok != tt.ok || ok && x.Type() != tt.to {
			t.Errorf("Convert(%v, %v) = %v, %v", tt.v, tt.to, x, ok)
		}
	}
}

// Texts are texts, whole numbers are whole numbers, and 65 is no "A".
func TestSameSort(t *testing.T) {
	for _, tt := range []struct {
		from, to any
		want     bool
	}{
		{"", "", true},
		{"", tenant(""), true},
		{tenant(""), "", true},
		{0, int8(0), true},
		{0, uint64(0), true},
		{0, level(0), true},
		{0, "", false},
		{"", 0, false},
		{0, 0.0, false},
		{0.0, 0, false},
		{true, 0, false},
		{[]byte(nil), "", false},
		{order{}, order{}, true},
	} {
		if got := SameSort(reflect.TypeOf(tt.from), reflect.TypeOf(tt.to)); got != tt.want {
			t.Errorf("SameSort(%T, %T) = %v", tt.from, tt.to, got)
		}
	}
}

func TestInteger(t *testing.T) {
	n := 7
	var none *int
	for _, tt := range []struct {
		v     any
		want  int64
		fault string
	}{
		{7, 7, ""},
		{int8(-7), -7, ""},
		{uint64(7), 7, ""},
		{level(7), 7, ""},
		{&n, 7, ""},
		{uint64(math.MaxInt64), math.MaxInt64, ""},
		{uint64(math.MaxInt64 + 1), 0, "too large to calculate with"},
		{nil, 0, "nil where a whole number is wanted"},
		{none, 0, "nil where a whole number is wanted"},
		{"7", 0, "of type string where a whole number is wanted"},
		{7.0, 0, "of type float64 where a whole number is wanted"},
		{true, 0, "of type bool where a whole number is wanted"},
	} {
		got, err := Integer(tt.v)
		if tt.fault == "" && (err != nil || got != tt.want) || tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)) {
			t.Errorf("Integer(%v) = %d, %v, want %d, %q", tt.v, got, err, tt.want, tt.fault)
		}
	}
}

// messageLike is read by methods alone.
type messageLike struct{ id string }

func (m *messageLike) GetOrderID() string     { return m.id }
func (m *messageLike) GetPair() (int, int)    { return 0, 0 }
func (m *messageLike) GetWith(int) string     { return "" }
func (m *messageLike) Fails() (string, error) { return "", Faulty("secret") }
func (m *messageLike) Panics() string         { panic("secret") }

func TestGetter(t *testing.T) {
	of := reflect.TypeFor[*messageLike]()
	for _, tt := range []struct{ name, want string }{
		{"order_id", "GetOrderID"},
		{"orderID", "GetOrderID"},
		{"OrderId", "GetOrderID"},
		{"order", ""},
		{"pair", ""},
		{"with", ""},
		{"", ""},
	} {
		got, ok := Getter(of, tt.name)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("Getter(%q) = %q, %v, want %q", tt.name, got, ok, tt.want)
		}
	}
}
