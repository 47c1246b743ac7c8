package spel

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Types are those of Java, in which a text and an enum, an int and a long, a list and an array
// differ in what operators do with them. A node whose type is not known, as with JSON, decides
// for each value, by the same rules.
//
// What Java does is not guessed at. Each rule here was found in Spring's sources or in the
// language's own documents, and is held by the corpus, which has been run in Java. Where the two
// can't be made to agree, the expression is refused with a sentence that says what to write.

// compiler makes closures of the nodes of one expression. It compiles nodes into closures over
// values of Java, which know their types: an int and a long differ in overflow and in equals,
// and Go's own types do not say which one a fact is there.
type compiler struct {
	*java
	setup    *run.Setup
	whole    string // the text for errors
	used     []run.Root
	fields   []string
	reads    bool
	insights map[*node]insight // of what is compiled
	texts    map[*node]bool    // whether each is a text for sure
	elems    []typ             // of the selections and projections around
}

// code is a compiled node. A path is kept as one for as long as it goes, so that a key of paths
// is as quick as a template's.
type code struct {
	typ   typ
	path  *run.Path // if it is one
	name  string    // of the path, for Fields
	cost  int
	value func(st *run.State) (any, error)
}

// It leaves by a panic that parse and compile catch, as the parser does.
func (c *compiler) fail(n *node, format string, args ...any) { failAt(c.whole, n.off, format, args...) }

// compile makes a closure of a node, and finds out its type in Java. Names that stand for the
// annotated method come first: #root.method.name is no path through facts. It notes what each
// node reads, as templates do, so that an expression which makes one key for all is found.
func (c *compiler) compile(n *node) *code {
	before := c.reads
	c.reads = false
	x := c.compileNode(n)
	c.note(n, x)
	c.reads = c.reads || before
	return x
}

// Names that stand for the annotated method come first: #root.method.name is no path through
// facts.
func (c *compiler) compileNode(n *node) *code {
	if text, ok := c.metadata(n); ok {
		return constant(text, typ{k: textK})
	}
	switch n.kind {
	case kindText:
		return constant(n.text, typ{k: textK})
	case kindChar:
		return constant(char([]rune(n.text)[0]), typ{k: charK})
	case kindNumber:
		return number(n.text)
	case kindWord:
		switch n.text {
		case "null":
			return constant(nil, typ{k: nullK})
		default:
			return constant(n.text == "true", typ{k: boolK})
		}
	case kindVar:
		return c.variable(n)
	case kindThis:
		return c.pathCode(&run.Path{Elem: true}, "", c.elems[len(c.elems)-1])
	case kindName:
		if len(c.elems) == 0 {
			c.fail(n, "%s is a property of the root object, which is not known here: write #%s for a parameter", n.text, n.text)
		}
		return c.property(n, c.pathCode(&run.Path{Elem: true}, "", c.elems[len(c.elems)-1]), n.text)
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
	case kindSelect, kindProject:
		return c.overElements(n)
	case kindString:
		return c.stringOf(n)
	}
	return c.operator(n)
}

// A constant costs a step like any other node. What is only made of constants is known to be a
// key for all.
func constant(v any, t typ) *code {
	return &code{typ: t, cost: 1, value: func(*run.State) (any, error) { return v, nil }}
}

// The digits were checked when they were read, with their size.
func number(text string) *code {
	if digits, long := strings.CutSuffix(text, "L"); long {
		n, _ := strconv.ParseInt(digits, 10, 64)
		return constant(n, typ{k: longK})
	}
	n, _ := strconv.ParseInt(text, 10, 32)
	return constant(int32(n), typ{k: intK})
}

