package keyexpr

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"order:#{req.OrderID}", "##{a}", "{#a}", "#{", "#{}", "#{'}'}", "#{`}``", "#{a /* }", "#{(}", "é#{path.id}\xff",
		"#{1..1000000000}", "#{let a = method + ':' + method; a + ';' + a}", "#{req.OrdreID}", "#{header?.A?.b[0] ?? 'x'}", "#{map(req.Lines, .SKU)}",
		"#{$env}", "#{now()}", "#{1 < int(method) < 2}", "#{true ?: false}", "#{-9223372036854775808 % -1}", "#{b'\\xff'}", "#{{}}", "#{[]}",
		"#{header.X-Tenant}", "#{#order.id}", "${a}", "{{.b}}", "#{join(req.Tags, ',')}:#{method}", "x%#{method}", "#{raw(req.Tags)}",
	} {
		f.Add(seed)
	}
	roots, facts := testRoots(), testFacts(nil)
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := Parse(text, roots, OneKey())
		if err != nil {
			checkError(t, text, err)
			return
		}
		if err := Check(text); err != nil {
			t.Errorf("Check(%q) = %v, and Parse finds nothing", text, err)
		}
		keys, err := tmpl.Expand(t.Context(), facts)
		if (err == nil) == (len(keys) == 0) || slices.Contains(keys, "") {
			t.Errorf("Expand(%q) = %q, %v", text, keys, err)
		}
		for _, key := range keys {
			if len(key) > run.MaxKey {
				t.Errorf("Expand(%q) makes a key of %d bytes", text, len(key))
			}
		}
	})
}

func checkError(t *testing.T, text string, err error) {
	t.Helper()
	fault, ok := errors.AsType[*Error](err)
	if !ok || fault.Offset < 0 || fault.Offset > len(text) || fault.Reason == "" || strings.Contains(err.Error(), "\n") {
		t.Errorf("Parse(%q) = %#v", text, err)
	}
}

// FuzzMatch reads keys back: what can be read back can't be another request's key.
func FuzzMatch(f *testing.F) {
	for _, seed := range []string{"42", "", "a:b", "%", "%3A", "{a}", "}{", "\x00", "\r\n", "\xff\xfe", "é→", "→", "\u00a0", "9", "-", "~", "%~", strings.Repeat("long", 200)} {
		f.Add(seed, "x", int64(-7))
		f.Add("x", seed, int64(0))
	}
	type template struct {
		text string
		want func(id, name string, seq int64) []string
	}
	both := func(id, name string, _ int64) []string { return []string{id, name} }
	three := func(id, name string, seq int64) []string { return []string{fmt.Sprint(seq), id, name} }
	templates := []template{
		{"order:#{req.OrderID}:#{req.Tenant}", both},
		{"#{req.OrderID}→#{req.Tenant}→", both},
		{"o{#{req.OrderID}}#{req.Tenant}", both},
		{"#{req.OrderID + ':' + req.Tenant}", both},
		{"#{req.OrderID + ':' + req.Tenant + '/'}end", both},
		{"#{join([req.OrderID, string(req.Tenant)], ',')}:", both},
		{"#{join([req.OrderID, req.Tenant], '→')};", both},
		{"#{req.Seq}-#{req.OrderID}2:#{req.Tenant}", three},
		{"#{req.Seq}1#{req.OrderID + ' ' + string(req.Tenant)}", three},
		{"stock:#{[req.OrderID + ':' + req.Tenant]}!", both},
		{"#{map(req.Lines, .SKU + ':' + .SKU)}.#{req.Tenant}", func(id, name string, _ int64) []string { return []string{id, id, name} }},
	}
	parsed := map[string]*Template{}
	for _, tt := range templates {
		parsed[tt.text] = mustParse(f, tt.text)
	}
	f.Fuzz(func(t *testing.T, id, name string, seq int64) {
		for _, tt := range templates {
			req := &payRequest{OrderID: id, Tenant: tenant(name), Seq: seq, Lines: []line{{SKU: id}}}
			keys, err := parsed[tt.text].Expand(t.Context(), testFacts(req))
			if err != nil {
				if !errors.Is(err, ErrValue) {
					t.Errorf("Expand(%q) = %v, want ErrValue", tt.text, err)
				}
				continue
			}
			if strings.Contains(keys[0], run.DigestMark) {
				if len(keys[0]) < run.MaxKey-4 {
					t.Errorf("%q of %q looks like a digest", keys[0], tt.text)
				}
				continue
			}
			if got, ok := parsed[tt.text].Match(keys[0]); !ok || !slices.Equal(got, tt.want(id, name, seq)) {
				t.Errorf("Match(%q) by %q = %q, %v, want %q", keys[0], tt.text, got, ok, tt.want(id, name, seq))
			}
		}
	})
}

