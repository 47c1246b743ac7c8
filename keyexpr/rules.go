package keyexpr

import (
	"reflect"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker/nature"
)

// Builtins of the engine that keys and conditions may use. Those that depend on time or on the order of a map, that
// build up values without bound, or that are done better in funcs.go are missing on purpose.
const (
	keyBuiltins  = " all any none one filter map find findLast findIndex count sortBy len trim trimPrefix trimSuffix indexOf lastIndexOf hasPrefix hasSuffix max min first last get take reverse concat flatten sort "
	condBuiltins = " abs ceil floor round float sum mean median date duration timezone type "
)

func allowed(name string, cond bool) bool {
	name = " " + name + " "
	return strings.Contains(keyBuiltins, name) || cond && strings.Contains(condBuiltins, name)
}

// whyNot says what to do instead of using a builtin that is not allowed.
func whyNot(name string) string {
	switch name {
	case "now", "date":
		return ": a key with the time in it is never the same twice; conditions may use it"
	case "keys", "values", "toPairs":
		return ": a map has no order, so the key would not be the same twice"
	case "toJSON":
		return ": use hash(x)"
	case "reduce", "sum":
		return ": use join, map or filter"
	case "repeat":
		return ": it makes text without bound"
	case "fromPairs", "groupBy":
		return ": a map is no key material"
	}
	return ""
}

// ruleVisitor refuses what the profile does not have, before types are known.
type ruleVisitor struct {
	c   *compilation
	err error
}

func (v *ruleVisitor) Visit(node *ast.Node) {
	if v.err != nil {
		return
	}
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value == "$env" {
			v.err = v.c.at(n, "$env is not here: name a root")
		}
	case *ast.BuiltinNode:
		if !allowed(n.Name, v.c.cond) {
			v.err = v.c.refuseBuiltin(n, n.Name)
		}
	case *ast.CallNode:
		v.err = v.c.checkCallee(n)
	case *ast.ConditionalNode:
		if n.Ternary && n.Cond == n.Exp1 {
			v.err = v.c.at(n.Cond, "?: is for true and false here: use or(a, b), or a ?? b")
		}
	case *ast.BinaryNode:
		if !v.c.cond && (n.Operator == "/" || n.Operator == "**" || n.Operator == "^") {
			v.err = v.c.at(n, "%s makes a float: use div(a, b) or another function", n.Operator)
		}
	}
}

func (c *compilation) checkCallee(n *ast.CallNode) error {
	name, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		return nil
	}
	if _, ok := c.hosts[name.Value]; ok {
		return c.checkMessage(n, name.Value)
	}
	if _, ok := builtin.Index[name.Value]; ok && !allowed(name.Value, c.cond) {
		return c.refuseBuiltin(n, name.Value)
	}
	if _, ok := c.roots[name.Value]; ok {
		return c.at(n, "%s is not a function", name.Value)
	}
	return nil
}

// checkMessage sees to it that the message of required, which goes to logs, comes from the template.
func (c *compilation) checkMessage(n *ast.CallNode, name string) error {
	if name != "required" || len(n.Arguments) != 2 {
		return nil
	}
	if _, ok := n.Arguments[1].(*ast.StringNode); !ok {
		return c.at(n.Arguments[1], "the message of required must be written out")
	}
	return nil
}

func (c *compilation) refuseBuiltin(n ast.Node, name string) error {
	return c.at(n, "%s is not allowed here%s", name, whyNot(name))
}

// methodVisitor refuses, now that types are known, calls that may have effects and lookup roots that are not looked up.
type methodVisitor struct {
	c      *compilation
	err    error
	roots  []ast.Node
	looked map[ast.Node]bool
}

func (v *methodVisitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.CallNode:
		if member, ok := n.Callee.(*ast.MemberNode); ok && v.err == nil {
			v.err = v.c.checkMethod(n, member)
		}
	case *ast.IdentifierNode:
		if v.c.isLookup(n) {
			v.roots = append(v.roots, n)
		}
	case *ast.MemberNode:
		if v.c.isLookup(n.Node) {
			v.looked[n.Node] = true
		}
	}
}

// checkCalls applies methodVisitor to a tree.
func (c *compilation) checkCalls(root *ast.Node) error {
	v := methodVisitor{c: c, looked: map[ast.Node]bool{}}
	ast.Walk(root, &v)
	for _, n := range v.roots {
		if !v.looked[n] && v.err == nil {
			name := n.String()
			v.err = c.at(n, "%s is looked up by name, as in %s.name or %s[\"name\"]", name, name, name)
		}
	}
	return v.err
}

// checkMethod lets through the methods that only tell something: without arguments and with one result.
func (c *compilation) checkMethod(call *ast.CallNode, m *ast.MemberNode) error {
	if m.Node.Nature().IsUnknown(&c.conf.NtCache) {
		return c.at(call, "methods need a type that is known at start")
	}
	t := m.Nature().Type
	if t == nil || t.Kind() != reflect.Func {
		return nil
	}
	result := t.NumOut() == 1 || t.NumOut() == 2 && t.Out(1) == reflect.TypeFor[error]()
	if !result || len(call.Arguments) > 0 {
		return c.at(call, "only methods without arguments and with a result can be called")
	}
	return nil
}

// lookupRoot returns the root that n names, if it is one that is looked up by name.
func (c *compilation) lookupRoot(n ast.Node) (Root, bool) {
	id, ok := n.(*ast.IdentifierNode)
	if !ok {
		return Root{}, false
	}
	root, ok := c.roots[id.Value]
	return root, ok && root.lookup
}

func (c *compilation) isLookup(n ast.Node) bool {
	_, ok := c.lookupRoot(n)
	return ok
}

// forgetCalls makes the checker look at calls again, whose types it would take for given.
type forgetCalls struct{}

func (forgetCalls) Visit(node *ast.Node) {
	if call, ok := (*node).(*ast.CallNode); ok {
		call.SetNature(nature.Nature{})
	}
}
