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

// What Java's methods make of texts. A text there is a sequence of 16 bits, and here it is
// UTF-8. Case is mapped by tables that have grown with Unicode, which each version of Java has
// another edition of.

// units are the characters of a text as Java counts them. The memory is charged before: seven
// bytes for each, as runes and UTF-16 are both made.
func units(st *run.State, x any) ([]uint16, error) {
	s, _ := textOf(x)
	if err := st.Spend(7 * len(s)); err != nil {
		return nil, err
	}
	if !utf8.ValidString(s) {
		return nil, errNoJavaText
	}
	return utf16.Encode([]rune(s)), nil
}

// There is no text in Redis for it that would come back as itself.
var errSurrogate = run.Faulty("takes half of a character that Java has in two halves")

// piece is a part of a text, which must not end within a character. Half of a pair has no UTF-8.
// Java would write a question mark into Redis for it, for all such halves alike.
func piece(u []uint16, from, to int64) (any, error) {
	if from < 0 || to < from || to > int64(len(u)) {
		return nil, run.Faulty("takes a part of a text that is not there")
	}
	s := utf16.Decode(u[from:to])
	for _, r := range s {
		if r == utf8.RuneError {
			if !containsReplacement(u[from:to]) {
				return nil, errSurrogate
			}
		}
	}
	return string(s), nil
}

// containsReplacement reports whether U+FFFD is in a text by itself, and no half of a pair is.
// Go's decoder writes U+FFFD for what is broken, and a text may have one of its own.
func containsReplacement(u []uint16) bool {
	for i, c := range u {
		if c >= 0xd800 && c < 0xdc00 && (i+1 == len(u) || u[i+1] < 0xdc00 || u[i+1] >= 0xe000) {
			return false
		}
		if c >= 0xdc00 && c < 0xe000 && (i == 0 || u[i-1] < 0xd800 || u[i-1] >= 0xdc00) {
			return false
		}
	}
	return true
}

// A single half is kept as a number, so that a comparison with it works; it has no text.
func charAt(st *run.State, on any, args []any) (any, error) {
	u, err := units(st, on)
	if err != nil {
		return nil, err
	}
	i, _ := integer(args[0])
	if i < 0 || i >= int64(len(u)) {
		return nil, run.Faulty("takes a part of a text that is not there")
	}
	return char(u[i]), nil
}

// substring counts UTF-16, and throws where Java does: it does not cut back what lies beyond the
// end. Go's slices would be cut back, and then two texts that differ in length could make one
// key.
func substring(st *run.State, on any, args []any) (any, error) {
	u, err := units(st, on)
	if err != nil {
		return nil, err
	}
	from, _ := integer(args[0])
	to := int64(len(u))
	if len(args) > 1 {
		to, _ = integer(args[1])
	}
	return piece(u, from, to)
}

// onText is a method of a text whose result no alphabet changes. They work on bytes, as no test
// or cut of theirs can fall within a character.
func onText(f func(s string) any) func(*run.State, any, []any) (any, error) {
	return func(st *run.State, on any, _ []any) (any, error) {
		s, err := spell(st, on)
		if err != nil {
			return nil, err
		}
		return f(s), nil
	}
}

func spellBoth(st *run.State, x, y any) (s, t string, err error) {
	if s, err = spell(st, x); err == nil {
		t, err = spell(st, y)
	}
	return s, t, err
}

func unitsOfBoth(st *run.State, x, y any) (u, v []uint16, err error) {
	if u, err = units(st, x); err == nil {
		v, err = units(st, y)
	}
	return u, v, err
}

func onTexts(f func(s, t string) any) func(*run.State, any, []any) (any, error) {
	return func(st *run.State, on any, args []any) (any, error) {
		s, t, err := spellBoth(st, on, args[0])
		if err != nil {
			return nil, err
		}
		return f(s, t), nil
	}
}

// indexOf finds bytes, and then counts characters as Java does up to there. The pieces are
// UTF-8, so that no match begins within a character. A character of plain Java is looked for as
// a text of one.
func indexOf(f func(s, t string) int) func(*run.State, any, []any) (any, error) {
	return func(st *run.State, on any, args []any) (any, error) {
		s, t, err := spellBoth(st, on, args[0])
		if err != nil {
			return nil, err
		}
		i := f(s, t)
		if i < 0 {
			return int32(-1), nil
		}
		u, err := units(st, s[:i])
		return int32(len(u)), err
	}
}

// replace with an empty text puts the other one between all characters, which Java has two of
// where Go has one. Between all characters of ASCII, the two languages agree.
func replace(st *run.State, on any, args []any) (any, error) {
	s, old, err := spellBoth(st, on, args[0])
	if err != nil {
		return nil, err
	}
	by, err := spell(st, args[1])
	if err != nil {
		return nil, err
	}
	if old == "" && !isASCII(s) {
		return nil, run.Faulty("puts a text between the characters of another one, which Java counts in its own way")
	}
	if err := st.Spend(len(s) + strings.Count(s, old)*len(by)); err != nil {
		return nil, err
	}
	return strings.ReplaceAll(s, old, by), nil
}

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
// another thing: it cuts everything up to the blank, control characters included.
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
// before.
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
// depend on who asks.
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
// of İ is two characters, of which one is a mark above nothing.
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
// U+FFFF are compared half by half.
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

// spell is what String.valueOf makes of a value, for which Java has one spelling. It is the only
// way from a value to a text of a key, and refuses what Java has no one text for.
func spell(st *run.State, x any) (string, error) {
	var s string
	switch x := x.(type) {
	case nil:
		return "", run.Faulty("is null, for which Java writes null: all requests without it would share a key")
	case string:
		s = x
	case named:
		s = string(x)
	case enum:
		s = string(x)
	case other:
		s = string(x)
	case bool:
		return strconv.FormatBool(x), nil
	case char:
		if x >= 0xd800 && x < 0xe000 {
			return "", errSurrogate
		}
		return string(rune(x)), nil
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

// convert is what Spring's conversion to a String makes of a value, as in + and in lock4j: of a
// list, its elements with commas between them. Java's own + calls toString, which for a list has
// brackets and blanks, and for an array an address.
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

// spellable says why values of a type have no text, and "" if they have. lists says whether a
// list has one. What can be known by types is refused at start, in the words of what stands
// there.
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
		if t.elem != nil {
			if why := spellable(*t.elem, lists); why != "" {
				return "is a list; each element " + why
			}
		}
	case mapK:
		return "is a map: name one of its entries"
	case objectK:
		return fmt.Sprintf("is an object, %v: name one of its properties", t.t)
	}
	return ""
}
