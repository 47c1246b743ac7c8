package spel

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// primary reads an operand: literals, names, lists, and brackets, which leave no node behind.
func (p *parser) primary() *node {
	t := p.next()
	switch t.kind {
	case tokenText:
		return &node{kind: kindText, off: t.off, text: t.text}
	case tokenNumber:
		return &node{kind: kindNumber, off: t.off, text: p.number(t)}
	case tokenName:
		return p.name(t)
	}
	switch t.text {
	case "(":
		n := p.expression()
		p.expect(")")
		return n
	case "#":
		p.only(t)
		return p.variable(t)
	case "{":
		p.only(t)
		return &node{kind: kindList, off: t.off, args: p.list("}")}
	case "@", "&":
		p.fail(t.off, "there are no beans: give the guard a function with TemplateFunc, and write #name(…)")
	}
	p.fail(t.off, "unexpected %q", t.text)
	return nil
}

// number reads a literal: an int of 32 bits, or a long with an L. A number that does not fit throws in
// Java, too. The size matters: it decides what + does at 2147483647, and what equals says. In plain
// Java a 0 in front makes an octal number, and digits of another base than ten are bits.
func (p *parser) number(t token) string {
	digits, base, size := t.text, 10, 32
	if s := strings.TrimRight(digits, "lL"); len(s)+1 == len(digits) {
		digits, size = s, 64
	}
	if hex, ok := strings.CutPrefix(strings.ToLower(digits), "0x"); ok {
		digits, base = hex, 16
	} else if p.plain && len(digits) > 1 && digits[0] == '0' {
		base = 8
	}
	n, err := strconv.ParseInt(digits, base, size)
	if p.plain && base != 10 {
		var bits uint64
		bits, err = strconv.ParseUint(digits, base, size)
		n = int64(bits) << (64 - size) >> (64 - size)
	}
	fraction := p.peek().text == "." && p.tokens[p.at+1].kind == tokenNumber
	switch {
	case fraction || strings.ContainsAny(digits, ".eEfFdD") && base == 10:
		p.fail(t.off, "only whole numbers can be in a key")
	case errors.Is(err, strconv.ErrSyntax):
		p.fail(t.off, "this is no number that is read here: write plain digits")
	case err != nil && size == 32:
		p.fail(t.off, "not an int of 32 bits: write an L behind it for a long")
	case err != nil:
		p.fail(t.off, "not a long of 64 bits")
	}
	if size == 64 {
		return strconv.FormatInt(n, 10) + "L"
	}
	return strconv.FormatInt(n, 10)
}

// variable follows a #. Operators that are words are names there.
func (p *parser) variable(hash token) *node {
	t := p.next()
	if t.kind != tokenName {
		p.fail(hash.off, "a name is missing behind #")
	}
	if t.text == "this" {
		if p.inner == 0 {
			p.fail(hash.off, "#this is the element of a list, in .![…]")
		}
		return &node{kind: kindThis, off: hash.off}
	}
	if _, ok := p.accept("("); ok {
		return &node{kind: kindCall, off: hash.off, text: t.text, args: append([]*node{nil}, p.list(")")...)}
	}
	return &node{kind: kindVar, off: hash.off, text: t.text}
}

// name is a word without #: a variable of plain Java, and to Spring a property of the root object,
// which is not known here. order.id for #order.id is the commonest slip of all.
func (p *parser) name(t token) *node {
	word := t.text
	if !p.plain {
		word = strings.ToLower(word)
	}
	if isConstant(word) {
		return &node{kind: kindWord, off: t.off, text: word}
	}
	if word == "new" {
		p.fail(t.off, "nothing can be constructed: give the guard a function with TemplateFunc, and write #name(…)")
	}
	if t.text == "T" && p.peek().text == "(" && !p.plain {
		return p.typeName(t)
	}
	if p.plain && t.text == "String" {
		return p.valueOf(t)
	}
	if _, ok := p.accept("("); ok {
		p.fail(t.off, "%s is a method of the target, which is not known here: give the guard a function with TemplateFunc, and write #%s(…)", t.text, t.text)
	}
	if p.inner > 0 {
		return &node{kind: kindName, off: t.off, text: t.text}
	}
	if p.plain {
		return &node{kind: kindVar, off: t.off, text: t.text}
	}
	switch {
	case p.at == 1 && p.peek().text == ":":
		p.fail(t.off, "a text stands in quotes, as in '%s:' + #order.id, or in front of a hole, as in %s:#{#order.id}", t.text, t.text)
	case t.text == "String":
		p.fail(t.off, "String is no property: write 'order:' + #order.id")
	case slices.Contains([]string{"req", "header", "path", "query", "body"}, t.text):
		p.fail(t.off, "%s is a fact of templates, which go to guard.Key: in Java's text a parameter is #order", t.text)
	}
	p.fail(t.off, "%s is a property of the root object, which is not known here: write #%s for a parameter", t.text, t.text)
	return nil
}

// typeName is T(…), which reaches no class but String.
func (p *parser) typeName(t token) *node {
	p.next()
	var b strings.Builder
	for p.peek().kind == tokenName || p.peek().text == "." {
		b.WriteString(p.next().text)
	}
	name := b.String()
	if name != "String" && name != "java.lang.String" {
		p.fail(t.off, "T(%s) reaches no class here: give the guard a function with TemplateFunc, and write #name(…)", name)
	}
	p.expect(")")
	return p.valueOf(t)
}

// valueOf is String.valueOf(x), a conversion that + does as well.
func (p *parser) valueOf(t token) *node {
	p.expect(".")
	method := p.next()
	p.expect("(")
	args := p.list(")")
	if method.text == "format" {
		p.fail(t.off, "String.format depends on the locale of the Java program: put texts together with +, or make the key with KeyFunc")
	}
	if method.text != "valueOf" || len(args) != 1 {
		p.fail(t.off, "of String there is valueOf(x): %s", elsewhere)
	}
	return &node{kind: kindString, off: t.off, args: args}
}