// strangers are n requests that have nothing in common: no fact of one is a fact of another.
func strangers(n int) []Facts {
	list := make([]Facts, n)
	for i := range list {
		id := strings.Repeat(fmt.Sprintf("%c%d", 'a'+i, i), i+1)
		coupon := "c" + id
		req := &payRequest{
			OrderID: id, Tenant: tenant("t" + id), Coupon: &coupon, Seq: int64(i*i*37 - 40), Shard: uint64(1<<60 + i*17), Urgent: i%2 == 0,
			Level: level(i), Ref: uuid{byte(i), byte(7 * i)}, Digest: []byte(id), Salt: [4]byte{byte(i)},
			Labels: map[string]string{"zone": "z" + id}, Counts: map[string]int{"n": i * 5}, Customer: &customer{Name: "n" + id}, Any: "any" + id,
		}
		for n := range i + 1 {
			req.Lines = append(req.Lines, line{fmt.Sprint("s", i, "-", n), 10*i + n})
			req.Tags = append(req.Tags, fmt.Sprint("g", i, "-", n))
		}
		list[i] = func(root string) (any, error) {
			switch root {
			case "req":
				return req, nil
			case "path", "header":
				return Lookup(func(name string) (string, bool, error) { return root + name + id, true, nil }), nil
			case "body":
				return map[string]any{"id": "b" + id, "qty": i * 3}, nil
			}
			return "M" + id, nil // method
		}
	}
	return list
}

// FuzzStrangers holds the rule that nothing is silent: whatever starts without OneKey gives strangers different keys. The
// templates are made of what people write, right and wrong, and of random bytes.
func FuzzStrangers(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed, "")
	}
	for _, text := range []string{
		"order:${req.OrderID}", "order:{{.OrderID}}", "order:{id}", "order/:id", "order:%s", "order:#req.OrderID", "order:# {req.ID}",
		"order:##{req.ID}", "'order:' + #order.id", "order:#{'x'}", "order:#{req.OrderID}", "#{1 + 2}", "#{true ? 'a' : req.OrderID}",
	} {
		f.Add(uint64(0), text)
	}
	roots, all := testRoots(), strangers(6)
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		if text == "" {
			text = randomTemplate(rand.New(rand.NewPCG(seed, 1)))
		}
		tmpl, err := Parse(text, roots)
		if err != nil {
			checkError(t, text, err)
			return
		}
		seen := map[string]int{}
		made := 0
		for _, facts := range all {
			keys, err := tmpl.Expand(context.Background(), facts)
			if err != nil {
				continue
			}
			made++
			for _, key := range keys {
				seen[key]++
			}
		}
		if made > 1 && len(seen) == 1 {
			t.Errorf("%q makes one key of %d strangers: %v", text, made, seen)
		}
	})
}

// randomTemplate writes what somebody might.
func randomTemplate(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	var expr func(depth int) string
	expr = func(depth int) string {
		fact := pick("req.OrderID", "req.Tenant", "req.order_id", "path.id", "header.Tenant", "header['X-T']", "body.id", "method", "req.Labels.zone",
			"req.Customer?.Name", "req.Coupon", "req.Any", "string(req.Seq)", "req.Seq", "req.Level", "req.Ref", "req.Digest")
		if depth == 0 {
			return pick(fact, fact, "'x'", "7", "true", "nil")
		}
		x := func() string { return expr(r.IntN(depth)) }
		switch r.IntN(14) {
		case 0:
			return x() + " + ':' + " + x()
		case 1:
			return pick("lower", "upper", "trim", "hash", "string", "toBase64", "raw", "required") + "(" + x() + ")"
		case 2:
			return pick("true", "false", "req.Urgent", "1 < 2", "req.Seq > 5") + " ? " + x() + " : " + x()
		case 3:
			return x() + " ?? " + x()
		case 4:
			return "or(" + x() + ", " + x() + ")"
		case 5:
			return "join(" + pick("req.Tags", "map(req.Lines, .SKU)", "["+x()+", "+x()+"]") + ", ',')"
		case 6:
			return pick("map(req.Lines, .SKU)", "map(req.Lines, .SKU + ':' + string(.Qty))", "req.Tags", "filter(req.Tags, # != 'x')", "["+x()+"]", "concat(req.Tags, ["+x()+"])")
		case 7:
			return "let v = " + x() + "; " + pick("v", x(), "v + '-' + "+x())
		case 8:
			return "shard(" + x() + ", 1000000)"
		case 9:
			return "replace(" + x() + ", 'a', 'b')"
		}
		return fact
	}
	var b strings.Builder
	for range 1 + r.IntN(4) {
		b.WriteString(pick("order", "", ":", "/", "{", "}", "${req.OrderID}", "{{.OrderID}}", "{id}", "{OrderID}", ":id", "%s", "#req.OrderID", "# {req.ID}", "##", "'o:' + ", "%", "%~"))
		if r.IntN(3) > 0 {
			b.WriteString("#{" + expr(3) + "}")
		}
	}
	return b.String()
}

