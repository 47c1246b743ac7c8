package keyexpr

import (
	"context"
	"testing"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
)

type benchReq struct {
	Tenant  string
	OrderID string
}

var benchRequest = &benchReq{Tenant: "acme-industries", OrderID: "018f6b1e-7d5a-7cc0-b1a2-1234567890ab"}

func benchFacts(string) (any, error) { return benchRequest, nil }

func BenchmarkPaths(b *testing.B) {
	const want = "order:acme-industries:018f6b1e-7d5a-7cc0-b1a2-1234567890ab"
	b.Run("template", func(b *testing.B) {
		t, err := Parse("order:#{req.Tenant}:#{req.OrderID}", Roots{"req": TypeFor[*benchReq]()})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		var keys []string
		for b.Loop() {
			keys, _ = t.Expand(context.Background(), benchFacts)
		}
		if len(keys) != 1 || keys[0] != want {
			b.Fatal(keys)
		}
	})
	b.Run("handwritten", func(b *testing.B) {
		b.ReportAllocs()
		var keys []string
		for b.Loop() {
			keys = handwritten(benchRequest)
		}
		if len(keys) != 1 || keys[0] != want {
			b.Fatal(keys)
		}
	})
}

func handwritten(r *benchReq) []string {
	buf := make([]byte, 0, 128)
	buf = append(buf, "order:"...)
	buf = appendEscaped(buf, r.Tenant, ':')
	buf = append(buf, ':')
	buf = appendEscaped(buf, r.OrderID, 0)
	return []string{string(buf)}
}

func BenchmarkCalls(b *testing.B) {
	const want = "order:acme-industries:018F6B1E-7D5A-7CC0-B1A2-1234567890AB"
	b.Run("template", func(b *testing.B) {
		t, err := Parse("order:#{lower(req.Tenant)}:#{upper(req.OrderID)}", Roots{"req": TypeFor[*benchReq]()})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		var keys []string
		for b.Loop() {
			keys, _ = t.Expand(context.Background(), benchFacts)
		}
		if len(keys) != 1 || keys[0] != want {
			b.Fatal(keys)
		}
	})
	b.Run("expr", func(b *testing.B) {
		type env struct {
			Req *benchReq `expr:"req"`
		}
		p, err := expr.Compile(`"order:" + lower(req.Tenant) + ":" + upper(req.OrderID)`, expr.Env(env{}))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		var key any
		var machine vm.VM
		for b.Loop() {
			key, _ = machine.Run(p, env{benchRequest})
		}
		if key != want {
			b.Fatal(key)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := Parse("order:#{lower(req.Tenant)}:#{upper(req.OrderID)}", Roots{"req": TypeFor[*benchReq]()}); err != nil {
			b.Fatal(err)
		}
	}
}
