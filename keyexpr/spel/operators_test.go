package spel

import "testing"

// Arithmetic is that of the JLS, 4.2.2: two ints make an int, which wraps around at 32 bits, and a long makes a long.
func TestArithmeticIsThatOfJava(t *testing.T) { checkRows(t, arithmeticRows) }

var arithmeticRows = []row{
	// Sums.
	{"#p0.int + 1", "8"},
	{"#p0.long + 1", "8"},
	{"#p0.byte + 1", "8"},
	{"#p0.short + #p0.byte", "14"},
	{"#p0.maxInt + 1", "-2147483648"},
	{"#p0.maxInt + 1L", "2147483648"},
	{"#p0.maxInt + #p0.long", "2147483654"},
	{"#p0.maxLong + 1", "-9223372036854775808"},
	{"2147483647 + 1 + #p0.long", "-2147483641"}, // the first sum is an int, and wraps before the long comes
	{"2147483647 + (1 + #p0.long)", "2147483655"},
	// Differences.
	{"#p0.int - 10", "-3"},
	{"#p0.minInt - 1", "2147483647"},
	{"#p0.minInt - 1L", "-2147483649"},
	{"#p0.minLong - 1", "9223372036854775807"},
	{"10 - 4 - 3 - #p0.int", "-4"},
	{"10 - (4 - #p0.int)", "13"},
	// Products.
	{"#p0.int * -3", "-21"},
	{"65536 * 65536 + #p0.int", "7"},
	{"65536L * 65536 + #p0.int", "4294967303"},
	{"#p0.minInt * -1", "-2147483648"},
	{"#p0.maxInt * 2", "-2"},
	{"#p0.int * 0x10", "112"},
	// Quotients go to zero, and so remainders have the sign of the dividend.
	{"#p0.int / 2", "3"},
	{"-7 / 2 + #p0.int", "4"},
	{"-#p0.int / 2", "-3"},
	{"#p0.int % 3", "1"},
	{"-#p0.int % 3", "-1"},
	{"#p0.int % -3", "1"},
	{"-#p0.int % -3", "-1"},
	{"#p0.minInt / -1", "-2147483648"},
	{"#p0.minInt % -1", "0"},
	{"#p0.minLong / -1", "-9223372036854775808"},
	{"#p0.minLong % -1", "0"},
	{"#p0.minInt / -1L", "2147483648"},
	{"#p0.int / 0", "request: divides by zero"},
	{"#p0.long % (#p0.int - 7)", "request: divides by zero"},
	// Words for signs.
	{"#p0.int div 2", "3"},
	{"#p0.int MOD 4", "3"},
	// Signs in front.
	{"-#p0.int", "-7"},
	{"+#p0.int", "7"},
	{"- -#p0.int", "7"},
	{"-#p0.minInt", "-2147483648"},
	{"-#p0.minLong", "-9223372036854775808"},
	{"-#p0.byte", "-7"},
	{"-(#p0.int + 1)", "-8"},
	{"-#p0.text", "start: - is not for a text"},
	{"+#p0.yes", "start: + is not for true or false"},
	{"-#p0.noLong", "request: calculates with what is no number"},
	// An int of Go is both, as long as both agree.
	{"#p0.loose + 1", "8"},
	{"#p0.loose * 306783378", "2147483646"},
	{"#p0.loose * 306783379", "request: calculates more than 32 bits"},
	{"#p0.loose * 306783379L", "2147483653"},
	{"#p0.loose - #p0.int", "0"},
	{"-#p0.loose / 2", "-3"},
	// What is no number.
	{"#p0.text * 2", "start: * is for numbers here, and not for a text"},
	{"'a' * 3", "start: * is for numbers here"},
	{"#p0.yes - 1", "start: - is for numbers here, and not for true or false"},
	{"#p0.ints / 2", "start: / is for numbers here, and not for a list"},
	{"#p0.ref % 2", "start: % is for numbers here, and not for an id"},
	{"#p0.noLong * 2", "request: calculates with what is no number"},
}

