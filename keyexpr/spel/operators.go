package spel

import (
	"cmp"
	"slices"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Operators, by Spring's rules where they are not Java's: + takes a list for its elements with
// commas, == converts nothing, null can be compared and comes first, matches wants the whole
// text. It takes a node with its operator, and gives code and a type. Each operator has a part
// that is done at start, which looks at types and refuses, and one that is done for each
// request, which looks at values and may still refuse if a type was not known.

// Operands are compiled once each, and the closures used as often as needed. To write an operand
// twice would double it with each nesting, and 330 bytes of Java could take all memory. && and
// || stop at the left operand if it decides, as OpAnd and OpOr do: the right one may divide by
// zero or read through null.
func (c *compiler) operator(n *node) *code {
	switch n.text {
	case "between":
		return c.between(n)
	case "matches":
		return c.matches(n)
	}
	x := c.compile(n.args[0])
	if c.guess != nil && (n.text == "&&" && x.fixed == false || n.text == "||" && x.fixed == true) {
		return x
	}
	y := c.compile(n.args[1])
	switch n.text {
	case "+":
		return c.plus(n, x, y)
	case "-", "*", "/", "%":
		c.wantNumbers(n, x, y)
		return arithmetic(n.text, x, y, c.plain)
	case "&&", "||":
		c.wantBool(n.args[0], x)
		c.wantBool(n.args[1], y)
		decides := n.text == "||"
		return &code{typ: typ{k: boolK}, cost: x.cost + y.cost + 1, value: func(st *run.State) (any, error) {
			b, err := test(st, x)
			if err != nil || b == decides {
				return b, err
			}
			return test(st, y)
		}}
	case "==", "!=":
		return c.equality(n, x, y)
	}
	return c.compare(n, n.text, x, y)
}

// binary evaluates the left operand first, and both always. Java evaluates operands from left to
// right (JLS 15.7), which shows only in which of two errors comes first. It is one function, so
// that no operator can leave an operand out of its cost.
func binary(t typ, x, y *code, f func(st *run.State, a, b any) (any, error)) *code {
	return &code{typ: t, cost: x.cost + y.cost + 1, value: func(st *run.State) (any, error) {
		a, err := x.value(st)
		if err != nil {
			return nil, err
		}
		b, err := y.value(st)
		if err != nil {
			return nil, err
		}
		return f(st, a, b)
	}}
}

// A character counts as one in Java itself, and in SpringEL it does not.
func (c *compiler) wantNumbers(n *node, list ...*code) {
	for i, x := range list {
		if x.typ.k == charK && c.plain {
			continue
		}
		if !x.typ.number() && x.typ.k != anyK {
			c.fail(n.args[i], "%s is for numbers here, and not for %s", n.text, describe(x.typ))
		}
	}
}

// plus adds numbers, and puts texts together if one of its operands is one. Spring asks each
// side whether it is a text. An enum is none, and enum + enum is an error there; so is true + 1.
// OpPlus.getValueInternal asks in this order: both Numbers, both Strings, left a String, right a
// String. What falls through goes to an overloader that nobody has, and throws. + of two enums
// compiles to nothing in Java either.
func (c *compiler) plus(n *node, x, y *code) *code {
	isText := func(t typ) bool { return t.k == textK }
	for i, a := range []*code{x, y} {
		if a.typ.number() || a.typ.k == charK && c.plain {
			continue
		}
		if why := spellable(a.typ, !c.plain); why != "" {
			c.fail(n.args[i], "this %s", why)
		}
	}
	t := typ{}
	switch {
	case isText(x.typ) || isText(y.typ):
		t.k = textK
	case c.countable(x.typ) && c.countable(y.typ):
		return arithmetic("+", x, y, c.plain)
	case x.typ.k == nameK || y.typ.k == nameK:
		c.fail(n, "+ puts texts together, and an enum is none: put a text in front, as in '' + #a + #b")
	case x.typ.k != anyK && y.typ.k != anyK:
		c.fail(n, "+ is for numbers and texts, and not for %s and %s", describe(x.typ), describe(y.typ))
	}
	plain := c.plain
	return binary(t, x, y, func(st *run.State, a, b any) (any, error) {
		v, err := concat(st, a, b, plain)
		if s, ok := v.(string); ok && !plain && len(s) > maxSum && length(s) > maxSum {
			return nil, run.Faulty("makes a text of more than %d characters, for which Spring throws", maxSum)
		}
		return v, err
	})
}

// maxSum is OpPlus.MAX_CONCATENATED_STRING_LENGTH. No key is that long, but a hash of a text or its
// length may be one. concat, the method, is Java's own and has no such bound.
const maxSum = 100_000

// countable reports whether + adds values of a type to numbers. Without a text, + of two of them
// is a sum.
func (c *compiler) countable(t typ) bool { return t.number() || t.k == charK && c.plain }

// concat decides by the values, as Spring does: one text makes a text of both, and without one
// they must be numbers. null has a text in Java, "null", which no key should have, and spell
// refuses it. The right side of a sum in Spring goes through the ConversionService
// (convertTypedValueToString), the one in Java through String.valueOf. They agree but for
// collections and arrays. 'l:' + #ids is l:1,2 there and l:[1, 2] here.
func concat(st *run.State, a, b any, plain bool) (any, error) {
	_, left := a.(string)
	_, right := b.(string)
	if !left && !right {
		return calculate("+", a, b, plain)
	}
	spelling := convert
	if plain {
		spelling = spell
	}
	s, err := spelling(st, a)
	if err != nil {
		return nil, err
	}
	t, err := spelling(st, b)
	if err != nil {
		return nil, err
	}
	if err := st.Spend(len(s) + len(t)); err != nil {
		return nil, err
	}
	return s + t, nil
}

// arithmetic calculates as Java does: with 32 bits, or with 64 if an operand is a long. The type
// of the result follows from those of the operands by Java's rule of promotion, in which a byte
// and a short become an int. Binary numeric promotion is JLS 5.6, and OpMultiply and its kin
// repeat it: a double first, then float, BigDecimal and BigInteger, then long, then int. The
// first four have no values here.
func arithmetic(op string, x, y *code, plain bool) *code {
	t := typ{k: intK}
	switch {
	case x.typ.k == anyK || y.typ.k == anyK:
		t.k = anyK
	case x.typ.k == longK || y.typ.k == longK:
		t.k = longK
	case x.typ.k == wholeK || y.typ.k == wholeK:
		t.k = wholeK
	}
	return binary(t, x, y, func(_ *run.State, a, b any) (any, error) { return calculate(op, a, b, plain) })
}

// calculate takes a character for a number only in plain Java. A value of a Go int is calculated
// in both sizes. If the results differ, only the declaration in Java knows which one is right,
// and the request is refused. The overflow is part of the key. 2147483647 + 1 is -2147483648 for
// an Integer, and a program in Go that adds in 64 bits would lock 2147483648, without an error
// on either side. Division by zero is an ArithmeticException in Java for whole numbers, and
// would be a panic in Go.
func calculate(op string, a, b any, plain bool) (any, error) {
	x, ok := integer(a)
	if ch, isChar := a.(char); isChar && plain {
		x, ok = int64(ch), true
	}
	y, ok2 := integer(b)
	if ch, isChar := b.(char); isChar && plain {
		y, ok2 = int64(ch), true
	}
	if !ok || !ok2 {
		return nil, run.Faulty("calculates with what is no number")
	}
	if (op == "/" || op == "%") && y == 0 {
		return nil, run.Faulty("divides by zero")
	}
	_, longA := a.(int64)
	_, longB := b.(int64)
	if longA || longB {
		return apply(op, x, y), nil
	}
	_, wholeA := a.(whole)
	_, wholeB := b.(whole)
	narrow := apply(op, int32(x), int32(y))
	if !wholeA && !wholeB {
		return narrow, nil
	}
	// An int or a long of Java: the two must agree. A value that no int holds says that it was a
	// long all along, so that only results which an int could have overflowed into are in doubt.
	wide := apply(op, x, y)
	if int64(int32(x)) != x || int64(int32(y)) != y {
		return wide, nil // no int has it
	}
	if int64(narrow) != wide {
		return nil, run.Faulty("calculates more than 32 bits, which only a long of Java can hold: declare it int32 or int64")
	}
	return whole(wide), nil
}

// apply wraps around as Java does. Go's integers wrap around as Java's do, and division rounds
// to zero in both. The smallest number divided by -1 is itself in both. A shift to a wider type
// before the operation would hide the overflow, so the type parameter is the size that Java
// calculates in. x % -1 is 0 for all x; it is written out as the processor's own instruction
// fails for the smallest number, which Go guards against and other compilers may not.
func apply[N int32 | int64](op string, x, y N) N {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	}
	if y == -1 {
		return 0
	}
	return x % y
}

