package keyexpr

import (
	"strconv"
	"strings"
)

// spelNode is a node of a SpringEL expression.
type spelNode struct {
	kind spelKind
	off  int    // in the whole text
	text string // name, operator, or the value of a literal
	safe bool   // ?. in front
	args []*spelNode
}

type spelKind int

const (
	spelText    spelKind = iota // a string
	spelNumber                  // digits
	spelWord                    // true, false, null
	spelVar                     // #text
	spelThis                    // the element of a selection or projection
	spelName                    // a property of it
	spelProp                    // args[0].text
	spelCall                    // args[0].text(args[1:]); args[0] is nil for #text(…)
	spelIndex                   // args[0][args[1]]
	spelOp                      // args[0] text args[1]
	spelUnary                   // text args[0]
	spelTernary                 // args[0] ? args[1] : args[2]
	spelElvis                   // args[0] ?: args[1]
	spelList                    // {args}
	spelSelect                  // args[0].?[args[1]], with ^ and $ as text for first and last
	spelProject                 // args[0].![args[1]]
)

// spelParser is a recursive descent over the tokens of one expression.
type spelParser struct {
	whole  string
	tokens []spelToken
	at     int
	depth  int
	plain  bool // names without # are variables
	inner  int  // selections and projections around
}

// maxDepth bounds the nesting of an expression.
const maxDepth = 100

// spelFault is how the parser leaves: with an *Error.
type spelFault struct{ err *Error }

// parseSpEL parses src, which begins at off in whole.
func parseSpEL(whole, src string, off int, plain bool) (n *spelNode, err error) {
	defer func() {
		if r := recover(); r != nil {
			fault, ok := r.(spelFault)
			if !ok {
				panic(r)
			}
			n, err = nil, fault.err
		}
	}()
	p := &spelParser{whole: whole, plain: plain}
	p.tokens = p.lex(src, off)
	n = p.expression()
	if t := p.peek(); t.kind != tokenEnd {
		p.fail(t.off, "unexpected %q", t.text)
	}
	return n, nil
}

func (p *spelParser) fail(off int, format string, args ...any) {
	panic(spelFault{errAt(p.whole, off, format, args...)})
}

func (p *spelParser) peek() spelToken { return p.tokens[p.at] }

func (p *spelParser) next() spelToken {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

// accept takes the next token if it is one of these signs or words.
func (p *spelParser) accept(texts ...string) (spelToken, bool) {
	t := p.peek()
	if t.kind != tokenSign && t.kind != tokenName {
		return t, false
	}
	for _, text := range texts {
		if t.text == text || t.kind == tokenName && strings.EqualFold(t.text, text) {
			return p.next(), true
		}
	}
	return t, false
}

func (p *spelParser) expect(sign string) {
	if t, ok := p.accept(sign); !ok {
		p.fail(t.off, "%q is missing before %q", sign, t.text)
	}
}

func (p *spelParser) expression() *spelNode {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.peek().off, "nested too deeply")
	}
	defer func() { p.depth-- }()
	n := p.binary(0)
	if t, ok := p.accept("="); ok {
		p.fail(t.off, "nothing can be assigned: == compares")
	}
	if t, ok := p.accept("?:"); ok {
		return &spelNode{kind: spelElvis, off: t.off, args: []*spelNode{n, p.expression()}}
	}
	if t, ok := p.accept("?"); ok {
		then := p.expression()
		p.expect(":")
		return &spelNode{kind: spelTernary, off: t.off, args: []*spelNode{n, then, p.expression()}}
	}
	return n
}

// levels are the binary operators by precedence, lowest first.
var levels = [][]string{
	{"or", "||"},
	{"and", "&&"},
	{"==", "!=", "<=", ">=", "<", ">", "eq", "ne", "le", "ge", "lt", "gt", "matches", "between", "instanceof"},
	{"+", "-"},
	{"*", "/", "%", "div", "mod"},
	{"^"},
}

