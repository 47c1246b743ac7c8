package spel

import (
	"context"
	"slices"
	"strconv"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// An expression that reads nothing of the request locks one key for the whole world. That is
// more than to name no parameter: 'a' ?: #order.id names one and never looks at it, and
// #order.id == #order.id makes the same of all orders. What follows is the rule that templates
// have, for Java's operators; the two agree, so that a key which is moved from one language to
// the other stays refused, or stays allowed. It takes each node when it has been compiled, and
// notes whether it can differ between two requests. It decides nothing by itself; key.go asks
// once, for the whole key.

// insight is what is known at start of what a node comes to.
type insight struct {
	reads bool // something of the request
	value any  // what it always is; nil if that is not known
}

// note finds out what a node reads that was just compiled; c.reads says so of its operands. A
// constant is evaluated where it stands alone, and not within a projection, whose element it may
// not know. A condition that is the same for all decides which branch is read, and only that
// branch counts. true ? 'a' : #order.id names a parameter and locks one key.
func (c *compiler) note(n *node, x *code) {
	in := insight{reads: c.reads}
	switch value, same := c.sameForAll(n); {
	case same:
		in = insight{value: value}
	case !c.reads && len(c.elems) == 0 && !callsFunction(n):
		in.value = constantOf(x)
	default:
		if taken := c.taken(n); taken != nil {
			in = c.insights[taken]
		}
	}
	c.insights[n], c.reads = in, in.reads
}

// constantOf evaluates what needs no request. What fails now fails for each request, and is an
// error then. It runs at start under a twentieth of a request's budget. A constant that can't be
// computed within that is not known, and counts as what it reads.
func constantOf(x *code) any {
	if x.typ.k != boolK && x.typ.k != textK {
		return nil // nothing is decided by others
	}
	st := run.NewState(context.Background(), nil, nil)
	defer st.Release()
	_, _ = st.Step(run.MaxSteps*19/20), st.Spend(run.MaxBytes*19/20) // a key can have many constants
	defer func() { _ = recover() }()
	v, err := x.value(st)
	if err != nil {
		return nil
	}
	return v
}

// taken returns the operand that a node comes to, if it is always the same one: nothing of the
// others is read. It is what a choice comes to, and the only element of a list that is looked
// at. Ternary and Elvis take one of theirs, and an InlineList with a number behind it has one
// element that anybody looks at.
func (c *compiler) taken(n *node) *node {
	switch n.kind {
	case kindTernary:
		switch yes := c.insights[n.args[0]].value; {
		case yes == true, alike(n.args[1], n.args[2]):
			return n.args[1]
		case yes == false:
			return n.args[2]
		}
	case kindElvis:
		if text, ok := c.insights[n.args[0]].value.(string); ok && text != "" {
			return n.args[0]
		}
	case kindIndex:
		list, by := n.args[0], n.args[1]
		if i, err := strconv.Atoi(by.text); err == nil && by.kind == kindNumber && list.kind == kindList && i < len(list.args) {
			return list.args[i]
		}
	}
	return nil
}

// sameForAll reports whether a node is the same for all requests although its operands are not,
// and what it is then if it is a test: the operands are equal, or one of them leaves nothing of
// the other. There is no algebra beyond that, as in templates: what it finds is a slip of the
// pen. x == x is true of everything in Java but NaN, which no key has.
func (c *compiler) sameForAll(n *node) (value any, same bool) {
	switch {
	case n.kind == kindOp && (n.text == "&&" || n.text == "||"):
		decides := n.text == "||"
		left, right := c.insights[n.args[0]].value, c.insights[n.args[1]].value
		if left == decides || right == decides {
			return decides, true
		}
		return !decides, left != nil && right != nil
	case n.kind == kindUnary && n.text == "!":
		v, ok := c.insights[n.args[0]].value.(bool)
		return !v, ok
	case n.kind == kindOp:
		return sameResult(n.text, n.args[0], n.args[1])
	case n.kind == kindCall && len(n.args) == 2 && n.args[0] != nil:
		return sameResult(n.text, n.args[0], n.args[1])
	}
	return nil, false
}

// sameResult is sameForAll for an operator, or a method of one argument.
func sameResult(operator string, a, b *node) (value any, same bool) {
	number := func(n *node, text string) bool { return n.kind == kindNumber && (n.text == text || n.text == text+"L") }
	empty := b.kind == kindText && b.text == ""
	switch operator {
	case "==", "<=", ">=", "equals", "equalsIgnoreCase":
		return true, alike(a, b)
	case "!=", "<", ">":
		return false, alike(a, b)
	case "startsWith", "endsWith":
		return true, alike(a, b) || empty
	case "contains": // which a list has as well, and may lack the empty text
		return true, alike(a, b)
	case "matches":
		return true, b.kind == kindText && b.text == ".*"
	case "-":
		return nil, alike(a, b)
	case "*":
		return nil, number(a, "0") || number(b, "0")
	case "%":
		return nil, alike(a, b) || number(a, "0") || number(b, "1")
	case "/":
		return nil, alike(a, b) || number(a, "0")
	}
	return nil, false
}

// alike reports whether two nodes are written alike, and so come to the same. A function of the
// user's may know more than its arguments. The same text in the same place of the tree comes to
// the same value, as nothing in an expression changes anything.
func alike(a, b *node) bool {
	switch {
	case a == nil || b == nil:
		return false
	case a.kind != b.kind || a.text != b.text || a.safe != b.safe || len(a.args) != len(b.args):
		return false
	}
	return slices.EqualFunc(a.args, b.args, alike)
}

// callsFunction reports whether a function of the user's is called, which is for requests, and
// not for the start.
func callsFunction(n *node) bool {
	if n == nil {
		return true // in front of #name(…)
	}
	return slices.ContainsFunc(n.args, callsFunction)
}

// names reports whether a node names anything: a parameter, a function, or the element of a
// projection.
func names(n *node) bool {
	if n == nil {
		return true // of #name(…), which is a function
	}
	return n.kind == kindVar || n.kind == kindThis || n.kind == kindName || slices.ContainsFunc(n.args, names)
}
