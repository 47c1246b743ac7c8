package keyexpr

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// uniq took a number of JSON for a text, so that 7 and "7" of one body became one element. They are two facts.
func TestUniqKnowsNumbersOfJSON(t *testing.T) {
	for _, tt := range []struct {
		list []any
		want string
	}{
		{[]any{json.Number("7"), "7"}, "2"},
		{[]any{"7", json.Number("7")}, "2"},
		{[]any{json.Number("7"), int64(7)}, "1"},
		{[]any{json.Number("-1"), json.Number("-1")}, "1"},
		{[]any{json.Number("18446744073709551615"), uint64(1<<64 - 1)}, "1"},
	} {
		keys, err := expand(t, "#{len(uniq(req.Any))}", &payRequest{Any: tt.list})
		if err != nil || strings.Join(keys, " ") != tt.want {
			t.Errorf("len(uniq(%#v)) = %q, %v, want %s", tt.list, keys, err, tt.want)
		}
	}
}

// uniq kept the int 7 and the int64 7 apart, which == takes for one, as it compared types. What is equal is one element, and the
// first of its kind stays as it was.
func TestUniqComparesAsEqualDoes(t *testing.T) {
	type count uint8
	tenth := float32(0.1)
	for _, tt := range []struct {
		a, b any
		want bool
	}{
		{7, int64(7), true},
		{7, uint8(7), true},
		{7, count(7), true},
		{int8(-7), -7, true},
		{7, 7.0, true},
		{0.5, float32(0.5), true},
		{7.5, 7, false},
		{float64(tenth), 0.1, false},
		{7, "7", false},
		{1, true, false},
		{0, nil, false},
		{int64(-1), uint64(1<<64 - 1), false},
		{uint64(1<<64 - 1), uintptr(1<<64 - 1), true},
		{uint64(1 << 63), float64(1 << 63), true},
		{int64(-1 << 63), -float64(1 << 63), true},
		{float64(1 << 63), float64(1 << 63), true},
		{5, 5 * time.Nanosecond, false},
		{time.Second, time.Second, true},
	} {
		list := []any{tt.a, tt.b}
		keys, err := expand(t, "#{len(uniq(req.Any))}", &payRequest{Any: list})
		if one := len(keys) == 1 && keys[0] == "1"; err != nil || one != tt.want {
			t.Errorf("len(uniq(%#v)) = %q, %v", list, keys, err)
		}
		c, err := ParseCondition("req.Any[0] == req.Any[1]", Roots{"req": TypeFor[*payRequest]()})
		if err != nil {
			t.Fatal(err)
		}
		equal, err := c.Eval(context.Background(), func(string) (any, error) { return &payRequest{Any: list}, nil })
		if err != nil || equal != tt.want {
			t.Errorf("%#v == %#v is %v, %v, and uniq says %v", tt.a, tt.b, equal, err, tt.want)
		}
	}
}

// weigh did not charge the keys of a map: two maps with a key of a megabyte were compared for the price of two numbers.
func TestWeighChargesTheKeysOfMaps(t *testing.T) {
	long := strings.Repeat("x", run.MaxBytes/2)
	for _, tt := range []struct {
		name  string
		v     any
		bytes int // -1 if it is too much
	}{
		{"a nil map", map[string]int(nil), 0},
		{"an empty map", map[string]int{}, 0},
		{"a key", map[string]int{"abc": 1}, 24 + 3},
		{"a key and a text", map[string]string{"abc": "de"}, 24 + 3 + 2},
		{"a key in an any", map[any]int{"abc": 1}, 24 + 3},
		{"keys of a map in a map", map[string]any{"ab": map[string]int{"c": 1}}, 2*24 + 2 + 1},
		{"a key of a struct", map[tenantKey]int{{"abc", 1}: 1}, 24 + 3},
		{"a long key", map[string]int{long: 1}, 24 + run.MaxBytes/2},
		{"two long keys", map[string]int{long: 1, long + "x": 2}, -1},
	} {
		st := run.NewState(context.Background(), nil, nil)
		err := weigh(st, tt.v)
		if _, bytes := st.Spent(); (err != nil) != (tt.bytes < 0) || err == nil && bytes != tt.bytes {
			t.Errorf("%s: %d bytes, %v, want %d", tt.name, bytes, err, tt.bytes)
		}
		st.Release()
	}
}

type tenantKey struct {
	Name string
	Part int
}

// A choice that was folded at start gave the fact that is left of it the type of the choice, which is that of its other branch to
// the checker. What came as any was then written as reflect writes it: <interface {} Value>, one key for all requests.
func TestAFactBehindAFoldedTestKeepsItsType(t *testing.T) {
	for _, text := range []string{
		"#{false ? req.Customer?.Name : req.Any}",
		"#{true ? req.Any : req.Customer?.Name}",
		"#{'a' == 'b' ? req.Customer?.Name : req.Any}",
		"#{if false {req.Customer?.Name} else {req.Any}}",
		"#{(false and req.Urgent) ? req.Coupon : req.Any}",
		"#{[false ? req.Customer?.Name : req.Any]}",
		"#{string(false ? req.Customer?.Name : req.Any)}",
	} {
		keys, err := expand(t, text, &payRequest{Any: "7"})
		if err != nil || strings.Join(keys, " ") != "7" {
			t.Errorf("Expand(%q) = %q, %v, want 7", text, keys, err)
		}
	}
}
