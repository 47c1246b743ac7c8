package spel

import "github.com/latchkey-go/latchkey/keyexpr/internal/run"

// Choices between two values, and the type of what is one or the other.

// ternary keeps a type only if both branches have it. Java would promote a number to the type of
// the other in its own language, which changes the text for a char alone; Spring leaves each
// value as it is. A list of the types that both branches may have is not kept. What depends on
// them asks the value. Ternary evaluates one branch, so that a division by zero in the other one
// is no error. In Java, JLS 15.25 gives `cond ? 'a' : 1` the type char and `cond ? 'a' : n` the
// type int, by whether the number is a constant that fits. One of them writes a, the other 97.
// That is too fine a point to hang a lock on.
func (c *compiler) ternary(n *node) *code {
	cond := c.compile(n.args[0])
	if c.guess != nil && cond.fixed == true {
		return c.compile(n.args[1])
	} else if c.guess != nil && cond.fixed == false {
		return c.compile(n.args[2])
	}
	yes, no := c.compile(n.args[1]), c.compile(n.args[2])
	c.wantBool(n.args[0], cond)
	t := join(yes.typ, no.typ)
	if c.plain && yes.typ.k != no.typ.k && (yes.typ.k == charK || no.typ.k == charK) {
		c.fail(n, "a char and a number make a char in Java, or do not: write both as texts")
	}
	if short := func(a, b *code) bool { return a.typ.k == smallK && b.fixed != nil && b.typ.k == intK }; c.plain && (short(yes, no) || short(no, yes)) {
		c.fail(n, "a short and a number that is written out make a short in Java, or do not: write both as texts")
	}
	wider := func(x any) any { return x }
	if c.plain {
		t, wider = widened(yes.typ, no.typ, t)
	}
	return &code{typ: t, cost: cond.cost + yes.cost + no.cost, value: func(st *run.State) (any, error) {
		holds, err := test(st, cond)
		if err != nil {
			return nil, err
		}
		x := no
		if holds {
			x = yes
		}
		v, err := x.value(st)
		return wider(v), err
	}}
}

// widened is the type of a choice between two numbers in plain Java, and what it makes of either: by
// JLS 15.25.2, an int beside a long is a long, whichever of the two is chosen. Beside what may be
// either, it may be either as well. joined is the type in SpringEL, which leaves values alone.
func widened(a, b, joined typ) (t typ, wider func(any) any) {
	has := func(k jkind) bool { return a.k == k || b.k == k }
	unknown := has(anyK) && (a.number() || b.number())
	switch {
	case !unknown && (!a.number() || !b.number() || a.k == b.k):
		return joined, func(x any) any { return x }
	case has(longK) && !unknown:
		t.k = longK
	case has(wholeK) || unknown:
		t.k = wholeK
	default:
		t.k = intK
	}
	k := t.k
	if unknown {
		t = joined
	}
	return t, func(x any) any {
		i, ok := integer(x)
		switch {
		case !ok:
			return x
		case k == longK:
			return i
		case k == wholeK:
			return whole(i)
		}
		return int32(i)
	}
}

// join is the type of what is one or the other, as far as it is known at start. Whatever is not
// known to be the same in both is not known at all, and each value decides for itself. What is
// refused stays refused, since either branch may be taken. null takes any type, as it is spelt
// by nobody: whoever reads the value meets it and refuses it there. A pointer on either side
// means that null may come, which the quick way through a path does not ask about.
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
// for null here, and no other empty value. Elvis.getValueInternal asks for null or an empty
// String since Spring 3; Groovy, whence it came, asks for truth, where 0 and an empty list are
// false as well. A count of zero is a value here. An enum is never an empty String, and a String
// may be: for a named type both answers are possible, and an empty one is refused.
func (c *compiler) elvis(n *node) *code {
	x := c.compile(n.args[0])
	if c.guess != nil && x.fixed != nil && x.fixed != "" {
		return x
	}
	y := c.compile(n.args[1])
	return &code{typ: join(x.typ, y.typ), cost: x.cost + y.cost + 1, value: func(st *run.State) (any, error) {
		v, err := x.value(st)
		if err != nil {
			return nil, err
		}
		// An enum without a value is null in Java, for which ?: stands in, and a String may be
		// empty, for which it does as well; but an enum of Go whose zero value is "" may also
		// stand for a constant of its own.
		if name, ok := v.(named); ok && name.text == "" {
			return nil, run.Faulty("is empty, which ?: tells from null if it is an enum: make it a string")
		}
		if v == nil || v == "" {
			return y.value(st)
		}
		return v, nil
	}}
}
