package keyexpr

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// awkward are values that look like something else: like literals, escapes, braces, digests, lines and other values.
var awkward = []string{
	"7", "acme", "a:b", ":", "::", "a/b", "a,b", ",", "a b", " ", "\t", "\n", "\r\nSET x 1", "{", "}", "{a}", "}{", "%", "%%", "%3A", "%253A", "%~", "~", "-", "--", "-7", "#", "#{a}",
	"é", "→", "a→b", "\u00a0", "\u2028", "\ufffd", "\xff", "\xe2\x86", "\x00", "\x7f", "😀", "x.y", "'", "\"", "\\", "*", "?", "[a]", "nil", "none", "0", "00",
}

// Each template is filled with pairs of awkward values. Whatever comes out is read back to them, and no two pairs make one key.
func TestMatchRoundTrips(t *testing.T) {
	for _, text := range []string{
		// Two holes, and what can stand between them.
		"order:#{req.A}:#{req.B}",
		"order:#{req.A}/#{req.B}",
		"#{req.A}:#{req.B}:",
		"#{req.A}, #{req.B}",
		"#{req.A}--#{req.B}",
		"#{req.A}→#{req.B}→",
		"#{req.A}x#{req.B}7",
		"#{req.A}0#{req.B}",
		"#{req.A}'#{req.B}\"",
		"{#{req.A}}:#{req.B}",
		"{#{req.A}:#{req.B}}",
		"###{req.A}##{x}#{req.B}",
		// Several values in a hole.
		"#{key(req.A, req.B)}",
		"o:#{key(req.A, req.B)}/x",
		"{#{key(req.A, req.B)}}",
		// Lists of keys.
		"#{[key(req.A, req.B)]}",
		"stock:#{[key(req.A, req.B)]}!",
		"#{map([req.A], key(#, req.B))}",
		"#{req.A}:#{map([req.B], #)}",
	} {
		tmpl, err := Parse(text, Roots{"req": TypeFor[pairRequest]()})
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			continue
		}
		seen := map[string]string{}
		for _, a := range awkward {
			for _, b := range awkward {
				keys, err := expandOf(t, tmpl, pairRequest{A: a, B: b, Pair: []string{a, b}})
				if err != nil || len(keys) != 1 {
					t.Fatalf("Expand(%q) of %q, %q = %q, %v", text, a, b, keys, err)
				}
				pair := fmt.Sprintf("%q, %q", a, b)
				if other, ok := seen[keys[0]]; ok {
					t.Errorf("%q makes %q of %s and of %s", text, keys[0], other, pair)
				}
				seen[keys[0]] = pair
				if values, ok := tmpl.Match(keys[0]); !ok || !slices.Equal(values, []string{a, b}) {
					t.Errorf("Match(%q) by %q = %q, %v, want %s", keys[0], text, values, ok, pair)
				}
			}
		}
	}
}

type pairRequest struct {
	A, B string
	Pair []string
	N    int
}