// unary takes -x for 0 - x, which wraps around in the same way, also for the smallest number. A
// plus does nothing, and is only for numbers.
func (c *compiler) unary(n *node) *code {
	x := c.compile(n.args[0])
	if n.text == "!" {
		c.wantBool(n.args[0], x)
		return &code{typ: typ{k: boolK}, cost: x.cost + 1, value: func(st *run.State) (any, error) {
			b, err := test(st, x)
			return !b, err
		}}
	}
	if !x.typ.number() && x.typ.k != anyK {
		c.fail(n, "%s is not for %s", n.text, describe(x.typ))
	}
	if n.text == "+" {
		return &code{typ: x.typ, cost: x.cost + 1, value: x.value}
	}
	return arithmetic("-", constant(int32(0), typ{k: intK}), x, c.plain)
}

// null passes where the type is not known, and fails for the request: Spring throws for it.
func (c *compiler) wantBool(n *node, x *code) {
	if x.typ.k != boolK && x.typ.k != anyK {
		c.fail(n, "%s is neither true nor false", describe(x.typ))
	}
}

// test evaluates what must be true or false. Java would throw for anything else: null is not
// false.
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

// ternary keeps a type only if both branches have it. Java would promote a number to the type of
// the other in its own language, which changes the text for a char alone; Spring leaves each
// value as it is. A list of the types that both branches may have is not kept. What depends on
// them asks the value.
func (c *compiler) ternary(n *node) *code {
	cond, yes, no := c.compile(n.args[0]), c.compile(n.args[1]), c.compile(n.args[2])
	c.wantBool(n.args[0], cond)
	t := join(yes.typ, no.typ)
	if c.plain && yes.typ.k != no.typ.k && (yes.typ.k == charK || no.typ.k == charK) {
		c.fail(n, "a char and a number make a char in Java, or do not: write both as texts")
	}
	return &code{typ: t, cost: cond.cost + yes.cost + no.cost, value: func(st *run.State) (any, error) {
		holds, err := test(st, cond)
		if err != nil {
			return nil, err
		}
		if holds {
			return yes.value(st)
		}
		return no.value(st)
	}}
}

// join is the type of what is one or the other, as far as it is known at start. Whatever is not
// known to be the same in both is not known at all, and each value decides for itself. What is
// refused stays refused, since either branch may be taken.
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
		return typ{k: listK, elem: &elem, array: a.array && b.array}
	case a.k == b.k && (a.k < listK || a.t == b.t && a.t != nil):
		a.pointer = a.pointer || b.pointer
		return a
	}
	return typ{}
}

// elvis is a ?: b, which takes b for null and for an empty text. Spring takes an empty String
// for null here, and no other empty value.
func (c *compiler) elvis(n *node) *code {
	x, y := c.compile(n.args[0]), c.compile(n.args[1])
	return &code{typ: join(x.typ, y.typ), cost: x.cost + y.cost + 1, value: func(st *run.State) (any, error) {
		v, err := x.value(st)
		if err != nil {
			return nil, err
		}
		if v == named("") {
			return nil, run.Faulty("is empty, which ?: tells from null if it is an enum: make it a string")
		}
		if v == nil || v == "" {
			return y.value(st)
		}
		return v, nil
	}}
}

// list has the type that all its elements have, so that {1, 42} is known to hold Integers; one
// Long among them, and equals decides by each value. It is what between and contains are given,
// and sometimes a key of several parts.
func (c *compiler) list(n *node) *code {
	t, cost := typ{k: listK, elem: &typ{}}, 1
	items := make([]*code, len(n.args))
	for i, a := range n.args {
		items[i] = c.compile(a)
		cost += items[i].cost
		if i == 0 {
			t.elem = &items[i].typ
		} else {
			elem := join(*t.elem, items[i].typ)
			t.elem = &elem
		}
	}
	return &code{typ: t, cost: cost, value: func(st *run.State) (any, error) {
		if err := st.List(len(items)); err != nil {
			return nil, err
		}
		made := make([]any, len(items))
		for i, x := range items {
			var err error
			if made[i], err = x.value(st); err != nil {
				return nil, err
			}
		}
		return list{made: made}, nil
	}}
}

