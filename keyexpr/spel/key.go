package spel

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
	"github.com/latchkey-go/latchkey/keyexpr/spel/internal/insight"
)

// A key of Java is text like any other, and what Redis gets is what Java would have sent:
// nothing is escaped, and nothing is shortened. So two requests may have one key where the
// author in Java has left them no room to differ, as 'a' + #x + #y does. That is Java's key, and
// stays it. It takes the parts that a preset has listed and gives a program for the runner:
// literals, paths that it can follow by itself, and closures for the rest.

// add parses one text. Where it is no expression, it may be a text with expressions in #{…}. A
// text is tried as an expression first, as 'lock:#{' + #p0.id + '}' is one, and looks like a
// template as well. The error of that try is kept if there is no hole in the text. Which of the
// two readings is tried first matters. ParserContext.TEMPLATE_EXPRESSION has to be asked for in
// Java, and annotations mostly don't. A text that is a whole expression means itself, then, even
// if it has #{ within its quotes.
func (k *Key) add(text string, template bool) {
	if k.err != nil {
		return
	}
	if len(text) > maxText {
		k.err = &keyexpr.Error{Text: text, Offset: maxText, Reason: fmt.Sprintf("longer than %d bytes", maxText)}
		return
	}
	if !utf8.ValidString(text) {
		k.err = &keyexpr.Error{Text: text, Reason: "not UTF-8"}
		return
	}
	n, err := parse(text, text, 0, k.java.plain)
	if err == nil {
		k.parts = append(k.parts, source{node: n, whole: text})
		return
	}
	k.err = err
	if template && strings.Contains(text, "#{") {
		parts, err := k.holes(text)
		k.parts, k.err = append(k.parts, parts...), err
	}
}

// maxText bounds the length of an expression. It is the bound of templates. An annotation has
// one line.
const maxText = 4096

// holes cuts a text with expressions in #{…}. Spring's TemplateParserContext has #{ and }, and
// nothing else that is special: no way to write a literal #{.
// TemplateAwareExpressionParser.parseExpressions cuts in the same way, and puts the pieces
// together as a CompositeStringExpression, which writes each value by conversion to a String.
func (k *Key) holes(text string) (parts []source, err error) {
	for at := 0; at < len(text); {
		open := strings.Index(text[at:], "#{")
		if open < 0 {
			return append(parts, source{text: text[at:]}), nil
		}
		if open > 0 {
			parts = append(parts, source{text: text[at : at+open]})
		}
		from := at + open + len("#{")
		end, ok := holeEnd(text, from)
		if !ok {
			return nil, &keyexpr.Error{Text: text, Offset: at + open, Reason: "the hole is not closed by }"}
		}
		n, err := parse(text, text[from:end], from, false)
		if err != nil {
			return nil, err
		}
		parts, at = append(parts, source{node: n, whole: text}), end+1
	}
	return parts, nil
}

// holeEnd returns the offset of the brace that closes a hole. Braces in texts do not count. It
// skips texts up to the next quote of their kind. A doubled quote ends one and begins another,
// which comes to the same. skipToCorrectEndSuffix keeps a stack of brackets, and takes the first
// } outside of all of them. Cutting at the first brace would end a hole within '}' or within a
// list.
func holeEnd(text string, at int) (int, bool) {
	depth := 0
	for ; at < len(text); at++ {
		switch c := text[at]; c {
		case '\'', '"':
			n := strings.IndexByte(text[at+1:], c)
			if n < 0 {
				return 0, false
			}
			at += n + 1
		case '{', '[', '(':
			depth++
		case ']', ')':
			depth--
		case '}':
			if depth == 0 {
				return at, true
			}
			depth--
		}
	}
	return 0, false
}

// compile is the run.Compiler of k. The program is marked as raw: Java makes the same key, and
// would neither escape nor digest it. It is marked as UTF-8 as well, since no text of Java has
// other bytes. A key that reads nothing is refused by the rule of templates. A list is only
// split into keys where it is the whole key: as a part of one it is a text, by convert.
func (k *Key) compile(setup *run.Setup) (p *run.Program, err error) {
	defer caught(&err)
	p = &run.Program{Raw: true, Valid: true}
	c := &compiler{java: k.java, setup: setup, insights: map[*node]known{}, texts: map[*node]bool{}}
	c.literal(p, k.prefix)
	for _, s := range k.parts {
		if s.node == nil {
			c.literal(p, s.text)
			continue
		}
		c.whole = s.whole
		// lock4j converts the whole list to one text. Elsewhere each element is locked by itself, in
		// the order of the keys, so that two requests can't wait for each other.
		if len(k.parts) == 1 && !k.one && c.items(p, s.node) {
			break
		}
		c.part(p, s.node, !k.toString && (len(k.parts) > 1 || k.one))
	}
	switch {
	case len(p.Parts) == 0 && p.Items == nil:
		failAt(k.text, 0, "makes an empty key")
	case insight.OneKey(c.key) && !setup.OneKey && c.vain != nil:
		failAt(c.vain.Text, c.vain.Offset, "all requests would share one key, as nothing that is read of the request makes a difference: write #order.id; OneKey says that it is meant")
	case insight.OneKey(c.key) && !setup.OneKey:
		failAt(k.text, 0, "all requests would share one key, as nothing of the request is read: write #order.id; OneKey says that it is meant")
	}
	p.Roots, p.Fields = c.used, c.fields
	slices.Sort(p.Fields)
	return p, nil
}

// Literals that follow each other are one part, so that a key of constants is copied as a whole.
func (c *compiler) literal(p *run.Program, text string) {
	if text == "" {
		return
	}
	if n := len(p.Parts); n > 0 && p.Parts[n-1].Literal() {
		p.Parts[n-1].Text += text
		return
	}
	p.Parts = append(p.Parts, run.Part{Text: text})
}

