package keyexpr

import (
	"reflect"
	"regexp/syntax"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// What is known of a node although its operands are not. There are three reasons: its operands are
// written alike, as in a == a, which is mostly a slip of the pen; one of them leaves nothing of the
// other, as in a * 0; or the node takes one of some values, whichever that is. Everything else is
// found out by trying (rewrite_reads.go).
//
// A rule looks at a node and what is known of its operands, and finds nothing that is spread over
// several nodes: req.Seq + 1 - req.Seq is the same for all, and starts. To find all of these is not
// possible, and to find more of them is not worth it, as nobody writes them. What counts is the
// other direction. A template that is refused with reason has a way out, OneKey; one that is
// refused without reason has made somebody say a thing that is not true.

// rule returns what is known of a node by its rule, if it has one that says something.
func (c *compilation) rule(node ast.Node) (in run.Insight, ok bool) {
	switch n := node.(type) {
	case *ast.IdentifierNode: // a variable, which has said what it is
		return c.seen, true
	case *ast.VariableDeclaratorNode:
		return c.as(n.Expr), true
	case *ast.SequenceNode:
		return c.as(n.Nodes[len(n.Nodes)-1]), true
	case *ast.ConditionalNode:
		return c.ofChoice(n)
	case *ast.SliceNode:
		return c.ofSlice(n)
	case *ast.MemberNode:
		return c.taken(n.Node, n.Property)
	case *ast.BinaryNode:
		if decides, ok := deciding[n.Operator]; ok {
			left, right := c.known[n.Left], c.known[n.Right]
			return c.seen.Of(decides), left.Only(decides) || right.Only(decides)
		}
		in, ok := c.ofPair(n.Operator, n.Left, n.Right)
		if t := c.typeOf(n); t == durationType {
			return run.Insight{Asks: true}, ok // the same for all, and no number
		}
		return in, ok
	case *ast.BuiltinNode:
		return c.ofFunction(n.Name, n.Arguments)
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok {
			return c.ofFunction(name.Value, n.Arguments)
		}
	}
	return in, false
}

// as is the insight into a node that comes to what one of its operands comes to.
func (c *compilation) as(operand ast.Node) run.Insight {
	in := c.known[operand]
	in.Asks = in.Asks || c.seen.Asks
	return in
}

// ofChoice is the rule of a choice of which one branch was compiled, or whose test makes no
// difference.
func (c *compilation) ofChoice(n *ast.ConditionalNode) (run.Insight, bool) {
	if _, ok := c.known[n.Exp1]; !ok {
		return c.as(n.Exp2), true
	}
	_, ok := c.known[n.Exp2]
	return c.as(n.Exp1), !ok || alike(n.Exp1, n.Exp2)
}

// alike reports whether two nodes are written alike, and so come to the same, as facts don't change
// while a key is made. Errors don't count. req.Tags[9] == req.Tags[9] is an error for a request
// without ten tags, and true for all others.
func alike(a, b ast.Node) bool { return bare(a).String() == bare(b).String() }

// bare returns a node without what the checker has put around it.
func bare(n ast.Node) ast.Node {
	if call, ok := n.(*ast.CallNode); ok {
		if name := call.Callee.String(); name == basicName || name == anyName {
			return call.Arguments[0]
		}
	}
	return n
}

// deciding are the operators that one operand can decide, and what that operand is. and is
// decided by false and or by true; the other operand may say what it likes, on whichever side it
// stands.
var deciding = map[string]bool{"and": false, "&&": false, "or": true, "||": true}

// ofPair is the rule of an operator, or a function of two arguments.
func (c *compilation) ofPair(operator string, a, b ast.Node) (run.Insight, bool) {
	left, right, same := c.known[a], c.known[b], alike(a, b)
	if op, ok := comparisons[operator]; ok {
		return c.ofComparison(op, a, b)
	}
	switch operator {
	case "contains", "startsWith", "endsWith", "hasPrefix", "hasSuffix":
		return c.seen.Of(true), (same || right.Only("")) && !left.MayBe(nil)
	case "matches":
		pattern, ok := b.(*ast.StringNode)
		return c.seen.Of(true), ok && (matchesAll(pattern.Value) || pattern.Value == "^.*$") && !left.MayBe(nil)
	case "in":
		list, ok := writtenOut(b)
		found := slices.ContainsFunc(list, func(n ast.Node) bool { return alike(n, a) })
		return c.seen.Of(found), ok && (found || len(list) == 0)
	case "indexOf":
		return c.seen.Of(0), same || right.Only("")
	case "lastIndexOf", "-":
		return c.seen.Of(0), same
	case "trim", "trimPrefix", "trimSuffix":
		return c.seen.Of(""), same
	case "*":
		return c.seen.Of(0), left.Only(0) || right.Only(0)
	case "%", "mod":
		return c.seen.Of(0), same || left.Only(0) || right.Only(1) || right.Only(-1)
	case "div":
		if left.Only(0) {
			return c.seen.Of(0), true
		}
		return c.seen.Of(1), same
	case "shard":
		return c.seen.Of(0), right.Only(1)
	case "take":
		return c.seen.Of([]any{}), right.Only(0)
	case "get":
		return c.taken(a, b)
	}
	return run.Insight{}, false
}

// ofComparison is the rule of a comparison of what is equal, of what is never nil with nil, and of
// what is never negative with what is not above 0.
func (c *compilation) ofComparison(op comparison, a, b ast.Node) (run.Insight, bool) {
	left, right := c.known[a], c.known[b]
	switch {
	case alike(a, b):
		return c.seen.Of(op.holds(0)), true
	case op.engine == nil && (right.Only(nil) && c.neverNil(a) || left.Only(nil) && c.neverNil(b)):
		return c.seen.Of(op.holds(1)), true
	}
	order := 1
	n, ok := c.number(b)
	if !ok || !c.neverNegative(a) {
		order = -1
		n, ok = c.number(a)
		ok = ok && c.neverNegative(b)
	}
	return c.seen.Of(op.holds(order)), ok && (n < 0 || n == 0 && op.holds(order) == op.holds(0))
}

// neverNil reports whether a node is a field, by way of fields, whose type has no nil.
func (c *compilation) neverNil(n ast.Node) bool {
	p, ok := c.pathOf(n)
	return ok && neverNil(&code{path: p, of: c.typeOf(n)})
}

func neverNil(x *code) bool {
	return x.of != nil && (x.of.Kind() <= reflect.Array || x.of.Kind() == reflect.String || x.of.Kind() == reflect.Struct) && x.path.Fields()
}

// neverNegative reports whether a node is a number without a sign: one of such a type, or one that
// counts.
func (c *compilation) neverNegative(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BuiltinNode:
		return n.Name == "len" || n.Name == "count"
	case *ast.PointerNode:
		return n.Name == "index"
	case *ast.CallNode:
		return slices.Contains([]string{"shard", "mod"}, n.Callee.String())
	}
	t := c.typeOf(n)
	return t != nil && t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr
}

