package spel

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// A key that names no fact is one key for all requests, and so is an element of a list that names none. A function that gets a
// context may ask for a fact.
func TestOneKeyForAll(t *testing.T) {
	tenant := keyexpr.Func("tenant", func(context.Context) string { return "x" })
	fixed := keyexpr.Func("fixed", func(string) string { t.Error("a function ran at start"); return "x" })
	for _, tt := range []struct {
		text   string
		offset int // of the refusal, if it is not negative
	}{
		{"'order'", 0},
		{"1 + 2", 0},
		{"order-#{'x'}", 0},
		{"order-#{1 + 2}", 0},
		{"#fixed('x')", 0},
		{"#root.methodName", 0},
		{"{1, 2}", 1},
		{"{'all', #order.name}", 1},
		{"{#order.name, 'all'}", 14},
		{"{#order.name, #order.id}", -1},
		{"#order.id", -1},
		{"order-#{#order.id}", -1},
		{"#root.args[0].id", -1},
		{"'x' + {'a', #order.id}", -1}, // one text
		{"#tenant()", -1},
		{"#fixed(#order.name)", -1},
	} {
		_, err := Expression(tt.text, Params("order"), Method("a.B", "pay")).Parse(javaRoots, fixed, tenant)
		fault, refused := errors.AsType[*keyexpr.Error](err)
		if refused != (tt.offset >= 0) || refused && (fault.Offset != tt.offset || !strings.Contains(fault.Reason, "OneKey says that it is meant")) {
			t.Errorf("Parse(%q) = %v, want offset %d", tt.text, err, tt.offset)
		}
		if _, err := Expression(tt.text, Params("order"), Method("a.B", "pay")).Parse(javaRoots, fixed, tenant, keyexpr.OneKey()); err != nil {
			t.Errorf("Parse(%q, OneKey()) = %v", tt.text, err)
		}
	}
}
