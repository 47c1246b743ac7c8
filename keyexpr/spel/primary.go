package spel

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Brackets leave no node behind. Whether a sum is taken apart depends on types alone, as it does
// in Java. eatStartNode tries the same beginnings in the same order. @bean and &bean ask the
// container of the Java program, which BeanReference resolves while the request runs; there is
// no container here, and the user's own function is the way to the same value.
func (p *parser) primary() *node {
	t := p.next()
	switch t.kind {
	case tokenText:
		return &node{kind: kindText, off: t.off, text: t.text}
	case tokenChar:
		return &node{kind: kindChar, off: t.off, text: t.text}
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

// number reads a literal: an int of 32 bits, or a long with an L. In plain Java, a 0 in front
// makes it octal. An octal number is what makes 007 differ in the two grammars: SpringEL reads
// it as 7 as well, and 010 as 10. Numbers with a point are refused where they stand, as no key
// can have them. Literal.getIntLiteral is Integer.parseInt, and Literal.getLongLiteral is
// Long.parseLong: a number that does not fit throws when the expression is parsed, and is an
// error at start here too. A suffix decides the type, and the type decides what + does at
// 2147483647 and what equals says about the same digits. Taking every literal as a long would be
// right until one of the two happens.
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
	if p.plain && base != 10 { // these are bits, of which the first may be the sign
		var bits uint64
		bits, err = strconv.ParseUint(digits, base, size)
		n = int64(bits) << (64 - size) >> (64 - size)
	}
	fraction := p.peek().text == "." && p.tokens[p.at+1].kind == tokenNumber
	switch {
	case fraction || strings.ContainsAny(digits, ".eEfFdD") && base == 10:
		p.fail(t.off, "only whole numbers can be in a key")
	case errors.Is(err, strconv.ErrSyntax) && p.plain && strings.ContainsAny(digits, "bB_"):
		p.fail(t.off, "binary numbers and underscores are not read here: write plain digits")
	case errors.Is(err, strconv.ErrSyntax):
		p.fail(t.off, "this is no number")
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

// #if and #in are names like any other: Spring's words are words only where an operator can
// stand. VariableReference and FunctionReference share the #. Brackets behind the name tell them
// apart, as in maybeEatFunctionOrVar. #this is the one variable that Spring itself defines;
// outside of a selection it is the root object, which no lock library gives away.
func (p *parser) variable(hash token) *node {
	t := p.next()
	if t.kind != tokenName {
		p.fail(hash.off, "a name is missing behind #")
	}
	if t.text == "this" {
		if p.inner == 0 {
			p.fail(hash.off, "#this is the element of a list, in .?[…] and .![…]")
		}
		return &node{kind: kindThis, off: hash.off}
	}
	if _, ok := p.accept("("); ok {
		return &node{kind: kindCall, off: hash.off, text: t.text, args: append([]*node{nil}, p.list(")")...)}
	}
	return &node{kind: kindVar, off: hash.off, text: t.text}
}

// name is a word without #. A name without # is a property of the root object to Spring, and a
// variable to Java itself. PropertyOrFieldReference reads a name without # from the root object.
// In an annotation on a method the root is the bean, a cache's root object or null, and none of
// them is here. `order.id` for `#order.id` is the commonest slip of all. In Spring it throws at
// the first request; here it does before the first one, with the # put in.
func (p *parser) name(t token) *node {
	word := t.text
	if !p.plain {
		word = strings.ToLower(word)
	}
	switch word {
	case "true", "false", "null":
		return &node{kind: kindWord, off: t.off, text: word}
	case "new":
		p.fail(t.off, "nothing can be constructed: give the guard a function with TemplateFunc, and write #name(…)")
	}
	if t.text == "T" && p.peek().text == "(" && !p.plain {
		return p.typeName(t)
	}
	if p.plain && t.text == "String" {
		return p.stringMethod(t)
	}
	if _, ok := p.accept("("); ok {
		p.fail(t.off, "%s is a method of the target, which is not known here: give the guard a function with TemplateFunc, and write #%s(…)", t.text, t.text)
	}
	if p.inner > 0 {
		return &node{kind: kindName, off: t.off, text: t.text}
	}
	if !p.plain {
		p.meant(t)
		p.fail(t.off, "%s is a property of the root object, which is not known here: write #%s for a parameter", t.text, t.text)
	}
	return &node{kind: kindVar, off: t.off, text: t.text}
}

// meant explains what is surely no property of the root object: a text without quotes, a class, and
// the roots that templates of Go have, whose text was given to the wrong one of the two.
func (p *parser) meant(t token) {
	switch {
	case p.at == 1 && p.peek().text == ":":
		p.fail(t.off, "a text stands in quotes, as in '%s:' + #order.id, or in front of a hole, as in %s:#{#order.id}", t.text, t.text)
	case t.text == "String":
		p.fail(t.off, "String is no property: write 'order:' + #order.id")
	case slices.Contains([]string{"req", "header", "path", "query", "body"}, t.text):
		p.fail(t.off, "%s is a fact of templates, which go to guard.Key: in Java's text a parameter is #order", t.text)
	}
}

// typeName is T(…), which reaches no class but one. T(…) reaches any class of the other program,
// which is not here. String.valueOf needs nothing of it. TypeReference loads a class by name and
// MethodReference calls any static method of it. A list of known ones would grow for ever, and
// UUID.randomUUID or System.currentTimeMillis in a key mean a lock that nobody else ever takes.
// String.valueOf is let through for what it is: a conversion that + does as well.
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
	return p.stringMethod(t)
}

// stringMethod is String.valueOf(x) or, in plain Java, String.format("a:%s", x). String.format
// writes numbers by the locale of the Java program: %d has other digits in Arabic. In Java
// itself it is taken for ids, as everybody uses it for that, with the three conversions whose
// text is known. Formatter takes the digits of %d from Locale.getDefault(FORMAT). A server with
// an Arabic locale writes other digits than one without, and the key would change with the
// machine. The text of %s does not depend on it, but a format string is also padding, case and
// index, of which %s alone is rarely all.
func (p *parser) stringMethod(t token) *node {
	p.expect(".")
	method := p.next()
	p.expect("(")
	args := p.list(")")
	switch {
	case method.text == "valueOf" && len(args) == 1:
		return &node{kind: kindString, off: t.off, args: args}
	case method.text == "format" && !p.plain:
		p.fail(t.off, "T(String).format depends on the locale of the Java program: write 'order:' + #id in place of T(String).format('order:%%s', #id)")
	case method.text == "format" && len(args) > 0 && args[0].kind == kindText:
		return p.format(args[0], args[1:])
	}
	p.fail(t.off, "of String there is valueOf(x) and, in plain Java, format(\"…%%s…\", x) with a format that is written out")
	return nil
}

// format is String.format with %s, %d and %%, as a sum of texts. An argument that is left over
// is no error in Java, and is a mistake all the same. It becomes a sum because sums are taken
// apart into parts of a key later, and a format should be as quick as the concatenation that it
// stands for. The empty text in front makes every + of it a concatenation: without it, two
// numbers side by side would be added.
func (p *parser) format(format *node, args []*node) *node {
	n := &node{kind: kindText, off: format.off}
	plus := func(right *node) {
		n = &node{kind: kindOp, off: format.off, text: "+", args: []*node{n, right}}
	}
	rest := format.text
	for {
		text, after, found := strings.Cut(rest, "%")
		plus(&node{kind: kindText, off: format.off, text: text})
		if !found {
			break
		}
		switch {
		case strings.HasPrefix(after, "%"):
			plus(&node{kind: kindText, off: format.off, text: "%"})
		case after != "" && strings.Contains("sd", after[:1]) && len(args) > 0:
			plus(&node{kind: kindString, off: args[0].off, text: "%" + after[:1], args: args[:1]})
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
