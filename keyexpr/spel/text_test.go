package spel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// on makes the key of an expression about one text, #s.
func on(t *testing.T, text, expression string) (string, error) {
	t.Helper()
	roots := keyexpr.Roots{"s": keyexpr.TypeFor[string]()}
	tmpl, err := Expression(expression).Parse(roots, keyexpr.OneKey())
	if err != nil {
		t.Fatalf("Parse(%q): %v", expression, err)
	}
	keys, err := tmpl.Expand(context.Background(), func(string) (any, error) { return text, nil })
	if err != nil {
		return "", err
	}
	return keys[0], nil
}

// Java counts UTF-16: what Go has in one rune beyond U+FFFF are two characters there, and half of them is none.
func TestTextsAreUTF16(t *testing.T) {
	for _, tt := range []struct{ text, expression, want string }{ // no want for an error
		// Lengths and places.
		{"abc", "'' + #s.length()", "3"},
		{"é→", "'' + #s.length()", "2"},
		{"😀", "'' + #s.length()", "2"},
		{"a😀b", "'' + #s.indexOf('b')", "3"},
		{"a😀b😀", "'' + #s.lastIndexOf('😀')", "4"},
		{"a😀b", "'' + #s.indexOf('x')", "-1"},
		{"abc", "'' + #s.indexOf('')", "0"},
		{"a😀", "'' + #s.lastIndexOf('')", "3"},
		// Parts.
		{"abc", "#s.substring(1)", "bc"},
		{"abc", "#s.substring(1, 2)", "b"},
		{"abc", "'x' + #s.substring(3) + 'y'", ""},
		{"abc", "#s.substring(4)", ""},
		{"abc", "#s.substring(-1)", ""},
		{"abc", "#s.substring(2, 1)", ""},
		{"abc", "#s.substring(0, 4)", ""},
		{"a😀b", "#s.substring(1, 3)", "😀"},
		{"a😀b", "#s.substring(3)", "b"},
		{"a😀b", "#s.substring(2)", ""},
		{"a😀b", "#s.substring(0, 2)", ""},
		{"\ufffd😀", "#s.substring(0, 1)", "\ufffd"},
		{"abc", "#s[1]", "b"},
		{"a😀", "#s[1]", ""},
		{"abc", "'' + #s.charAt(2)", "c"},
		{"a😀", "'' + #s.charAt(1)", ""},
		{"abc", "'' + #s.charAt(3)", ""},
		// hashCode is over them, too.
		{"", "'' + #s.hashCode()", "0"},
		{"a", "'' + #s.hashCode()", "97"},
		{"hello", "'' + #s.hashCode()", "99162322"},
		{"zzzzzz", "'' + #s.hashCode()", "-685785664"},
		{"😀", "'' + #s.hashCode()", "1772899"},
		// So is the order, which is not that of bytes.
		{"😀", "#s < '\ufffd' ? 'y' : 'n'", "y"},
		{"a", "#s < 'b' ? 'y' : 'n'", "y"},
		{"a", "#s < 'A' ? 'y' : 'n'", "n"},
		{"ab", "#s > 'a' ? 'y' : 'n'", "y"},
		// What is no UTF-8 is no text of Java.
		{"\xff", "'x' + #s", ""},
		{"\xff", "'x' + #s.length()", ""},
		{"\xff", "#s.trim()", ""},
	} {
		got, err := on(t, tt.text, tt.expression)
		if tt.want == "" && !errors.Is(err, keyexpr.ErrValue) || tt.want != "" && (err != nil || got != tt.want) {
			t.Errorf("%s of %q makes %q, %v, want %q", tt.expression, tt.text, got, err, tt.want)
		}
	}
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
	for _, tt := range []struct{ text, blank string }{{"", "y"}, {" \t", "y"}, {"\u3000", "y"}, {"\u00a0", "n"}, {"\x00", "n"}, {" a", "n"}} {
		if got, err := on(t, tt.text, "#s.isBlank() ? 'y' : 'n'"); err != nil || got != tt.blank {
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
		{"αβγΩ", "ΑΒΓΩ", "αβγω"},
		{"ÿ", "Ÿ", "ÿ"},
		{"ı", "I", "ı"},
		{"Σ", "Σ", ""}, // σ or ς: whether a word ends there
		{"İ", "İ", ""}, // two characters in most languages
		{"ŉ", "", "ŉ"}, // two characters
		{"ﬁ", "", "ﬁ"},
		{"ǰ", "", "ǰ"},
		{"ẞ", "ẞ", ""}, // of which not all versions have the lower case ß
		{"😀→", "😀→", "😀→"},
	} {
		for _, c := range []struct{ method, want string }{{"toUpperCase", tt.upper}, {"toLowerCase", tt.lower}} {
			got, err := on(t, tt.text, "#s."+c.method+"()")
			if c.want == "" && !errors.Is(err, keyexpr.ErrValue) || c.want != "" && (err != nil || got != c.want) {
				t.Errorf("%s of %q makes %q, %v, want %q", c.method, tt.text, got, err, c.want)
			}
		}
	}
}

// Whatever letter there is: a mapping that is made is Go's, too, and never of a letter that is several.
func TestCaseOfAllLetters(t *testing.T) {
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		if to, ok := upper(r); ok && to != string(unicode.ToUpper(r)) && r != 'ß' {
			t.Errorf("upper(%q) = %q", r, to)
		}
		if to, ok := lower(r); ok && to != string(unicode.ToLower(r)) {
			t.Errorf("lower(%q) = %q", r, to)
		}
		if _, ok := upper(r); ok && several(r) {
			t.Errorf("upper(%q) is one letter, and should be several", r)
		}
	}
}

