package spel

import (
	"errors"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
)

var precedenceRows = []struct{ text, want string }{
	// or, and.
	{"#a or #b or #c", "(|| (|| #a #b) #c)"},
	{"#a and #b and #c", "(&& (&& #a #b) #c)"},
	{"#a or #b and #c", "(|| #a (&& #b #c))"},
	{"#a and #b or #c", "(|| (&& #a #b) #c)"},
	{"(#a or #b) and #c", "(&& (|| #a #b) #c)"},
	{"#a || #b && #c || #d", "(|| (|| #a (&& #b #c)) #d)"},
	// and, comparisons.
	{"#a == 1 and #b == 2", "(&& (== #a 1) (== #b 2))"},
	{"#a and #b == #c", "(&& #a (== #b #c))"},
	{"#a == #b or #c", "(|| (== #a #b) #c)"},
	{"#a matches 'x' and #b", "(&& (matches #a 'x') #b)"},
	{"#a between {1, 2} or #b", "(|| (between #a {1 2}) #b)"},
	// Comparisons, sums.
	{"#a + 1 < #b - 1", "(< (+ #a 1) (- #b 1))"},
	{"#a == #b + 'x'", "(== #a (+ #b 'x'))"},
	{"'a' + #b == #c", "(== (+ 'a' #b) #c)"},
	{"'a' + (#b == #c)", "(+ 'a' (== #b #c))"},
	{"#a + 'x' matches 'y'", "(matches (+ #a 'x') 'y')"},
	// Sums, products.
	{"1 + 2 - 3 + 4", "(+ (- (+ 1 2) 3) 4)"},
	{"1 - 2 + 3", "(+ (- 1 2) 3)"},
	{"1 * 2 + 3 * 4", "(+ (* 1 2) (* 3 4))"},
	{"1 + 2 * 3 + 4", "(+ (+ 1 (* 2 3)) 4)"},
	{"8 / 4 / 2", "(/ (/ 8 4) 2)"},
	{"8 / (4 / 2)", "(/ 8 (/ 4 2))"},
	{"8 % 5 * 2", "(* (% 8 5) 2)"},
	{"8 mod 5 div 2", "(/ (% 8 5) 2)"},
	{"'a' + #b * 2", "(+ 'a' (* #b 2))"},
	// Products, signs in front.
	{"-1 * 2", "(* (- 1) 2)"},
	{"2 * -1", "(* 2 (- 1))"},
	{"1 - -1", "(- 1 (- 1))"},
	{"+1 + +1", "(+ (+ 1) (+ 1))"},
	{"!#a and !#b", "(&& (! #a) (! #b))"},
	{"!#a == #b", "(== (! #a) #b)"},
	{"not #a or not #b", "(|| (! #a) (! #b))"},
	{"not not #a", "(! (! #a))"},
	// Signs in front, what follows.
	{"-#a.b", "(- (.b #a))"},
	{"-#a[0]", "(- (index #a 0))"},
	{"!#a.b()", "(! (call b #a))"},
	{"-#a.b.c()", "(- (call c (.b #a)))"},
	// Choices are loosest, and go to the right.
	{"#a ? 1 : 2 + 3", "(if #a 1 (+ 2 3))"},
	{"#a or #b ? 1 : 2", "(if (|| #a #b) 1 2)"},
	{"#a ? #b ? 1 : 2 : 3", "(if #a (if #b 1 2) 3)"},
	{"#a ? 1 : #b ? 2 : #c ? 3 : 4", "(if #a 1 (if #b 2 (if #c 3 4)))"},
	{"(#a ? 1 : 2) + 3", "(+ (if #a 1 2) 3)"},
	{"#a == null ? 'x' : #a", "(if (== #a null) 'x' #a)"},
	{"'o:' + #a ?: 'none'", "(?: (+ 'o:' #a) 'none')"},
	{"'o:' + (#a ?: 'none')", "(+ 'o:' (?: #a 'none'))"},
	{"#a ?: #b ? 1 : 2", "(?: #a (if #b 1 2))"},
	{"#a ? #b ?: 1 : 2", "(if #a (?: #b 1) 2)"},
	// Chains go from the left, within and without.
	{"#a.b.c", "(.c (.b #a))"},
	{"#a?.b.c", "(.c (?.b #a))"},
	{"#a.b?.c()", "(?call c (.b #a))"},
	{"#a[0].b[1]", "(index (.b (index #a 0)) 1)"},
	{"#a.![b].?[#this > 1]", "(select? (project #a b) (> this 1))"},
	{"#a.![#this.![#this]]", "(project #a (project this this))"},
	{"#a.b(#c.d(1), 2)", "(call b #a (call d #c 1) 2)"},
	{"{1, 2}[0]", "(index {1 2} 0)"},
	{"'a'.length()", "(call length 'a')"},
	{"('a' + #b).length()", "(call length (+ 'a' #b))"},
	{"'a' + #b.length()", "(+ 'a' (call length #b))"},
	{"#f(#g(1) + 2)", "(call f _ (+ (call g _ 1) 2))"},
	{"#m[a]", "(index #m a)"},
	{"#m[a.b]", "start"},
	{"#m[true]", "(index #m true)"},
	// Words that are operators are names where no operator can stand.
	{"#and and #or", "(&& #and #or)"},
	{"#a.matches('x')", "(call matches #a 'x')"},
	{"#a.div div #a.mod", "(/ (.div #a) (.mod #a))"},
	{"#eq eq #ne", "(== #eq #ne)"},
}

