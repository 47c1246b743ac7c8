package keyexpr

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

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
