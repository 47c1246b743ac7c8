package keyexpr

import (
	"reflect"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm/runtime"
)

// evalFunc computes a value without the engine.
type evalFunc func(st *state) (any, error)

// direct compiles what needs no engine: paths, constants, ??, and calls of functions on those. Most holes are no more.
func (c *compilation) direct(node ast.Node) (evalFunc, bool) {
	if p, ok := c.pathOf(node); ok {
		return func(st *state) (any, error) {
			v, err := p.follow(&st.source)
			return plainValue(v), err
		}, true
	}
	switch n := node.(type) {
	case *ast.StringNode:
		return constant(n.Value), true
	case *ast.IntegerNode:
		return constant(n.Value), n.Type() == intType
	case *ast.BoolNode:
		return constant(n.Value), true
	case *ast.BinaryNode:
		return c.directBinary(n)
	case *ast.BuiltinNode:
		return c.directBuiltin(n)
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok {
			return c.directCall(name.Value, n.Arguments)
		}
		return c.directMethod(n)
	}
	return nil, false
}

// directText compiles lower, upper and their like on paths to strings, without a detour over any.
func (c *compilation) directText(node ast.Node) (func(st *state) (string, error), bool) {
	if p, ok := c.pathOf(node); ok && leafOf(node.Nature().Type) == leafString {
		return func(st *state) (string, error) {
			v, err := p.follow(&st.source)
			if err == nil && !v.IsValid() {
				err = errNoText
			}
			if err != nil {
				return "", err
			}
			return v.String(), nil
		}, true
	}
	call, ok := node.(*ast.CallNode)
	if !ok || len(call.Arguments) != 1 {
		return nil, false
	}
	name, ok := call.Callee.(*ast.IdentifierNode)
	if !ok || c.hosts[name.Value] == nil || c.hosts[name.Value].text == nil {
		return nil, false
	}
	arg, ok := c.directText(call.Arguments[0])
	if !ok {
		return nil, false
	}
	f := c.hosts[name.Value].text
	return func(st *state) (string, error) {
		s, err := arg(st)
		if err != nil {
			return "", err
		}
		return f(s), st.spend(len(s))
	}, true
}

func (c *compilation) directMethod(n *ast.CallNode) (evalFunc, bool) {
	m, name, ok := c.method(n)
	if !ok {
		return nil, false
	}
	base, ok := c.direct(m.Node)
	if !ok {
		return nil, false
	}
	return func(st *state) (any, error) {
		v, err := base(st)
		if err != nil {
			return nil, err
		}
		return callMethod(v, name, m.Optional)
	}, true
}

func constant(v any) evalFunc {
	return func(*state) (any, error) { return v, nil }
}

func (c *compilation) directAll(nodes []ast.Node) ([]evalFunc, bool) {
	list := make([]evalFunc, len(nodes))
	for i, n := range nodes {
		var ok bool
		if list[i], ok = c.direct(n); !ok {
			return nil, false
		}
	}
	return list, true
}

func (c *compilation) directBinary(n *ast.BinaryNode) (evalFunc, bool) {
	switch n.Operator {
	case "+", "-", "*", "%":
		return c.directCall(n.Operator, []ast.Node{n.Left, n.Right})
	case "??":
	default:
		return nil, false
	}
	sides, ok := c.directAll([]ast.Node{n.Left, n.Right})
	if !ok {
		return nil, false
	}
	return func(st *state) (any, error) {
		v, err := sides[0](st)
		if err != nil || !runtime.IsNil(v) {
			return v, err
		}
		return sides[1](st)
	}, true
}

// directCall calls one of our functions. Its arguments lie on a stack in the state, so that calls need no memory.
func (c *compilation) directCall(name string, nodes []ast.Node) (evalFunc, bool) {
	host, ok := c.hosts[name]
	if !ok {
		return nil, false
	}
	args, ok := c.directAll(nodes)
	if !ok {
		return nil, false
	}
	call := host.call
	return func(st *state) (any, error) {
		bottom := len(st.args)
		for _, arg := range args {
			v, err := arg(st)
			if err != nil {
				return nil, err
			}
			st.args = append(st.args, v)
		}
		v, err := call(st, st.args[bottom:])
		clear(st.args[bottom:])
		st.args = st.args[:bottom]
		return v, err
	}, true
}

// directBuiltin calls one of the engine's builtins, if it takes one argument and makes nothing that has to be counted.
func (c *compilation) directBuiltin(n *ast.BuiltinNode) (evalFunc, bool) {
	f := builtin.Builtins[builtin.Index[n.Name]]
	if f.Predicate || f.Fast == nil || len(n.Arguments) != 1 {
		return nil, false
	}
	arg, ok := c.direct(n.Arguments[0])
	if !ok {
		return nil, false
	}
	return func(st *state) (any, error) {
		v, err := arg(st)
		if err != nil {
			return nil, err
		}
		if k := reflect.TypeOf(v); k != nil && k.Kind() == reflect.Pointer {
			v = plainValue(indirect(reflect.ValueOf(v)))
		}
		return f.Fast(v), nil
	}, true
}