// OpPlus adds two numbers, and makes a text as soon as one side is a String. All else throws in Spring.
func TestPlus(t *testing.T) {
	checkRows(t, []row{
		// One side is a text.
		{"'a' + #p0.int", "a7"},
		{"#p0.int + 'a'", "7a"},
		{"'a' + #p0.long", "a7"},
		{"'a' + -#p0.int", "a-7"},
		{"'a' + #p0.minLong", "a-9223372036854775808"},
		{"'a' + #p0.byte", "a7"},
		{"'a' + #p0.yes", "atrue"},
		{"#p0.no + 'a'", "falsea"},
		{"'a' + #p0.phase", "aPAID"},
		{"'a' + #p0.status", "aPAID"},
		{"'a' + #p0.ref", "aab000000-000000000000000000000000"},
		{"#p0.text + #p0.digits", "Text42"},
		{"#p0.digits + 1", "421"}, // a text of digits is no number
		{"1 + #p0.digits", "142"},
		{"'' + #p0.int", "7"},
		{"'a' + #p0.empty + 'b'", "request: is empty"},
		{"'a' + ('' + #p0.empty) + 'b'", "request: is empty"},
		// Numbers in front of the first text are added; those behind it are written.
		{"1 + 2 + #p0.text", "3Text"},
		{"#p0.text + 1 + 2", "Text12"},
		{"1 + 2 + #p0.text + 1 + 2", "3Text12"},
		{"#p0.text + (1 + 2)", "Text3"},
		{"#p0.int + #p0.long + 'x' + #p0.int + #p0.long", "14x77"},
		{"2147483647 + 1 + 'x' + #p0.int", "-2147483648x7"},
		// Lists are converted by CollectionToStringConverter: commas and no brackets.
		{"'l:' + #p0.ints", "l:3,1,2"},
		{"#p0.texts + ':l'", "x,y,x:l"},
		{"'l:' + #p0.none + #p0.int", "request: is empty"},
		{"'l:' + #p0.nested", "l:1,2,,3"},
		{"'l:' + {1, #p0.int}", "l:1,7"},
		{"'l:' + {{1, 2}, {#p0.int}}", "l:1,2,7"},
		{"'l:' + #p0.blob", "l:1,-1"}, // bytes have a sign in Java
		{"'l:' + #p0.holes", "request: is null"},
		{"'l:' + #p0.unset", "request: is nil"},
		{"'l:' + #p0.lines", "start: this is a list; each element is an object"},
		// What throws.
		{"#p0.yes + 1", "start: + is for numbers and texts, and not for true or false and a number"},
		{"#p0.yes + #p0.no", "start: + is for numbers and texts"},
		{"#p0.phase + #p0.phase", "start: + is for numbers and texts, and not for an enum and an enum"},
		{"#p0.status + #p0.status", "start: an enum is none: put a text in front"},
		{"#p0.ints + #p0.ints", "start: + is for numbers and texts, and not for a list and a list"},
		{"#p0.ref + 1", "start: + is for numbers and texts, and not for an id and a number"},
		{"'a' + #p0.attrs", "start: this is a map: name one of its entries"},
		{"'a' + #p0.owner", "start: this is an object"},
		// Java writes null; all requests without the value would share the key.
		{"'a' + #p0.null", "request: is null"},
		{"#p0.noLong + 'a'", "request: is null"},
		{"'a' + #p0.nobody?.login", "request: is nil"},
		{"'a' + #p0.attrs['nope']", "request: is nil"},
		{"'a' + null", "start: this is null, for which Java writes null"},
	})
}

