package keyexpr

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// aKey is the key of a stock whose A is value.
func aKey(t *testing.T, text, value string) string {
	t.Helper()
	tmpl, err := Parse(text, Roots{"req": TypeFor[stock]()})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := expandOf(t, tmpl, stock{A: value})
	if err != nil {
		t.Fatal(err)
	}
	return keys[0]
}

// What is escaped depends on the value and on the literal behind the hole, and on nothing else. Each row is a value, and what
// it becomes at the end of a key, in front of a colon, a slash, a dash, an arrow and a brace.
func TestEscapes(t *testing.T) {
	suffixes := []string{"", ":", "/", "-", "→", "}"}
	for _, tt := range []struct {
		value string
		want  [6]string
	}{
		// Ordinary ids come out as they are.
		{"42", [6]string{"42", "42", "42", "42", "42", "42"}},
		{"acme_Corp.x~1", [6]string{"acme_Corp.x~1", "acme_Corp.x~1", "acme_Corp.x~1", "acme_Corp.x~1", "acme_Corp.x~1", "acme_Corp.x~1"}},
		{"!$&*()+;=@", [6]string{"!$&*()+;=@", "!$&*()+;=@", "!$&*()+;=@", "!$&*()+;=@", "!$&*()+;=@", "!$&*()+;=@"}},
		// What follows is escaped, and only that.
		{"a:b", [6]string{"a:b", "a%3Ab", "a:b", "a:b", "a:b", "a:b"}},
		{"a/b", [6]string{"a/b", "a/b", "a%2Fb", "a/b", "a/b", "a/b"}},
		{"a-b", [6]string{"a-b", "a-b", "a-b", "a%2Db", "a-b", "a-b"}},
		{"a→b", [6]string{"a→b", "a→b", "a→b", "a→b", "a%E2%86%92b", "a→b"}},
		{"a↓b", [6]string{"a↓b", "a↓b", "a↓b", "a↓b", "a↓b", "a↓b"}}, // begins with the same byte
		{"::", [6]string{"::", "%3A%3A", "::", "::", "::", "::"}},
		// Braces and % always are.
		{"{a}", [6]string{"%7Ba%7D", "%7Ba%7D", "%7Ba%7D", "%7Ba%7D", "%7Ba%7D", "%7Ba%7D"}},
		{"50%", [6]string{"50%25", "50%25", "50%25", "50%25", "50%25", "50%25"}},
		{"%3A", [6]string{"%253A", "%253A", "%253A", "%253A", "%253A", "%253A"}},
		{"%~", [6]string{"%25~", "%25~", "%25~", "%25~", "%25~", "%25~"}},
		// So is what can't be seen.
		{" a ", [6]string{"%20a%20", "%20a%20", "%20a%20", "%20a%20", "%20a%20", "%20a%20"}},
		{"a\r\nb", [6]string{"a%0D%0Ab", "a%0D%0Ab", "a%0D%0Ab", "a%0D%0Ab", "a%0D%0Ab", "a%0D%0Ab"}},
		{"\x00\x7f", [6]string{"%00%7F", "%00%7F", "%00%7F", "%00%7F", "%00%7F", "%00%7F"}},
		{"\u00a0", [6]string{"%C2%A0", "%C2%A0", "%C2%A0", "%C2%A0", "%C2%A0", "%C2%A0"}},
		{"\u2028", [6]string{"%E2%80%A8", "%E2%80%A8", "%E2%80%A8", "%E2%80%A8", "%E2%80%A8", "%E2%80%A8"}},
		{"\u0085", [6]string{"%C2%85", "%C2%85", "%C2%85", "%C2%85", "%C2%85", "%C2%85"}},
		// Letters of all alphabets stay, and bytes that are none don't.
		{"é漢😀", [6]string{"é漢😀", "é漢😀", "é漢😀", "é漢😀", "é漢😀", "é漢😀"}},
		{"\ufffd", [6]string{"\ufffd", "\ufffd", "\ufffd", "\ufffd", "\ufffd", "\ufffd"}},
		{"\xff", [6]string{"%FF", "%FF", "%FF", "%FF", "%FF", "%FF"}},
		{"a\xe2\x86", [6]string{"a%E2%86", "a%E2%86", "a%E2%86", "a%E2%86", "a%E2%86", "a%E2%86"}},
		{"\xc0\x80", [6]string{"%C0%80", "%C0%80", "%C0%80", "%C0%80", "%C0%80", "%C0%80"}},
		{"\xed\xa0\x80", [6]string{"%ED%A0%80", "%ED%A0%80", "%ED%A0%80", "%ED%A0%80", "%ED%A0%80", "%ED%A0%80"}},
	} {
		for i, suffix := range suffixes {
			text := "#{req.A}" + suffix
			if suffix == "}" {
				text = "{" + text
			}
			got := aKey(t, text, tt.value)
			want := tt.want[i] + suffix
			if suffix == "}" {
				want = "{" + want
			}
			if got != want {
				t.Errorf("%q of %q makes %q, want %q", text, tt.value, got, want)
			}
		}
	}
}

