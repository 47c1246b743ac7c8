package spel

import (
	"errors"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
)

const (
	none  = ""
	face  = "😀" // two units
	mixed = "a😀b😀"
)

var methodsOfStringRows = []struct{ text, call, want string }{
	// length counts units.
	{none, "length()", "0"},
	{"abc", "length()", "3"},
	{"é", "length()", "1"},
	{"e\u0301", "length()", "2"},
	{face, "length()", "2"},
	{mixed, "length()", "6"},
	{"\x00", "length()", "1"},
	// isEmpty and isBlank.
	{none, "isEmpty()", "true"},
	{" ", "isEmpty()", "false"},
	{none, "isBlank()", "true"},
	{"\t\n", "isBlank()", "true"},
	{"\u00a0", "isBlank()", "false"},
	{"\u2003", "isBlank()", "true"},
	{none, "empty", "true"}, // isEmpty(), read as a property
	{" ", "blank", "true"},
	// charAt throws outside of the text.
	{"abc", "charAt(0)", "a"},
	{"abc", "charAt(2)", "c"},
	{"abc", "charAt(3)", ""},
	{"abc", "charAt(-1)", ""},
	{none, "charAt(0)", ""},
	{mixed, "charAt(3)", "b"},
	{mixed, "charAt(1)", ""}, // half of a character
	// substring takes the length for an end, and nothing beyond.
	{"abc", "substring(0)", "abc"},
	{"abc", "substring(2)", "c"},
	{"abc", "substring(3).length()", "0"},
	{"abc", "substring(4)", ""},
	{"abc", "substring(-1)", ""},
	{"abc", "substring(0, 3)", "abc"},
	{"abc", "substring(1, 1).length()", "0"},
	{"abc", "substring(2, 1)", ""},
	{"abc", "substring(1, 4)", ""},
	{mixed, "substring(1, 3)", "😀"},
	{mixed, "substring(3)", "b😀"},
	{mixed, "substring(2)", ""},
	{mixed, "substring(0, 5)", ""},
	// indexOf and lastIndexOf answer in units.
	{"abcabc", "indexOf('c')", "2"},
	{"abcabc", "lastIndexOf('c')", "5"},
	{"abc", "indexOf('d')", "-1"},
	{"abc", "indexOf('')", "0"},
	{"abc", "lastIndexOf('')", "3"},
	{none, "indexOf('')", "0"},
	{none, "lastIndexOf('a')", "-1"},
	{mixed, "indexOf('b')", "3"},
	{mixed, "indexOf('😀')", "1"},
	{mixed, "lastIndexOf('😀')", "4"},
	{"aaa", "lastIndexOf('aa')", "1"},
	// contains, startsWith and endsWith.
	{"abc", "contains('bc')", "true"},
	{"abc", "contains('')", "true"},
	{"abc", "contains('B')", "false"},
	{none, "contains('')", "true"},
	{none, "contains('a')", "false"},
	{"abc", "startsWith('ab')", "true"},
	{"abc", "startsWith('abcd')", "false"},
	{none, "startsWith('')", "true"},
	{"abc", "endsWith('bc')", "true"},
	{"abc", "endsWith('b')", "false"},
	{face, "endsWith('😀')", "true"},
	// equals and equalsIgnoreCase.
	{"abc", "equals('abc')", "true"},
	{"abc", "equals('ABC')", "false"},
	{"42", "equals(42)", "false"},
	{none, "equals(null)", "false"},
	{"abc", "equalsIgnoreCase('ABC')", "true"},
	{"abc", "equalsIgnoreCase('abcd')", "false"},
	{none, "equalsIgnoreCase('')", "true"},
	// concat takes a text; Spring converts a number for it.
	{"abc", "concat('d')", "abcd"},
	{"abc", "concat('')", "abc"},
	{"abc", "concat(1)", "abc1"},
	{"abc", "concat(true)", "abctrue"},
	{"a", "concat('b').concat('c')", "abc"},
	// replace takes texts as they are: a dot is a dot.
	{"a.b.c", "replace('.', '-')", "a-b-c"},
	{"aaaa", "replace('aa', 'a')", "aa"},
	{"aaa", "replace('aa', 'b')", "ba"},
	{"abc", "replace('x', 'y')", "abc"},
	{"abc", "replace('b', '')", "ac"},
	{"ab", "replace('', '.')", ".a.b."},
	{none, "replace('', '.')", "."},
	{face, "replace('', '.')", ""}, // between units in Java
	{mixed, "replace('😀', '!')", "a!b!"},
	// Case, as far as all versions of Java agree.
	{"aB1-é", "toUpperCase()", "AB1-É"},
	{"aB1-É", "toLowerCase()", "ab1-é"},
	{"ß", "toUpperCase()", "SS"},
	{"µ", "toUpperCase()", "Μ"}, // the Greek capital
	{"ΑΣ", "toLowerCase()", ""}, // ς at the end of a word
	{"İ", "toLowerCase()", ""},
	{"ﬀ", "toUpperCase()", ""},
	{face, "toUpperCase()", "😀"},
	// trim and strip.
	{" a b ", "trim()", "a b"},
	{"\x01a\x1f", "trim()", "a"},
	{"\u3000a", "trim()", "\u3000a"},
	{"\u3000a", "strip()", "a"},
	{" a ", "stripLeading()", "a "},
	{" a ", "stripTrailing()", " a"},
	{"   ", "trim().length()", "0"},
	{"   ", "strip().isEmpty()", "true"},
	{" a", "intern()", " a"},
	{" a", "toString()", " a"},
	// hashCode is s[0]*31^(n-1) + …, in 32 bits.
	{none, "hashCode()", "0"},
	{"ab", "hashCode()", "3105"},
	{"Aa", "hashCode()", "2112"},
	{"BB", "hashCode()", "2112"},
	{"polygenelubricants", "hashCode()", "-2147483648"},
	{"é", "hashCode()", "233"},
	{face, "hashCode()", "1772899"},
	{"Aa", "hashCode() % 16", "0"},
	{"zzzzzz", "hashCode() % 1000", "-664"}, // a shard below zero, in Java as well
	// matches takes the whole text.
	{"abc", "matches('[a-c]+')", "true"},
	{"abc", "matches('b')", "false"},
	{none, "matches('')", "true"},
	{"a\nb", "matches('a.b')", "false"},
	{"a\rb", "matches('a.b')", "false"},
	{"٣", `matches('\d')`, "false"},
	// split: trailing empty texts go, leading ones stay.
	{"a,b,c", "split(',').length", "3"},
	{"a,b,,", "split(',').length", "2"},
	{",a", "split(',').length", "2"},
	{",,", "split(',').length", "0"},
	{none, "split(',').length", "1"},
	{"abc", "split(',')[0]", "abc"},
	{"a,b", "split(',')[1]", "b"},
	{"a,b", "split(',')[2]", ""},
	{"a, b,c", `split(',\s*')[1]`, "b"},
	{"a.b", `split('\.')[1]`, "b"},
	{"a1b2c", "split('[0-9]')[2]", "c"},
	{"2026-11-22", "split('-')[0]", "2026"},
	// A text is indexed by characters.
	{"abc"[:1], "concat('bc')[1]", "b"},
	{mixed, "trim()[3]", "b"},
	{mixed, "trim()[1]", ""},
	{"abc", "trim()[3]", ""},
}

