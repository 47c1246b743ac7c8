package spel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// The grammar, as Spring's own parser has it. Words are taken in any case.
//
//	expression = or [ "?:" expression | "?" expression ":" expression ]
//	or         = and { ("or" | "||") and }
//	and        = relation { ("and" | "&&") relation }
//	relation   = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=" | "eq" | … | "matches" | "between") sum ]
//	sum        = product { ("+" | "-") product }
//	product    = unary { ("*" | "/" | "%" | "div" | "mod") unary }
//	unary      = ("!" | "not" | "-" | "+") unary | primary { postfix }
//	primary    = text | number | "true" | "false" | "null" | "(" expression ")" | "{" [ expression { "," expression } ] "}"
//	           | "#" name [ arguments ] | name | "T" "(" "String" ")" "." "valueOf" arguments
//	postfix    = ("." | "?.") name [ arguments ] | ("[" | "?.[") expression "]"
//	           | (".?[" | ".^[" | ".$[" | ".![" , with "?" in front for null) expression "]"
//
// Plain Java, which the preset Redisson reads, has names without #, String.valueOf and
// String.format, and lacks words as operators, "?:", "?.", "{…}", selections and projections.

// node is a node of an expression. Places are kept in bytes of the whole text, so that an error
// in a hole points into the annotation. One struct for all kinds keeps the tree easy to compare
// and to walk, which rules.go does. A type for each kind would be checked by the Go
// compiler, and need a walker with a case for each.
type node struct {
	kind kind
	off  int    // in the whole text
	text string // name, operator, or the value of a literal
	safe bool   // ?. in front
	args []*node
}

// Some kinds of Spring's own tree are missing: types, beans, constructors, assignments and maps,
// which are refused where they begin.
type kind int

const (
	kindText    kind = iota // a string
	kindChar                // a character of plain Java
	kindNumber              // digits, with L behind them for a long
	kindWord                // true, false, null
	kindVar                 // #text
	kindThis                // the element of a selection or projection
	kindName                // a property of it
	kindProp                // args[0].text
	kindCall                // args[0].text(args[1:]); args[0] is nil for #text(…)
	kindIndex               // args[0][args[1]]
	kindOp                  // args[0] text args[1]
	kindUnary               // text args[0]
	kindTernary             // args[0] ? args[1] : args[2]
	kindElvis               // args[0] ?: args[1]
	kindList                // {args}
	kindSelect              // args[0].?[args[1]], with ^ and $ as text for first and last
	kindProject             // args[0].![args[1]]
	kindString              // String.valueOf(args[0]), and what Java's other ways of making a text of anything are
)

// parser is a recursive descent over the tokens of one expression. There are two grammars in
// one: SpringEL, and the small part of Java that names are built with. They differ in quotes, in
// names and in what is missing.
type parser struct {
	whole  string
	tokens []token
	at     int
	depth  int
	plain  bool // Java itself
	inner  int  // selections and projections around
}

// maxDepth bounds the nesting of an expression. Each level of brackets and choices takes a few
// frames of the stack.
const maxDepth = 100

// fault is how the parser and the compiler leave: with an *Error. A parser that returned an
// error from each of its thirty functions would be twice as long, and this one is small enough
// to see that all of them are below parse or compile, which catch it.
type fault struct{ err *keyexpr.Error }

// caught turns a fault into an error. Any other panic is a mistake in here and goes on, for the
// fuzz tests to see.
func caught(err *error) {
	switch r := recover().(type) {
	case nil:
	case fault:
		*err = r.err
	default:
		panic(r)
	}
}

// Reasons are one line, as those of templates are. The offset is kept within the text, as an
// error at its end is about what is missing there.
func failAt(whole string, off int, format string, args ...any) {
	reason := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	panic(fault{&keyexpr.Error{Text: whole, Offset: min(max(off, 0), len(whole)), Reason: reason}})
}

// parse parses src, which begins at off in whole. An empty expression is what Spring throws for,
// rather than one that comes to nothing.
func parse(whole, src string, off int, plain bool) (n *node, err error) {
	defer caught(&err)
	p := &parser{whole: whole, plain: plain}
	if strings.TrimSpace(src) == "" {
		p.fail(off, "nothing is written here, for which Spring throws")
	}
	p.tokens = p.lex(src, off)
	n = p.expression()
	if t := p.peek(); t.kind != tokenEnd {
		p.fail(t.off, "unexpected %q", t.text)
	}
	return n, nil
}

// It does not come back.
func (p *parser) fail(off int, format string, args ...any) { failAt(p.whole, off, format, args...) }

func (p *parser) peek() token { return p.tokens[p.at] }

// The end is never passed, so that whoever asks behind it gets the end again.
func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

