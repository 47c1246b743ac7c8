package spel

import (
	"context"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
)

type benchReq struct {
	Tenant  string
	OrderID string
}

// BenchmarkExpression measures a key of literals and paths, as keyexpr's BenchmarkPaths does.
func BenchmarkExpression(b *testing.B) {
	t, err := Expression("'order:' + #order.tenant + ':' + #order.orderId", Params("order")).Parse(keyexpr.Roots{"req": keyexpr.TypeFor[*benchReq]()})
	if err != nil {
		b.Fatal(err)
	}
	req := &benchReq{Tenant: "acme-industries", OrderID: "018f6b1e-7d5a-7cc0-b1a2-1234567890ab"}
	facts := func(string) (any, error) { return req, nil }
	b.ReportAllocs()
	var keys []string
	for b.Loop() {
		keys, err = t.Expand(context.Background(), facts)
	}
	if err != nil || keys[0] != "order:acme-industries:018f6b1e-7d5a-7cc0-b1a2-1234567890ab" {
		b.Fatal(keys, err)
	}
}