// A key of one template is a key of another one only if the literals allow it, and then it is read as what it is.
func TestMatchOfForeignKeys(t *testing.T) {
	for _, tt := range []struct {
		text, key string
		want      []string // nil for no match
	}{
		{"order:#{req.A}", "order:7", []string{"7"}},
		{"order:#{req.A}", "orders:7", nil},
		{"order:#{req.A}", "order:7 ", nil},
		{"order:#{req.A}", " order:7", nil},
		{"order:#{req.A}", "order:{7}", nil},
		{"order:#{req.A}", "ORDER:7", nil},
		{"order:#{req.A}", "", nil},
		{"order:{#{req.A}}", "order:{7}", []string{"7"}},
		{"order:{#{req.A}}", "order:{}", nil},
		{"order:{#{req.A}}", "order:{a}b}", nil},
		{"#{req.A}:#{req.B}", "order:7", []string{"order", "7"}},
		{"#{req.A}:#{req.B}", "order", nil},
		{"#{req.A}:#{req.B}", ":7", nil},
		{"#{req.A}:#{req.B}", "order:", nil},
		{"#{key(req.A, req.B)}", "a:b", []string{"a", "b"}},
		{"#{key(req.A, req.B)}", "a", nil},
		{"#{key(req.A, req.B)}", "a:b:c", nil},
		{"#{key(req.A, req.B)}", "a%3Ab:c", []string{"a:b", "c"}},
		{"#{req.A == 'x' ? key(req.A, req.B) : req.B}", "a:b", []string{"a", "b"}},
		{"#{req.A == 'x' ? key(req.A, req.B) : req.B}", "a", []string{"a"}},
		{"#{[req.A, raw(req.B)]}", "7", nil},
		{"order:#{req.A}", "order:a%:c", nil},
		{"order:#{req.A}", "order:a%zz:c", nil},
		{"order:#{req.A}", "order:%61", nil}, // nobody escapes an a
		{"nightly", "nightly", []string{}},
		{"nightly", "nightly:7", nil},
		{"a###{req.A}", "a#7", []string{"7"}},
		{"#{raw(req.A)}", "7", nil},
		{"#{raw(req.A)}:#{req.B}", "7:8", nil},
		{"o:#{req.N}", "o:-7", []string{"-7"}},
		{"o:#{req.N}", "o:abc", nil},
		{"o:#{req.N}", "o:07", nil},
		{"o:#{len(req.Pair)}", "o:two", nil},
		{"o:#{req.A}", "o:" + strings.Repeat("x", run.MaxKey), nil},
	} {
		tmpl, err := Parse(tt.text, Roots{"req": TypeFor[pairRequest]()}, OneKey())
		if err != nil {
			t.Fatal(err)
		}
		if values, ok := tmpl.Match(tt.key); ok != (tt.want != nil) || ok && !slices.Equal(values, tt.want) {
			t.Errorf("Match(%q) by %q = %q, %v, want %q", tt.key, tt.text, values, ok, tt.want)
		}
	}
}

// A key of up to 512 bytes is as it is. A longer one ends in a digest of all of it, which no short key can look like.
func TestLongKeysHaveDigests(t *testing.T) {
	tmpl, err := Parse("o:#{req.A}:#{req.B}", Roots{"req": TypeFor[pairRequest]()})
	if err != nil {
		t.Fatal(err)
	}
	expand := func(a, b string) string {
		keys, err := expandOf(t, tmpl, pairRequest{A: a, B: b})
		if err != nil {
			t.Fatal(err)
		}
		return keys[0]
	}
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		a, b   string
		length int
		digest bool
	}{
		{x(1), x(508), 512, false},
		{x(1), x(509), 512, true},
		{x(509), x(1), 512, true},
		{x(10_000), x(1), 512, true},
		{strings.Repeat(":", 100), x(100), 2 + 300 + 1 + 100, false},
		{strings.Repeat(":", 200), x(100), 510, true}, // not within %3A
		{strings.Repeat("é", 400), x(1), 512, true},
	} {
		key := expand(tt.a, tt.b)
		_, matched := tmpl.Match(key)
		if strings.Contains(key, run.DigestMark) != tt.digest || matched == tt.digest || len(key) > run.MaxKey || len(key) < tt.length-3 {
			t.Errorf("%.5s…, %.5s… makes %d bytes, %q", tt.a, tt.b, len(key), key)
		}
	}
	if expand(x(600)+"a", "1") == expand(x(600)+"b", "1") || expand(x(600), "1") == expand(x(600), "2") {
		t.Error("two long keys are one")
	}
	// Who knows the digest of another request's key can't make it: in a value, %~ is %25~.
	long := expand(x(600), "1")
	if forged := expand(strings.TrimPrefix(long, "o:"), "1"); forged == long || strings.Contains(forged[:440], run.DigestMark) {
		t.Errorf("a value makes the digest of another key: %q", forged)
	}
}