// Every pair of neighbouring levels, both ways around: what binds closer has the inner brackets, and equals go from the left.
func TestPrecedence(t *testing.T) {
	for _, tt := range precedenceRows {
		n, err := parse(tt.text, tt.text, 0, false)
		switch {
		case tt.want == "start" && err == nil:
			t.Errorf("parse(%q) = %s, want an error", tt.text, tree(n))
		case tt.want == "start":
		case err != nil:
			t.Errorf("parse(%q): %v", tt.text, err)
		case tree(n) != tt.want:
			t.Errorf("parse(%q) = %s, want %s", tt.text, tree(n), tt.want)
		}
	}
}

var whatIsNoExpressionRows = []struct {
	text   string
	java   bool
	offset int
	reason string
}{
	// Nothing, or not all of it.
	{"\t\n", false, 0, "nothing is written here, for which Spring throws"},
	{"1 +", false, 3, `unexpected "the end"`},
	{"1 + * 2", false, 4, `unexpected "*"`},
	{"* 1", false, 0, `unexpected "*"`},
	{"and", false, 0, "and is a property of the root object, which is not known here: write #and for a parameter"},
	{"1 2", false, 2, `unexpected "2"`},
	{"'a' 'b'", false, 4, `unexpected "b"`},
	{"1 and", false, 5, `unexpected "the end"`},
	{"!", false, 1, `unexpected "the end"`},
	// Brackets.
	{"(1", false, 2, `")" is missing before "the end"`},
	{"(1]", false, 2, `")" is missing before "]"`},
	{"()", false, 1, `unexpected ")"`},
	{"1)", false, 1, `unexpected ")"`},
	{"{1", false, 2, `"," is missing before "the end"`},
	{"{1 2}", false, 3, `"," is missing before "2"`},
	{"{,}", false, 1, `unexpected ","`},
	{"#a[1", false, 4, `"]" is missing before "the end"`},
	{"#a.![b", false, 6, `"]" is missing before "the end"`},
	{"#a.b(1", false, 6, `"," is missing before "the end"`},
	{"#f(,)", false, 3, `unexpected ","`},
	{"{'a': 1}", false, 4, "{…: …} is a map, which is no key material"},
	// Names and numbers.
	{"#", false, 0, "a name is missing behind #"},
	{"##a", false, 0, "a name is missing behind #"},
	{"#'a'", false, 0, "a name is missing behind #"},
	{"#a.", false, 3, `a name is missing before "the end"`},
	{"#a.1", false, 3, `a name is missing before "1"`},
	{"#a.'b'", false, 3, `a name is missing before "b"`},
	{"#a?.", false, 4, `a name is missing before "the end"`},
	{"1.5", false, 0, "only whole numbers can be in a key"},
	{"1e3", false, 0, "only whole numbers can be in a key"},
	{"1f", false, 0, "only whole numbers can be in a key"},
	{"1x", false, 0, "this is no number"},
	{"0x", false, 0, "this is no number"},
	{"1LL", false, 0, "this is no number"},
	{"1_000", false, 0, "this is no number"},
	{"2147483648", false, 0, "not an int of 32 bits: write an L behind it for a long"},
	{"-2147483648", false, 1, "not an int of 32 bits: write an L behind it for a long"},
	{"0x80000000", false, 0, "not an int of 32 bits: write an L behind it for a long"},
	{"9223372036854775808L", false, 0, "not a long of 64 bits"},
	// Texts.
	{"'a", false, 0, "the string is not closed"},
	{`"a'`, false, 0, "the string is not closed"},
	{"'a''", false, 0, "the string is not closed"},
	{"é + 'a", false, 5, "the string is not closed"},
	{"a\\b", false, 1, `unexpected '\\'`},
	{"`a`", false, 0, "unexpected '`'"},
	{"1 | 2", false, 2, "unexpected '|'"},
	{"1 ~ 2", false, 2, "unexpected '~'"},
	// Operators that a key has no use for.
	{"1 < 2 < 3", false, 6, "Spring compares once: put brackets around what comes first"},
	{"1 == 2 matches 'a'", false, 7, "Spring compares once: put brackets around what comes first"},
	{"#a = 1", false, 3, "nothing can be assigned: == compares"},
	{"++#a", false, 0, "nothing can be assigned"},
	{"#a--", false, 2, "nothing can be assigned"},
	{"1 ^ 2", false, 2, "a power is a float, which is no key material"},
	{"#a INSTANCEOF T(X)", false, 3, "types are checked when the program starts: leave instanceof out"},
	{"#a ? 1", false, 6, `":" is missing before "the end"`},
	{"#a ? : 2", false, 5, `unexpected ":"`},
	{"#this", false, 0, "#this is the element of a list, in .?[…] and .![…]"},
	{"NEW X()", false, 0, "nothing can be constructed: give the guard a function with TemplateFunc, and write #name(…)"},
	// Plain Java lacks what SpringEL alone has.
	{"#a", true, 0, "# is SpringEL, and no Java: use Key"},
	{"a?.b", true, 1, "?. is SpringEL, and no Java: use Key"},
	{"a ?: b", true, 2, "?: is SpringEL, and no Java: use Key"},
	{"a.![b]", true, 1, ".![ is SpringEL, and no Java: use Key"},
	{"a.?[b]", true, 1, ".?[ is SpringEL, and no Java: use Key"},
	{"{1}", true, 0, "{ is SpringEL, and no Java: use Key"},
	{"a and b", true, 2, `unexpected "and"`},
	{"'ab'", true, 0, "'…' is one character in Java: write \"…\" for a text"},
	{"''", true, 0, "'…' is one character in Java: write \"…\" for a text"},
	{"'😀'", true, 0, "'…' is one character in Java: write \"…\" for a text"},
	{`"\u0041"`, true, 2, `unknown escape \u`},
	{`"\101"`, true, 2, `unknown escape \1`},
	{`"a\"`, true, 0, "the string is not closed"},
	{"08", true, 0, "this is no number"},
	{"new A()", true, 0, "nothing can be constructed: give the guard a function with TemplateFunc, and write #name(…)"},
	{"pay()", true, 0, "pay is a method of the target, which is not known here: give the guard a function with TemplateFunc, and write #pay(…)"},
	{"String.join(a)", true, 0, `of String there is valueOf(x) and, in plain Java, format("…%s…", x) with a format that is written out`},
	{`String.format("%x", a)`, true, 14, "a format may have %s, %d and %%, with an argument each"},
	{`String.format("%s")`, true, 14, "a format may have %s, %d and %%, with an argument each"},
	{`String.format("x", a)`, true, 14, "the format leaves arguments over"},
}

// What is no expression, in either grammar, and the place where it stops being one.
func TestWhatIsNoExpression(t *testing.T) {
	for _, tt := range whatIsNoExpressionRows {
		n, err := parse(tt.text, tt.text, 0, tt.java)
		fault, ok := errors.AsType[*keyexpr.Error](err)
		if !ok {
			t.Errorf("parse(%q) = %s, %v, want an *Error", tt.text, tree(n), err)
		} else if fault.Offset != tt.offset || fault.Reason != tt.reason {
			t.Errorf("parse(%q) points to %d and says\n%s\nwant %d and\n%s", tt.text, fault.Offset, fault.Reason, tt.offset, tt.reason)
		}
	}
}

// An expression that begins within an annotation has its places there.
func TestPlacesWithinALongerText(t *testing.T) {
	whole := "a-#{1 +}-b"
	_, err := parse(whole, "1 +", 4, false)
	fault, ok := errors.AsType[*keyexpr.Error](err)
	if !ok || fault.Text != whole || fault.Offset != 7 {
		t.Errorf("parse = %#v, want a place at 7 of the whole text", err)
	}
}
