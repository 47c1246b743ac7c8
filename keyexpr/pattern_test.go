package keyexpr

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

type audit struct{ By, At string }

// placed is a request with embedded structs, named types and pointers.
type placed struct {
	audit
	*Extra

	ID       string
	OrderRef string `json:"ref"`
	Tenant   tenant
	Seq      int32
	Shard    uint8
	Level    level
	Coupon   *string
	Far      **customer
	Customer *customer
	Salt     [4]byte
	Any      any
}

// Extra is exported, as the fields of an embedded pointer are only reached then.
type Extra struct{ Note string }

func placedRoots() Roots {
	return Roots{
		"req": TypeFor[placed](), "order": TypeFor[*placed](), "id": TypeFor[string](), "n": TypeFor[int64](), "text": TypeFor[*string](),
		"level": TypeFor[level](), "header": AnyName(), "body": Root{},
	}
}

func TestPatternPaths(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"order:#{id}", "id"},
		{"#{id}:#{n}:pay", "id n"},
		{"#{req.ID}:#{order.Customer.Parent.Name}", "req.ID order.Customer.Parent.Name"},
		{"#{order?.Customer?.Name}", "order.Customer.Name"},
		{"#{req.ref}", "req.OrderRef"},
		{"#{req.order_ref}", "req.OrderRef"},
		{"#{req.By}:#{req.Note}", "req.audit.By req.Extra.Note"},
		{"#{lower(id)}:#{upper(req.Tenant)}", "id req.Tenant"},
		{"#{raw(id)}", "id"},
		{"{#{id}}:#{req.Shard}", "id req.Shard"},
		// what is no plain path
		{"nightly", ""},
		{"#{id ?? 'none'}", ""},
		{"#{lower(trim(id))}", ""},
		{"#{trim(id)}", ""},
		{"#{req.Level}", ""},
		{"#{level}", ""},
		{"#{req.Salt}", ""},
		{"#{req.Coupon}", ""},
		{"#{lower(req.Coupon)}", ""},
		{"#{text}", ""},
		{"#{lower(text)}", ""},
		{"#{req.Far.Name}", ""},
		{"#{req.Any}", ""},
		{"#{lower(req.Any)}", ""},
		{"#{body.id}", ""},
		{"#{lower(body.id)}", ""},
		{"#{header.Tenant}", ""},
		{"#{[id, req.ID]}", ""},
		{"#{req.Customer.GetName()}", ""},
	} {
		tmpl, err := Parse(tt.text, placedRoots(), OneKey())
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.text, err)
			continue
		}
		got := []string(nil)
		if p := tmpl.Pattern(); p != nil {
			got = p.Paths()
		}
		if !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("Pattern(%q).Paths() = %q, want %q", tt.text, got, strings.Fields(tt.want))
		}
	}
}

// fill makes the key of facts as generated code does, but that it follows the paths by their names.
func fill(p *Pattern, facts map[string]any) string {
	key := make([]byte, 0, 16)
	for i, path := range p.Paths() {
		root, fields, _ := strings.Cut(path, ".")
		v := reflect.ValueOf(facts[root])
		for name := range strings.SplitSeq(fields, ".") {
			if v.Kind() == reflect.Pointer {
				v = v.Elem()
			}
			if name != "" {
				if !v.IsValid() {
					return ""
				}
				v = v.FieldByName(name)
			}
		}
		switch {
		case v.Kind() == reflect.String:
			key = p.Text(key, i, v.String())
		case v.CanInt():
			key = p.Int(key, i, v.Int())
		default:
			key = p.Uint(key, i, v.Uint())
		}
	}
	return p.Key(key)
}

