package keyexpr

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Templates that want to take all memory or all time, as a bad configuration could have them, with a request that helps.
func TestHostileTemplates(t *testing.T) {
	var doubling strings.Builder
	doubling.WriteString("let a0 = req.OrderID;")
	for i := range 30 {
		fmt.Fprintf(&doubling, " let a%d = a%d + a%d;", i+1, i, i)
	}
	replacing := "req.OrderID"
	for range 30 {
		replacing = "replace(" + replacing + ", 'v', 'vvvvvvvv')"
	}
	huge := &payRequest{OrderID: strings.Repeat("v", 1<<20), Tags: slices.Repeat([]string{"v"}, 5000)}
	for _, text := range []string{
		"#{" + strings.Repeat("(", 10_000) + "1" + strings.Repeat(")", 10_000) + "}",
		"#{" + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}",
		"#{" + strings.Repeat("{", 10_000),
		"#{" + strings.Repeat("(", 2000) + "1" + strings.Repeat(")", 2000) + "}",
		"#{" + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}",
		"#{" + strings.Repeat("!", 4000) + "true}",
		"#{" + strings.Repeat("1+", 2000) + "1}",
		"#{1..1000000000}",
		"#{len([" + strings.Repeat("1..1000000, ", 40) + "1])}",
		"#{len(1..999999999)}",
		"#{-9223372036854775807..9223372036854775807}",
		"#{" + doubling.String() + " a30}",
		"#{" + replacing + "}",
		"#{join(map(1..9999, req.OrderID))}",
		"#{join(split(req.OrderID, ''), req.OrderID)}",
		"#{len(map(split(req.OrderID, ''), split(req.OrderID, '')))}",
		"#{count(req.Tags, count(req.Tags, count(req.Tags, count(req.Tags, # == 'x') > 0) > 0) > 0)}",
		"#{any(1..9000, any(1..9000, any(1..9000, false)))}",
		"#{len(flatten([1..9000, 1..9000]))}",
		"#{map(req.Tags, hash(req.OrderID))}",
		"#{map(req.Tags, upper(req.OrderID))}",
		"#{map(req.Tags, req.OrderID matches '(x|v)*(y|v)*z')}",
		"#{map(req.Tags, len(uniq(req.Tags)))}",
		"#{let a = map(req.Tags, req.OrderID + #); len(join(a))}",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		tmpl, err := Parse(text, testRoots())
		if err == nil {
			_, err = tmpl.Expand(t.Context(), testFacts(huge))
		}
		runtime.ReadMemStats(&after)
		took, made := time.Since(start), (after.TotalAlloc-before.TotalAlloc)>>20
		if took > 5*time.Second || made > 256 {
			t.Errorf("%.60q… takes %v and %d MiB", text, took, made)
		}
		if _, parse := errors.AsType[*Error](err); err != nil && !parse && !errors.Is(err, ErrValue) {
			t.Errorf("%.60q… = %v, want an *Error or ErrValue", text, err)
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
		"a:b", ":", "::", "}", "{", "{x}", "}{", "%", "%3A", "%25", "a%7Db", "\x00", "a\r\nSET x 1\r\n", " ", "\t", "#{req.Tenant}", "#{",
		"\xff\xfe", "\xc3", "\ufeff", "\u2028", "../..", "order:43", "42:acme", "*", "[a-z]", "\x1b[31m", "nil", "<nil>", "null", "none",
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
