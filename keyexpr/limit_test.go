package keyexpr

import (
	"errors"
	"strings"
	"testing"
)

func TestBound(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct{ key, head string }{
		{"order:" + long(600), "order:" + long(440)},
		{strings.Repeat("%20", 200), strings.Repeat("%20", 148)},
		{strings.Repeat("é", 300), strings.Repeat("é", 223)},
		{"a" + strings.Repeat("é", 300), "a" + strings.Repeat("é", 222)},
		{"o:{tag}:" + long(600), "o:{tag}:" + long(438)},
		{long(600) + "{tag}" + long(9), long(441) + "{tag}"},
		{long(443) + "{tag}" + long(100), long(441) + "{tag}"},
		{"{}" + long(600), "{}" + long(444)},
		{"{" + long(600), "{" + long(445)},
	} {
		got, err := bound([]byte(tt.key))
		head, tail, ok := strings.Cut(string(got), digestMark)
		if err != nil || !ok || head != tt.head || len(tail) != 64 || len(got) > maxKey {
			t.Errorf("bound(%.30q…) = %q, %v, want head %q", tt.key, got, err, tt.head)
		}
	}
}

func TestBoundLeavesShortKeysAlone(t *testing.T) {
	key := strings.Repeat("x", maxKey)
	if got, err := bound([]byte(key)); err != nil || string(got) != key {
		t.Errorf("bound = %q, %v", got, err)
	}
}

func TestBoundTellsLongKeysApart(t *testing.T) {
	a, errA := bound([]byte(strings.Repeat("x", 600) + "a"))
	b, errB := bound([]byte(strings.Repeat("x", 600) + "b"))
	if errA != nil || errB != nil || string(a) == string(b) {
		t.Errorf("bound = %q for both, %v, %v", a, errA, errB)
	}
}

func TestLongValues(t *testing.T) {
	huge := strings.Repeat("v", 1<<20)
	keys, err := expand(t, "o:{#{req.Tenant}}:#{req.OrderID}", &payRequest{Tenant: "acme", OrderID: huge})
	if err != nil || !strings.HasPrefix(keys[0], "o:{acme}:vvv") || len(keys[0]) > maxKey {
		t.Errorf("Expand = %q, %v, want a bounded key with its hash tag", keys, err)
	}
	if _, err := expand(t, "o:{#{req.OrderID}}", &payRequest{OrderID: huge}); !errors.Is(err, ErrValue) {
		t.Errorf("Expand = %v, want ErrValue for a hash tag that can't be kept", err)
	}
}