// overElements is a selection or projection. The type of an element is noted while the body is
// compiled, so that a property of it is checked as any other is.
func (c *compiler) overElements(n *node) *code {
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
	body := c.compile(n.args[1])
	c.elems = c.elems[:len(c.elems)-1]
	out := typ{k: listK, elem: &elem}
	switch {
	case n.kind == kindProject:
		out.elem = &body.typ
	case n.text != "?":
		out = elem
	}
	if n.kind == kindSelect {
		c.wantBool(n.args[1], body)
	}
	x := c.after(n, base, out, func(st *run.State, v any) (any, error) {
		l, ok := v.(list)
		if !ok {
			return nil, run.Faulty("has a value that is no list where one is wanted")
		}
		return choose(st, n, l, body)
	})
	x.cost += body.cost
	return x
}

// choose evaluates body for the elements of a list. A selection of the last element goes from
// the end, as it stops where it finds one. An error in an element that Spring does not look at
// must not be one here.
func choose(st *run.State, n *node, l list, body *code) (any, error) {
	made := []any{}
	for i := range l.len() {
		if err := st.Step(1 + body.cost); err != nil {
			return nil, err
		}
		if err := st.Spend(24); err != nil {
			return nil, err
		}
		if n.kind == kindSelect && n.text == "$" {
			i = l.len() - 1 - i
		}
		e, err := l.at(st, i)
		if err != nil {
			return nil, err
		}
		if l.of.IsValid() {
			st.Push(l.of.Index(i), i)
		} else {
			st.Push(goValue(e), i)
		}
		var v any
		holds := false
		if n.kind == kindProject {
			v, err = body.value(st)
		} else {
			holds, err = test(st, body)
		}
		st.Pop()
		switch {
		case err != nil:
			return nil, err
		case n.kind == kindProject:
			made = append(made, v)
		case holds && n.text != "?":
			return e, nil
		case holds:
			made = append(made, e)
		}
	}
	if n.kind == kindSelect && n.text != "?" {
		return nil, nil
	}
	return list{made: made}, nil
}

// goValue is a value of Java as one of Go, for paths that start at an element. A path through an
// element starts at the value of Go, if there is one. What an expression has made has no fields.
func goValue(x any) reflect.Value {
	switch x := x.(type) {
	case object:
		return x.of
	case mapping:
		return x.of
	case list:
		if x.of.IsValid() {
			return x.of
		}
	}
	return reflect.ValueOf(x)
}

// stringOf is String.valueOf, and an argument of a format. null is refused by spell, where Java
// writes four letters.
func (c *compiler) stringOf(n *node) *code {
	x := c.compile(n.args[0])
	if why := spellable(x.typ, false); why != "" {
		c.fail(n.args[0], "this %s", why)
	}
	if n.text == "%d" && !x.typ.number() && x.typ.k != anyK {
		c.fail(n.args[0], "%%d is for whole numbers, not for %s", describe(x.typ))
	}
	return &code{typ: typ{k: textK}, cost: x.cost + 1, value: func(st *run.State) (any, error) {
		v, err := x.value(st)
		if err != nil {
			return nil, err
		}
		if _, ok := integer(v); n.text == "%d" && !ok {
			return nil, run.Faulty("has a value for %%d that is no whole number")
		}
		s, err := spell(st, v)
		return s, err
	}}
}

// Messages name types of Java, as they are about the text of somebody who writes Java.
func describe(t typ) string {
	names := map[jkind]string{nullK: "null", textK: "a text", nameK: "a text or enum", enumK: "an enum", boolK: "true or false", smallK: "a number",
		intK: "a number", longK: "a number", wholeK: "a number", charK: "a character", listK: "a list", mapK: "a map", bytesK: "a byte array", otherK: "an id"}
	if name, ok := names[t.k]; ok {
		return name
	}
	if t.k == objectK {
		return "an object"
	}
	return "this"
}
