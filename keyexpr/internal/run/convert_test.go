package run

import (
	"context"
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

func TestCallMethod(t *testing.T) {
	var none *messageLike
	for _, tt := range []struct {
		name     string
		base     any
		method   string
		optional bool
		want     any
		fault    string
	}{
		{"a method", &messageLike{"7"}, "GetOrderID", false, "7", ""},
		{"of nil", nil, "GetOrderID", false, nil, "what should have GetOrderID() is nil"},
		{"of nil, behind ?.", nil, "GetOrderID", true, nil, ""},
		{"of a nil pointer, behind ?.", none, "GetOrderID", true, nil, ""},
		{"of a nil pointer that it reads", none, "GetOrderID", false, nil, "panicked: runtime error"},
		{"that fails", &messageLike{}, "Fails", false, nil, "can't go on: Fails() fails"},
		{"that panics", &messageLike{}, "Panics", false, nil, "panicked: secret (at "},
	} {
		got, err := CallMethod(tt.base, tt.method, tt.optional)
		if tt.fault == "" && (err != nil || got != tt.want) || tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)) {
			t.Errorf("%s: CallMethod = %v, %v, want %v, %q", tt.name, got, err, tt.want, tt.fault)
		}
	}
}

// A budget refuses what does not fit before it is spent, and what does not fit an int as well.
func TestBudgetsAreExact(t *testing.T) {
	st := NewState(context.Background(), nil, nil)
	defer st.Release()
	for _, tt := range []struct {
		name string
		do   func() error
		ok   bool
	}{
		{"all bytes", func() error { return st.Spend(MaxBytes) }, true},
		{"one byte more", func() error { return st.Spend(MaxBytes + 1) }, false},
		{"the largest int", func() error { return st.Spend(math.MaxInt) }, false},
		{"less than nothing", func() error { return st.Spend(-1) }, false},
		{"all steps", func() error { return st.Step(MaxSteps) }, true},
		{"one step more", func() error { return st.Step(MaxSteps + 1) }, false},
		{"a step back", func() error { return st.Step(-1) }, false},
		{"rounds", func() error { return st.Times(1000, 100, 1000) }, true},
		{"rounds with too many steps", func() error { return st.Times(1000, 201, 0) }, false},
		{"rounds with too many bytes", func() error { return st.Times(1000, 1, 1049) }, false},
		{"too many rounds", func() error { return st.Times(math.MaxInt, 1, 1) }, false},
		{"a list", func() error { return st.List(MaxBytes / 24) }, true},
		{"a list that is too long", func() error { return st.List(MaxBytes/24 + 1) }, false},
		{"a list without end", func() error { return st.List(math.MaxInt) }, false},
		{"a sort", func() error { return st.Sort(10_000) }, true},
		{"a sort of too many", func() error { return st.Sort(20_000) }, false},
		{"a sort without end", func() error { return st.Sort(math.MaxInt) }, false},
	} {
		st.steps, st.bytes = 0, 0
		err := tt.do()
		if steps, bytes := st.Spent(); (err == nil) != tt.ok || steps > MaxSteps || bytes > MaxBytes {
			t.Errorf("%s: %v, and %d steps and %d bytes, want it to fit: %v", tt.name, err, steps, bytes, tt.ok)
		}
	}
}
