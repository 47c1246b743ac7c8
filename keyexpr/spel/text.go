package spel

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// What Java's methods make of texts. A text there is a sequence of 16 bits, and here it is
// UTF-8. Case is mapped by tables that have grown with Unicode, which each version of Java has
// another edition of. It takes values of Java and gives texts, numbers or characters, always by
// way of spell or units. These two hold a text to UTF-8 and charge it, so that no method can
// forget either.

// units are the characters of a text as Java counts them. The memory is charged before: seven
// bytes for each, as runes and UTF-16 are both made. String.length, charAt, substring, indexOf
// and hashCode all count char values. A letter beyond U+FFFF is two of them. Counting runes
// would agree on every text of a test in English, and cut another piece out of the first name
// with an emoji in it.
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

// length is the number of units of a text, as Java has it, without making them.
func length(s string) (n int) {
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// There is no text in Redis for it that would come back as itself.
var errSurrogate = run.Faulty("takes half of a character that Java has in two halves")

// piece is a part of a text, which must not end within a character. Half of a pair has no UTF-8.
// Java would write a question mark into Redis for it, for all such halves alike. Jedis and
// Lettuce encode with UTF-8, which replaces a lone surrogate by a question mark. All texts that
// differ only there would lock one key in Java, so that even the right key is no good one, and
// the request is refused.
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
// key. StringIndexOutOfBoundsException means no key in Java. A helpful cut to what is there
// would be a key that only the program in Go locks.
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
// or cut of theirs can fall within a character. spell comes first, as it holds the text to UTF-8
// and charges it. A method on what is no text has been refused by type before.
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
// a text of one. Java answers in units and Go in bytes, and the two agree only for ASCII. The
// prefix is counted rather than the text, so that a find near the beginning of a long text stays
// cheap.
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
// where Go has one. Between all characters of ASCII, the two languages agree. String.replace
// takes two texts and no pattern; replaceAll is the one with a pattern, and is not in the
// tables. The new length is charged before it is built, as thirty calls that each put eight
// letters for one would fill all memory.
func replace(st *run.State, on any, args []any) (any, error) {
	s, old, err := spellBoth(st, on, args[0])
	if err != nil {
		return nil, err
	}
	by, err := spell(st, args[1])
	if err != nil {
		return nil, err
	}
	// Between two units of one character Java would put the text as well, and tear it in two.
	if old == "" && !isASCII(s) {
		return nil, run.Faulty("puts a text between the characters of another one, which Java counts in its own way")
	}
	if err := st.Spend(len(s) + strings.Count(s, old)*len(by)); err != nil {
		return nil, err
	}
	return strings.ReplaceAll(s, old, by), nil
}

// spell is what String.valueOf makes of a value, for which Java has one spelling. It is the only
// way from a value to a text of a key, and refuses what Java has no one text for. A key with
// null in it is the worst that can happen to a lock: it is taken by every request that lacks the
// value, and looks like a key. Java writes it without a word. No option lets it through; ?:
// names what should stand there.
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
// brackets and blanks, and for an array an address. ArrayToStringConverter and
// CollectionToStringConverter join by a comma without a blank. Nested lists are converted by the
// same service, and come out flat: {{1, 2}, {3}} is 1,2,3.
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
// there. The same reasons exist for values, in spell. Both are needed: a type that is known is
// refused before the first request, and JSON can only be refused when it comes.
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
