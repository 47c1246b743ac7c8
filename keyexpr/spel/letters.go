package spel

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Letters, of which Java has tables of its own. It takes texts for the methods that ask for case
// or white space, and gives what all versions of Java since 8 make of them, or an error for the
// request. The two programs that share a key are rarely built on the same day, and so a rule
// holds only if it has held for all tables there have been. Which letters these are is written
// down here rather than taken from Go's tables, which grow with each release as Java's do.

// It is asked where a rune could be two characters.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isWhitespace is Character.isWhitespace: no space that does not break a line is. trim is
// another thing: it cuts everything up to the blank, control characters included. String.strip
// and isBlank are defined by it since Java 11, and by no other definition of white space.
// unicode.IsSpace has U+0085 and the non-breaking space, and lacks the four separators from
// U+001C on. A pasted name with a non-breaking space would be one key in Java and another here.
func isWhitespace(r rune) bool {
	switch r {
	case '\u00a0', '\u2007', '\u202f':
		return false
	case '\t', '\n', '\v', '\f', '\r', 0x1c, 0x1d, 0x1e, 0x1f:
		return true
	}
	return unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp)
}

// mapped maps the characters of a text by one of Java's mappings. It maps character by
// character, where Java maps by the whole text: what depends on its neighbours is refused
// before. String.toLowerCase also depends on the locale: in Turkish, I has no dot. Only programs
// whose default locale is Turkish, Azeri or Lithuanian differ there. They differ among
// themselves as well, and can't share such a key with anybody.
func mapped(f func(r rune) (string, bool)) func(*run.State, any, []any) (any, error) {
	return func(st *run.State, on any, _ []any) (any, error) {
		s, err := spell(st, on)
		if err == nil {
			err = st.Spend(2 * len(s))
		}
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		for _, r := range s {
			to, ok := f(r)
			if !ok {
				return nil, run.Faulty("has a character whose other case depends on the version of Java, or on what is around it")
			}
			b.WriteString(to)
		}
		return b.String(), nil
	}
}

// upper is the upper case of r in all versions of Java since 8, and reports whether there is
// one. It is not known where Go's tables have a mapping outside of the scripts that have not
// changed since, or where several characters come out. Unicode grows, and each version of Java
// has its own. A letter that got an upper case last year has none in Java 8, and the key would
// depend on who asks. Java 8 has the tables of Unicode 6.2, Java 21 those of 15, and Go has its
// own. The scripts in settled have been the same through all of them, TestCaseOfAllLetters goes
// through every letter, and the rest is refused for the request that has one.
func upper(r rune) (string, bool) {
	switch {
	case r == 'ß':
		return "SS", true
	case unicode.ToUpper(r) == r && !several(r):
		return string(r), true
	}
	return string(unicode.ToUpper(r)), settled(r) && !several(r)
}

// lower is upper for the lower case. That of a sigma depends on whether a word ends there. That
// of İ is two characters, of which one is a mark above nothing. ConditionalSpecialCasing makes ς
// of Σ where a word ends, and what a word is comes from another table of Unicode. İ becomes i
// and a combining dot. Both are refused rather than rebuilt: the letters are rare in ids, and a
// table that is nearly right is the worst of all.
func lower(r rune) (string, bool) {
	switch {
	case r == 'Σ', r == 'İ':
		return "", false
	case unicode.ToLower(r) == r:
		return string(r), true
	}
	return string(unicode.ToLower(r)), settled(r)
}

// settled reports whether r is in a script whose mappings are the same in all versions. A letter
// outside of them is refused if Go's tables give it another case, as those of some Java may not.
func settled(r rune) bool {
	return r < 0x250 || r >= 0x370 && r < 0x530 && r != 0x37f && r != 0x3f3 && r < 0x528 || r >= 0x531 && r < 0x587 || r >= 0x1e00 && r < 0x1f00 && r != 0x1e9e
}

// unsure reports whether the case of r is one that not all versions know of. For these, a
// comparison without case may have two answers.
func unsure(r rune) bool {
	return !settled(r) && (unicode.ToUpper(r) != r || unicode.ToLower(r) != r)
}

// several reports whether the upper case of r is more than one character, as for ŉ, ΐ and ﬁ. The
// list is that of SpecialCasing in Unicode, which has not changed since Java 8.
func several(r rune) bool {
	switch {
	case r == 'ŉ', r == 'ǰ', r == 'ΐ', r == 'ΰ', r == 'և', r >= 0x1e96 && r <= 0x1e9a, r >= 0x1f50 && r < 0x2000, r >= 0xfb00 && r <= 0xfb17:
		return true
	}
	return false
}

// equalsIgnoreCase compares character by character, upper and then lower case, as Java does: ß
// does not equal SS. It compares units, as String.regionMatches does, so that pairs beyond
// U+FFFF are compared half by half. String.regionMatches compares upper case first and then the
// lower case of that, for the sake of Georgian. It maps one char at a time by
// Character.toUpperCase, in which ß stays itself, unlike in String.toUpperCase.
func equalsIgnoreCase(st *run.State, on any, args []any) (any, error) {
	u, v, err := unitsOfBoth(st, on, args[0])
	if err != nil {
		return nil, err
	}
	if len(u) != len(v) {
		return false, nil
	}
	for i := range u {
		if u[i] == v[i] {
			continue
		}
		a, b := rune(u[i]), rune(v[i])
		if unsure(a) || unsure(b) {
			return nil, run.Faulty("compares characters whose other case depends on the version of Java")
		}
		x, y := unicode.ToUpper(a), unicode.ToUpper(b)
		if x != y && unicode.ToLower(x) != unicode.ToLower(y) {
			return false, nil
		}
	}
	return true, nil
}

// isIdentifier reports whether s can be the name of a constant. That of a number which has none is 7
// in protobuf and phase(7) by stringer. In Java all of these are UNRECOGNIZED to protobuf.
func isIdentifier(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') && spanOf(s, func(r rune) bool { return isLetter(r) || unicode.IsDigit(r) }) == len(s)
}