// ofFunction is the rule of a function, by name and arguments.
func (c *compilation) ofFunction(name string, args []ast.Node) (run.Insight, bool) {
	if l, ok := loops[name]; ok {
		return c.ofLoop(name, l, args)
	}
	switch {
	case name == "len":
		if n, ok := c.length(args[0]); ok {
			return c.seen.Of(n), true
		}
	case name == "first":
		return c.taken(args[0], &ast.IntegerNode{})
	case name == "last":
		return c.taken(args[0], &ast.IntegerNode{Value: -1})
	case name == "uniq":
		if v, ok := c.elementsOf(args[0]).Single(); ok {
			return c.seen.Of([]any{}, []any{v}), true
		}
	case name == "replace" && alike(args[0], args[1]): // which is the whole of it
		return c.as(args[2]), true
	case name == "replace" && alike(args[1], args[2]):
		return c.as(args[0]), true
	case len(args) == 2:
		return c.ofPair(name, args[0], args[1])
	}
	return run.Insight{}, false
}

// ofSlice finds pieces that are empty whatever they are cut from: with an end that is not behind
// the beginning, or at the very beginning. Bounds of one sign can be compared.
func (c *compilation) ofSlice(n *ast.SliceNode) (run.Insight, bool) {
	from, _ := c.number(n.From)
	to, ok := c.number(n.To)
	if !ok || to != 0 && (to > from || (to < 0) != (from < 0)) {
		return run.Insight{}, false
	}
	switch t := c.typeOf(n.Node); {
	case t == nil:
		return c.seen.Of("", []any{}), true
	case pointee(t).Kind() == reflect.String:
		return c.seen.Of(""), true
	}
	return c.seen.Of([]any{}), true
}

// number returns the number that a node, if there is one, is known to come to.
func (c *compilation) number(n ast.Node) (i int, ok bool) {
	v, _ := c.known[n].Single()
	i, ok = v.(int)
	return i, ok
}

// matchesAll reports whether a pattern finds itself in every text, as it takes nothing at the
// beginning of one.
func matchesAll(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && takesNothing(re)
}

func takesNothing(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpStar, syntax.OpQuest, syntax.OpBeginLine, syntax.OpBeginText:
		return true
	case syntax.OpRepeat:
		return re.Min == 0 || takesNothing(re.Sub[0])
	case syntax.OpCapture, syntax.OpPlus:
		return takesNothing(re.Sub[0])
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, takesNothing)
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(re *syntax.Regexp) bool { return !takesNothing(re) })
	}
	return false
}

// ofUnknown is the insight into a node that can't be tried, as it has an operand of which nothing
// is known: a test is true or false, and who takes an element of a list takes one of them.
func (c *compilation) ofUnknown(node ast.Node, x *code) run.Insight {
	switch n := node.(type) {
	case *ast.ConditionalNode:
		return c.either(n.Cond, n.Exp1, n.Exp2)
	case *ast.ArrayNode:
		return c.listOf(n.Nodes...)
	case *ast.MemberNode:
		return c.elementOf(n.Node, false)
	case *ast.SliceNode:
		return c.listLike(n.Node)
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok && name.Value == "uniq" {
			return c.listLike(n.Arguments[0])
		}
	case *ast.BuiltinNode:
		if in, ok := c.ofListFunction(n.Name, n.Arguments); ok {
			return in
		}
	}
	if x.test != nil {
		return c.ofTest(c.seen, node)
	}
	return c.seen
}
