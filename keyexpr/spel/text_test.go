package spel

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// on makes the key of an expression about one text, #s.
func on(t *testing.T, text, expression string) (string, error) {
	t.Helper()
	tmpl, err := Expression(expression).Parse(keyexpr.Roots{"s": keyexpr.TypeFor[string]()}, keyexpr.OneKey())
	if err != nil {
		t.Fatalf("Parse(%q): %v", expression, err)
	}
	keys, err := tmpl.Expand(t.Context(), func(string) (any, error) { return text, nil })
	if err != nil {
		return "", err
	}
	return keys[0], nil
}

// trim cuts what is up to the blank, strip what is white space, and neither cuts a blank that breaks no line.
func TestWhiteSpace(t *testing.T) {
	for _, tt := range []struct{ text, trim, strip string }{
		{" a ", "a", "a"},
		{"\t\r\na\f\v", "a", "a"},
		{"\x00\x01a\x1f", "a", "\x00\x01a"},
		{"\u00a0a\u00a0", "\u00a0a\u00a0", "\u00a0a\u00a0"},
		{"\u2007a\u202f", "\u2007a\u202f", "\u2007a\u202f"},
		{"\u2003a\u3000", "\u2003a\u3000", "a"},
		{"\u2028a\u2029", "\u2028a\u2029", "a"},
		{"\u200ba", "\u200ba", "\u200ba"},
		{"\u0085a", "\u0085a", "\u0085a"},
		{"a b", "a b", "a b"},
	} {
		if got, err := on(t, tt.text, "#s.trim()"); err != nil || got != tt.trim {
			t.Errorf("trim of %q makes %q, %v, want %q", tt.text, got, err, tt.trim)
		}
		if got, err := on(t, tt.text, "#s.strip()"); err != nil || got != tt.strip {
			t.Errorf("strip of %q makes %q, %v, want %q", tt.text, got, err, tt.strip)
		}
	}
	for _, tt := range []struct{ text, blank string }{{"", "true"}, {" \t", "true"}, {"\u3000", "true"}, {"\u00a0", "false"}, {"\x00", "false"}, {" a", "false"}} {
		if got, err := on(t, tt.text, "#s.isBlank()"); err != nil || got != tt.blank {
			t.Errorf("isBlank of %q makes %q, %v, want %q", tt.text, got, err, tt.blank)
		}
	}
}

// A letter has the case that all versions of Java know of, or none that a key may have.
func TestCase(t *testing.T) {
	for _, tt := range []struct{ text, upper, lower string }{ // "" for an error
		{"Ab-1", "AB-1", "ab-1"},
		{"ÄÖü", "ÄÖÜ", "äöü"},
		{"straße", "STRASSE", "straße"},
		{"éÉ", "ÉÉ", "éé"},
		{"абвЯ", "АБВЯ", "абвя"},
		{"ÿ", "Ÿ", "ÿ"},
		{"ı", "I", "ı"},
		{"αβγ", "", ""},
		{"Σ", "", ""}, // σ or ς: whether a word ends there
		{"İ", "", ""}, // two characters in most languages
		{"ŉ", "", ""}, // two characters
		{"ﬁ", "", ""},
		{"ǰ", "", ""},
		{"ẞ", "", ""}, // of which not all versions have the lower case ß
		{"😀→東", "😀→東", "😀→東"},
	} {
		for _, c := range []struct{ method, want string }{{"toUpperCase", tt.upper}, {"toLowerCase", tt.lower}} {
			got, err := on(t, tt.text, "#s."+c.method+"()")
			if c.want == "" && !errors.Is(err, keyexpr.ErrValue) || c.want != "" && (err != nil || got != c.want) {
				t.Errorf("%s of %q makes %q, %v, want %q", c.method, tt.text, got, err, c.want)
			}
		}
	}
}

// Whatever letter there is: one that comes through and has another case goes there and back, but for those whose other case is that
// of another letter in Java, too.
func TestCaseOfAllLetters(t *testing.T) {
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if r >= 0xd800 && r < 0xe000 || settled(string(r)) != nil || strings.ContainsRune("ßµıſ", r) {
			continue
		}
		upper, lower := unicode.ToUpper(r), unicode.ToLower(r)
		if unicode.ToLower(upper) != lower || unicode.ToUpper(lower) != upper || unicode.IsLower(r) && upper == r && r > unicode.MaxLatin1 && r != 'ĸ' {
			t.Errorf("%q comes through, and is %q and %q", r, upper, lower)
		}
	}
}

// Spring puts no more than 100,000 characters together, of which a character beyond the first plane is two. The method of String
// has no such bound.
func TestLongSums(t *testing.T) {
	for _, tt := range []struct {
		text             string
		expression, want string
	}{
		{strings.Repeat("x", 50_000), "(#s + #s).isEmpty()", "false"},
		{strings.Repeat("😀", 25_000), "(#s + #s).isEmpty()", "false"},
		{strings.Repeat("x", 50_000), "(#s + #s + 'y').isEmpty()", ""},
		{strings.Repeat("😀", 25_000), "(#s + #s + 'y').isEmpty()", ""},
		{strings.Repeat("é", 50_001), "(#s + #s).isEmpty()", ""},
		{strings.Repeat("x", 50_000), "#s.concat(#s).concat('y').isEmpty()", "false"},
	} {
		got, err := on(t, tt.text, tt.expression)
		if tt.want == "" && !errors.Is(err, keyexpr.ErrValue) || tt.want != "" && (err != nil || got != tt.want) {
			t.Errorf("%s of %d bytes makes %q, %v, want %q", tt.expression, len(tt.text), got, err, tt.want)
		}
	}
}