func (p *spelParser) binary(level int) *spelNode {
	if level == len(levels) {
		return p.unary()
	}
	n := p.binary(level + 1)
	for {
		t, ok := p.accept(levels[level]...)
		if !ok {
			return n
		}
		switch t.text {
		case "instanceof":
			p.fail(t.off, "types are checked when the program starts: leave instanceof out")
		case "^":
			p.fail(t.off, "a power is a float, which is no key material")
		}
		n = &spelNode{kind: spelOp, off: t.off, text: strings.ToLower(t.text), args: []*spelNode{n, p.binary(level + 1)}}
	}
}

func (p *spelParser) unary() *spelNode {
	if t, ok := p.accept("++", "--"); ok {
		p.fail(t.off, "nothing can be assigned")
	}
	t, ok := p.accept("!", "not", "-", "+")
	if !ok {
		return p.postfix(p.primary())
	}
	if p.depth++; p.depth > maxDepth {
		p.fail(t.off, "nested too deeply")
	}
	defer func() { p.depth-- }()
	return &spelNode{kind: spelUnary, off: t.off, text: strings.ToLower(t.text), args: []*spelNode{p.unary()}}
}

func (p *spelParser) postfix(n *spelNode) *spelNode {
	for {
		t, ok := p.accept(".", "?.", "[", "?.[", ".?[", ".^[", ".$[", ".![", "?.?[", "?.^[", "?.$[", "?.![", "++", "--")
		if !ok {
			return n
		}
		safe := t.text[0] == '?'
		switch mark := strings.Trim(strings.TrimPrefix(t.text, "?"), ".["); {
		case t.text == "++" || t.text == "--":
			p.fail(t.off, "nothing can be assigned")
		case mark == "!":
			n = &spelNode{kind: spelProject, off: t.off, safe: safe, args: []*spelNode{n, p.innerExpression()}}
		case mark != "":
			n = &spelNode{kind: spelSelect, off: t.off, safe: safe, text: mark, args: []*spelNode{n, p.innerExpression()}}
		case strings.HasSuffix(t.text, "["):
			n = &spelNode{kind: spelIndex, off: t.off, safe: safe, args: []*spelNode{n, p.expression()}}
			p.expect("]")
		default:
			n = p.member(n, safe)
		}
	}
}

// innerExpression is an expression about the elements of a list, up to the bracket.
func (p *spelParser) innerExpression() *spelNode {
	p.inner++
	n := p.expression()
	p.inner--
	p.expect("]")
	return n
}

// member is what follows a dot: a property or a method.
func (p *spelParser) member(base *spelNode, safe bool) *spelNode {
	t := p.next()
	if t.kind != tokenName {
		p.fail(t.off, "a name is missing before %q", t.text)
	}
	if _, ok := p.accept("("); ok {
		return &spelNode{kind: spelCall, off: t.off, text: t.text, safe: safe, args: append([]*spelNode{base}, p.list(")")...)}
	}
	return &spelNode{kind: spelProp, off: t.off, text: t.text, safe: safe, args: []*spelNode{base}}
}

// list reads expressions up to end.
func (p *spelParser) list(end string) (nodes []*spelNode) {
	for {
		if _, ok := p.accept(end); ok {
			return nodes
		}
		if len(nodes) > 0 {
			p.expect(",")
		}
		nodes = append(nodes, p.expression())
	}
}

func (p *spelParser) primary() *spelNode {
	t := p.next()
	switch t.kind {
	case tokenText:
		return &spelNode{kind: spelText, off: t.off, text: t.text}
	case tokenNumber:
		return &spelNode{kind: spelNumber, off: t.off, text: p.number(t)}
	case tokenName:
		return p.name(t)
	}
	switch t.text {
	case "(":
		n := p.expression()
		p.expect(")")
		return n
	case "#":
		return p.variable(t)
	case "{":
		n := &spelNode{kind: spelList, off: t.off, args: p.list("}")}
		return n
	case "@", "&":
		p.fail(t.off, "there are no beans: give the template a function with Func, or name what is needed with Var")
	}
	p.fail(t.off, "unexpected %q", t.text)
	return nil
}

