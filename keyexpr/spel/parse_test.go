package spel

import (
	"strings"
	"testing"
)

// tree writes a node as an expression of brackets, so that it shows what binds to what.
func tree(n *node) string {
	if n == nil {
		return "_"
	}
	args := make([]string, len(n.args))
	for i, a := range n.args {
		args[i] = tree(a)
	}
	list := strings.Join(args, " ")
	safe := map[bool]string{true: "?"}[n.safe]
	switch n.kind {
	case kindText:
		return "'" + n.text + "'"
	case kindChar:
		return "char " + n.text
	case kindNumber, kindWord, kindName:
		return n.text
	case kindVar:
		return "#" + n.text
	case kindThis:
		return "this"
	case kindProp:
		return "(" + safe + "." + n.text + " " + list + ")"
	case kindCall:
		return "(" + safe + "call " + n.text + " " + list + ")"
	case kindIndex:
		return "(" + safe + "index " + list + ")"
	case kindOp:
		return "(" + n.text + " " + list + ")"
	case kindUnary:
		return "(" + n.text + " " + list + ")"
	case kindTernary:
		return "(if " + list + ")"
	case kindElvis:
		return "(?: " + list + ")"
	case kindList:
		return "{" + list + "}"
	case kindSelect:
		return "(" + safe + "select" + n.text + " " + list + ")"
	case kindProject:
		return "(" + safe + "project " + list + ")"
	case kindString:
		return "(string" + n.text + " " + list + ")"
	}
	return "unknown"
}

// trees are expressions, and what binds to what in them.
var trees = []struct{ text, want string }{
	// Literals.
	{"'it''s'", "'it's'"},
	{`"say ""hi"""`, `'say "hi"'`},
	{`'a"b'`, `'a"b'`},
	{"42", "42"},
	{"42L", "42L"},
	{"0x7F", "127"},
	{"010", "10"},
	{"TRUE", "true"},
	{"Null", "null"},
	{"{}", "{}"},
	{"{1, {2}}", "{1 {2}}"},
	// Names.
	{"#order", "#order"},
	{"#if", "#if"},
	{"#order.id", "(.id #order)"},
	{"#order?.id", "(?.id #order)"},
	{"#order.getId()", "(call getId #order)"},
	{"#order.name.substring(1, 2)", "(call substring (.name #order) 1 2)"},
	{"#fn(1, 'a')", "(call fn _ 1 'a')"},
	{"#list[0]", "(index #list 0)"},
	{"#list[0][1]", "(index (index #list 0) 1)"},
	{"#map['k']", "(index #map 'k')"},
	{"#list?.[0]", "(?index #list 0)"},
	{"#list.![sku]", "(project #list sku)"},
	{"#list?.![sku]", "(?project #list sku)"},
	{"#list.?[#this > 1]", "(select? #list (> this 1))"},
	{"#list.^[true]", "(select^ #list true)"},
	{"#list.$[true].sku", "(.sku (select$ #list true))"},
	{"T(String).valueOf(1)", "(string 1)"},
	{"T(java.lang.String).valueOf(1)", "(string 1)"},
	// Sums and products, from the left.
	{"1 + 2 + 3", "(+ (+ 1 2) 3)"},
	{"1 + 2 * 3", "(+ 1 (* 2 3))"},
	{"(1 + 2) * 3", "(* (+ 1 2) 3)"},
	{"1 - 2 - 3", "(- (- 1 2) 3)"},
	{"6 / 2 % 2", "(% (/ 6 2) 2)"},
	{"6 div 2 mod 2", "(% (/ 6 2) 2)"},
	{"-1 + 2", "(+ (- 1) 2)"},
	{"- - 1", "(- (- 1))"},
	{"!true", "(! true)"},
	{"not true", "(! true)"},
	{"!(true and false)", "(! (&& true false))"},
	// Comparisons, in signs and words.
	{"1 == 2", "(== 1 2)"},
	{"1 eq 2", "(== 1 2)"},
	{"1 NE 2", "(!= 1 2)"},
	{"1 lt 2 and 3 ge 4", "(&& (< 1 2) (>= 3 4))"},
	{"1 + 1 == 2", "(== (+ 1 1) 2)"},
	{"'a' matches 'b'", "(matches 'a' 'b')"},
	{"1 between {0, 2}", "(between 1 {0 2})"},
	// Logic, and binding tighter than or.
	{"true or false and true", "(|| true (&& false true))"},
	{"true || false && true", "(|| true (&& false true))"},
	{"true and false or true", "(|| (&& true false) true)"},
	{"not true and false", "(&& (! true) false)"},
	// Choices.
	{"true ? 1 : 2", "(if true 1 2)"},
	{"true ? 1 : false ? 2 : 3", "(if true 1 (if false 2 3))"},
	{"1 == 2 ? 'a' : 'b' + 'c'", "(if (== 1 2) 'a' (+ 'b' 'c'))"},
	{"#a ?: 'b'", "(?: #a 'b')"},
	{"#a + #b ?: 'c'", "(?: (+ #a #b) 'c')"},
	{"#a ?: #b ?: 'c'", "(?: #a (?: #b 'c'))"},
	{"(#a ?: 'b') + 'c'", "(+ (?: #a 'b') 'c')"},
	// White space is none.
	{" \t1\n+\r2 ", "(+ 1 2)"},
	{"1+2", "(+ 1 2)"},
	{"#a . b", "(.b #a)"},
}