// TestPatternIsItsTemplate makes keys of values of all sorts in both ways. They are the same, byte by byte, and the pattern
// leaves to the template nothing but what makes no key, or a long one.
func TestPatternIsItsTemplate(t *testing.T) {
	texts := []string{
		"42", "acme", "a:b", "a/b", "%", "100%", "%3A", "{x}", "a b", "\t", "\x00", "é", "→", "\xff", "\u00a0", "-", "7", "x7", ":", "::",
		"", "ACME", strings.Repeat("x", 300), strings.Repeat("y", 600), strings.Repeat(":", 200), "018f6b1e-7d5a-7cc0-b1a2-1234567890ab",
	}
	templates := []string{
		"order:#{id}", "#{id}", "#{id}:#{req.ID}", "#{id}→#{req.ID}", "#{id}7#{req.ID}", "#{n}-#{req.Seq}0", "#{n}:#{req.Shard}", "{#{id}}:pay",
		"order:{#{req.Tenant}}:#{order.Customer.Name}", "#{lower(id)}:#{upper(req.ID)}", "raw:#{raw(id)}", "#{raw(n)}7", "##{x}:#{id}",
		"#{req.By}:#{req.Note}:#{order?.Customer?.Parent?.Name}",
	}
	r := rand.New(rand.NewPCG(3, 1))
	text := func() string { return texts[r.IntN(len(texts))] }
	for _, template := range templates {
		tmpl, err := Parse(template, placedRoots())
		if err != nil {
			t.Fatalf("Parse(%q): %v", template, err)
		}
		p := tmpl.Pattern()
		if p == nil {
			t.Fatalf("%q has no pattern", template)
		}
		made := 0
		for range 2000 {
			req := placed{audit: audit{By: text()}, ID: text(), Tenant: tenant(text()), Seq: r.Int32() - r.Int32(), Shard: uint8(r.Uint32())}
			if r.IntN(4) > 0 {
				req.Extra = &Extra{text()}
			}
			order := &placed{Customer: &customer{Name: text(), Parent: &customer{Name: text()}}}
			switch r.IntN(8) {
			case 0:
				order = nil
			case 1:
				order.Customer = nil
			case 2:
				order.Customer.Parent = nil
			}
			facts := map[string]any{"req": req, "order": order, "id": text(), "n": r.Int64() - r.Int64()}
			want, err := tmpl.Expand(context.Background(), func(root string) (any, error) { return facts[root], nil })
			got := fill(p, facts)
			switch {
			case got == "" && err == nil && !strings.Contains(want[0], run.DigestMark):
				t.Fatalf("%q of %+v: no key from the pattern, %q from the template", template, facts, want)
			case got != "" && (err != nil || got != want[0]):
				t.Fatalf("%q of %+v: %q from the pattern, %q and %v from the template", template, facts, got, want, err)
			case got != "":
				made++
			}
		}
		if made < 400 {
			t.Errorf("%q: only %d of 2000 keys were made by the pattern", template, made)
		}
	}
}

// TestPatternOfAnotherType calls the methods as code does that was generated before a field got another type.
func TestPatternOfAnotherType(t *testing.T) {
	tmpl, err := Parse("#{id}:#{n}:#{req.Shard}", placedRoots())
	if err != nil {
		t.Fatal(err)
	}
	p := tmpl.Pattern()
	start := func() []byte { return make([]byte, 0, 8) }
	for name, key := range map[string][]byte{
		"a number for a text":         p.Int(start(), 0, 65),
		"an unsigned one for a text":  p.Uint(start(), 0, 65),
		"a text for a number":         p.Text(start(), 1, "7"),
		"an unsigned for a signed":    p.Uint(start(), 1, 7),
		"a signed for an unsigned":    p.Int(start(), 2, 7),
		"a value that there is not":   p.Text(start(), 3, "7"),
		"a text that is too long":     p.Text(start(), 0, strings.Repeat("x", run.MaxKey+1)),
		"a value behind one that was": p.Int(p.Text(start(), 0, ""), 1, 7),
	} {
		if key != nil || p.Key(key) != "" {
			t.Errorf("%s: %q, want no key", name, key)
		}
	}
	if got := p.Key(p.Uint(p.Int(p.Text(start(), 0, "a:b"), 1, -7), 2, 9)); got != "a%3Ab:-7:9" {
		t.Errorf("key %q", got)
	}
}

// BenchmarkPattern is BenchmarkPaths for code that follows the paths itself.
func BenchmarkPattern(b *testing.B) {
	tmpl, err := Parse("order:#{req.Tenant}:#{req.OrderID}", benchRoots)
	if err != nil {
		b.Fatal(err)
	}
	p := tmpl.Pattern()
	b.ReportAllocs()
	var key string
	for b.Loop() {
		key = p.Key(p.Text(p.Text(make([]byte, 0, 128), 0, benchRequest.Tenant), 1, benchRequest.OrderID))
	}
	if key != "order:acme-industries:018f6b1e-7d5a-7cc0-b1a2-1234567890ab" {
		b.Fatal(key)
	}
}