func TestEqualsIgnoreCase(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"Ab", "aB", "y"},
		{"Ab", "Ac", "n"},
		{"", "", "y"},
		{"a", "", "n"},
		{"É", "é", "y"},
		{"ß", "SS", "n"},
		{"ß", "ß", "y"},
		{"ſ", "S", "y"},
		{"K", "k", "y"}, // the sign of kelvin
		{"Σ", "ς", "y"},
		{"😀", "😀", "y"},
		{"😀", "😁", "n"},
	} {
		got, err := on(t, tt.a, fmt.Sprintf("#s.equalsIgnoreCase('%s') ? 'y' : 'n'", tt.b))
		if err != nil && !errors.Is(err, keyexpr.ErrValue) || err == nil && got != tt.want {
			t.Errorf("%q equals %q: %q, %v, want %q", tt.a, tt.b, got, err, tt.want)
		}
	}
}

// replace, concat and their kin work on whole texts, where Java and Go agree but for the empty one.
func TestTextMethods(t *testing.T) {
	for _, tt := range []struct{ text, expression, want string }{
		{"a-b-c", "#s.replace('-', '+')", "a+b+c"},
		{"aaa", "#s.replace('aa', 'b')", "ba"},
		{"abc", "#s.replace('', '-')", "-a-b-c-"},
		{"é", "#s.replace('', '-')", ""},
		{"abc", "#s.replace('x', 'y')", "abc"},
		{"a.b", "#s.replace('.', '')", "ab"},
		{"a", "#s.concat('b').concat(1)", "ab1"},
		{"a", "#s + 1 + 2", "a12"},
		{"a", "1 + 2 + #s", "3a"},
		{"abc", "#s.contains('b') ? 'y' : 'n'", "y"},
		{"abc", "#s.startsWith('') ? 'y' : 'n'", "y"},
		{"abc", "#s.endsWith('bc') ? 'y' : 'n'", "y"},
		{"", "#s.isEmpty() ? 'y' : 'n'", "y"},
		{"", "#s ?: 'none'", "none"},
		{" ", "'[' + (#s ?: 'none') + ']'", "[ ]"},
		{"a,b,,", "'' + #s.split(',').length", "2"},
		{",a", "'' + #s.split(',').length", "2"},
		{",", "'' + #s.split(',').length", "0"},
		{"", "'' + #s.split(',').length", "1"},
		{"a1b22c", "#s.split('[0-9]+')[2]", "c"},
		{"a|b", "#s.split('\\|')[1]", "b"},
		{"a.b", "#s.split('\\.')[1]", "b"},
		{"a", "#s.intern()", "a"},
		{"a", "#s.toString()", "a"},
	} {
		got, err := on(t, tt.text, tt.expression)
		if tt.want == "" && !errors.Is(err, keyexpr.ErrValue) || tt.want != "" && (err != nil || got != tt.want) {
			t.Errorf("%s of %q makes %q, %v, want %q", tt.expression, tt.text, got, err, tt.want)
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
		{strings.Repeat("x", 50_000), "(#s + #s).isEmpty() ? 'y' : 'n'", "n"},
		{strings.Repeat("😀", 25_000), "(#s + #s).isEmpty() ? 'y' : 'n'", "n"},
		{strings.Repeat("x", 50_000), "(#s + #s + 'y').isEmpty() ? 'y' : 'n'", ""},
		{strings.Repeat("😀", 25_000), "(#s + #s + 'y').isEmpty() ? 'y' : 'n'", ""},
		{strings.Repeat("é", 50_001), "(#s + #s).isEmpty() ? 'y' : 'n'", ""},
		{strings.Repeat("x", 50_000), "#s.concat(#s).concat('y').isEmpty() ? 'y' : 'n'", "n"},
	} {
		got, err := on(t, tt.text, tt.expression)
		if tt.want == "" && !errors.Is(err, keyexpr.ErrValue) || tt.want != "" && (err != nil || got != tt.want) {
			t.Errorf("%s of %d bytes makes %q, %v, want %q", tt.expression, len(tt.text), got, err, tt.want)
		}
	}
}

// What Java's patterns mean where Go's mean something else, in Go's words.
func TestTranslate(t *testing.T) {
	for _, tt := range []struct {
		java    string
		matches []string
		others  []string
	}{
		{"abc", []string{"abc"}, []string{"", "ab", "abcd", "xabc", "ABC"}},
		{"", []string{""}, []string{"a"}},
		{"a|b", []string{"a", "b"}, []string{"", "ab", "c"}},
		{"(a|b)+", []string{"a", "abba"}, []string{"", "c"}},
		{"(?:a|b)c", []string{"ac", "bc"}, []string{"c", "abc"}},
		{"a*?b", []string{"b", "aab"}, []string{"a"}},
		{"a{2}", []string{"aa"}, []string{"a", "aaa"}},
		{"a{2,}", []string{"aa", "aaaa"}, []string{"a"}},
		{"a{1,2}", []string{"a", "aa"}, []string{"", "aaa"}},
		{"^a$", []string{"a"}, []string{"a\n", "\na"}},
		{".", []string{"a", "é", "😀", " "}, []string{"\n", "\r", "\u0085", "\u2028", "\u2029", ""}},
		{".*", []string{"", "abc"}, []string{"a\nb", "a\rb"}},
		{"[a-c]", []string{"a", "b", "c"}, []string{"d", "-", ""}},
		{"[^a-c]", []string{"d", "-", "\n"}, []string{"a", ""}},
		{"[a-]", []string{"a", "-"}, []string{"b"}},
		{"[-a]", []string{"a", "-"}, []string{"b"}},
		{"[a^]", []string{"a", "^"}, []string{"b"}},
		{"[.+*?]", []string{".", "+", "*", "?"}, []string{"a", ""}},
		{"[ ~]", []string{" ", "~"}, []string{"a"}},
		{"[a\\-z]", []string{"a", "-", "z"}, []string{"b"}},
		{"[\\]]", []string{"]"}, []string{"["}},
		{"[\\d_]", []string{"0", "_"}, []string{"a", "٣"}},
		{"[\\s]", []string{" ", "\t", "\v"}, []string{"\u00a0", "a"}},
		{"\\d+", []string{"0", "42"}, []string{"", "٣", "a"}},
		{"\\D", []string{"a", "٣"}, []string{"4"}},
		{"\\w", []string{"a", "Z", "_", "0"}, []string{"é", "-"}},
		{"\\W", []string{"é", "-"}, []string{"a"}},
		{"\\s", []string{" ", "\t", "\n", "\v", "\f", "\r"}, []string{"\u00a0", "\u2028", "\u0085"}},
		{"\\S", []string{"a", "\u00a0"}, []string{" ", "\v"}},
		{"\\.\\*\\(\\)\\[\\]\\{\\}", []string{".*()[]{}"}, []string{"a"}},
		{"\\\\", []string{"\\"}, []string{"a"}},
		{"\\t\\n\\r", []string{"\t\n\r"}, []string{"tnr"}},
		{"a/b-c:d", []string{"a/b-c:d"}, []string{"a/b-c:"}},
		{"é+", []string{"é", "éé"}, []string{"e"}},
		{"ord-\\d{3}-[A-Z]{2}", []string{"ord-123-AB"}, []string{"ord-12-AB", "ord-123-ab", "xord-123-AB"}},
		{"[a-z0-9]+(-[a-z0-9]+)*", []string{"a", "a-b1-c"}, []string{"", "-a", "a-", "A"}},
	} {
		p, err := translate(tt.java)
		if err != nil {
			t.Errorf("translate(%q): %v", tt.java, err)
			continue
		}
		for want, list := range map[bool][]string{true: tt.matches, false: tt.others} {
			for _, s := range list {
				st := run.NewState(context.Background(), nil, nil)
				if got, err := p.matches(st, s); err != nil || got != want {
					t.Errorf("%q matches %q: %v, %v, want %v", s, tt.java, got, err, want)
				}
				st.Release()
			}
		}
	}
}

// A text is matched only if its length and the size of the pattern leave room for it.
func TestMatchingIsCharged(t *testing.T) {
	p, err := translate("(a|b)*c")
	if err != nil {
		t.Fatal(err)
	}
	st := run.NewState(context.Background(), nil, nil)
	defer st.Release()
	if _, err := p.matches(st, strings.Repeat("a", maxSubject+1)); err == nil {
		t.Error("a text that is too long was matched")
	}
	rounds := 0
	for ; rounds < 1000; rounds++ {
		if _, err := p.matches(st, strings.Repeat("a", 10_000)); err != nil {
			break
		}
	}
	if rounds == 0 || rounds == 1000 {
		t.Errorf("%d texts of 10,000 bytes were matched", rounds)
	}
}