// compare is an order: of numbers, and of texts by their UTF-16. Texts are compared by UTF-16,
// which is not the order of their bytes: 😀 comes before U+FFFD there, and behind it in Go. OpLT
// and its kin compare Numbers by value, and hand everything else to StandardTypeComparator,
// which takes Comparables of one class. String.compareTo goes by UTF-16. An enum is Comparable
// by its place in the declaration, which no value in Go has.
func (c *compiler) compare(n *node, op string, x, y *code) *code {
	for i, a := range []*code{x, y} {
		if k := a.typ.k; !a.typ.number() && k != textK && k != anyK && k != nullK || k == textK && c.plain {
			c.fail(n.args[i], "%s has no order here", describe(a.typ))
		}
	}
	if x.typ.number() && y.typ.k == textK || y.typ.number() && x.typ.k == textK {
		c.fail(n, "a number and a text have no order")
	}
	return binary(typ{k: boolK}, x, y, func(st *run.State, a, b any) (any, error) {
		o, err := order(st, a, b)
		return holds(op, o), err
	})
}

// They are all that is left of the four operators once there is an order.
func holds(op string, o int) bool {
	switch op {
	case "<":
		return o < 0
	case "<=":
		return o <= 0
	case ">":
		return o > 0
	}
	return o >= 0
}

