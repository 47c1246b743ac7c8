package keyexpr

import (
	"reflect"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/parser"
)

// Names that no text can spell, for what the rewritten tree calls.
const (
	stateName  = "&state"
	basicName  = "&basic"
	entryName  = "&entry"
	lookupName = "&lookup"
	methodName = "&method"
	stepName   = "&step"
)

// call is a node that calls a function of funcs.go.
func (c *compilation) call(name string, args ...ast.Node) *ast.CallNode {
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: args}
}

// rewrite replaces what the engine does wrong or without bounds, in a tree that is checked already, and lists the roots
// that the tree needs.
func (c *compilation) rewrite(tree *parser.Tree, x *expression) {
	v := rewriteVisitor{c: c, roots: map[string]bool{}, done: map[*ast.CallNode]bool{}}
	ast.Walk(&tree.Node, &v)
	for i, used := range c.used {
		if v.roots[used.name] {
			x.needs = append(x.needs, i)
		}
	}
}

type rewriteVisitor struct {
	c     *compilation
	roots map[string]bool
	done  map[*ast.CallNode]bool // a < b() < c has the call twice
}

func (v *rewriteVisitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if _, ok := v.c.roots[n.Value]; ok {
			v.need(n.Value)
		}
	case *ast.CallNode:
		v.hostCall(n)
		v.methodCall(node, n)
	case *ast.MemberNode:
		v.member(node, n)
	case *ast.ChainNode:
		v.spine(n.Node)
	case *ast.BinaryNode:
		switch n.Operator {
		case "+", "-", "*", "%":
			v.replace(node, n.Operator, n.Left, n.Right)
		case "==", "!=", "<", "<=", ">", ">=":
			if v.wide(n.Left) || v.wide(n.Right) {
				v.replace(node, n.Operator, n.Left, n.Right)
			}
		}
	case *ast.UnaryNode:
		if n.Operator == "-" {
			v.replace(node, "-", &ast.IntegerNode{}, n.Node)
		}
	case *ast.PredicateNode:
		v.replace(&n.Node, stepName, n.Node)
	case *ast.BuiltinNode:
		v.forwards(n)
	}
}

// forwards searches from the end by searching a reversed list. The engine's own loop from the end leaves values on its
// stack, which confuses everything around it.
func (v *rewriteVisitor) forwards(n *ast.BuiltinNode) {
	if n.Name != "findLast" {
		return
	}
	reversed := &ast.BuiltinNode{Name: "reverse", Arguments: n.Arguments[:1:1]}
	reversed.SetType(reflect.TypeFor[[]any]())
	n.Name, n.Arguments = "find", []ast.Node{reversed, n.Arguments[1]}
}

// wide reports whether n may be a number above the largest int, which the engine compares as if it were negative.
func (v *rewriteVisitor) wide(n ast.Node) bool {
	switch n.Nature().Deref(&v.c.conf.NtCache).Kind {
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return n.Nature().IsUnknown(&v.c.conf.NtCache)
}

func (v *rewriteVisitor) need(root string) {
	v.roots[root] = true
	v.c.use(root)
}

// replace puts the call of a host function in the place of a node, with its type.
func (v *rewriteVisitor) replace(node *ast.Node, name string, args ...ast.Node) {
	call := v.c.call(name, args...)
	call.SetNature(*(*node).Nature())
	v.hostCall(call)
	ast.Patch(node, call)
}

// hostCall hands the state to a function of ours. It comes before the arguments, which the engine leaves as they are.
func (v *rewriteVisitor) hostCall(n *ast.CallNode) {
	name, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		return
	}
	if _, ok := v.c.hosts[name.Value]; !ok || v.done[n] {
		return
	}
	v.done[n] = true
	name.SetNature(nature.Nature{})
	n.Arguments = append([]ast.Node{&ast.IdentifierNode{Value: stateName}}, n.Arguments...)
}