// number reads a literal, which may be in hex, and end in L.
func (p *spelParser) number(t spelToken) string {
	digits, base := strings.TrimRight(t.text, "lL"), 10
	if hex, ok := strings.CutPrefix(strings.ToLower(digits), "0x"); ok {
		digits, base = hex, 16
	}
	n, err := strconv.ParseInt(digits, base, 64)
	fraction := p.peek().text == "." && p.tokens[p.at+1].kind == tokenNumber
	if err != nil || fraction {
		p.fail(t.off, "only whole numbers can be in a key, up to 64 bits")
	}
	return strconv.FormatInt(n, 10)
}

func (p *spelParser) variable(hash spelToken) *spelNode {
	t := p.next()
	if t.kind != tokenName {
		p.fail(hash.off, "a name is missing behind #")
	}
	if t.text == "this" {
		if p.inner == 0 {
			p.fail(hash.off, "#this is the element of a list, in .?[…] and .![…]")
		}
		return &spelNode{kind: spelThis, off: hash.off}
	}
	if _, ok := p.accept("("); ok {
		return &spelNode{kind: spelCall, off: hash.off, text: t.text, args: append([]*spelNode{nil}, p.list(")")...)}
	}
	return &spelNode{kind: spelVar, off: hash.off, text: t.text}
}

// name is a word without #.
func (p *spelParser) name(t spelToken) *spelNode {
	switch word := strings.ToLower(t.text); word {
	case "true", "false", "null":
		return &spelNode{kind: spelWord, off: t.off, text: word}
	case "new":
		p.fail(t.off, "nothing can be constructed: give the template a function with Func")
	}
	if t.text == "T" && p.peek().text == "(" {
		p.fail(t.off, "T(…) reaches no class here: give the template a function with Func, and call it by its name")
	}
	if p.plain && t.text == "String" {
		return p.javaString(t)
	}
	if _, ok := p.accept("("); ok {
		p.fail(t.off, "%s is a method of the target, which is not known here: give the template a function with Func and write #%s(…)", t.text, t.text)
	}
	if p.inner > 0 {
		return &spelNode{kind: spelName, off: t.off, text: t.text}
	}
	if !p.plain {
		p.fail(t.off, "%s is a property of the root object, which is not known here: write #%s for a parameter", t.text, t.text)
	}
	return &spelNode{kind: spelVar, off: t.off, text: t.text}
}

// javaString is String.valueOf(x) or String.format("a:%s", x), in plain Java.
func (p *spelParser) javaString(t spelToken) *spelNode {
	p.expect(".")
	method := p.next()
	p.expect("(")
	args := p.list(")")
	switch {
	case method.text == "valueOf" && len(args) == 1:
		return &spelNode{kind: spelOp, off: t.off, text: "+", args: []*spelNode{{kind: spelText, off: t.off}, args[0]}}
	case method.text == "format" && len(args) > 0 && args[0].kind == spelText:
		return p.format(args[0], args[1:])
	}
	p.fail(t.off, "of String there is valueOf(x) and format(\"…%%s…\", x) with a format that is written out")
	return nil
}

// format is String.format with %s, %d and %%.
func (p *spelParser) format(format *spelNode, args []*spelNode) *spelNode {
	n := &spelNode{kind: spelText, off: format.off}
	plus := func(right *spelNode) {
		n = &spelNode{kind: spelOp, off: format.off, text: "+", args: []*spelNode{n, right}}
	}
	rest := format.text
	for {
		text, after, found := strings.Cut(rest, "%")
		plus(&spelNode{kind: spelText, off: format.off, text: text})
		if !found {
			break
		}
		switch {
		case strings.HasPrefix(after, "%"):
			plus(&spelNode{kind: spelText, off: format.off, text: "%"})
		case after != "" && strings.Contains("sd", after[:1]) && len(args) > 0:
			plus(args[0])
			args = args[1:]
		default:
			p.fail(format.off, "a format may have %%s, %%d and %%%%, with an argument each")
		}
		rest = after[1:]
	}
	if len(args) > 0 {
		p.fail(format.off, "the format leaves arguments over")
	}
	return n
}
