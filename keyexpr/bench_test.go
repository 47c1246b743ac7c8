package keyexpr

import (
	"context"
	"testing"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

type benchReq struct {
	Tenant  string
	OrderID string
	Total   int
	Lines   []line
}

var benchRequest = &benchReq{
	Tenant: "acme-industries", OrderID: "018f6b1e-7d5a-7cc0-b1a2-1234567890ab", Total: 7,
	Lines: []line{{"pen", 1}, {"ink", 2}, {"paper", 3}},
}

var benchRoots = Roots{"req": TypeFor[*benchReq](), "header": AnyName()}

func benchFacts(root string) (any, error) {
	if root == "header" {
		return benchHeader, nil
	}
	return benchRequest, nil
}

var benchHeader = Lookup(func(name string) (string, bool, error) { return "acme-industries", name == "Tenant", nil })

// benchExpand measures a template whose last key is want.
func benchExpand(b *testing.B, text, want string) {
	t, err := Parse(text, benchRoots)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var keys []string
	for b.Loop() {
		keys, err = t.Expand(context.Background(), benchFacts)
	}
	if err != nil || keys[len(keys)-1] != want {
		b.Fatal(keys, err)
	}
}

// BenchmarkPaths compares a template of plain paths with what one would write by hand.
func BenchmarkPaths(b *testing.B) {
	const want = "order:acme-industries:018f6b1e-7d5a-7cc0-b1a2-1234567890ab"
	b.Run("template", func(b *testing.B) { benchExpand(b, "order:#{req.Tenant}:#{req.OrderID}", want) })
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

var beforeColon, atEnd = run.Before([]rune{':'}), run.Before(nil)

func handwritten(r *benchReq) []string {
	buf := make([]byte, 0, 128)
	buf = append(buf, "order:"...)
	buf = beforeColon.Append(buf, r.Tenant)
	buf = append(buf, ':')
	buf = atEnd.Append(buf, r.OrderID)
	return []string{string(buf)}
}

// BenchmarkAppend is BenchmarkPaths with a list of the caller's.
func BenchmarkAppend(b *testing.B) {
	t, err := Parse("order:#{req.Tenant}:#{req.OrderID}", benchRoots)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	keys := make([]string, 0, 1)
	for b.Loop() {
		keys, err = t.AppendKeys(context.Background(), keys[:0], benchFacts)
	}
	if err != nil || len(keys) != 1 {
		b.Fatal(keys, err)
	}
}

// BenchmarkCalls compares holes with a call each with the same as one expression of the engine, which does not escape.
func BenchmarkCalls(b *testing.B) {
	const want = "order:acme-industries:018F6B1E-7D5A-7CC0-B1A2-1234567890AB"
	b.Run("template", func(b *testing.B) { benchExpand(b, "order:#{lower(req.Tenant)}:#{upper(req.OrderID)}", want) })
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

// BenchmarkHoles measures what else holes do.
func BenchmarkHoles(b *testing.B) {
	for _, tt := range []struct{ name, text, want string }{
		{"lower", "order:#{lower(req.Tenant)}:#{lower(req.OrderID)}", "order:acme-industries:018f6b1e-7d5a-7cc0-b1a2-1234567890ab"},
		{"int", "order:#{req.Total}", "order:7"},
		{"header", "tenant:#{header.Tenant}", "tenant:acme-industries"},
		{"default", "tenant:#{header.Nope ?? req.Tenant}", "tenant:acme-industries"},
		{"or", "tenant:#{coalesce(header.Nope, req.Tenant)}", "tenant:acme-industries"},
		{"hash", "order:#{hash(req.Tenant)}", "order:e4d357580afd0e57406f90fd082d3141"},
		{"shard", "order:#{shard(req.Tenant, 16)}", "order:13"},
		{"concat", "#{req.Tenant}/#{req.OrderID}", "acme-industries/018f6b1e-7d5a-7cc0-b1a2-1234567890ab"},
		{"ternary", "#{req.Total > 5 ? req.Tenant : 'small'}", "acme-industries"},
		{"list", "#{map(req.Lines, .SKU)}", "pen"},
		{"list with text", "stock:#{map(req.Lines, .SKU)}", "stock:pen"},
	} {
		b.Run(tt.name, func(b *testing.B) { benchExpand(b, tt.text, tt.want) })
	}
}

func BenchmarkCondition(b *testing.B) {
	c, err := ParseCondition(`req.Total > 5 && req.Tenant != ""`, benchRoots)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	holds := false
	for b.Loop() {
		holds, err = c.Eval(context.Background(), benchFacts)
	}
	if !holds || err != nil {
		b.Fatal(holds, err)
	}
}

// BenchmarkParallel shows that expansions do not wait for each other; run it with -cpu 1,2,4.
func BenchmarkParallel(b *testing.B) {
	for _, text := range []string{"order:#{req.Tenant}:#{req.OrderID}", "order:#{lower(req.Tenant)}", "#{req.Total > 5 ? req.Tenant : 'small'}"} {
		t, err := Parse(text, benchRoots)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := t.Expand(context.Background(), benchFacts); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, text := range []string{"order:#{req.Tenant}:#{req.OrderID}", "order:#{lower(req.Tenant)}:#{upper(req.OrderID)}", "#{map(req.Lines, 'stock:' + .SKU)}"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(text, benchRoots); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
