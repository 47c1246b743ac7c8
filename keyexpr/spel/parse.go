package spel

import (
	"fmt"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// The second stage: tokens become a tree. The grammar is that of Spring's own parser, as far as it
// is read here. Words are taken in any case.
//
//	expression = or [ "?:" expression | "?" expression ":" expression ]
//	or         = and { ("or" | "||") and }
//	and        = relation { ("and" | "&&") relation }
//	relation   = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=" | "eq" | "ne" | "lt" | "le" | "gt" | "ge") sum ]
//	sum        = product { ("+" | "-") product }
//	product    = unary { ("*" | "/" | "%" | "div" | "mod") unary }
//	unary      = ("!" | "not" | "-" | "+") unary | primary { postfix }
//	primary    = text | number | "true" | "false" | "null" | "(" expression ")" | "{" [ expression { "," expression } ] "}"
//	           | "#" name [ arguments ] | name | "T" "(" "String" ")" "." "valueOf" arguments
//	postfix    = ("." | "?.") name [ arguments ] | ("[" | "?.[") expression "]" | (".![" | "?.![") expression "]"
//
// Plain Java, which the preset Redisson reads, has names without # and String.valueOf, and lacks
// words as operators, "?:", "?.", "{…}" and projections.

// node is a node of an expression. One struct for all kinds keeps the tree easy to walk.
type node struct {
	kind kind
	off  int    // in the whole text, so that an error in a hole points into the annotation
	text string // name, operator, or the value of a literal
	safe bool   // ?. in front
	args []*node
}

type kind int

const (
	kindText    kind = iota // a string
	kindNumber              // digits, with L behind them for a long
	kindWord                // true, false, null
	kindVar                 // #text
	kindThis                // the element of a projection
	kindName                // a property of it
	kindProp                // args[0].text
	kindCall                // args[0].text(args[1:]); args[0] is nil for #text(…)
	kindIndex               // args[0][args[1]]
	kindOp                  // args[0] text args[1]
	kindUnary               // text args[0]
	kindTernary             // args[0] ? args[1] : args[2]
	kindElvis               // args[0] ?: args[1]
	kindList                // {args}
	kindProject             // args[0].![args[1]]
	kindString              // String.valueOf(args[0])
)

// parser is a recursive descent over the tokens of one expression.
type parser struct {
	whole  string
	tokens []token
	at     int
	depth  int
	plain  bool // Java itself
	inner  int  // projections around
}

// maxDepth bounds the nesting of an expression. Spring has no bound, and ends in a StackOverflowError.
const maxDepth = 100

// elsewhere is the way to a key that is not read here.
const elsewhere = "make the key with KeyFunc, or give the guard a function with TemplateFunc, and write #name(…)"

// fault is the panic by which the parser and the compiler leave. parse and compile catch it.
type fault struct{ err *keyexpr.Error }

// caught turns a fault into an error. Any other panic is a mistake in here and goes on.
func caught(err *error) {
	switch r := recover().(type) {
	case nil:
	case fault:
		*err = r.err
	default:
		panic(r)
	}
}

// failAt leaves with a reason of one line, and a place that is kept within the text.
func failAt(whole string, off int, format string, args ...any) {
	reason := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	panic(fault{&keyexpr.Error{Text: whole, Offset: min(max(off, 0), len(whole)), Reason: reason}})
}

// parse parses src, which begins at off in whole.
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

func (p *parser) fail(off int, format string, args ...any) { failAt(p.whole, off, format, args...) }

func (p *parser) peek() token { return p.tokens[p.at] }

// next takes a token. The end is never passed.
func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

// accept takes the next token if it is one of these signs or words. It is called where an operator can
// stand, so that #order.mod is a property.
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

func (p *parser) expect(sign string) {
	if t, ok := p.accept(sign); !ok {
		p.fail(t.off, "%q is missing before %q", sign, t.text)
	}
}

// only refuses in plain Java a construct that SpringEL alone has.
func (p *parser) only(t token) {
	if p.plain {
		p.fail(t.off, "%s is SpringEL, and no Java: use Key", t.text)
	}
}

// deeper counts the nesting.
func (p *parser) deeper() func() {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.peek().off, "nested too deeply")
	}
	return func() { p.depth-- }
}

