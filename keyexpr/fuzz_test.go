package keyexpr

import (
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
		"order:#{req.OrderID}",
		"##{a}",
		"{#a}",
		"#{",
		"#{}",
		"#{'}'}",
		"#{`}``",
		"#{a /* }",
		"#{(}",
		"é#{path.id}\xff",
		"#{1..1000000000}",
		"#{let a = method + ':' + method; a + ';' + a}",
		"#{req.OrdreID}",
		"#{header?.A?.b[0] ?? 'x'}",
		"#{map(req.Lines, .SKU)}",
		"#{$env}",
		"#{now()}",
		"#{1 < int(method) < 2}",
		"#{true ?: false}",
		"#{-9223372036854775808 % -1}",
		"#{b'\\xff'}",
		"#{{}}",
		"#{[]}",
		"#{header.X-Tenant}",
		"#{#order.id}",
		"${a}",
		"{{.b}}",
		"#{join(req.Tags, ',')}:#{method}",
		"x%#{method}",
		"#{raw(req.Tags)}",
		"#{((req.Urgent) ? req.Tenant[0:0] : string(body.qty * 0))}#req.OrderIDorder#{or('x9', replace(req.order_id, 'a', 'b'))}#req.OrderID",
		"#{false ? req.Customer?.Name : req.Any}",
		"#{req.Urgent ? '' : 'x'}:#{req.Urgent ? req.OrderID : 'b'}",
	} {
		f.Add(seed)
	}
	roots, facts, all := testRoots(), testFacts(nil), strangers(6)
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := Parse(text, roots, OneKey())
		if err != nil {
			checkError(t, text, err)
			return
		}
		if err := Check(text); err != nil {
			t.Errorf("Check(%q) = %v, and Parse finds nothing", text, err)
		}
		if _, err := Parse(text, roots); err != nil {
			checkOneKey(t, text, tmpl, all)
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
		keys, err := expandOf(t, tmpl, g.req)
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