// FuzzRandomParts reads back keys of templates that nobody thought of: values side by side, in sums and in joins, with
// literals between them that look like what they are between.
func FuzzRandomParts(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed, "a:b", "c,d", "%")
	}
	f.Fuzz(func(t *testing.T, seed uint64, a, b, c string) {
		g := &partsGenerator{rand.New(rand.NewPCG(seed, 3)), stockRequest{A: a, B: b, C: c, Tags: []string{c, a + b, b}, Nested: [][]string{{a, c}, {b}}}}
		text, want := g.template()
		tmpl, err := Parse(text, stockRoots)
		if err != nil {
			checkError(t, text, err)
			return
		}
		keys, err := tmpl.Expand(t.Context(), func(string) (any, error) { return g.req, nil })
		if err != nil {
			if !errors.Is(err, ErrValue) {
				t.Errorf("Expand(%q) = %v, want ErrValue", text, err)
			}
			return
		}
		if strings.Contains(keys[0], run.DigestMark) {
			if len(keys[0]) < run.MaxKey-4 {
				t.Errorf("%q of %q looks like a digest", keys[0], text)
			}
			return
		}
		if got, ok := tmpl.Match(keys[0]); !ok || !slices.Equal(got, want) {
			t.Errorf("Match(%q) by %q = %q, %v, want %q", keys[0], text, got, ok, want)
		}
	})
}

// partsGenerator writes templates, and knows their values.
type partsGenerator struct {
	*rand.Rand
	req stockRequest
}

func (g *partsGenerator) literal() string {
	list := []string{":", "/", ",", "-", "x", "7", "→", "é", ";", "::", ", ", "{", "}", "%", "~", "#", "a:b"}
	return list[g.IntN(len(list))]
}

func (g *partsGenerator) template() (text string, want []string) {
	var b strings.Builder
	for range 1 + g.IntN(3) {
		b.WriteString(strings.TrimSuffix(g.literal(), "#")) // two of them would be no hole
		expr, values := g.sum()
		b.WriteString("#{" + expr + "}")
		want = append(want, values...)
	}
	if g.IntN(2) == 0 {
		b.WriteString(g.literal())
	}
	return b.String(), want
}

// sum is one value, or several with literals between them.
func (g *partsGenerator) sum() (expr string, want []string) {
	expr, want = g.value()
	for range g.IntN(3) {
		more, values := g.value()
		expr += fmt.Sprintf(" + %q + %s", g.literal(), more)
		want = append(want, values...)
	}
	if g.IntN(3) == 0 {
		expr = fmt.Sprintf("%q + %s", g.literal(), expr)
	}
	if g.IntN(3) == 0 {
		expr += fmt.Sprintf(" + %q", g.literal())
	}
	return expr, want
}

func (g *partsGenerator) value() (expr string, want []string) {
	switch g.IntN(9) {
	case 0:
		return fmt.Sprintf("join(req.Tags, %q)", g.literal()), g.req.Tags
	case 1:
		return fmt.Sprintf("join(map(req.Nested, join(#, %q)), %q)", g.literal(), g.literal()), slices.Concat(g.req.Nested...)
	case 2:
		sep := g.literal()
		for _, tag := range g.req.Tags {
			want = append(want, tag, g.req.A)
		}
		return fmt.Sprintf("join(map(req.Tags, # + %q + req.A), %q)", sep, g.literal()), want
	case 3:
		expr, want = g.sum()
		return "(" + expr + ")", want
	case 4:
		return "string(req.A)", []string{g.req.A}
	case 5, 6:
		return "req.B", []string{g.req.B}
	}
	return "req.C", []string{g.req.C}
}
