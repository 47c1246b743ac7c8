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