// order compares as Spring does, for which null comes before everything. null before everything
// is Spring's own rule; Java's Comparator would throw. A request without an amount is below
// every bound, then, and `#amount < 100` is true for it. That is Spring's answer, and the branch
// that the Java program takes.
func order(st *run.State, a, b any) (int, error) {
	if a == nil || b == nil {
		switch a {
		case b:
			return 0, nil
		case nil:
			return -1, nil
		}
		return 1, nil
	}
	x, ok := integer(a)
	y, ok2 := integer(b)
	if ok && ok2 {
		return cmp.Compare(x, y), nil
	}
	s, ok := a.(string)
	t, ok2 := b.(string)
	if !ok || !ok2 {
		return 0, run.Faulty("compares what has no order")
	}
	u, v, err := unitsOfBoth(st, s, t)
	return slices.Compare(u, v), err
}

// between compiles its operands once each. The first edition wrote the left one twice, which
// doubled with each nesting. OperatorBetween wants a list of two and compares with both ends
// included. A list that is a fact would do in Spring; here it must be written out, so that the
// types of the bounds are known, and a list of three is an error at start.
func (c *compiler) between(n *node) *code {
	bounds := n.args[1]
	if bounds.kind != kindList || len(bounds.args) != 2 {
		c.fail(bounds, "between takes a list of two: {1, 5}")
	}
	x, from, to := c.compile(n.args[0]), c.compile(bounds.args[0]), c.compile(bounds.args[1])
	pair := &node{off: n.off, args: []*node{n.args[0], bounds.args[0]}}
	c.compare(pair, ">=", x, from)
	c.compare(&node{off: n.off, args: []*node{n.args[0], bounds.args[1]}}, "<=", x, to)
	return &code{typ: typ{k: boolK}, cost: x.cost + from.cost + to.cost + 2, value: func(st *run.State) (any, error) {
		v, err := x.value(st)
		if err != nil {
			return nil, err
		}
		a, err := from.value(st)
		if err != nil {
			return nil, err
		}
		b, err := to.value(st)
		if err != nil {
			return nil, err
		}
		low, err := order(st, v, a)
		if err != nil {
			return nil, err
		}
		high, err := order(st, v, b)
		return low >= 0 && high <= 0, err
	}}
}

// matches asks whether a pattern, which is written out, matches the whole text. Written as a
// method it takes the same way.
func (c *compiler) matches(n *node) *code {
	if length(n.args[1].text) > maxPattern {
		c.fail(n.args[1], "Spring takes no pattern of more than %d characters", maxPattern)
	}
	return c.matching(n, c.compile(n.args[0]))
}

// maxPattern is OperatorMatches.MAX_REGEX_LENGTH. The method of String has no such bound.
const maxPattern = 1000

// matching converts the subject as Spring does, so that an id matches by its digits. The whole
// text must match, as in Matcher.matches, while Go's MatchString looks for a part.
// OperatorMatches compiles the pattern when it first sees it and keeps it. A pattern that comes
// from the request would be compiled for each one here, could be of any size, and could be of a
// dialect that no table has checked: it is refused at start.
func (c *compiler) matching(n *node, x *code) *code {
	if n.args[1].kind != kindText {
		c.fail(n.args[1], "a pattern must be written out")
	}
	re, err := translate(n.args[1].text)
	if err != nil {
		c.fail(n.args[1], "%v", err)
	}
	if why := spellable(x.typ, false); why != "" || x.typ.k == boolK {
		c.fail(n.args[0], "matches is for texts and numbers, and not for %s", describe(x.typ))
	}
	return &code{typ: typ{k: boolK}, cost: x.cost + 1, value: func(st *run.State) (any, error) {
		v, err := x.value(st)
		if err != nil {
			return nil, err
		}
		s, err := convert(st, v)
		if err != nil {
			return nil, err
		}
		return re.matches(st, s)
	}}
}