// ==, by Operator.equalityCheck: numbers by value, texts as texts, all else by equals.
func TestEquality(t *testing.T) {
	checkRows(t, []row{
		// Numbers, whatever their types are.
		{"#p0.int == 7", "true"},
		{"#p0.int == 7L", "true"},
		{"#p0.long == 7", "true"},
		{"#p0.long == #p0.int", "true"},
		{"#p0.byte == #p0.short", "true"},
		{"#p0.loose == #p0.long", "true"},
		{"#p0.int == 8", "false"},
		{"#p0.int != 8", "true"},
		{"#p0.int ne 7", "false"},
		{"#p0.maxInt + 1 == #p0.minInt", "true"},
		{"#p0.maxLong == #p0.minLong", "false"},
		// Texts.
		{"#p0.text == 'Text'", "true"},
		{"#p0.text == 'text'", "false"},
		{"#p0.text EQ 'Text'", "true"},
		{"#p0.empty == ''", "true"},
		{"#p0.digits == 42", "false"}, // nothing is converted
		{"42 == #p0.digits", "false"},
		{"#p0.text != 'x'", "true"},
		// Booleans.
		{"#p0.yes == true", "true"},
		{"#p0.yes == #p0.no", "false"},
		{"#p0.yes != false", "true"},
		{"#p0.yes == 'true'", "false"},
		{"#p0.yes == 1", "false"},
		// null is equal to itself alone.
		{"#p0.null == null", "true"},
		{"#p0.text == null", "false"},
		{"null == #p0.null", "true"},
		{"#p0.null != null", "false"},
		{"#p0.empty == null", "false"},
		{"#p0.null == ''", "false"},
		{"#p0.noLong == 0", "false"},
		{"#p0.noLong == #p0.null", "true"},
		{"#p0.nobody == null", "true"},
		{"#p0.owner == null", "false"},
		{"#p0.ints == null", "false"},
		// Enums and ids.
		{"#p0.phase.name() == 'PAID'", "true"},
		{"#p0.phase.toString() == 'NEW'", "false"},
		{"#p0.phase == 'PAID'", "start: is an enum in Java, which is never == to a text: write .name() == '…'"},
		{"'PAID' == #p0.phase", "start: is an enum in Java"},
		{"#p0.status == 'PAID'", "start: may be an enum in Java"},
		{"'PAID' != #p0.status", "start: may be an enum in Java"},
		{"#p0.ref == 'ab000000-000000000000000000000000'", "false"}, // a UUID is no text
		{"#p0.ref.toString() == 'ab000000-000000000000000000000000'", "true"},
		// What can't be compared here.
		{"#p0.ints == #p0.longs", "start: a list can't be compared here: compare its parts"},
		{"#p0.attrs == #p0.counts", "start: a map can't be compared here"},
		{"#p0.owner == #p0.nobody", "start: an object can't be compared here"},
		{"#p0.blob == 1", "start: a byte array can't be compared here"},
	})
}

// Orders: numbers by value, texts by UTF-16, and null first, as StandardTypeComparator has it.
func TestOrder(t *testing.T) {
	checkRows(t, []row{
		{"#p0.int < 8", "true"},
		{"#p0.int < 7", "false"},
		{"#p0.int <= 7", "true"},
		{"#p0.int > 6L", "true"},
		{"#p0.int >= 8", "false"},
		{"#p0.minInt < #p0.maxInt", "true"},
		{"#p0.minLong lt #p0.minInt", "true"},
		{"#p0.maxLong GT #p0.maxInt", "true"},
		{"#p0.int le 7 and #p0.int ge 7", "true"},
		{"-1 < #p0.byte", "true"},
		{"#p0.text < 'U'", "true"},
		{"#p0.text < 'text'", "true"}, // upper case comes first
		{"#p0.text > 'Tex'", "true"},
		{"#p0.text >= 'Text'", "true"},
		{"#p0.empty < #p0.text", "true"},
		{"#p0.digits < '5'", "true"},
		{"#p0.digits < '100'", "false"}, // as texts, and not as numbers
		{"#p0.null < 'a'", "true"},
		{"#p0.null > 'a'", "false"},
		{"#p0.text > #p0.null", "true"},
		{"#p0.null <= null", "true"},
		{"#p0.null < null", "false"},
		{"#p0.noLong < 0", "true"},
		{"#p0.text < 1", "start: a number and a text have no order"},
		{"#p0.yes < #p0.no", "start: true or false has no order here"},
		{"#p0.phase < #p0.phase", "start: an enum has no order here"},
		{"#p0.status < 'X'", "start: a text or enum has no order here"},
		{"#p0.ints < 1", "start: a list has no order here"},
		// between has both ends.
		{"#p0.int between {7, 9}", "true"},
		{"#p0.int between {5, 7}", "true"},
		{"#p0.int between {8, 9}", "false"},
		{"#p0.int between {9, 5}", "false"},
		{"#p0.long between {-1, 7L}", "true"},
		{"#p0.text between {'A', 'Z'}", "true"},
		{"#p0.text between {'a', 'z'}", "false"},
		{"#p0.null between {'a', 'z'}", "false"},
		{"not (#p0.int between {1, 5})", "true"},
		{"#p0.int between {1, 2, 3}", "start: between takes a list of two: {1, 5}"},
		{"#p0.int between #p0.ints", "start: between takes a list of two: {1, 5}"},
		{"#p0.int between {'a', 'b'}", "start: a number and a text have no order"},
	})
}