// expression binds the branches of ?: and ? to the right, as eatExpression of Spring does.
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
		then := p.expression()
		p.expect(":")
		return &node{kind: kindTernary, off: t.off, args: []*node{n, then, p.expression()}}
	}
	return n
}

// levels are the binary operators by precedence, lowest first.
var levels = [][]string{
	{"or", "||"},
	{"and", "&&"},
	{"==", "!=", "<=", ">=", "<", ">", "eq", "ne", "le", "ge", "lt", "gt", "matches", "between", "instanceof"},
	{"+", "-"},
	{"*", "/", "%", "div", "mod", "^"},
}

// relation is the level of comparisons.
const relation = 2

// refusedOperators are those of Spring that are not read here.
var refusedOperators = map[string]string{
	"matches":    "regular expressions are not read here: " + elsewhere,
	"between":    "between is not read here: write #a >= 1 and #a <= 5",
	"instanceof": "types are checked when the program starts: leave instanceof out",
	"^":          "a power is a float, which is no key material",
}

// signOfWord has the operators that are words.
var signOfWord = map[string]string{"or": "||", "and": "&&", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "div": "/", "mod": "%", "not": "!"}

func operatorOf(t token) string {
	word := strings.ToLower(t.text)
	if sign, ok := signOfWord[word]; ok {
		return sign
	}
	return word
}

// binary reads operators of a level and above. Spring's comparisons don't chain: it reads one, and
// throws for the text that is left over.
func (p *parser) binary(level int) *node {
	if level == len(levels) {
		return p.unary()
	}
	n := p.binary(level + 1)
	for once := false; ; once = level == relation {
		t, ok := p.accept(levels[level]...)
		if !ok {
			return n
		}
		if once && !p.plain {
			p.fail(t.off, "Spring compares once: put brackets around what comes first")
		}
		op := operatorOf(t)
		if why := refusedOperators[op]; why != "" {
			p.fail(t.off, "%s", why)
		}
		n = &node{kind: kindOp, off: t.off, text: op, args: []*node{n, p.binary(level + 1)}}
	}
}

// unary reads signs in front. Two minus signs are one sign to Spring, which decrements.
func (p *parser) unary() *node {
	if t, ok := p.accept("++", "--"); ok {
		p.fail(t.off, "nothing can be assigned")
	}
	t, ok := p.accept("!", "not", "-", "+")
	if !ok {
		return p.postfix(p.primary())
	}
	defer p.deeper()()
	// Two numbers of plain Java have digits that are none without the minus, JLS 3.10.1.
	digits := strings.ToUpper(p.peek().text)
	if p.plain && t.text == "-" && (digits == "2147483648" || digits == "9223372036854775808L") {
		return &node{kind: kindNumber, off: t.off, text: "-" + strings.ToUpper(p.next().text)}
	}
	return &node{kind: kindUnary, off: t.off, text: operatorOf(t), args: []*node{p.unary()}}
}

// postfix reads what follows a value. ?. belongs to its link alone, and not to the rest of the chain.
func (p *parser) postfix(n *node) *node {
	for range maxDepth * 4 { // each link is a closure within a closure
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
			n = &node{kind: kindProject, off: t.off, safe: safe, args: []*node{n, p.ofElement()}}
		case mark != "":
			p.fail(t.off, "selections are not read here: %s", elsewhere)
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

// index is between brackets. A single name there is the key of a map, and a property elsewhere. The
// type in front decides, which is not known yet, so that the node keeps the name.
func (p *parser) index() *node {
	if t := p.peek(); t.kind == tokenName && !p.plain && p.tokens[p.at+1].text == "]" && !isConstant(strings.ToLower(t.text)) {
		p.next()
		return &node{kind: kindName, off: t.off, text: t.text}
	}
	return p.expression()
}

func isConstant(s string) bool {
	return s == "true" || s == "false" || s == "null"
}

// ofElement is an expression about the elements of a list, up to the bracket. A name without # is a
// property of the element there.
func (p *parser) ofElement() *node {
	p.inner++
	n := p.expression()
	p.inner--
	p.expect("]")
	return n
}

// member follows a dot: a property or a method.
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

// list reads expressions up to end.
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
			p.fail(t.off, "{…: …} is a map, whose entries come in no order: %s", elsewhere)
		}
	}
}
