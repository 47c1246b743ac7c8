package keyexpr

import (
	"errors"
	"strings"
	"testing"
)

func TestCondition(t *testing.T) {
	req := &payRequest{OrderID: "42", Tenant: "acme", Seq: -5, Shard: 1<<63 + 3, Urgent: true, Level: 2, Tags: []string{"x"}}
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"true", true},
		{"req.Urgent", true},
		{"!req.Urgent", false},
		{"req.Tenant == 'acme'", true},
		{"'acme' != req.Tenant", false},
		{"req.Tenant in ['acme', 'other']", true},
		{"req.Tenant startsWith 'ac' and req.Tenant matches '^[a-z]+$'", true},
		{"req.Level == 2 && req.Level > 1", true},
		{"req.Shard > 5", true},
		{"req.Shard == -9223372036854775805", false},
		{"req.Seq < req.Shard", true},
		{"header.Nope == 'x'", false},
		{"header.Nope == nil", true},
		{"req.Coupon == nil", true},
		{"req.Coupon == 'x'", false},
		{"body.qty > 2", true},
		{"body.order.id == 'B1'", true},
		{"any(req.Tags, # == 'x')", true},
		{"now().Year() > 2000", true},
		{"now() - now() < duration('1h')", true},
		{"req.Seq / 2 < 0", true},
		{"req.OrderID contains '${x}'", false},
		{"req.OrderID == '$' + '{x}'", false},
		{"req.OrderID == '${'", false},
	} {
		c, err := ParseCondition(tt.text, testRoots())
		if err != nil {
			t.Errorf("ParseCondition(%q): %v", tt.text, err)
			continue
		}
		if got, err := c.Eval(t.Context(), testFacts(req)); got != tt.want || err != nil {
			t.Errorf("Eval(%q) = %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
}

func TestConditionErrors(t *testing.T) {
	for _, tt := range []struct{ text, reason string }{
		{"", "nothing is written"},
		{"req.OrderID", "of type string"},
		{"body.urgent", "not known to be"},
		{"req.Urgent &&", "the expression ends too early"},
		{"req.Urgnt", "did you mean Urgent?"},
		{"repeat('a', 3) == ''", "not allowed"},
		{"req.OrderID == '${x}'", "${…} is not filled in"},
		{"'a:${req.Tenant}' != req.OrderID", "${…} is not filled in"},
		{"req.OrderID in ['a', '${x}']", "${…} is not filled in"},
	} {
		_, err := ParseCondition(tt.text, testRoots())
		if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("ParseCondition(%q) = %v, want %q", tt.text, err, tt.reason)
		}
	}
	if _, ok := errors.AsType[*Error](CheckCondition("a &&")); !ok {
		t.Error("CheckCondition finds nothing")
	}
	if err := CheckCondition("anything.at > 5"); err != nil {
		t.Errorf("CheckCondition = %v", err)
	}
}

func TestConditionRefusesValues(t *testing.T) {
	for _, text := range []string{"body.nope > 5", "req.Customer.Name == 'x'", "int(req.OrderID) > 5"} {
		c, err := ParseCondition(text, testRoots())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Eval(t.Context(), testFacts(&payRequest{OrderID: "x"})); !errors.Is(err, ErrValue) {
			t.Errorf("Eval(%q) = %v, want ErrValue", text, err)
		}
	}
}

func TestConstantConditions(t *testing.T) {
	funcs := []Option{Func("next", func() int { return 7 }), Func("ok", func(string) bool { return true })}
	for _, tt := range []struct {
		text      string
		holds, ok bool
	}{
		// An operand that decides, and what is compared with itself or with what it can't be.
		{"true", true, true},
		{"not (1 == 1)", false, true},
		{"req.OrderID != req.OrderID", false, true},
		{"not (req.OrderID == req.OrderID)", false, true},
		{"req.Seq < req.Seq", false, true},
		{"lower(req.OrderID) != lower(req.OrderID)", false, true},
		{"req.OrderID == 'a' && false", false, true},
		{"req.Urgent || true", true, true},
		{"ok(req.OrderID) && false", false, true},
		{"req.Urgent and not req.Urgent", false, true},
		{"req.OrderID == nil", false, true},
		{"req.OrderID != nil", true, true},
		{"req.OrderID in []", false, true},
		{"any([], # == req.OrderID)", false, true},
		{"len(req.OrderID) < 0", false, true},
		{"len(req.Tags) >= 0", true, true},
		// The value decides.
		{"req.OrderID == 'refund'", false, false},
		{"req.Seq > 1000000", false, false},
		{"req.OrderID == req.Tenant", false, false},
		{"req.Urgent", false, false},
		{"req.Tenant in ['acme']", false, false},
		{"any(req.Tags, # == req.OrderID)", false, false},
		{"len(req.Tags) > 0", false, false},
		{"req.Coupon == nil", false, false},
		{"req.Customer?.Name == nil", false, false},
		{"header.Nope == nil", false, false},
		{"body.order == nil", false, false},
		{"body.qty == body.id", false, false},
		{"(req.OrderID ?? 'x') == nil", false, false}, // which is not found out
		{"req.OrderID == 'a' and req.OrderID == 'b'", false, false},
		// What is written alike may differ.
		{"next() < next()", false, false},
		{"next() in [next()]", false, false},
		{"next() > 5 and next() <= 5", false, false},
		{"req.Kind() != req.Kind()", false, false},
		{"now() != now()", false, false},
		{"now().Year() > 2000", false, false},
		{"now() - now() < duration('1h')", false, false},
		{"req.Seq / 2 != req.Seq / 2", false, false},
		{"body.qty != body.qty", false, false},
		{"body.qty in [body.qty]", false, false},
		{"req.Seq / 2 > 5.5 or req.Seq / 2 <= 5.5", false, false},
	} {
		c, err := ParseCondition(tt.text, testRoots(), funcs...)
		if err != nil {
			t.Errorf("ParseCondition(%q): %v", tt.text, err)
			continue
		}
		if holds, ok := c.Constant(); holds != tt.holds || ok != tt.ok {
			t.Errorf("Constant(%q) = %v, %v, want %v, %v", tt.text, holds, ok, tt.holds, tt.ok)
		}
	}
}
