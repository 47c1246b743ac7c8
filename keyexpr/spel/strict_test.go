package spel

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr"
)

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
	}
	r := request{P1: "p1", P0: "p0", X: "x", B: "b", A0: "a0", S: "s", Month: time.May, Raw: json.RawMessage(`"a"`)}
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
	} {
		tmpl, err := Expression(tt.expression, Params(tt.params...)).Parse(keyexpr.Roots{"req": keyexpr.TypeFor[request]()})
		got := ""
		if err == nil {
			var keys []string
			if keys, err = tmpl.Expand(context.Background(), func(string) (any, error) { return r, nil }); err == nil {
				got = keys[0]
			}
		}
		if got != tt.want && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s of %q = %q, %v, want %s", tt.expression, tt.params, got, err, tt.want)
		}
	}
}
