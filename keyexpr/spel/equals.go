package spel

import (
	"reflect"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// What is the same as what. There are two answers in SpringEL: == compares numbers by value and
// everything else by equals, and equals itself takes an Integer and a Long for different things.
// Which of the two a fact is, its type in Go has to say. This takes two compiled operands and
// gives code that is true or false. It stands in a file of its own since it is where Java
// surprises most, and where a mistake makes no error but the other branch.

// comparable refuses equals between types for which its result is not known to be that of Java.
// Only what is in doubt is refused: a text and a number are known to differ, whatever they are.
// It is asked at start with the types of both sides. What passes is then compared by value for
// each request, and can still be refused there if one side had no type. A sentence at start is
// worth more: a branch that is in doubt for equal numbers only would be found out in production.
func (c *compiler) comparable(n *node, a, b typ) {
	for _, pair := range [][2]typ{{a, b}, {b, a}} {
		x, y := pair[0], pair[1]
		switch {
		case x.k == nullK || y.k == nullK:
		case x.k == wholeK && y.number() && y.k != smallK:
			c.fail(n, "an Integer never equals a Long in Java, and %v may be either: declare it int32 or int64, or compare with ==", x.t)
		case x.k == smallK && y.k == smallK && x.t != y.t:
			c.fail(n, "a Byte never equals a Short in Java: compare with ==")
		case x.k == nameK && y.k == textK:
			c.fail(n, "%v may be an enum in Java, which never equals a text: write .name() for an enum, or .toString() for both", x.t)
		case unrelated(x, y):
			c.fail(n, "%v and %v may be two types in Java, whose values never equal each other: compare .toString() of both", x.t, y.t)
		case x.k == listK || x.k == mapK || x.k == objectK || x.k == bytesK:
			c.fail(n, "%s can't be compared here: compare its parts", describe(x))
		case x.k == refusedK:
			c.fail(n, "this %s", x.why)
		}
	}
}

// unrelated reports whether values of two types of Go that may be enums, or are, are compared. In
// Java one may be an enum and the other a String, or both may be enums, and only the names of
// their constants are the same: equals is false then, and == throws for two enums.
func unrelated(a, b typ) bool {
	named := func(t typ) bool { return t.k == nameK || t.k == enumK }
	return named(a) && named(b) && bare(a.t) != bare(b.t)
}

// bare is a type without the pointers to it.
func bare(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// equals is Object.equals, for which 42 and 42L differ. It is where most ports of such keys go
// wrong. In Java, Long.valueOf(42).equals(42) is false, as the literal is an Integer, and {1,
// 42}.contains(#id) is false for the same reason.
func (c *compiler) equals(n *node, base, arg *code) *code {
	c.comparable(n, base.typ, arg.typ)
	return c.after(n, base, typ{k: boolK}, func(st *run.State, v any) (any, error) {
		a, err := arg.value(st)
		if err != nil {
			return nil, err
		}
		return equals(st, v, a)
	})
}

// equals knows numbers of an int of Go that could be either type: unequal numbers are unequal in
// both, and only equal ones are in doubt. An int of Go is 42 and 42L at once. That 42 is not 43
// holds for both of them. Integer.equals begins with instanceof Integer, Long.equals with
// instanceof Long. Each answers false to the other for equal digits. Nothing in Java warns of
// it. It is false here as well, since the key that follows from it is the one that the Java
// program locks.
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
	switch {
	// A byte or short never equals an int or a long, so that an unsure number of the same digits
	// is unequal to it whichever it is.
	case x == y && (wide && !short2 || wide2 && !short):
		return false, run.Faulty("compares numbers that are equal only if both are int, or both long, in Java")
	case reflect.TypeOf(a) == reflect.TypeOf(b):
		return x == y, nil
	}
	return false, nil
}

// hashCode is known of texts, numbers and booleans. It is a method that people shard keys by. Of
// a text it is written down in Java's documentation; of a List it would be known as well, and of
// an array, an enum or an object it is another one in each process. String.hashCode is specified
// as s[0]*31^(n-1) + … over UTF-16 in 32 bits, Long.hashCode as the exclusive or of its halves,
// Boolean.hashCode as 1231 or 1237. Enum.hashCode is Object's, and differs between two starts of
// the same program. A key made of it would lock nothing across machines.
func (c *compiler) hashCode(n *node, base *code) *code {
	switch base.typ.k {
	case textK, intK, longK, boolK, anyK:
	default:
		c.fail(n, "hashCode of %s is not known here: take it of a text or of a number that is int32 or int64", describe(base.typ))
	}
	return c.after(n, base, typ{k: intK}, func(st *run.State, v any) (any, error) {
		switch v := v.(type) {
		case string:
			u, err := units(st, v)
			var h int32
			for _, c := range u {
				h = 31*h + int32(c)
			}
			return h, err
		case int32:
			return v, nil
		case int64:
			return int32(v ^ int64(uint64(v)>>32)), nil
		case bool:
			if v {
				return int32(1231), nil
			}
			return int32(1237), nil
		}
		return nil, run.Faulty("has a value whose hashCode is not known here")
	})
}

// It is what String.valueOf makes, but for null, on which it throws.
func (c *compiler) toString(n *node, base *code) *code {
	if why := spellable(base.typ, false); why != "" {
		c.fail(n, "this %s", why)
	}
	return c.after(n, base, typ{k: textK}, func(st *run.State, v any) (any, error) { return spell(st, v) })
}

// narrowed settles which type a number has, so that what follows is sure of it. They are what to
// write where an int of Go is in doubt, on both sides. Number.intValue keeps the lower 32 bits,
// without an error, as Go's conversion does.
func (c *compiler) narrowed(n *node, base *code, name string) *code {
	t := typ{k: intK}
	if name == "longValue" {
		t.k = longK
	}
	return c.after(n, base, t, func(_ *run.State, v any) (any, error) {
		i, _ := integer(v)
		if t.k == longK {
			return i, nil
		}
		return int32(i), nil
	})
}

// equality is ==, which compares numbers as numbers, and texts as texts. Spring compares an enum
// with a text by equals, which is false without a word: `#status == 'PAID'` takes the other
// branch for ever. That is in nobody's mind who writes it, and so it is refused with the way to
// write it. Operator.equalityCheck is the model: two Numbers by value, two CharSequences as
// Strings, all else by ObjectUtils.nullSafeEquals and then by Comparable. In plain Java, == on a
// String is identity: true for two literals, false for the same text out of a request. It is
// refused there for all that is no primitive.
func (c *compiler) equality(n *node, x, y *code) *code {
	for i, a := range []*code{x, y} {
		b := []*code{y, x}[i]
		switch {
		case a.typ.k == nullK || b.typ.k == nullK:
		case a.typ.k == refusedK:
			c.fail(n.args[i], "this %s", a.typ.why)
		case a.typ.k == nameK && b.typ.k == textK, a.typ.k == nameK && b.typ.k == charK:
			c.fail(n.args[i], "%v may be an enum in Java, which is never == to a text: write .name() == '…' for an enum, or .toString() == '…' for both", a.typ.t)
		case a.typ.k == enumK && b.typ.k == textK:
			c.fail(n.args[i], "%v is an enum in Java, which is never == to a text: write .name() == '…'", a.typ.t)
		case unrelated(a.typ, b.typ):
			c.fail(n, "%v and %v may be two types in Java, whose values are never ==: compare .toString() of both", a.typ.t, b.typ.t)
		case bare(a.typ.t) == bigType && b.typ.number():
			c.fail(n.args[i], "a BigInteger is compared with a number by its value in Spring, and by its text here: write .toString() == '…'")
		case a.typ.k >= listK && a.typ.k <= bytesK:
			c.fail(n.args[i], "%s can't be compared here: compare its parts", describe(a.typ))
		}
		if c.plain && !a.typ.number() && a.typ.k != boolK && a.typ.k != charK && a.typ.k != nullK && b.typ.k != nullK {
			c.fail(n, "== asks whether two objects are the same one in Java: write .equals(…)")
		}
	}
	one := x.typ.k == y.typ.k || x.typ.k == wholeK || y.typ.k == wholeK // an Integer and a Long don't compile
	if c.plain && one && x.typ.number() && y.typ.number() && c.boxed(n.args[0]) && c.boxed(n.args[1]) {
		c.fail(n, "== asks whether two objects are the same one in Java, if both are an Integer or a Long: write + in front of one, which makes a number of it, as in +a == b")
	}
	negate, plain := n.text == "!=", c.plain
	return binary(typ{k: boolK}, x, y, func(st *run.State, a, b any) (any, error) {
		if plain { // a char is a number there
			a, b = promoted(a, b), promoted(b, a)
		}
		same, err := sameNumbers(st, a, b)
		return same != negate, err
	})
}

// boxed reports whether a number may be an object in plain Java, as that of a getter or an element
// of a list: two of them with the same value are two objects, but for small ones, which Java keeps.
// What is calculated or written out is none, and beside one of these == is about values.
func (c *compiler) boxed(n *node) bool {
	switch n.kind {
	case kindVar, kindProp, kindIndex:
		return true
	case kindTernary: // of two objects of one type, the one
		return c.boxed(n.args[1]) && c.boxed(n.args[2])
	case kindCall:
		if n.args[0] == nil || n.text == "get" || n.text == "getOrDefault" {
			return true
		}
		k := c.insights[n.args[0]].typ.k
		return k == objectK || k == anyK
	}
	return false
}

// promoted is a char that is compared with a number in plain Java, by JLS 15.21.1, and else x.
func promoted(x, other any) any {
	ch, ok := x.(char)
	if _, number := integer(other); ok && number {
		return int32(ch)
	}
	return x
}

// sameNumbers is same, but for a number and an id: the id may be a BigInteger, whose value Spring
// compares with that of the number.
func sameNumbers(st *run.State, a, b any) (bool, error) {
	for _, pair := range [][2]any{{a, b}, {b, a}} {
		_, number := integer(pair[0])
		if _, id := pair[1].(other); number && id {
			return false, run.Faulty("compares a number with what may be a BigInteger")
		}
	}
	return same(st, a, b)
}

// same is Spring's ==: numbers by value, whatever their types are, and a text never equal to
// anything but a text. What is one object in Java can't be seen here, so that objects are not
// compared at all. A char from charAt meets a text of one character in `#name.charAt(0) == 'a'`.
// Character is no CharSequence, so that it is false in Spring, and is false here by Go's
// comparison of two types.
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
	switch {
	case constantOf(a) != nil && constantOf(b) != nil && constantOf(a) != constantOf(b):
		return false, run.Faulty("compares values of types that may be two enums in Java")
	case text && !text2:
		return false, nil
	case text && reflect.TypeOf(a) != reflect.TypeOf(b):
		return false, run.Faulty("compares a text with what may be an enum")
	case text && len(s) == len(t):
		return s == t, st.Spend(len(s))
	case text:
		return false, nil
	}
	for _, v := range []any{a, b} {
		switch v.(type) {
		case list, mapping, object:
			return false, run.Faulty("compares lists, maps or objects")
		}
	}
	return a == b, nil
}

// constantOf returns the type of Go of what is an enum, or may be one, and else nil.
func constantOf(x any) reflect.Type {
	switch x := x.(type) {
	case named:
		return x.of
	case enum:
		return x.of
	}
	return nil
}