// Logic stops at the first operand that decides, and takes nothing but true and false: null throws in Spring.
func TestLogicAndChoices(t *testing.T) {
	checkRows(t, []row{
		{"#p0.yes and #p0.no", "false"},
		{"#p0.yes or #p0.no", "true"},
		{"#p0.no or #p0.no", "false"},
		{"#p0.yes && !#p0.no", "true"},
		{"not #p0.yes || #p0.yes", "true"},
		{"#p0.no and #p0.int / 0 == 1", "false"}, // the right side is not looked at
		{"#p0.yes or #p0.int / 0 == 1", "true"},
		{"#p0.yes and #p0.int / 0 == 1", "request: divides by zero"},
		{"#p0.no or #p0.no and #p0.yes", "false"},
		{"!(#p0.no or #p0.no)", "true"},
		{"#p0.null and #p0.yes", "start: a text is neither true nor false"},
		{"!#p0.int", "start: a number is neither true nor false"},
		// A choice evaluates one branch.
		{"#p0.yes ? 'a' : #p0.int / 0", "a"},
		{"#p0.no ? #p0.int / 0 : 'b'", "b"},
		{"#p0.int > 5 ? 'many' : 'few'", "many"},
		{"#p0.int > 9 ? 'many' : #p0.int > 5 ? 'some' : 'few'", "some"},
		{"(#p0.yes ? 1 : 2) + 1", "2"},
		{"(#p0.yes ? 1 : 'x') + 1", "2"}, // the value decides, and not the type of the whole
		{"(#p0.no ? 1 : 'x') + 1", "x1"},
		{"'a' + (#p0.no ? #p0.text : null)", "request: is null"},
		{"#p0.text ? 1 : 2", "start: a text is neither true nor false"},
		// ?: takes the other value for null and for the empty text, and for no other empty one.
		{"#p0.null ?: 'none'", "none"},
		{"#p0.empty ?: 'none'", "none"},
		{"#p0.text ?: 'none'", "Text"},
		{"#p0.noLong ?: 0", "0"},
		{"#p0.int - 7 ?: 5", "0"},
		{"#p0.no ?: true", "false"},
		{"#p0.nobody?.login ?: 'nobody'", "nobody"},
		{"#p0.owner?.login ?: 'nobody'", "kim"},
		{"#p0.attrs['nope'] ?: 'none'", "none"},
		{"#p0.null ?: #p0.empty ?: 'last'", "last"},
		{"'a' + (#p0.null ?: 'b') + 'c'", "abc"},
		{"'a' + #p0.null ?: 'b'", "request: is null"}, // + binds closer, and Java's key would be anull
	})
}