// accept takes the next token if it is one of these signs or words. Plain Java has no words for
// operators. Spring takes AND, And and and for the operator. SpelParser compares identifiers
// with or, and, matches and their kin without regard to case. A word is only an operator in a
// place where an operator can stand, which is why this is asked here and not when tokens are
// cut: #order.mod is a property.
func (p *parser) accept(texts ...string) (token, bool) {
	t := p.peek()
	if t.kind != tokenSign && (t.kind != tokenName || p.plain) {
		return t, false
	}
	for _, text := range texts {
		if t.text == text || t.kind == tokenName && strings.EqualFold(t.text, text) {
			return p.next(), true
		}
	}
	return t, false
}

// The token that stands there instead is named, as it is what somebody sees.
func (p *parser) expect(sign string) {
	if t, ok := p.accept(sign); !ok {
		p.fail(t.off, "%q is missing before %q", sign, t.text)
	}
}

// only refuses in plain Java what SpringEL alone has. The error says how Java writes it, or that
// it has no such thing. Both grammars share their functions, since they share all their levels.
// What SpringEL alone has is found by its first sign, and refused there. A copy of the grammar
// for Java would drift away from this one.
func (p *parser) only(t token) {
	if p.plain {
		p.fail(t.off, "%s is SpringEL, and no Java: use Key", t.text)
	}
}

// deeper counts the nesting. Spring itself has no bound here, and ends in a StackOverflowError
// at some depth that depends on the thread. A goroutine would go on until all memory is used, as
// its stack grows. A hundred levels are more than anybody writes in one line.
func (p *parser) deeper() func() {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.peek().off, "nested too deeply")
	}
	return func() { p.depth-- }
}

// expression parses the branches of ?: and ? by itself again, so that they bind to the right: a
// ? b : c ? d : e. InternalSpelExpressionParser.eatExpression is the model: it reads what an or
// can be, and then one of = ?: or ?. An assignment is legal there, and changes the request of
// the Java program. It is refused with the reading that people mean by it, which is a
// comparison.
func (p *parser) expression() *node {
	defer p.deeper()()
	n := p.binary(0)
	if t, ok := p.accept("="); ok {
		p.fail(t.off, "nothing can be assigned: == compares")
	}
	if t, ok := p.accept("?:"); ok {
		p.only(t)
		return &node{kind: kindElvis, off: t.off, args: []*node{n, p.expression()}}
	}
	if t, ok := p.accept("?"); ok {
		if p.peek().text == "?" {
			p.fail(t.off, "?? is not in Java's text: write ?: 'none'")
		}
		then := p.expression()
		p.expect(":")
		return &node{kind: kindTernary, off: t.off, args: []*node{n, then, p.expression()}}
	}
	return n
}

// levels are the binary operators by precedence, lowest first. Those of the third compare once.
// They are eatLogicalOrExpression down to eatPowerIncDecExpression. Three words stand with the
// comparisons that Java has as methods or not at all. A level too high or too low moves the
// brackets of somebody's expression, and with them the key; TestPrecedence has every pair of
// neighbours.
var levels = [][]string{
	{"or", "||"},
	{"and", "&&"},
	{"==", "!=", "<=", ">=", "<", ">", "eq", "ne", "le", "ge", "lt", "gt", "matches", "between", "instanceof"},
	{"+", "-"},
	{"*", "/", "%", "div", "mod"},
	{"^"},
}

// signOfWord has the operators that are words. Tokenizer has them as alternativeOperatorNames,
// but for and, or and not, which the parser itself knows. One spelling behind the parser means
// one case in the compiler.
var signOfWord = map[string]string{"or": "||", "and": "&&", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "div": "/", "mod": "%", "not": "!"}

func operatorOf(t token) string {
	word := strings.ToLower(t.text)
	if sign, ok := signOfWord[word]; ok {
		return sign
	}
	return word
}

// Spring's comparisons don't chain: it reads one, and what follows is no part of it. That is
// refused here. eatRelationalExpression takes one operator and leaves the second one to whoever
// called it, who finds text left over and throws. In Java itself a == b == c is legal and
// compares a boolean with c, so that plain Java goes on. Refusing it in SpringEL names the
// cause, where Spring says only that something is left over. instanceof and ^ are legal in
// Spring. The first asks for a class of the other program. The second makes a double as soon as
// a number is large, and a double has a spelling that depends on the version of Java.
func (p *parser) binary(level int) *node {
	if level == len(levels) {
		return p.unary()
	}
	n := p.binary(level + 1)
	for once := false; ; once = level == 2 {
		t, ok := p.accept(levels[level]...)
		switch {
		case !ok:
			return n
		case once && !p.plain:
			p.fail(t.off, "Spring compares once: put brackets around what comes first")
		case strings.EqualFold(t.text, "instanceof"):
			p.fail(t.off, "types are checked when the program starts: leave instanceof out")
		case t.text == "^":
			p.fail(t.off, "a power is a float, which is no key material")
		}
		n = &node{kind: kindOp, off: t.off, text: operatorOf(t), args: []*node{n, p.binary(level + 1)}}
	}
}