// member replaces an access to what may be missing, so that it is nil then.
func (v *rewriteVisitor) member(node *ast.Node, n *ast.MemberNode) {
	name := entryName
	switch {
	case n.Method:
		return
	case v.c.isLookup(n.Node):
		name = lookupName
	default:
		base := n.Node.Nature()
		key, _ := n.Property.(*ast.StringNode)
		if key != nil {
			if _, method := base.MethodByName(&v.c.conf.NtCache, key.Value); method {
				return
			}
		}
		if !base.IsUnknown(&v.c.conf.NtCache) && base.Deref(&v.c.conf.NtCache).Kind != reflect.Map {
			return
		}
	}
	// The base comes first: where it is nil, a chain leaves from there, and finds the stack as it expects it.
	call := v.c.call(name, n.Node, n.Property, &ast.BoolNode{Value: n.Optional})
	ast.Patch(node, call)
}

// methodCall replaces the call of a method, which the engine makes for nil even behind ?.
func (v *rewriteVisitor) methodCall(node *ast.Node, n *ast.CallNode) {
	m, name, ok := v.c.method(n)
	if !ok {
		return
	}
	call := v.c.call(methodName, m.Node, &ast.StringNode{Value: name}, &ast.BoolNode{Value: m.Optional})
	call.SetNature(*n.Nature())
	ast.Patch(node, call)
}

// method returns what a call of a method is made on, and its name.
func (c *compilation) method(n *ast.CallNode) (*ast.MemberNode, string, bool) {
	m, ok := n.Callee.(*ast.MemberNode)
	if !ok {
		return nil, "", false
	}
	name, ok := m.Property.(*ast.StringNode)
	if !ok {
		return nil, "", false
	}
	_, ok = m.Node.Nature().MethodByName(&c.conf.NtCache, name.Value)
	return m, name.Value, ok
}

// callMethod calls a method without arguments. Behind ?. there is nothing to call on nil.
func callMethod(base any, name string, optional bool) (any, error) {
	v := reflect.ValueOf(base)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() && optional {
		if optional {
			return nil, nil
		}
		return nil, faulty("can't go on: what should have %s() is nil", name)
	}
	out := v.MethodByName(name).Call(nil)
	if len(out) == 2 && !out[1].IsNil() {
		return nil, faulty("can't go on: %s() fails", name)
	}
	return out[0].Interface(), nil
}

// spine makes the accesses behind a ?. that were replaced give nil for nil, too.
func (v *rewriteVisitor) spine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.MemberNode:
		return v.spine(n.Node) || n.Optional
	case *ast.CallNode:
		name, ok := n.Callee.(*ast.IdentifierNode)
		if !ok || name.Value != entryName && name.Value != methodName {
			return false
		}
		optional := n.Arguments[2].(*ast.BoolNode)
		optional.Value = v.spine(n.Arguments[0]) || optional.Value
		return optional.Value
	}
	return false
}

// engineFuncs are the functions that stand in for member accesses.
func engineFuncs() []*builtin.Function {
	return []*builtin.Function{
		{Name: entryName, Func: func(p ...any) (any, error) { return entry(p[0], p[1], p[2] == true) }},
		{Name: methodName, Func: func(p ...any) (any, error) { return callMethod(p[0], p[1].(string), p[2] == true) }},
		{Name: lookupName, Func: func(p ...any) (any, error) {
			name, err := text(p[1])
			if err != nil {
				return nil, err
			}
			return plainValue(lookUp(p[0].(Lookup), name)), nil
		}},
	}
}

// entry is entryOf for the engine.
func entry(base, by any, optional bool) (any, error) {
	v := indirect(reflect.ValueOf(base))
	if !v.IsValid() {
		if optional {
			return nil, nil
		}
		return nil, faulty("can't go on: what should have %v is nil", by)
	}
	if key := indirect(reflect.ValueOf(by)); key.IsValid() {
		by = key.Interface()
	}
	v, err := entryOf(v, by)
	return plainValue(v), err
}

// plainValue returns what v holds, and nil if it holds nothing.
func plainValue(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	return v.Interface()
}
