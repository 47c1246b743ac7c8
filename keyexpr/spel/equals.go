package spel

import (
	"reflect"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Two kinds of equality: == compares numbers by value and all else by equals, and equals itself takes
// an Integer and a Long for different things. Which of the two a fact is, its type in Go has to say.

// equality is ==. Spring compares two numbers by value, two texts as texts, and all else by equals:
// an enum is never == to a text, which is in nobody's mind who writes it, and so it is refused. In
// plain Java, == asks whether two objects are the same one, and is for what is no object alone.
func (c *compiler) equality(n *node, x, y *code) *code {
	for i, a := range []*code{x, y} {
		b := []*code{y, x}[i]
		switch {
		case a.typ.k == nullK || b.typ.k == nullK:
		case bare(a.typ.t) == bigType && b.typ.number():
			c.fail(n.args[i], "a BigInteger is compared with a number by its value in Spring, and by its text here: write .toString() == '…'")
		case c.plain && !a.typ.number() && a.typ.k != boolK:
			c.fail(n, "== asks whether two objects are the same one in Java: write .equals(…)")
		}
	}
	if c.plain && x.typ.number() && y.typ.number() && !primitive(n.args[0], x) && !primitive(n.args[1], y) {
		c.fail(n, "== asks whether two objects are the same one in Java, if both are an Integer or a Long: write + in front of one, which makes a number of it, as in +a == b")
	}
	c.comparable(n, x.typ, y.typ, false)
	negate, plain := n.text == "!=", c.plain && x.typ.k != nullK && y.typ.k != nullK
	return binary(typ{k: boolK}, x, y, func(st *run.State, a, b any) (any, error) {
		for _, pair := range [][2]any{{a, b}, {b, a}} {
			_, number := integer(pair[0])
			if _, id := pair[1].(other); number && id {
				return nil, run.Faulty("compares a number with what may be a BigInteger")
			}
		}
		if plain && (a == nil || b == nil) {
			return nil, errUnboxed
		}
		same, err := same(st, a, b)
		return same != negate, err
	})
}

// primitive reports whether a number of plain Java is no object for sure. That of a fact may be one.
func primitive(n *node, x *code) bool {
	return n.kind == kindNumber || n.kind == kindOp || n.kind == kindUnary || n.kind == kindCall && x.typ.t == nil
}

// comparable refuses == and equals between types for which the result is not known to be that of
// Java. Only what is in doubt is refused: a text and a number are known to differ. To equals, an Integer
// never is a Long, and a Byte no Short.
func (c *compiler) comparable(n *node, a, b typ, equals bool) {
	for _, pair := range [][2]typ{{a, b}, {b, a}} {
		x, y := pair[0], pair[1]
		mayBeEnum := x.k == nameK || x.k == enumK
		switch {
		case x.k == nullK || y.k == nullK:
		case x.k == refusedK:
			c.fail(n, "this %s", x.why)
		case x.k >= listK && x.k <= bytesK:
			c.fail(n, "%s can't be compared here: compare its parts", describe(x))
		case mayBeEnum && y.k == textK:
			c.fail(n, "%v may be an enum in Java, which never equals a text: write .name() for an enum, or .toString() for both", x.t)
		case mayBeEnum && (y.k == nameK || y.k == enumK) && bare(x.t) != bare(y.t):
			c.fail(n, "%v and %v may be two types in Java, whose values never equal each other: compare .toString() of both", x.t, y.t)
		case equals && x.k == wholeK && y.number() && y.k != smallK:
			c.fail(n, "an Integer never equals a Long in Java, and %v may be either: declare it int32 or int64, or compare with ==", x.t)
		case equals && x.k == smallK && y.k == smallK && x.t != y.t:
			c.fail(n, "a Byte never equals a Short in Java: compare with ==")
		}
	}
}

// bare is a type without the pointers to it.
func bare(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// equals is Object.equals, for which 42 and 42L differ.
func (c *compiler) equals(n *node, base, arg *code) *code {
	c.comparable(n, base.typ, arg.typ, true)
	return c.after(n, base, typ{k: boolK}, func(st *run.State, v any) (any, error) {
		a, err := arg.value(st)
		if err != nil {
			return nil, err
		}
		return equals(st, v, a)
	})
}

// equals knows numbers of an int of Go, which could be either type: unequal ones are unequal in both,
// and only equal ones are in doubt. A byte or short never equals an int or a long.
func equals(st *run.State, a, b any) (bool, error) {
	x, ok := integer(a)
	y, ok2 := integer(b)
	if !ok || !ok2 {
		return same(st, a, b)
	}
	_, wide := a.(whole)
	_, wide2 := b.(whole)
	_, short := a.(small)
	_, short2 := b.(small)
	if x == y && (wide && !short2 || wide2 && !short) {
		return false, run.Faulty("compares numbers that are equal only if both are int, or both long, in Java")
	}
	return x == y && reflect.TypeOf(a) == reflect.TypeOf(b), nil
}

// same is Spring's ==: numbers by value, whatever their types are, and a text never equal to
// anything but a text. Which objects are one in Java can't be seen here.
func same(st *run.State, a, b any) (bool, error) {
	if a == nil || b == nil {
		return a == nil && b == nil, nil
	}
	if x, ok := integer(a); ok {
		y, ok := integer(b)
		return ok && x == y, nil
	}
	s, text := textOf(a)
	t, text2 := textOf(b)
	of, of2 := enumOf(a), enumOf(b)
	switch {
	case of != nil && of2 != nil && of != of2:
		return false, run.Faulty("compares values of types that may be two enums in Java")
	case text && !text2:
		return false, nil
	case text && reflect.TypeOf(a) != reflect.TypeOf(b):
		return false, run.Faulty("compares a text with what may be an enum")
	case text:
		return s == t, st.Spend(len(s))
	}
	for _, v := range []any{a, b} {
		switch v.(type) {
		case list, mapping, object:
			return false, run.Faulty("compares lists, maps or objects")
		}
	}
	return a == b, nil
}

// enumOf returns the type of Go of what is an enum, or may be one, and else nil.
func enumOf(x any) reflect.Type {
	switch x := x.(type) {
	case named:
		return x.of
	case enum:
		return x.of
	}
	return nil
}