// Two minus signs are one sign to Spring, which decrements. - -1 has a blank. OpInc and OpDec
// change a property of the request. A lock key that changes what it reads would be another one
// when it is read again at release, so they are refused wherever they stand.
func (p *parser) unary() *node {
	if t, ok := p.accept("++", "--"); ok {
		p.fail(t.off, "nothing can be assigned")
	}
	t, ok := p.accept("!", "not", "-", "+")
	if !ok {
		return p.postfix(p.primary())
	}
	defer p.deeper()()
	if n, ok := p.smallest(t); ok {
		return n
	}
	return &node{kind: kindUnary, off: t.off, text: operatorOf(t), args: []*node{p.unary()}}
}

// smallest reads the two numbers of Java whose digits are none without the minus in front, JLS
// 3.10.1. SpringEL knows no such exception: Spring throws for -2147483648, and so it is refused.
func (p *parser) smallest(minus token) (*node, bool) {
	digits := strings.ToUpper(p.peek().text)
	if !p.plain || minus.text != "-" || digits != "2147483648" && digits != "9223372036854775808L" {
		return nil, false
	}
	return &node{kind: kindNumber, off: minus.off, text: "-" + p.next().text}, true
}

// postfix bounds the chain, as each link is a closure within a closure. maybeEatNonDottedNode
// and eatDottedNode read the same links. ?. belongs to its link alone, as in
// PropertyOrFieldReference and MethodReference, which have a nullSafe flag each. It does not
// cover the rest of the chain, as it would in Kotlin or in our templates.
func (p *parser) postfix(n *node) *node {
	for range maxDepth * 4 {
		t, ok := p.accept(".", "?.", "[", "?.[", ".?[", ".^[", ".$[", ".![", "?.?[", "?.^[", "?.$[", "?.![", "++", "--")
		if !ok {
			return n
		}
		safe := t.text[0] == '?'
		if safe {
			p.only(t)
		}
		switch mark := strings.Trim(strings.TrimPrefix(t.text, "?"), ".["); {
		case t.text == "++" || t.text == "--":
			p.fail(t.off, "nothing can be assigned")
		case mark == "!":
			p.only(t)
			n = &node{kind: kindProject, off: t.off, safe: safe, args: []*node{n, p.innerExpression()}}
		case mark != "":
			p.only(t)
			n = &node{kind: kindSelect, off: t.off, safe: safe, text: mark, args: []*node{n, p.innerExpression()}}
		case strings.HasSuffix(t.text, "["):
			n = &node{kind: kindIndex, off: t.off, safe: safe, args: []*node{n, p.index()}}
			p.expect("]")
		default:
			n = p.member(n, safe)
		}
	}
	p.fail(p.peek().off, "too long a chain")
	return nil
}

// index is what is between brackets. A name there, which would be a property elsewhere, is the
// key of a map. Indexer looks at its child before evaluating it: a PropertyOrFieldReference in
// the brackets of a Map gives its name as the key. On a list the same text is a property of the
// root. Which of the two it is depends on the type in front, which is not known yet, so that the
// node keeps the name.
func (p *parser) index() *node {
	if t := p.peek(); t.kind == tokenName && !p.plain && p.tokens[p.at+1].text == "]" && !isWord(t.text) {
		p.next()
		return &node{kind: kindName, off: t.off, text: t.text}
	}
	return p.expression()
}

func isWord(s string) bool {
	return slices.Contains([]string{"true", "false", "null"}, strings.ToLower(s))
}

// innerExpression is an expression about the elements of a list, up to the bracket. Selection
// and Projection push the element as the active context object. A name without # is its property
// there, and an error everywhere else, where Spring would ask the root object.
func (p *parser) innerExpression() *node {
	p.inner++
	n := p.expression()
	p.inner--
	p.expect("]")
	return n
}

// member is what follows a dot: a property or a method.
func (p *parser) member(base *node, safe bool) *node {
	t := p.next()
	if t.kind != tokenName {
		p.fail(t.off, "a name is missing before %q", t.text)
	}
	if _, ok := p.accept("("); ok {
		return &node{kind: kindCall, off: t.off, text: t.text, safe: safe, args: append([]*node{base}, p.list(")")...)}
	}
	return &node{kind: kindProp, off: t.off, text: t.text, safe: safe, args: []*node{base}}
}

// list reads expressions up to end. InlineList and InlineMap begin alike, with a brace. A map is
// found out by its first colon, and refused for the order of its entries: two runs of the same
// program could write it in two ways.
func (p *parser) list(end string) (nodes []*node) {
	for {
		if _, ok := p.accept(end); ok {
			return nodes
		}
		if len(nodes) > 0 {
			p.expect(",")
		}
		nodes = append(nodes, p.expression())
		if t := p.peek(); t.text == ":" && end == "}" {
			p.fail(t.off, "{…: …} is a map, which is no key material")
		}
	}
}
