package spel

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// short has 16 bytes, and no text of a UUID.
type short [16]byte

func (short) String() string { return "01ARZ3NDEKTSV4RRFFQ69G5FAV" }

// TestPlainJavaUnboxes holds that Java throws for null beside a number, and that what an accessor returns may be an object.
func TestPlainJavaUnboxes(t *testing.T) {
	t.Parallel()
	type request struct {
		N            *int32
		Length, Size int32
		Name         string
	}
	for text, want := range map[string]string{
		`"k" + (p0.getN() == 1 ? "a" : "b")`:                  "request: compares null",
		`"k" + (1 != p0.getN() ? "a" : "b")`:                  "request: compares null",
		`"k" + (p0.getN() < 1 ? "a" : "b")`:                   "request: compares null",
		`"k" + (p0.getN() == null ? "a" : "b")`:               "ka",
		`"k" + (p0.length() == p0.size() ? "a" : "b")`:        "start: == asks whether two objects",
		`"k" + (p0.name().length() == p0.size() ? "a" : "b")`: "kb",
	} {
		got := outcome(t, Redisson(text, Params("p0")), keyexpr.Roots{"req": keyexpr.TypeFor[request]()}, func(string) (any, error) { return request{Name: "abc"}, nil })
		if !agrees(got, want) {
			t.Errorf("%s = %s, want %s", text, got, want)
		}
	}
}

// TestJavaHasTheLastWord has what Spring decides in an order of its own, and what Java writes in another way.
func TestJavaHasTheLastWord(t *testing.T) {
	t.Parallel()
	type request struct {
		P1, P0, X, B, A0, S string
		N                   *int32
		Month               time.Month
		Day                 time.Weekday
		Raw                 json.RawMessage
		Note                *string
		Attrs               map[string]string
		Any                 any
		ULID                short
		Odd                 string
	}
	r := request{P1: "p1", P0: "p0", X: "x", B: "b", A0: "a0", S: "s", Month: time.May, Raw: json.RawMessage(`"a"`), Odd: "\U00010D50",
		Any: map[string]any{"order_id": "7", "OrderKey": "k", "unit-price": "9", "size": "3", "values": "v", "class": "c", "id": "1", "note": nil}}
	for _, tt := range []struct {
		expression string
		params     []string
		want       string
	}{
		{"'k' + #p1", []string{"P1", "X"}, "kx"},
		{"'k' + #p0", []string{"X", "p0"}, "kp0"},
		{"'k' + #a0", []string{"B", "a0"}, "ka0"},
		{"#p0.s == 's' ? '?' : 'x'", nil, "?"},
		{"#p0.note?.concat(#p0.attrs['no']) ?: 'none'", nil, "is nil"},
		{"(+#p0.n ?: 2)", nil, "no number"},
		{"'k' + #p0.month", nil, "Java spells"},
		{"'k' + #p0.day.name()", nil, "Java spells"},
		{"'k' + #p0.raw", nil, "make it a string"},
		// JSON of no declared type may be an object of Java, or a Map.
		{"#p0.any.orderId ?: 'none'", nil, "in another spelling"},
		{"#p0.any?.getOrderKey() ?: 'none'", nil, "in another spelling"},
		{"#p0.any.unitPrice ?: 'none'", nil, "in another spelling"},
		{"#p0.any.note ?: 'none'", nil, "none"},
		{"#p0.any.coupon ?: 'none'", nil, "none"},
		{"'k' + #p0.any.order_id", nil, "k7"},
		{"'k' + #p0.any.size()", nil, "without the method size"},
		{"#p0.any.isEmpty() ? 'e' : 'f'", nil, "f"},
		{"'k' + #p0.any.values()", nil, "is not read here"},
		{"'k' + #p0.any.class", nil, "getClass() says"},
		{"'k' + #p0.any.empty", nil, "isEmpty() says"},
		{"'k' + #p0.ulid", nil, "another text"},
		{"'k' + #p0.odd.toUpperCase()", nil, "other case"},
		// An element without a fact is one, wherever its list comes from.
		{"#p0.s == 's' ? {'all', #p0.x} : {#p0.x}", nil, "names no fact"},
		{"#p0.note == null ? {#p0.x} : {#p0.b, 'all'}", nil, "names no fact"},
		{"{'all', #p0.x}.![#this + '!']", nil, "names no fact"},
		{"{'all', #p0.x}.![#this + #p0.s]", nil, "alls xs"},
	} {
		tmpl, err := Expression(tt.expression, Params(tt.params...)).Parse(keyexpr.Roots{"req": keyexpr.TypeFor[request]()})
		got := ""
		if err == nil {
			var keys []string
			if keys, err = tmpl.Expand(context.Background(), func(string) (any, error) { return r, nil }); err == nil {
				got = strings.Join(keys, " ")
			}
		}
		if got != tt.want && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s of %q = %q, %v, want %s", tt.expression, tt.params, got, err, tt.want)
		}
	}
}