// Plain Java differs in chars, which are numbers there, and in ==, which is about objects.
func TestPlainJava(t *testing.T) {
	checkJava(t, []row{
		{`"o:" + p0.int`, "o:7"},
		{`p0.int + p0.long + "x"`, "14x"},
		{`"x" + p0.int + 'c'`, "x7c"},
		{`p0.int + 'a' + "x"`, "104x"}, // 'a' is 97
		{`'a' + 'b' + p0.text`, "195Text"},
		{`p0.text + 'a' + 'b'`, "Textab"},
		{`"" + 'a' + p0.int`, "a7"},
		{`'a' + 1 + p0.int`, "105"},
		{`p0.text.charAt(0) + p0.text`, "TText"},
		{`p0.text.charAt(0) + 1`, "85"},
		{`p0.text.charAt(0) - 'A'`, "19"},
		{`"i" + (char) p0.int`, "start: "},
		{`p0.int * 010`, "56"}, // octal
		{`p0.int * 0x10`, "112"},
		{`p0.maxInt + 1`, "-2147483648"},
		{`p0.maxInt + 1L`, "2147483648"},
		{`p0.int == 7 ? "y" : "n"`, "y"},
		{`p0.int != p0.long ? "y" : "n"`, "n"},
		{`p0.text.equals("Text") ? "y" : "n"`, "y"},
		{`p0.text == null ? "y" : "n"`, "n"},
		{`p0.text != null ? p0.text : "none"`, "Text"},
		{`p0.text == "Text" ? "y" : "n"`, "start: == asks whether two objects are the same one in Java: write .equals(…)"},
		{`p0.phase == p0.phase ? "y" : "n"`, "start: == asks whether two objects are the same one"},
		// Two numbers of facts may be two objects. A number that is calculated, or written out, is none.
		{`p0.int == p0.int ? "y" : "n"`, "start: if both are an Integer or a Long"},
		{`p0.long != p0.longs.get(0) ? "y" : "n"`, "start: if both are an Integer or a Long"},
		{`+p0.int == p0.int ? "y" : "n"`, "y"},
		{`p0.int == p0.int + 0 ? "y" : "n"`, "y"},
		{`p0.int == p0.text.length() ? "y" : "n"`, "n"},
		// A char is a number to == as well.
		{`p0.text.charAt(0) == 84 ? "y" : "n"`, "y"},
		{`84 != p0.text.charAt(0) ? "y" : "n"`, "n"},
		{`p0.text.charAt(0) == 'T' ? "y" : "n"`, "y"},
		// An int beside a long is a long, whichever is chosen.
		{`(p0.yes ? p0.maxInt : p0.long) + 1`, "2147483648"},
		{`(p0.yes ? p0.maxInt : p0.int) + 1`, "-2147483648"},
		{`p0.longs.contains(p0.yes ? p0.texts.size() : p0.long) ? "y" : "n"`, "y"},
		{`(p0.yes ? p0.short : 1) + "x"`, "start: a short and a number that is written out"},
		{`p0.text < "U" ? "y" : "n"`, "start: a text has no order here"},
		{`p0.yes && !p0.no ? "y" : "n"`, "y"},
		{`p0.yes ? "a" : p0.no ? "b" : "c"`, "a"},
		{`p0.texts.get(1)`, "y"},
		{`"l" + p0.texts`, "start: this is a list"},
		{`"l" + p0.texts.size()`, "l3"},
		{`p0.attrs.get("k")`, "v"},
		{`p0.attrs.getOrDefault("x", "d")`, "d"},
		{`"n" + p0.null`, "request: is null"},
		{`String.valueOf(p0.int)`, "7"},
		{`String.valueOf(p0.phase) + p0.int`, "PAID7"},
		{`String.valueOf(p0.yes)`, "true"},
		{`String.format("%s-%d", p0.text, p0.int)`, "Text-7"},
		{`String.format("%d%%", p0.long)`, "7%"},
		{`String.format("%s", p0.phase)`, "PAID"},
		{`String.format("%d", p0.text)`, "start: %d is for whole numbers, not for a text"},
		{`String.format("%5d", p0.int)`, "start: a format may have %s, %d and %%, with an argument each"},
		{`String.format("%s", p0.null)`, "request: is null"},
		{`p0.text.indexOf('x')`, "2"},
		{`p0.text.lastIndexOf('t')`, "3"},
		{`p0.text.contains("ex") ? "y" : "n"`, "y"},
		{`p0.text.contains('x') ? "y" : "n"`, "start: contains takes a text here, and not a character"},
		{`p0.owner.login`, "kim"},
		{`p0.owner.getLogin()`, "kim"},
		{`p0.nobody.login`, "request: "},
		{`"a\tb" + p0.int`, "a\tb7"},
		{`"it''s" + p0.int`, "it''s7"}, // nothing is doubled in Java
	})
}
