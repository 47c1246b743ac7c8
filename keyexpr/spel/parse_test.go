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
	case kindProject:
		return "(" + safe + "project " + list + ")"
	case kindString:
		return "(string " + list + ")"
	}
	return "unknown"
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
