package spel

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// The third stage: a tree becomes closures over values of Java. Types are those of Java, in which a
// text and an enum, an int and a long, a List and an array differ in what operators do with them. A
// node whose type is not known, as with JSON, decides for each value, by the same rules.
//
// A refusal at start comes from a type, and a refusal for the request from a value. There is no
// third way, such as a key that is probably right.

// compiler makes closures of the nodes of one key.
type compiler struct {
	*java
	setup  *run.Setup
	whole  string // the text for errors
	used   []run.Root
	fields []string
	reads  bool  // a fact was named, or a function that may ask for one
	elems  []typ // of the projections around
}

// code is a compiled node. A path is kept as one for as long as it goes, so that a key of paths is
// as quick as a template's.
type code struct {
	typ   typ
	path  *run.Path // if it is one
	name  string    // of the path, for Fields
	cost  int
	value func(st *run.State) (any, error)
	fixed any       // what a constant is
	sum   []operand // of +, if it puts texts together
	vain  *node     // an element of a list that is written out, which names no fact
}

// operand is one of the texts that a sum puts together.
type operand struct {
	n *node
	x *code
}

// fail leaves by a panic that compile catches, as the parser does.
func (c *compiler) fail(n *node, format string, args ...any) { failAt(c.whole, n.off, format, args...) }

// compile makes a closure of a node, and finds out its type in Java. Names that stand for the
// annotated method come first: #root.method.name is no path through facts.
func (c *compiler) compile(n *node) *code {
	if text, ok := c.metadata(n); ok {
		return constant(text, typ{k: textK})
	}
	switch n.kind {
	case kindText:
		return constant(n.text, typ{k: textK})
	case kindNumber:
		return number(n.text)
	case kindWord:
		if n.text == "null" {
			return constant(nil, typ{k: nullK})
		}
		return constant(n.text == "true", typ{k: boolK})
	case kindVar:
		return c.variable(n)
	case kindThis:
		return c.element()
	case kindName:
		if len(c.elems) == 0 {
			c.fail(n, "%s is a property of the root object, which is not known here: write #%s for a parameter", n.text, n.text)
		}
		return c.property(n, c.element(), n.text)
	case kindProp:
		return c.property(n, c.compile(n.args[0]), n.text)
	case kindCall:
		return c.call(n)
	case kindIndex:
		return c.index(n)
	case kindUnary:
		return c.unary(n)
	case kindTernary:
		return c.ternary(n)
	case kindElvis:
		return c.elvis(n)
	case kindList:
		return c.list(n)
	case kindProject:
		return c.project(n)
	case kindString:
		return c.toString(n, c.compile(n.args[0]))
	}
	return c.operator(n)
}

func constant(v any, t typ) *code {
	return &code{typ: t, cost: 1, fixed: v, value: func(*run.State) (any, error) { return v, nil }}
}

// number is a literal, whose digits were checked when they were read.
func number(text string) *code {
	digits, long := strings.CutSuffix(text, "L")
	n, _ := strconv.ParseInt(digits, 10, 64)
	if long {
		return constant(n, typ{k: longK})
	}
	return constant(int32(n), typ{k: intK})
}

// element is that of the innermost list around.
func (c *compiler) element() *code {
	return c.pathCode(&run.Path{Elem: true}, "", c.elems[len(c.elems)-1])
}

// wantBool refuses a test that can never be one. null passes where the type is not known, and fails
// for the request.
func (c *compiler) wantBool(n *node, x *code) {
	if x.typ.k != boolK && x.typ.k != anyK {
		c.fail(n, "%s is neither true nor false", describe(x.typ))
	}
}

// test evaluates a value that must be true or false. Java throws for null.
func test(st *run.State, x *code) (bool, error) {
	v, err := x.value(st)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, run.Faulty("is neither true nor false")
	}
	return b, nil
}

// ternary evaluates one branch, and leaves its value alone, as Spring does. Java itself makes two
// numbers of the same type first, by JLS 15.25, which is refused.
func (c *compiler) ternary(n *node) *code {
	cond, yes, no := c.compile(n.args[0]), c.compile(n.args[1]), c.compile(n.args[2])
	c.wantBool(n.args[0], cond)
	if c.plain && yes.typ.k != no.typ.k && (yes.typ.number() || no.typ.number()) {
		c.fail(n, "Java may make one type of the two values: write both as texts")
	}
	return &code{typ: join(yes.typ, no.typ), vain: cmp.Or(yes.vain, no.vain), cost: cond.cost + yes.cost + no.cost, value: func(st *run.State) (any, error) {
		holds, err := test(st, cond)
		switch {
		case err != nil:
			return nil, err
		case holds:
			return yes.value(st)
		}
		return no.value(st)
	}}
}