// part compiles an expression as parts of a key: the operands of a concatenation are parts of
// their own. A sum whose first operands are numbers is a number up to its first text: 1 + 2 +
// 'x' is 3x. So operands are taken apart only where one of the two is a text for sure. In Java
// itself, a list in a sum is an error rather than its elements with commas. Taking a sum apart
// spares the text that it would build, and is why a key of literals and paths makes one
// allocation. It must not change a single byte. Each operand of a concatenation is spelt by
// itself in Java as well, so that the parts side by side are the same text.
func (c *compiler) part(p *run.Program, n *node, converted bool) {
	if text, ok := c.metadata(n); ok {
		c.literal(p, text)
		return
	}
	if n.kind == kindText {
		c.literal(p, n.text)
		return
	}
	if n.kind == kindOp && n.text == "+" && (c.isText(n.args[0]) || c.isText(n.args[1])) {
		c.part(p, n.args[0], !c.plain)
		c.part(p, n.args[1], !c.plain)
		return
	}
	x := c.compile(n)
	c.note(n, c.spelt(c.insights[n].Insight, converted))
	if c.isLookup(x) {
		name := c.used[x.path.Root].Name
		c.fail(n, "%s is looked up by name, as in #%s.name or #%s['name']", name, name, name)
	}
	if why := spellable(x.typ, converted); why != "" {
		c.fail(n, "this %s", why)
	}
	src := c.whole
	part := run.Part{Src: src, Cost: x.cost}
	if x.path != nil && (x.typ.k == textK || x.typ.k == intK || x.typ.k == longK) && !x.typ.pointer && run.LeafOf(x.typ.t) != run.LeafAny {
		part.Path, part.Leaf, part.Type = x.path, run.LeafAt(x.path, x.typ.t), x.typ.t
		p.Parts = append(p.Parts, part)
		return
	}
	part.Type = goType(x.typ)
	part.Append = func(st *run.State, key []byte, _ *run.Escape) ([]byte, error) {
		v, err := x.value(st)
		if err != nil {
			return key, err
		}
		var s string
		if converted {
			s, err = convert(st, v)
		} else {
			s, err = spell(st, v)
		}
		if err != nil {
			return key, err
		}
		return st.Text(key, s, nil)
	}
	p.Parts = append(p.Parts, part)
}

// note adds a part of the key. The first that reads something is where a key for all is blamed on.
func (c *compiler) note(n *node, in insight.Insight) {
	c.key = append(c.key, in)
	if c.vain == nil && len(c.used) > 0 {
		c.vain = &keyexpr.Error{Text: c.whole, Offset: begin(n)}
	}
}

// begin returns the offset at which the text of a node begins.
func begin(n *node) int {
	off := n.off
	for _, a := range n.args {
		if a != nil {
			off = min(off, begin(a))
		}
	}
	return off
}

// isText reports whether a node is a text for sure, without compiling it. It is asked for each +
// of a long sum, from the outside to the inside, and remembers what it has found out. Without
// the memory, a sum of five hundred operands would look at each of them for every + around it, a
// quarter of a million times.
func (c *compiler) isText(n *node) bool {
	known, ok := c.texts[n]
	if !ok {
		known = c.findText(n)
		c.texts[n] = known
	}
	return known
}

// findText compiles what it can't tell by looking, and forgets what that has noted: a node is
// asked before it is compiled for good, and must not count as read twice. The answer decides
// what + means, for its operands as well, and so it has to be found first.
func (c *compiler) findText(n *node) bool {
	switch n.kind {
	case kindText, kindString:
		return true
	case kindOp:
		return n.text == "+" && (c.isText(n.args[0]) || c.isText(n.args[1]))
	}
	if _, ok := c.metadata(n); ok {
		return true
	}
	fields, seen := slices.Clone(c.fields), c.seen
	defer func() { c.fields, c.seen = fields, seen }()
	return c.compile(n).typ.k == textK
}

// items compiles a list, which makes a key of each element. It reports whether n is one. Spring
// has no lists of keys. Lock libraries do, and make a lock of each element of what an expression
// comes to. Elements are spelt as single values are. A list in the list has no spelling that all
// libraries share, and is refused at start. null for the whole list is no key, as an empty list
// is none.
func (c *compiler) items(p *run.Program, n *node) bool {
	x := c.compile(n)
	if x.typ.k != listK {
		return false
	}
	elem := c.spelt(c.elementsOf(n), false)
	same := elem.IsKnown() && len(elem.Values) < 2 // each makes the same key
	c.note(n, insight.Insight{Differs: c.insights[n].Differs && !same && !c.oneList(n)})
	if why := spellable(*x.typ.elem, false); why != "" {
		c.fail(n, "each element %s", why)
	}
	item := run.Part{Src: c.whole, Type: goType(*x.typ.elem), Append: func(st *run.State, key []byte, _ *run.Escape) ([]byte, error) {
		v, err := valueOf(st, st.Elems[len(st.Elems)-1], *x.typ.elem)
		if err != nil {
			return key, err
		}
		s, err := spell(st, v)
		if err != nil {
			return key, err
		}
		return st.Text(key, s, nil)
	}}
	p.At = len(p.Parts)
	p.Items = &run.Items{Src: c.whole, Item: item, List: func(st *run.State) (v reflect.Value, err error) {
		y, err := x.value(st)
		if err != nil || y == nil {
			return v, err
		}
		l := y.(list)
		if l.of.IsValid() {
			return l.of, nil
		}
		return reflect.ValueOf(l.made), nil
	}}
	return true
}
