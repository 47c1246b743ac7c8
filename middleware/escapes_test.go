package middleware

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestEscapesInEscapes has all escapes of a path value replaced, in a time that grows with its length and not with its square.
func TestEscapesInEscapes(t *testing.T) {
	for id, want := range map[string]string{
		"42": "42", "%34%32": "42", "%2534%32": "42", "%25%33%34": "4", "%zz": "%zz", "%zz%41": "%zzA", "a%": "a%", "%4": "%4", "a%2Fb": "a/b", "%252F": "/",
		url.PathEscape(url.PathEscape(url.PathEscape("ä/%"))): "ä/%",
	} {
		if got := unescaped(id); got != want {
			t.Errorf("%q is %q in a key, want %q", id, got, want)
		}
	}
	start := time.Now()
	if got := unescaped("%" + strings.Repeat("25", 500_000) + "41"); got != "A" {
		t.Errorf("a megabyte of escapes is %q", got)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("a megabyte of escapes took %v", took)
	}
}
