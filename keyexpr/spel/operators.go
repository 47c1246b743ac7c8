package spel

import (
	"cmp"
	"slices"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Operators, by Spring's rules where they are not Java's: + takes a list for its elements with
// commas, == converts nothing, null can be compared and comes first. Each has a part that is done
// at start, which looks at types and refuses, and one that is done for each request, which looks at
// values and may still refuse if a type was not known.

// operator compiles an operator of two operands. && and || stop at the left one if it decides.
func (c *compiler) operator(n *node) *code {
	x, y := c.compile(n.args[0]), c.compile(n.args[1])
	switch n.text {
	case "+":
		return c.plus(n, x, y)
	case "-", "*", "/", "%":
		c.wantNumber(n, n.args[0], x)
		c.wantNumber(n, n.args[1], y)
		return arithmetic(n.text, x, y)
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
	return c.compare(n, x, y)
}

// unary takes -x for 0 - x, which wraps around in the same way. Spring throws for ! of null.
func (c *compiler) unary(n *node) *code {
	x := c.compile(n.args[0])
	if n.text == "!" {
		c.wantBool(n.args[0], x)
		return &code{typ: typ{k: boolK}, cost: x.cost + 1, value: func(st *run.State) (any, error) {
			b, err := test(st, x)
			return !b, err
		}}
	}
	c.wantNumber(n, n, x)
	if n.text == "+" {
		return binary(x.typ, x, constant(int32(0), typ{k: intK}), func(_ *run.State, a, zero any) (any, error) {
			_, err := calculate("+", a, zero) // which null is not
			return a, err
		})
	}
	return arithmetic("-", constant(int32(0), typ{k: intK}), x)
}

func (c *compiler) wantNumber(n, operand *node, x *code) {
	if !x.typ.number() && x.typ.k != anyK {
		c.fail(operand, "%s is for numbers here, and not for %s", n.text, describe(x.typ))
	}
}

// binary evaluates both operands, the left one first.
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

// plus adds numbers, and puts texts together if one of its operands is one. An enum is none, and
// Spring throws for enum + enum, as for true + 1.
func (c *compiler) plus(n *node, x, y *code) *code {
	for i, a := range []*code{x, y} {
		if why := spellable(a.typ, !c.plain); why != "" {
			c.fail(n.args[i], "this %s", why)
		}
	}
	t := typ{}
	switch {
	case x.typ.k == textK || y.typ.k == textK:
		t.k = textK
	case x.typ.number() && y.typ.number():
		return arithmetic("+", x, y)
	case x.typ.k == nameK || y.typ.k == nameK:
		c.fail(n, "+ puts texts together, and an enum is none: put a text in front, as in '' + #a + #b")
	case x.typ.k != anyK && y.typ.k != anyK:
		c.fail(n, "+ is for numbers and texts, and not for %s and %s", describe(x.typ), describe(y.typ))
	}
	plain := c.plain
	sum := binary(t, x, y, func(st *run.State, a, b any) (any, error) { return add(st, a, b, plain) })
	if t.k == textK {
		sum.sum = append(operands(n.args[0], x), operands(n.args[1], y)...)
	}
	return sum
}

// operands are those of a sum of texts, or x alone.
func operands(n *node, x *code) []operand {
	if x.sum != nil {
		return x.sum
	}
	return []operand{{n, x}}
}

// maxSum is OpPlus.MAX_CONCATENATED_STRING_LENGTH. The method concat has no such bound.
const maxSum = 100_000

// add decides by the values, as Spring does: one text makes a text of both, and without one they
// must be numbers.
func add(st *run.State, a, b any, plain bool) (any, error) {
	_, left := a.(string)
	_, right := b.(string)
	if !left && !right {
		return calculate("+", a, b)
	}
	s, err := concat(st, a, b, plain)
	if err == nil && !plain && len(s) > maxSum && length(s) > maxSum {
		err = run.Faulty("makes a text of more than %d characters, for which Spring throws", maxSum)
	}
	return s, err
}

// concat puts the texts of two values together. Spring's + converts a list to its elements with
// commas, and Java's own + does not.
func concat(st *run.State, a, b any, plain bool) (string, error) {
	spelling := convert
	if plain {
		spelling = spell
	}
	s, err := spelling(st, a)
	if err != nil {
		return "", err
	}
	t, err := spelling(st, b)
	if err != nil {
		return "", err
	}
	if err := st.Spend(len(s) + len(t)); err != nil {
		return "", err
	}
	return s + t, nil
}

// arithmetic calculates as Java does: with 32 bits, or with 64 if an operand is a long. A byte and a
// short become an int.
func arithmetic(op string, x, y *code) *code {
	t := typ{k: intK}
	for _, k := range []jkind{wholeK, longK, anyK} { // the last of these that an operand has
		if x.typ.k == k || y.typ.k == k {
			t.k = k
		}
	}
	return binary(t, x, y, func(_ *run.State, a, b any) (any, error) { return calculate(op, a, b) })
}

// calculate wraps around as Java does, as that is part of the key. A value of a Go int is calculated
// in both sizes: if the results differ, only the declaration in Java knows which one is right. A
// value that no int holds says that it was a long all along.
func calculate(op string, a, b any) (any, error) {
	x, ok := integer(a)
	y, ok2 := integer(b)
	if !ok || !ok2 {
		return nil, run.Faulty("calculates with what is no number")
	}
	if (op == "/" || op == "%") && y == 0 {
		return nil, run.Faulty("divides by zero")
	}
	_, longA := a.(int64)
	_, longB := b.(int64)
	_, wholeA := a.(whole)
	_, wholeB := b.(whole)
	z := apply(op, x, y)
	switch {
	case longA || longB:
		return z, nil
	case !wholeA && !wholeB:
		return int32(z), nil
	case int64(int32(x)) != x || int64(int32(y)) != y:
		return z, nil
	case int64(int32(z)) != z:
		return nil, run.Faulty("calculates more than 32 bits, which only a long of Java can hold: declare it int32 or int64")
	}
	return whole(z), nil
}

// apply calculates with 64 bits, of which the lower 32 are what an int of Java comes to.
func apply(op string, x, y int64) int64 {
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
	return x % y
}

// compare is an order: of numbers, and of texts by their UTF-16. An enum is ordered by its place in
// the declaration, which no value of Go has.
func (c *compiler) compare(n *node, x, y *code) *code {
	for i, a := range []*code{x, y} {
		if k := a.typ.k; !a.typ.number() && k != textK && k != anyK && k != nullK || k == textK && c.plain {
			c.fail(n.args[i], "%s has no order here", describe(a.typ))
		}
	}
	if x.typ.number() && y.typ.k == textK || y.typ.number() && x.typ.k == textK {
		c.fail(n, "a number and a text have no order")
	}
	plain := c.plain
	return binary(typ{k: boolK}, x, y, func(st *run.State, a, b any) (any, error) {
		o, err := order(st, a, b)
		if plain && (a == nil || b == nil) {
			err = errUnboxed
		}
		switch n.text {
		case "<":
			return o < 0, err
		case "<=":
			return o <= 0, err
		case ">":
			return o > 0, err
		}
		return o >= 0, err
	})
}

var errUnboxed = run.Faulty("compares null with a number or a boolean, for which Java throws")

// order compares as Spring does, for which null comes before everything.
func order(st *run.State, a, b any) (int, error) {
	switch {
	case a == nil && b == nil:
		return 0, nil
	case a == nil:
		return -1, nil
	case b == nil:
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
	u, err := units(st, s)
	if err != nil {
		return 0, err
	}
	v, err := units(st, t)
	return slices.Compare(u, v), err
}
