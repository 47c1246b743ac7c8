package spel

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// The texts of values, and what Java's methods make of texts. A text of Java is a sequence of 16
// bits, and here it is UTF-8. All goes by way of spell or units, which hold a text to UTF-8 and
// charge it.

// spell is what String.valueOf makes of a value, for which Java has one spelling. It is the only way
// from a value to the text of a key. A key with null in it would be taken by every request that
// lacks the value, and so it is refused.
func spell(st *run.State, x any) (string, error) {
	var s string
	switch x := x.(type) {
	case nil:
		return "", run.Faulty("is null, for which Java writes null: all requests without it would share a key")
	case string:
		s = x
	case named:
		s = x.text
	case enum:
		s = x.name
	case other:
		s = string(x)
	case bool:
		return strconv.FormatBool(x), nil
	case list:
		return "", run.Faulty("is a list, which has no text of its own in Java if it is an array")
	case mapping:
		return "", run.Faulty("is a map: name one of its entries")
	case object:
		return "", run.Faulty("is an object, %v: name one of its properties", x.of.Type())
	default:
		n, _ := integer(x)
		return strconv.FormatInt(n, 10), nil
	}
	if err := st.Spend(len(s)); err != nil {
		return "", err
	}
	if !utf8.ValidString(s) {
		return "", errNoJavaText
	}
	return s, nil
}

// convert is Spring's conversion to a String, as in + and in lock4j: of a list, its elements with
// commas between them, and those of lists in it as well.
func convert(st *run.State, x any) (string, error) { return convertList(st, x, 0) }

// convertList counts how deep it is: a list can hold itself.
func convertList(st *run.State, x any, depth int) (string, error) {
	l, ok := x.(list)
	if !ok {
		return spell(st, x)
	}
	if depth == maxDepth {
		return "", run.Faulty("goes too deep, or in a circle")
	}
	if err := st.List(l.len()); err != nil {
		return "", err
	}
	var b strings.Builder
	for i := range l.len() {
		e, err := l.at(st, i)
		if err != nil {
			return "", err
		}
		s, err := convertList(st, e, depth+1)
		if err != nil {
			return "", err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

// spellable says why values of a type have no text, and "" if they have. lists says whether a list
// has one.
func spellable(t typ, lists bool) string {
	switch t.k {
	case refusedK:
		return t.why
	case nullK:
		return "is null, for which Java writes null"
	case listK, bytesK:
		if !lists {
			return "is a list, whose text in Java depends on whether it is an array: put its elements together, or name one"
		}
		if why := spellable(*t.elem, lists); why != "" {
			return "is a list; each element " + why
		}
	case mapK:
		return "is a map: name one of its entries"
	case objectK:
		return fmt.Sprintf("is an object, %v: name one of its properties", t.t)
	}
	return ""
}

// units are the characters of a text as Java counts them. Seven bytes are charged for each, as runes
// and UTF-16 are both made.
func units(st *run.State, s string) ([]uint16, error) {
	if err := st.Spend(7 * len(s)); err != nil {
		return nil, err
	}
	if !utf8.ValidString(s) {
		return nil, errNoJavaText
	}
	return utf16.Encode([]rune(s)), nil
}

// length is the number of units of a text.
func length(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// piece is a part of a text, from and to a unit of Java. It must not end within a character: half of a
// pair has no UTF-8, and Java would write a question mark for it, for all such halves alike.
func piece(st *run.State, x any, from, to int64) (any, error) {
	s, err := spell(st, x)
	if err != nil {
		return nil, err
	}
	start, err := offset(s, from)
	if err != nil {
		return nil, err
	}
	size, err := offset(s[start:], to-from)
	return s[start:][:size], err
}

// offset is where the n-th unit of a text begins, in bytes. Java throws beyond either end.
func offset(s string, n int64) (int, error) {
	at := int64(0)
	for i, r := range s {
		if at >= n {
			s = s[:i]
			break
		}
		at += int64(utf16.RuneLen(r))
	}
	switch {
	case n < 0 || at < n:
		return 0, run.Faulty("takes a part of a text that is not there")
	case at > n:
		return 0, run.Faulty("takes half of a character that Java has in two halves")
	}
	return len(s), nil
}

// isWhitespace is Character.isWhitespace, for which a space that does not break a line is none.
func isWhitespace(r rune) bool {
	switch r {
	case '\u00a0', '\u2007', '\u202f':
		return false
	case '\t', '\n', '\v', '\f', '\r', 0x1c, 0x1d, 0x1e, 0x1f:
		return true
	}
	return unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp)
}

// toUpper and toLower are for letters whose other case is the same in Go and in all versions of Java.
func toUpper(s string) (any, error) {
	return strings.ReplaceAll(strings.ToUpper(s), "ß", "SS"), settled(s)
}

func toLower(s string) (any, error) { return strings.ToLower(s), settled(s) }

// settled refuses letters whose other case depends on the version of Java, on what is around them, or
// is several characters. It takes Latin-1, the letters next to it, and Cyrillic. A character without a
// case stays as it is, unless Go does not know it yet.
func settled(s string) error {
	for _, r := range s {
		plain := r < 0x180 && r != 'ŉ' && r != 'İ' || r >= 0x400 && r < 0x460
		if !plain && (unicode.Is(unicode.Cn, r) || unicode.IsLower(r) || unicode.IsTitle(r) || unicode.ToUpper(r) != r || unicode.ToLower(r) != r) {
			return run.Faulty("has a character whose other case depends on the version of Java, or on what is around it")
		}
	}
	return nil
}

// isIdentifier reports whether s can be the name of a constant. That of a number which has none is 7
// in protobuf and phase(7) by stringer. In Java all of these are UNRECOGNIZED to protobuf.
func isIdentifier(s string) bool {
	return s != "" && !isDigit(rune(s[0])) && spanOf(s, func(r rune) bool { return isWord(r) || unicode.IsDigit(r) }) == len(s)
}
