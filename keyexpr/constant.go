package keyexpr

import (
	"reflect"
	"regexp"

	"github.com/expr-lang/expr/ast"
)

// Constant reports whether the condition is known to come to the same for all requests that it can be evaluated for, and
// what that is. `req.ID != req.ID` never holds, and `req.Urgent or true` always does. What is reported is found out
// without a request, and never depends on a value: `req.Amount > 1000000` is not constant.
func (c *Condition) Constant() (holds, ok bool) { return c.holds, c.constant }

// constantCondition is Constant for a condition that was compiled. What is known of keys is known of conditions, but for
// what keys don't have: a function that says something else each time it is called, and a float, which may not be equal
// to itself.
func (c *compilation) constantCondition(node ast.Node) (holds, ok bool) {
	if value, known := c.known[node].Single(); known {
		holds, ok = value.(bool)
	}
	v := doubtVisitor{c: c, calls: map[string]bool{}}
	ast.Walk(&node, &v)
	return holds && !v.doubt, ok && !v.doubt
}

// doubtVisitor looks for what may differ although it is written alike.
type doubtVisitor struct {
	c     *compilation
	calls map[string]bool
	doubt bool
}

func (v *doubtVisitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok && (name.Value == basicName || name.Value == anyName || v.c.alwaysSame(name.Value)) {
			break
		}
		v.doubt = v.doubt || v.calls[n.String()]
		v.calls[n.String()] = true
	case *ast.BinaryNode:
		list, _ := writtenOut(n.Right)
		for _, other := range append([]ast.Node{n.Right}, list...) {
			v.doubt = v.doubt || alike(n.Left, other) && !v.c.equalsItself(n.Left)
		}
	}
	if t := v.c.typeOf(*node); t != nil {
		kind := pointee(t).Kind()
		v.doubt = v.doubt || kind == reflect.Float32 || kind == reflect.Float64
	}
}

// alwaysSame reports whether a function of ours makes the same of the same.
func (c *compilation) alwaysSame(name string) bool {
	h, ok := c.hosts[name]
	return ok && h.user == nil && name != "now"
}

// equalsItself reports whether the type of a node has no value that is unlike itself, as NaN is.
func (c *compilation) equalsItself(n ast.Node) bool {
	t := c.typeOf(n)
	if t == nil {
		return false
	}
	kind := pointee(t).Kind()
	return kind >= reflect.Bool && kind <= reflect.Uintptr || kind == reflect.String
}

var filledElsewhere = regexp.MustCompile(`\$\{[\pL_][^{}]*\}`)

// checkFilled refuses to compare with a text in which another language would fill in something. It is itself here, and
// so no request would have it.
func (c *compilation) checkFilled(n *ast.BinaryNode) error {
	operands := []ast.Node{n.Left, n.Right}
	if list, ok := n.Right.(*ast.ArrayNode); ok {
		operands = append(operands, list.Nodes...)
	}
	for _, operand := range operands {
		text, ok := operand.(*ast.StringNode)
		if ok && filledElsewhere.MatchString(text.Value) {
			return c.at(operand, "${…} is not filled in: a condition names what it reads, as in req.Tenant == req.Owner")
		}
	}
	return nil
}