// elvis is a ?: b, which takes b for null and for an empty String, and for no other empty value.
func (c *compiler) elvis(n *node) *code {
	x, y := c.compile(n.args[0]), c.compile(n.args[1])
	return &code{typ: join(x.typ, y.typ), vain: cmp.Or(x.vain, y.vain), cost: x.cost + y.cost + 1, value: func(st *run.State) (any, error) {
		v, err := x.value(st)
		if err != nil {
			return nil, err
		}
		// An enum without a value is null in Java, and a String may be empty; but an enum of Go whose
		// zero value is "" may also stand for a constant of its own.
		if name, ok := v.(named); ok && name.text == "" {
			return nil, run.Faulty("is empty, which ?: tells from null if it is an enum: make it a string")
		}
		if v == nil || v == "" {
			return y.value(st)
		}
		return v, nil
	}}
}

// join is the type of a value that is one or the other, as far as it is known at start. A type that
// is refused stays refused, since either branch may be taken. null takes any type: the reader of the
// value refuses it there.
func join(a, b typ) typ {
	switch {
	case a.k == nullK:
		return b
	case b.k == nullK:
		return a
	case a.k == refusedK:
		return a
	case b.k == refusedK:
		return b
	case a.k == listK && b.k == listK:
		elem := join(*a.elem, *b.elem)
		return typ{k: listK, elem: &elem}
	case a.k == b.k && (a.k < listK || a.t == b.t && a.t != nil):
		a.pointer = a.pointer || b.pointer
		return a
	}
	return typ{}
}

// after evaluates base, and goes on with what it comes to. Spring throws where a property, a method
// or an index follows null, unless ?. says that null does. ?. guards this step and nothing behind it.
func (c *compiler) after(n *node, base *code, t typ, f func(st *run.State, v any) (any, error)) *code {
	return &code{typ: t, cost: base.cost + 1, value: func(st *run.State) (any, error) {
		v, err := base.value(st)
		if err != nil {
			return nil, err
		}
		if v == nil {
			if n.safe {
				return nil, nil
			}
			return nil, run.Faulty("can't go on: %s is null", c.source(n.args))
		}
		return f(st, v)
	}}
}

// list is {…}, an unmodifiable List of what its elements come to, each boxed by its own type.
func (c *compiler) list(n *node) *code {
	elem := typ{k: nullK}
	x := &code{typ: typ{k: listK, elem: &elem}, cost: 1}
	items := make([]*code, len(n.args))
	around := c.reads
	for i, a := range n.args {
		c.reads = false
		items[i] = c.compile(a)
		x.cost += items[i].cost
		if !c.reads && x.vain == nil {
			x.vain = a
		}
		around = around || c.reads
		elem = join(elem, items[i].typ)
	}
	if len(items) == 0 {
		elem = typ{}
	}
	c.reads = around
	x.value = func(st *run.State) (any, error) {
		if err := st.List(len(items)); err != nil {
			return nil, err
		}
		made := make([]any, len(items))
		for i, item := range items {
			var err error
			if made[i], err = item.value(st); err != nil {
				return nil, err
			}
		}
		return list{made: made}, nil
	}
	return x
}

// project is .![…]. The type of an element is known while the body is compiled. Spring goes through
// the entries of a Map as well, whose order changes with its size.
func (c *compiler) project(n *node) *code {
	base := c.compile(n.args[0])
	elem := typ{}
	switch base.typ.k {
	case listK:
		elem = *base.typ.elem
	case anyK:
	case mapK:
		c.fail(n, "entries of a map come in no order: name one")
	default:
		c.fail(n, "%s has no elements", describe(base.typ))
	}
	c.elems = append(c.elems, elem)
	around := c.reads
	c.reads = false
	body := c.compile(n.args[1])
	c.elems = c.elems[:len(c.elems)-1]
	x := c.after(n, base, typ{k: listK, elem: &body.typ}, func(st *run.State, v any) (any, error) {
		l, ok := v.(list)
		if !ok {
			return nil, run.Faulty("has a value that is no list where one is wanted")
		}
		return l.each(st, body)
	})
	if x.cost += body.cost; !c.reads {
		x.vain = base.vain
	}
	c.reads = c.reads || around
	return x
}

// describe names a type of Java, for messages to somebody who writes Java.
func describe(t typ) string {
	names := map[jkind]string{nullK: "null", textK: "a text", nameK: "a text or enum", enumK: "an enum", boolK: "true or false", smallK: "a number",
		intK: "a number", longK: "a number", wholeK: "a number", listK: "a list", mapK: "a map", bytesK: "a byte array", otherK: "an id", objectK: "an object"}
	return cmp.Or(names[t.k], "this")
}

// use returns the index of a root. The order of use is the order of slots, as for templates.
func (c *compiler) use(name string) int {
	c.reads = true
	if i := slices.IndexFunc(c.used, func(r run.Root) bool { return r.Name == name }); i >= 0 {
		return i
	}
	root := c.setup.Roots[name]
	root.Name = name
	c.used = append(c.used, root)
	return len(c.used) - 1
}
