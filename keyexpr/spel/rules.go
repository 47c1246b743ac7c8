package spel

import (
	"slices"

	"github.com/latchkey-go/latchkey/keyexpr/spel/internal/insight"
)

// What is known of a node although its operands are not: those of templates, for Java's operators
// and methods. Operands are written alike, or one of them leaves nothing of the other, or the node
// takes one of some values. There is no algebra beyond that, as in templates: what it finds is a
// slip of the pen.

// rule returns what is known of a node by its rule, if it has one that says something.
func (c *compiler) rule(n *node, x *code) (in insight.Insight, ok bool) {
	switch n.kind {
	case kindTernary: // the test makes no difference
		return c.as(n.args[1]), alike(n.args[1], n.args[2])
	case kindIndex:
		return c.taken(n.args[0], n.args[1])
	case kindSelect:
		return c.ofSelection(n)
	case kindOp:
		if n.text == "&&" || n.text == "||" {
			decides := n.text == "||"
			left, right := c.insights[n.args[0]], c.insights[n.args[1]]
			return c.seen.Of(decides), left.Only(decides) || right.Only(decides)
		}
		return c.ofPair(n, x)
	case kindCall:
		if n.args[0] != nil {
			return c.ofMethod(n, x)
		}
	}
	return in, false
}

