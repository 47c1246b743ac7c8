package keyexpr

import (
	"slices"
	"strings"
	"testing"
)

func TestInspection(t *testing.T) {
	for _, tt := range []struct{ text, shape, fields string }{
		{"order", "order", ""},
		{"order:#{req.OrderID}:#{req.Seq}", "order:<string>:<int64>", "req.OrderID req.Seq"},
		{"#{req.Tenant}:#{req.Coupon}:#{req.Level}:#{req.Ref}", "<string>:<string>:<keyexpr.level>:<keyexpr.uuid>", "req.Coupon req.Level req.Ref req.Tenant"},
		{"#{lower(header['X-T'] ?? path.id)}", "<string>", "header.X-T path.id"},
		{"#{body.order.id}:#{hash(body)}", "<any>:<string>", "body body.order.id"},
		{"#{map(req.Lines, 'item:' + .SKU)}", "item:<string>", "req.Lines"},
		{"#{map(body, .id)}", "<any>", "body"},
		{"#{req.Customer?.Parent.Name}:#{req.Tags[0]}:#{req.Customer.GetName()}", "<string>:<string>:<string>", "req.Customer.GetName req.Customer.Parent.Name req.Tags"},
		{"#{raw(method)}", "<string>", "method"},
		{"#{req.order_id}", "<string>", "req.OrderID"},
	} {
		tmpl := mustParse(t, tt.text)
		if got := tmpl.Shape(); got != tt.shape {
			t.Errorf("Shape(%q) = %q, want %q", tt.text, got, tt.shape)
		}
		if got, want := tmpl.Fields(), strings.Fields(tt.fields); !slices.Equal(got, want) {
			t.Errorf("Fields(%q) = %q, want %q", tt.text, got, want)
		}
	}
}

func TestConditionFields(t *testing.T) {
	c, err := ParseCondition("req.seq > 5 && header.Tenant == 'acme'", testRoots())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Fields(), []string{"header.Tenant", "req.Seq"}; !slices.Equal(got, want) {
		t.Errorf("Fields() = %q, want %q", got, want)
	}
}
