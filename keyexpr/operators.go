package keyexpr

import (
	"fmt"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// binary resolves an operator. The engine compares texts, whole numbers and booleans whose types are known; all other
// comparisons are ours, since the engine's wrap around for large numbers, and go into lists without end.
func (c *compilation) binary(n *ast.Node, x *ast.BinaryNode, as role) typ {
	switch x.Operator {
	case "??":
		return same(c.node(&x.Left, as), c.node(&x.Right, as))
	case "and", "&&", "or", "||":
		c.truth(&x.Left)
		c.truth(&x.Right)
		return typ{t: boolType}
	case "==", "!=", "<", "<=", ">", ">=":
		return c.comparison(n, x)
	case "in":
		return c.in(n, x)
	case "matches":
		return c.matches(n, x)
	case "contains", "startsWith", "endsWith":
		c.engineText(&x.Left)
		c.engineText(&x.Right)
		return typ{t: boolType}
	case "+":
		c.refuseSum(x)
	case "-":
		if id, ok := leftmost(x).(*ast.IdentifierNode); ok && c.roots[id.Value].of.Lookup {
			name := strings.TrimPrefix(c.source(x), id.Value+".")
			c.fail(x, "a name with a dash is written %s[%q]", id.Value, strings.ReplaceAll(name, " - ", "-"))
		}
	}
	c.fail(x, "nothing is calculated here: mod(a, b), div(a, b) and shard(x, n) are exact; for all else, %s", elsewhere)
	return typ{}
}

// engineText makes sure that the engine gets a text.
func (c *compilation) engineText(n *ast.Node) {
	t := c.node(n, asPart)
	c.wantText(*n, t)
	if t.t != stringType {
		*n = c.host(*n, func(_ *run.State, args []any) (any, error) {
			if basic(args[0]) == nil { // in which the operator finds nothing
				return nil, nil
			}
			return textOf(args[0])
		}, *n)
	}
}

// filled is the value that another language would fill in.
var filled = regexp.MustCompile(`\$\{[\pL_][^{}]*\}`)

func (c *compilation) comparison(n *ast.Node, x *ast.BinaryNode) typ {
	l, r := c.node(&x.Left, asPart), c.node(&x.Right, asPart)
	a, b := sortOf(l.t), sortOf(r.t)
	ordered := x.Operator != "==" && x.Operator != "!="
	for _, side := range []ast.Node{x.Left, x.Right} {
		if s, ok := side.(*ast.StringNode); ok && filled.MatchString(s.Value) {
			c.fail(s, "${…} is not filled in: a condition names what it reads, as in req.Tenant == req.Owner")
		}
	}
	if l.null || r.null {
		if ordered {
			c.fail(x, "%s has no order with nil", x.Operator)
		}
		return typ{t: boolType}
	}
	c.scalar(x.Left, l)
	c.scalar(x.Right, r)
	switch {
	case a != b && a != "" && b != "":
		c.fail(x, "%s does not compare %v and %v: string(x) is the text of a number", x.Operator, l.t, r.t)
	case a == "bool" && ordered:
		c.fail(x, "%s is not for true and false", x.Operator)
	}
	op := x.Operator
	*n = c.host(x, func(_ *run.State, args []any) (any, error) { return compare(op, args[0], args[1]) }, x.Left, x.Right)
	return typ{t: boolType}
}

// scalar refuses to compare a list or map as a whole, which may contain itself.
func (c *compilation) scalar(n ast.Node, t typ) {
	_, list := t.elemType()
	if list || t.t != nil && (pointee(t.t).Kind() == reflect.Map || pointee(t.t).Kind() == reflect.Struct && pointee(t.t) != timeType) {
		c.fail(n, "%s is not compared as a whole: compare a field of it, len(x), or hash(x)", c.source(n))
	}
}

func (c *compilation) in(n *ast.Node, x *ast.BinaryNode) typ {
	l := c.node(&x.Left, asPart)
	c.scalar(x.Left, l)
	r := c.node(&x.Right, asPart)
	elem, list := r.elemType()
	isMap := r.t != nil && pointee(r.t).Kind() == reflect.Map
	switch a, b := sortOf(l.t), sortOf(elem.t); {
	case r.null, r.t != nil && !list && !isMap:
		c.fail(x.Right, "%s is no list and no map: contains looks for a piece of text", c.source(x.Right))
	case a != b && a != "" && b != "":
		c.fail(x, "a list of %v has no %v in it: string(x) is the text of a number", elem.t, l.t)
	}
	*n = c.host(x, func(st *run.State, args []any) (any, error) { return member(st, args[0], args[1]) }, x.Left, x.Right)
	return typ{t: boolType}
}

// maxProgram is the size of the largest pattern, in instructions of its program. Matching takes its product with the size of
// the text, as Go's patterns have no exponential cases.
const maxProgram = 500

// pattern reads a pattern, which must be written out: nobody else's pattern is run.
func (c *compilation) pattern(n ast.Node) (re *regexp.Regexp, size int) {
	p, ok := n.(*ast.StringNode)
	if !ok {
		c.fail(n, "a pattern must be written out")
	}
	parsed, err := syntax.Parse(p.Value, syntax.Perl)
	if err != nil {
		c.fail(n, "%v", err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(prog.Inst) > maxProgram {
		c.fail(n, "this pattern is too large: it may have %d instructions", maxProgram)
	}
	return regexp.MustCompile(p.Value), len(prog.Inst)
}

func (c *compilation) matches(n *ast.Node, x *ast.BinaryNode) typ {
	c.engineText(&x.Left)
	re, size := c.pattern(x.Right)
	*n = c.host(x, func(st *run.State, args []any) (any, error) {
		if args[0] == nil {
			return false, nil
		}
		s, err := textOf(args[0])
		if err == nil {
			err = st.Spend(2 * len(s) * size)
		}
		return err == nil && re.MatchString(s), err
	}, x.Left)
	return typ{t: boolType}
}

// refuseSum says how the values of a sum are written. Text stands outside of holes.
func (c *compilation) refuseSum(x *ast.BinaryNode) {
	if slices.ContainsFunc(operands(x), func(n ast.Node) bool { _, number := n.(*ast.IntegerNode); return number }) {
		return // which is calculated
	}
	if c.cond {
		c.fail(x, "texts are not added: compare their parts, or %s", elsewhere)
	}
	if c.root != ast.Node(x) {
		c.fail(x, "values are not added: use key(a, b), which joins them with colons, or write the text outside of the hole")
	}
	var outside strings.Builder
	hole := false
	for _, v := range operands(x) {
		if s, ok := v.(*ast.StringNode); ok {
			outside.WriteString(s.Value)
			hole = hole && s.Value == ""
			continue
		}
		if hole {
			outside.WriteString(":")
		}
		fmt.Fprintf(&outside, "#{%s}", c.source(v))
		hole = true
	}
	c.fail(x, "text stands outside of holes: write %s", outside.String())
}

// calls reports whether a call is one of the function name.
func calls(call *ast.CallNode, name string) bool {
	id, ok := call.Callee.(*ast.IdentifierNode)
	return ok && id.Value == name
}

// leftmost is the first operand of a difference.
func leftmost(n ast.Node) ast.Node {
	switch x := n.(type) {
	case *ast.BinaryNode:
		return leftmost(x.Left)
	case *ast.MemberNode:
		return leftmost(x.Node)
	}
	return n
}

// operands are those of a sum, from left to right.
func operands(n ast.Node) []ast.Node {
	if x, ok := n.(*ast.BinaryNode); ok && x.Operator == "+" {
		return append(operands(x.Left), operands(x.Right)...)
	}
	return []ast.Node{n}
}

// checkText refuses a path in quotes in the place of a value.
func (c *compilation) checkText(x *ast.StringNode, as role) {
	if as == asHole {
		if err := c.checkQuoted(x); err != nil {
			panic(failure{err})
		}
	}
}
