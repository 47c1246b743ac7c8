package run

import (
	"strings"
	"testing"
)

func TestShorten(t *testing.T) {
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
		got, err := (&Program{}).shorten([]byte(tt.key))
		head, tail, ok := strings.Cut(string(got), DigestMark)
		if err != nil || !ok || head != tt.head || len(tail) != 64 || len(got) > MaxKey {
			t.Errorf("shorten(%.30q…) = %q, %v, want head %q", tt.key, got, err, tt.head)
		}
	}
}

func TestLongKeysDiffer(t *testing.T) {
	a, errA := (&Program{}).shorten([]byte(strings.Repeat("x", 600) + "a"))
	b, errB := (&Program{}).shorten([]byte(strings.Repeat("x", 600) + "b"))
	if errA != nil || errB != nil || string(a) == string(b) {
		t.Errorf("shorten = %q for both, %v, %v", a, errA, errB)
	}
}