// A number has digits and a minus, which what follows can make special.
func TestEscapesOfNumbers(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string
	}{
		{"#{req.Seq}", "-507"},
		{"#{req.Seq}:", "-507:"},
		{"#{req.Seq}-", "%2D507-"},
		{"#{req.Seq}0", "-5%3070"},
		{"#{req.Seq}7x", "-50%377x"},
		{"#{req.Seq}1", "-5071"},
		{"#{req.Shard}-", "507-"},
		{"#{req.Shard}5", "%35075"},
	} {
		keys, err := expand(t, tt.text, &payRequest{Seq: -507, Shard: 507})
		if err != nil || keys[0] != tt.want {
			t.Errorf("Expand(%q) = %q, %v, want %q", tt.text, keys, err, tt.want)
		}
	}
}

// tagOf returns what Redis hashes of a key.
func tagOf(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
		return tag
	}
	return key
}

func TestHostileValues(t *testing.T) {
	values := []string{
		"a:b",
		":",
		"::",
		"}",
		"{",
		"{x}",
		"}{",
		"%",
		"%3A",
		"%25",
		"a%7Db",
		"\x00",
		"a\r\nSET x 1\r\n",
		" ",
		"\t",
		"#{req.Tenant}",
		"#{",
		"\xff\xfe",
		"\xc3",
		"\ufeff",
		"\u2028",
		"../..",
		"order:43",
		"42:acme",
		"*",
		"[a-z]",
		"\x1b[31m",
		"nil",
		"<nil>",
		"null",
		"none",
		run.DigestMark + strings.Repeat("0", 64), strings.Repeat("v", 1<<18), strings.Repeat("}", 600), strings.Repeat("\xff", 600), "é", "e\u0301",
	}
	tmpl := mustParse(t, "o:{#{req.Tenant}}:#{req.OrderID}:#{req.Any}:end")
	seen := map[string]string{}
	for _, id := range values {
		for _, name := range values {
			req := &payRequest{Tenant: "acme", OrderID: id, Any: name}
			keys, err := tmpl.Expand(t.Context(), testFacts(req))
			if err != nil || len(keys) != 1 {
				t.Fatalf("Expand(%.20q, %.20q) = %q, %v", id, name, keys, err)
			}
			key, facts := keys[0], fmt.Sprintf("%q, %q", id, name)
			if other, taken := seen[key]; taken {
				t.Errorf("%.40q is the key of %.40s and of %.40s", key, facts, other)
			}
			seen[key] = facts
			if tagOf(key) != "acme" || len(key) > run.MaxKey {
				t.Errorf("%.40q has slot %q and %d bytes", key, tagOf(key), len(key))
			}
			if len(key) < run.MaxKey-4 && strings.Count(key, ":") != 4 {
				t.Errorf("%.40q has another number of parts", key)
			}
		}
	}
}

func TestHostileTags(t *testing.T) {
	tmpl := mustParse(t, "{#{req.OrderID}}:x")
	for _, id := range []string{"}", "{", "}{", "a}b", "", "\x00", "%7D"} {
		keys, err := tmpl.Expand(t.Context(), testFacts(&payRequest{OrderID: id}))
		if id == "" {
			if !errors.Is(err, ErrValue) {
				t.Errorf("an empty tag makes %q, %v", keys, err)
			}
			continue
		}
		want := strings.NewReplacer("}", "%7D", "{", "%7B", "\x00", "%00", "%", "%25").Replace(id)
		if err != nil || tagOf(keys[0]) != want {
			t.Errorf("Expand(%q) = %q, %v, want tag %q", id, keys, err, want)
		}
	}
}

func TestLongValues(t *testing.T) {
	huge := strings.Repeat("v", 1<<18)
	keys, err := expand(t, "o:{#{req.Tenant}}:#{req.OrderID}", &payRequest{Tenant: "acme", OrderID: huge})
	if err != nil || !strings.HasPrefix(keys[0], "o:{acme}:vvv") || len(keys[0]) > run.MaxKey {
		t.Errorf("Expand = %q, %v, want a bounded key with its hash tag", keys, err)
	}
	if _, err := expand(t, "o:{#{req.OrderID}}", &payRequest{OrderID: huge}); !errors.Is(err, ErrValue) {
		t.Errorf("Expand = %v, want ErrValue for a hash tag that can't be kept", err)
	}
}