// as is the insight into a node that comes to what one of its operands comes to.
func (c *compiler) as(operand *node) insight.Insight {
	in := c.insights[operand].Insight
	in.Asks = in.Asks || c.seen.Asks
	return in
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

// is is the insight into a node that comes to one of values, or to null behind ?. .
func (c *compiler) is(n *node, values ...any) insight.Insight {
	if n.safe {
		values = append(slices.Clip(values), nil)
	}
	return c.seen.Of(values...)
}

// number is is for a number of the type of x. Where that is not known, it may be any.
func (c *compiler) number(n *node, x *code, i int64) insight.Insight {
	switch x.typ.k {
	case intK:
		return c.is(n, int32(i))
	case longK:
		return c.is(n, i)
	}
	return c.is(n, int32(i), i, whole(i))
}

// only reports whether a node comes to a number and nothing else.
func (c *compiler) only(n *node, i int64) bool {
	in := c.insights[n]
	other := func(v insight.Value) bool { x, ok := integer(v.Is); return !ok || x != i }
	return in.IsKnown() && len(in.Values) > 0 && !slices.ContainsFunc(in.Values, other)
}

// ofSelection is the rule of a selection whose test is the same for all elements.
func (c *compiler) ofSelection(n *node) (insight.Insight, bool) {
	switch test := c.insights[n.args[1]]; {
	case test.Only(false) && n.text == "?":
		return c.is(n, list{made: []any{}}), true
	case test.Only(false):
		return c.is(n, nil), true
	case test.Only(true) && n.text == "?":
		return c.as(n.args[0]), true
	case test.Only(true) && n.text == "^":
		return c.element(n.args[0], 0)
	case test.Only(true):
		return c.element(n.args[0], int64(len(n.args[0].args)-1))
	}
	return insight.Insight{}, false
}

// ofPair is the rule of an operator, or a method of one argument.
func (c *compiler) ofPair(n *node, x *code) (insight.Insight, bool) {
	a, b := n.args[0], n.args[1]
	left, right, same := c.insights[a], c.insights[b], alike(a, b)
	empty := right.Only("")
	switch n.text {
	case "==", "!=", "<", "<=", ">", ">=":
		return c.ofComparison(n)
	case "between":
		return c.is(n, true), alike(a, b.args[0]) && alike(a, b.args[1])
	case "equals", "equalsIgnoreCase":
		return c.is(n, true), same
	case "startsWith", "endsWith":
		return c.is(n, true), same || empty
	case "contains": // which a list has as well, and may lack the empty text
		held := a.kind == kindList && slices.ContainsFunc(a.args, func(e *node) bool { return alike(e, b) })
		return c.is(n, true), same || held || empty && left.typ.k == textK
	case "indexOf":
		return c.is(n, int32(0)), same || empty && left.typ.k == textK
	case "lastIndexOf":
		return c.is(n, int32(0)), same
	case "matches":
		return c.is(n, true), b.kind == kindText && matchesAll[b.text]
	case "-":
		return c.number(n, x, 0), same
	case "*":
		return c.number(n, x, 0), c.only(a, 0) || c.only(b, 0)
	case "%":
		return c.number(n, x, 0), same || c.only(a, 0) || c.only(b, 1) || c.only(b, -1)
	case "/":
		if same {
			return c.number(n, x, 1), true
		}
		return c.number(n, x, 0), c.only(a, 0)
	case "get":
		return c.taken(a, b)
	}
	return insight.Insight{}, false
}

// matchesAll are patterns that people write for anything. The dot stands for no line break, which
// no id has.
var matchesAll = map[string]bool{".*": true, "^.*$": true, "(?s).*": true, `[\s\S]*`: true}

// ofComparison is the rule of a comparison of what is equal, of what is never null with null, and
// of what is never negative with what is not above 0.
func (c *compiler) ofComparison(n *node) (insight.Insight, bool) {
	a, b := n.args[0], n.args[1]
	left, right := c.insights[a], c.insights[b]
	result := func(order int) bool {
		switch n.text {
		case "==":
			return order == 0
		case "!=":
			return order != 0
		}
		return holds(n.text, order)
	}
	switch {
	case alike(a, b):
		return c.is(n, result(0)), true
	case right.Only(nil) && left.present:
		return c.is(n, result(1)), true
	case left.Only(nil) && right.present:
		return c.is(n, result(-1)), true
	case counts(a) && c.notAbove(b):
		return c.is(n, result(1)), !c.only(b, 0) || result(0) == result(1)
	case counts(b) && c.notAbove(a):
		return c.is(n, result(-1)), !c.only(a, 0) || result(0) == result(-1)
	}
	return insight.Insight{}, false
}

// counts reports whether a node is a number that is never negative.
func counts(n *node) bool {
	return n.kind == kindCall && !n.safe && len(n.args) == 1 && n.args[0] != nil && (n.text == "size" || n.text == "length")
}

// notAbove reports whether a node is known to come to one number, and that to none above 0.
func (c *compiler) notAbove(n *node) bool {
	v, _ := c.insights[n].Single()
	i, ok := integer(v)
	return ok && i <= 0
}

// ofMethod is the rule of a method.
func (c *compiler) ofMethod(n *node, x *code) (insight.Insight, bool) {
	switch {
	case n.text == "size" && len(n.args) == 1:
		if size, ok := sizeOf(n.args[0]); ok {
			return c.is(n, int32(size)), true
		}
	case n.text == "substring" && len(n.args) == 3 && alike(n.args[1], n.args[2]):
		return c.is(n, ""), true
	case n.text == "replace" && len(n.args) == 3 && alike(n.args[0], n.args[1]): // which is the whole of it
		return c.as(n.args[2]), !n.safe
	case n.text == "replace" && len(n.args) == 3 && alike(n.args[1], n.args[2]):
		return c.as(n.args[0]), true
	case len(n.args) == 2:
		return c.ofPair(n, x)
	}
	return insight.Insight{}, false
}

// sizeOf returns the size of a list that stands in the expression, or is made of one element by
// element.
func sizeOf(n *node) (int, bool) {
	switch n.kind {
	case kindList:
		return len(n.args), true
	case kindProject:
		return sizeOf(n.args[0])
	}
	return 0, false
}

// taken is the rule of what takes an element of a list by an index.
func (c *compiler) taken(list, by *node) (insight.Insight, bool) {
	v, _ := c.insights[by].Single()
	i, ok := integer(v)
	if !ok {
		return insight.Insight{}, false
	}
	return c.element(list, i)
}

// element is the insight into an element of a list that stands in the expression: nothing of the
// others is read. Indexes beyond the end are left to the request.
func (c *compiler) element(list *node, i int64) (insight.Insight, bool) {
	if list.kind != kindList || i < 0 || i >= int64(len(list.args)) {
		return insight.Insight{}, false
	}
	return c.as(list.args[i]), true
}

// ofUnknown is the insight into a node that can't be tried, as it has an operand of which nothing
// is known: a test is true or false, and who takes an element of a list takes one of them.
func (c *compiler) ofUnknown(n *node, x *code) insight.Insight {
	switch {
	case n.kind == kindTernary:
		yes, no := c.insights[n.args[0]].Branches()
		return c.listOver(c.seen.Or(c.elementsOf(n.args[1]).Within(yes), c.elementsOf(n.args[2]).Within(no)))
	case n.kind == kindList:
		list := make([]insight.Insight, len(n.args))
		for i, a := range n.args {
			list[i] = c.insights[a].Insight
		}
		return c.listOver(c.seen.Or(list...))
	case n.kind == kindProject:
		return c.listOver(c.insights[n.args[1]].Insight)
	case n.kind == kindSelect && n.text == "?":
		return c.listOver(c.elementsOf(n.args[0]))
	case n.kind == kindSelect:
		if elem := c.elementsOf(n.args[0]); elem.IsKnown() {
			return c.seen.Or(elem, insight.Always(nil))
		}
	case n.kind == kindIndex, n.kind == kindCall && n.text == "get" && len(n.args) == 2:
		if elem := c.elementsOf(n.args[0]); elem.IsKnown() && n.safe {
			return c.seen.Or(elem, insight.Always(nil))
		} else if elem.IsKnown() {
			return c.seen.Or(elem)
		}
	}
	return c.ofBool(c.seen, n, x)
}

func (c *compiler) listOver(elem insight.Insight) insight.Insight {
	in := c.seen
	in.Elem = &elem
	return in
}