// Each method of String on the texts where it is easily wrong: the empty one, one with a pair of surrogates, ends and repetitions.
// The results are those of the JDK's documentation. No want stands for an exception of Java, or for what Redis can't hold.
func TestMethodsOfString(t *testing.T) {
	for _, tt := range methodsOfStringRows {
		got, err := on(t, tt.text, "'' + #s."+tt.call)
		if tt.want == "" && !errors.Is(err, keyexpr.ErrValue) || tt.want != "" && (err != nil || got != tt.want) {
			t.Errorf("%q.%s comes to %q, %v, want %q", tt.text, tt.call, got, err, tt.want)
		}
	}
}

// Arguments have the type of the method, at start where it is known, and for the request where it is not. null is no argument.
func TestArguments(t *testing.T) {
	checkRows(t, []row{
		{"#p0.text.substring(#p0.int - 6)", "ext"},
		{"#p0.text.substring(#p0.byte - 6, 3)", "ex"},
		{"#p0.text.substring(#p0.loose - 6)", "ext"},
		{"#p0.text.substring(#p0.long)", "start: substring takes a number here, and not a number"},
		{"#p0.text.substring('1')", "start: substring takes a number here, and not a text"},
		{"#p0.text.charAt(#p0.yes)", "start: charAt takes a number here, and not true or false"},
		{"#p0.text.contains(1)", "start: contains takes a text here, and not a number"},
		{"#p0.text.contains(#p0.phase)", "start: contains takes a text here, and not an enum"},
		{"#p0.text.contains(#p0.null)", "request: gives null to contains"},
		{"#p0.text.startsWith(null)", "start: startsWith takes a text here, and not null"},
		{"#p0.text.replace('a', #p0.null)", "request: gives null to replace"},
		{"#p0.text.concat(#p0.ints)", "Text3,1,2"},
		{"#p0.text.concat(#p0.attrs)", "start: concat takes a text, and not a map"},
		{"#p0.text.trim('x')", "start: the method trim with 1 argument of a text is not known here"},
		{"#p0.text.replace('x')", "start: the method replace with 1 argument of a text is not known here"},
		{"#p0.text.substring(1, 2, 3)", "start: the method substring with 3 arguments of a text is not known here"},
		// On null, Java has no methods, and ?. goes on with null.
		{"#p0.null.trim()", "request: can't go on: #p0.null is null"},
		{"#p0.null?.trim() ?: 'none'", "none"},
		{"#p0.null?.trim().length() ?: 'none'", "request: can't go on: #p0.null.trim(…) is null"},
		{"#p0.null?.trim()?.length() ?: 'none'", "none"},
		{"#p0.nobody.login", "request: is nil"},
		{"#p0.owner.login.toUpperCase()", "KIM"},
		{"#p0.null.equals('a')", "request: can't go on: #p0.null is null"},
		{"#p0.null.toString()", "request: can't go on: #p0.null is null"},
		{"#p0.noLong.hashCode()", "request: can't go on: #p0.noLong is null"},
	})
}

