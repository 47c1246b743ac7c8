package spel

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// The first and the last stage: the text of a key becomes expressions, and what they are compiled to
// becomes the parts of a program. Nothing is escaped and nothing is shortened, as in Java: two
// requests may have one key where the author has left them no room to differ.

// add parses one text. A text that is no expression may have expressions in #{…}. It is tried as an
// expression first, as 'lock:#{' + #p0.id + '}' is one.
func (k *Key) add(text string, template bool) {
	switch {
	case k.err != nil:
		return
	case len(text) > maxText:
		k.err = &keyexpr.Error{Text: text, Offset: maxText, Reason: fmt.Sprintf("longer than %d bytes", maxText)}
		return
	case !utf8.ValidString(text):
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

// maxText bounds the length of an expression, as that of a template.
const maxText = 4096

// holes cuts a text with expressions in #{…}, as Spring's TemplateParserContext does. There is no way to
// write a literal #{.
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

// holeEnd returns the offset of the brace that closes a hole: the first outside of brackets and texts.
// A doubled quote ends one text and begins another, which comes to the same.
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

// compile is the run.Compiler of k. The program is marked as raw: Java makes the same key, and would
// neither escape nor digest it. A list is only split into keys where it is the whole key: as a part
// of one it is a text.
func (k *Key) compile(setup *run.Setup) (p *run.Program, err error) {
	defer caught(&err)
	p = &run.Program{Raw: true, Valid: true}
	c := &compiler{java: k.java, setup: setup}
	literal(p, k.prefix)
	for _, s := range k.parts {
		if s.node == nil {
			literal(p, s.text)
			continue
		}
		c.whole = s.whole
		x := c.compile(s.node)
		// Each element is locked by itself, in the order of the keys. lock4j makes one text of the list.
		if x.typ.k == listK && len(k.parts) == 1 && !k.one {
			c.items(p, s.node, x)
			break
		}
		if x.sum == nil {
			c.part(p, s.node, x, !k.toString && (len(k.parts) > 1 || k.one))
		}
		for _, o := range x.sum {
			c.part(p, o.n, o.x, !c.plain)
		}
	}
	if len(p.Parts) == 0 && p.Items == nil {
		failAt(k.text, 0, "makes an empty key")
	}
	if !c.reads && !setup.OneKey {
		failAt(k.text, 0, "all requests would share one key, as nothing of the request is read: write #order.id; OneKey says that it is meant")
	}
	p.Roots, p.Fields = c.used, c.fields
	slices.Sort(p.Fields)
	return p, nil
}

// literal adds a text, which is one part with a literal in front of it.
func literal(p *run.Program, text string) {
	if n := len(p.Parts); n > 0 && p.Parts[n-1].Literal() {
		p.Parts[n-1].Text += text
	} else if text != "" {
		p.Parts = append(p.Parts, run.Part{Text: text})
	}
}

// part adds an expression, which may be an operand of a sum of texts: each is spelt by itself in Java
// as well, so that the parts side by side are the same text.
func (c *compiler) part(p *run.Program, n *node, x *code, converted bool) {
	if s, ok := x.fixed.(string); ok {
		literal(p, s)
		return
	}
	if c.isLookup(x) {
		name := c.used[x.path.Root].Name
		c.fail(n, "%s is looked up by name, as in #%s.name or #%s['name']", name, name, name)
	}
	if why := spellable(x.typ, converted); why != "" {
		c.fail(n, "this %s", why)
	}
	part := run.Part{Src: c.whole, Cost: x.cost}
	if x.path != nil && (x.typ.k == textK || x.typ.k == intK || x.typ.k == longK) && !x.typ.pointer && run.LeafOf(x.typ.t) != run.LeafAny {
		part.Path, part.Leaf, part.Type = x.path, run.LeafAt(x.path, x.typ.t), x.typ.t
		p.Parts = append(p.Parts, part)
		return
	}
	spelling := spell
	if converted {
		spelling = convert
	}
	part.Type = goType(x.typ)
	part.Append = appender(x.value, spelling)
	p.Parts = append(p.Parts, part)
}

// appender appends the text of a value to a key.
func appender(value func(*run.State) (any, error), spelling func(*run.State, any) (string, error)) func(*run.State, []byte, *run.Escape) ([]byte, error) {
	return func(st *run.State, key []byte, _ *run.Escape) ([]byte, error) {
		v, err := value(st)
		if err != nil {
			return key, err
		}
		s, err := spelling(st, v)
		if err != nil {
			return key, err
		}
		return st.Text(key, s, nil)
	}
}

// items makes a key of each element of a list.
func (c *compiler) items(p *run.Program, n *node, x *code) {
	elem := *x.typ.elem
	if why := spellable(elem, false); why != "" {
		c.fail(n, "each element %s", why)
	}
	if x.vain != nil && !c.setup.OneKey {
		c.fail(x.vain, "this element names no fact, and is one key for all requests; OneKey says that it is meant")
	}
	item := func(st *run.State) (any, error) { return valueOf(st, st.Elems[len(st.Elems)-1], elem) }
	each := run.Part{Src: c.whole, Type: goType(elem), Append: appender(item, spell)}
	p.At = len(p.Parts)
	p.Items = &run.Items{Src: c.whole, Item: each, List: func(st *run.State) (v reflect.Value, err error) {
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
}