// What binds to what is Spring's grammar, not Java's: matches and between stand with the comparisons, and ?: is loosest.
func TestTrees(t *testing.T) {
	for _, tt := range trees {
		n, err := parse(tt.text, tt.text, 0, false)
		if err != nil {
			t.Errorf("parse(%q): %v", tt.text, err)
		} else if got := tree(n); got != tt.want {
			t.Errorf("parse(%q) = %s, want %s", tt.text, got, tt.want)
		}
	}
}

// Java's own grammar has other quotes, other numbers, and names without #.
func TestTreesOfJava(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`"order:" + order.getId()`, "(+ 'order:' (call getId #order))"},
		{`"a\"b\\c\n"`, "'a\"b\\c\n'"},
		{"'a'", "char a"},
		{`'\''`, "char '"},
		{"010", "8"},
		{"0x1F", "31"},
		{"0", "0"},
		{"1L", "1L"},
		{"order.id", "(.id #order)"},
		{"order.items.get(0)", "(call get (.items #order) 0)"},
		{"String.valueOf(id)", "(string #id)"},
		{`String.format("a:%s:%d%%", id, n)`, "(+ (+ (+ (+ (+ (+ (+ '' 'a:') (string%s #id)) ':') (string%d #n)) '') '%') '')"},
		{"a && b || c", "(|| (&& #a #b) #c)"},
		{"a ? b : c", "(if #a #b #c)"},
		{"eq", "#eq"},
	} {
		n, err := parse(tt.text, tt.text, 0, true)
		if err != nil {
			t.Errorf("parse(%q): %v", tt.text, err)
			continue
		}
		if got := tree(n); got != tt.want {
			t.Errorf("parse(%q) = %s, want %s", tt.text, got, tt.want)
		}
	}
	for _, text := range []string{"#id", "a ?: b", "a?.b", "{1}", "a.![b]", "a and b", "a eq b", "not a", "'ab'", "''", `"\u0041"`, "08", "T(String).valueOf(a)", "new A()", "a = 1", "fn(1)"} {
		if n, err := parse(text, text, 0, true); err == nil {
			t.Errorf("parse(%q) = %s, want an error", text, tree(n))
		}
	}
}

// Tokens know where they are, in bytes, also behind signs of several bytes.
func TestTokens(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string // each as text@offset
	}{
		{"#a.b", "#@0 a@1 .@2 b@3"},
		{"#a?.b", "#@0 a@1 ?.@2 b@4"},
		{"#a?.[0]", "#@0 a@1 ?.[@2 0@5 ]@6"},
		{"#a.?[x]", "#@0 a@1 .?[@2 x@5 ]@6"},
		{"#a?.![x]", "#@0 a@1 ?.![@2 x@6 ]@7"},
		{"#a ?: 'é' + b", "#@0 a@1 ?:@3 é@6 +@11 b@13"},
		{"'it''s' + 1", "it's@0 +@8 1@10"},
		{"1L==0x7F", "1L@0 ==@2 0x7F@4"},
		{"a<=b>=c", "a@0 <=@1 b@3 >=@4 c@6"},
		{"é+$x_1", "é@0 +@2 $x_1@3"},
		{"", ""},
	} {
		p := &parser{whole: tt.text}
		var got []string
		for _, token := range p.lex(tt.text, 0) {
			if token.kind != tokenEnd {
				got = append(got, token.text+"@"+string(rune('0'+token.off%10)))
				if token.off >= 10 {
					got[len(got)-1] = token.text + "@1" + string(rune('0'+token.off%10))
				}
			}
		}
		if list := strings.Join(got, " "); list != tt.want {
			t.Errorf("lex(%q) = %s, want %s", tt.text, list, tt.want)
		}
	}
}

// A template of Spring has holes, in which texts may have braces.
func TestHoles(t *testing.T) {
	for _, tt := range []struct{ text, want string }{ // literals in quotes, and trees
		{"order-#{#id}", "'order-' #id"},
		{"#{#a}#{#b}", "#a #b"},
		{"#{#a}x", "#a 'x'"},
		{"a#{'}'}b", "'a' '}' 'b'"},
		{"a#{'it''s}'}b", "'a' 'it's}' 'b'"},
		{"a#{{1, 2}}b", "'a' {1 2} 'b'"},
		{"a#{#m['}']}b", "'a' (index #m '}') 'b'"},
		{"a#b#{#c}", "'a#b' #c"},
		{"a}b#{#c}", "'a}b' #c"},
		{"->#{#c}<-", "'->' #c '<-'"},
	} {
		k := Expression(tt.text)
		if err := k.Check(); err != nil {
			t.Errorf("Expression(%q): %v", tt.text, err)
			continue
		}
		var got []string
		for _, part := range k.parts {
			if part.node == nil {
				got = append(got, "'"+part.text+"'")
			} else {
				got = append(got, tree(part.node))
			}
		}
		if list := strings.Join(got, " "); list != tt.want {
			t.Errorf("Expression(%q) = %s, want %s", tt.text, list, tt.want)
		}
	}
}