// The methods of numbers, booleans, enums and ids.
func TestMethodsOfOtherTypes(t *testing.T) {
	checkRows(t, []row{
		{"#p0.int.toString() + 1", "71"},
		{"#p0.minLong.toString()", "-9223372036854775808"},
		{"#p0.yes.toString()", "true"},
		{"#p0.phase.toString()", "PAID"},
		{"#p0.phase.name()", "PAID"},
		{"#p0.status.name()", "PAID"},
		{"#p0.status.toString()", "PAID"},
		{"#p0.status.toLowerCase()", "paid"}, // so that it is a String in Java
		{"#p0.status.length()", "4"},
		{"#p0.phase.length()", "start: an enum has no method length without arguments here"},
		{"#p0.phase.ordinal()", "start: an enum has no method ordinal without arguments here"},
		{"#p0.text.name()", "start: the method name without arguments of a text is not known here"},
		{"#p0.ref.toString().substring(0, 2)", "ab"},
		{"#p0.ref.version()", "start: an id has no method version without arguments here"},
		{"#p0.ints.toString()", "start: this is a list, whose text in Java depends on whether it is an array"},
		{"#p0.owner.toString()", "start: this is an object, spel.javaOwner: name one of its properties"},
		// intValue keeps the lower 32 bits.
		{"#p0.maxLong.intValue()", "-1"},
		{"#p0.minLong.intValue()", "0"},
		{"#p0.long.intValue() + #p0.maxInt", "-2147483642"},
		{"#p0.int.longValue() + #p0.maxInt", "2147483654"},
		{"#p0.loose.intValue().equals(7)", "true"},
		{"#p0.loose.longValue().equals(7L)", "true"},
		{"#p0.yes.booleanValue()", "true"},
		{"#p0.text.intValue()", "start: the method intValue without arguments of a text is not known here"},
		{"#p0.int.doubleValue()", "start: a number has no method doubleValue without arguments here"},
		// hashCode of an Integer is itself; of a Long, its halves by exclusive or; of a Boolean, 1231 or 1237.
		{"#p0.int.hashCode()", "7"},
		{"#p0.minInt.hashCode()", "-2147483648"},
		{"#p0.long.hashCode()", "7"},
		{"#p0.minLong.hashCode()", "-2147483648"},
		{"#p0.maxLong.hashCode()", "-2147483648"},
		{"(#p0.long - 8).hashCode()", "0"},
		{"#p0.yes.hashCode()", "1231"},
		{"#p0.no.hashCode()", "1237"},
		{"#p0.text.hashCode() == 'Text'.hashCode()", "true"},
		{"#p0.loose.hashCode()", "start: hashCode of a number is not known here"},
		{"#p0.byte.hashCode()", "start: hashCode of a number is not known here"},
		{"#p0.phase.hashCode()", "start: hashCode of an enum is not known here"},
		{"#p0.ref.hashCode()", "start: hashCode of an id is not known here"},
		{"#p0.ints.hashCode()", "start: hashCode of a list is not known here"},
	})
}

// formatted and String.valueOf make texts of anything that has one, and of nothing else.
func TestFormatted(t *testing.T) {
	checkRows(t, []row{
		{"'%s'.formatted(#p0.text)", "Text"},
		{"'%s'.formatted(#p0.int)", "7"},
		{"'%d'.formatted(#p0.minLong)", "-9223372036854775808"},
		{"'%s:%s'.formatted(#p0.text, #p0.phase)", "Text:PAID"},
		{"'%d%%'.formatted(#p0.int)", "7%"},
		{"'%%s%s'.formatted(#p0.int)", "%s7"},
		{"'%s'.formatted(#p0.yes)", "true"},
		{"'%s'.formatted(#p0.ref).length()", "33"},
		{"'%s'.formatted(#p0.null)", "request: is null"},
		{"'%s'.formatted(#p0.ints)", "start: this is a list"},
		{"'%d'.formatted(#p0.text)", "start: %d is for whole numbers, not for a text"},
		{"'%d'.formatted(#p0.noLong)", "request: has a value for %d that is no whole number"},
		{"'%x'.formatted(#p0.int)", "start: a format may have %s, %d and %%, with an argument each"},
		{"'%'.formatted(#p0.int)", "start: a format may have %s, %d and %%"},
		{"'%s%s'.formatted(#p0.int)", "start: a format may have %s, %d and %%, with an argument each"},
		{"'%s'.formatted(#p0.int, 2)", "start: the format leaves arguments over"},
		{"#p0.text.formatted(1)", "start: a format must be written out"},
		{"T(String).valueOf(#p0.int)", "7"},
		{"T(java.lang.String).valueOf(#p0.phase)", "PAID"},
		{"T(String).valueOf(#p0.int) + 1", "71"},
		{"T(String).valueOf(#p0.null)", "request: is null"},
		{"T(String).valueOf(#p0.ints)", "start: this is a list"},
		{"T(String).valueOf(1, 2)", "start: of String there is valueOf(x)"},
	})
}
