package idempotency

import (
	"strings"
	"testing"
)

func TestParseKey(t *testing.T) {
	long := strings.Repeat("k", 255)
	for _, tt := range []struct {
		value, want string // nothing if it is no key
	}{
		{"8e03978e-40d5-43e8-bc93-6894a57f9324", "8e03978e-40d5-43e8-bc93-6894a57f9324"},
		{`"8e03978e-40d5-43e8-bc93-6894a57f9324"`, "8e03978e-40d5-43e8-bc93-6894a57f9324"},
		{"aGVsbG8/+w==", "aGVsbG8/+w=="},
		{"order:7[a]^~!", "order:7[a]^~!"},
		{`" a b "`, " a b "},
		{`"a,b;c"`, "a,b;c"},
		{`"a\"b\\c"`, `a"b\c`},
		{`"\\"`, `\`},
		{long, long},
		{`"` + long + `"`, long},
		{`"` + strings.Repeat(`\"`, 255) + `"`, strings.Repeat(`"`, 255)},
		{"", ""},
		{`""`, ""},
		{`"`, ""},
		{`"a`, ""},
		{`a"`, ""},
		{`"a"b"`, ""},
		{`"a\"`, ""},
		{`"\a"`, ""},
		{`"a";p=1`, ""},
		{"a;p=1", ""},
		{"a b", ""},
		{"a,b", ""},
		{`a\b`, ""},
		{"a\tb", ""},
		{"a\nb", ""},
		{"\"a\n\"", ""},
		{"a\n", ""},
		{"é", ""},
		{`"é"`, ""},
		{long + "k", ""},
		{`"` + long + `k"`, ""},
	} {
		if got := parseKey([]string{tt.value}); got != tt.want {
			t.Errorf("parseKey(%q) = %q, want %q", tt.value, got, tt.want)
		}
	}
	for _, values := range [][]string{nil, {"a", "b"}, {`"a"`, `"b"`}, {"a", ""}} {
		if got := parseKey(values); got != "" {
			t.Errorf("parseKey(%q) = %q", values, got)
		}
	}
}

// FuzzParseKey writes each text as a string of RFC 8941, and reads it again.
func FuzzParseKey(f *testing.F) {
	f.Add(`a"b\c d`)
	f.Fuzz(func(t *testing.T, text string) {
		valid := len(text) >= 1 && len(text) <= 255
		for _, c := range []byte(text) {
			valid = valid && c >= ' ' && c <= '~'
		}
		got := parseKey([]string{`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`})
		if valid && got != text || !valid && got != "" {
			t.Errorf("%q is read as %q", text, got)
		}
		if bare := parseKey([]string{text}); bare != "" && !strings.HasPrefix(text, `"`) && bare != text {
			t.Errorf("%q without quotes is read as %q", text, bare)
		}
	})
}

func TestDigestsOfPartsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][]string{{"ab", "c"}, {"a", "bc"}, {"abc"}, {"abc", ""}, {"", "abc"}, {"1:a", "b"}, {"1", ":a1:b"}} {
		var p [][]byte
		for _, s := range parts {
			p = append(p, []byte(s))
		}
		d := digest(p...)
		if seen[d] || len(d) != 64 {
			t.Errorf("digest of %q is %s", parts, d)
		}
		seen[d] = true
	}
}
