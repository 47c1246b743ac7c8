package keyexpr

import (
	"reflect"

	"github.com/expr-lang/expr/ast"
)

// basicVisitor gives operands of named basic types their basic types.
type basicVisitor struct{ c *compilation }

func (v *basicVisitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.UnaryNode:
		v.convert(&n.Node)
	case *ast.BinaryNode:
		v.binary(n)
	case *ast.ConditionalNode:
		v.convert(&n.Cond)
	case *ast.PredicateNode:
		if n.Node.Nature().IsBool() {
			v.convert(&n.Node)
		}
	case *ast.SliceNode:
		for _, bound := range []*ast.Node{&n.From, &n.To} {
			if *bound != nil {
				v.convert(bound)
			}
		}
	case *ast.MemberNode:
		v.key(n)
	case *ast.BuiltinNode:
		for i := range n.Arguments {
			if i == 0 || !holds(n.Arguments[0], n.Arguments[i]) {
				v.convert(&n.Arguments[i])
			}
		}
	}
}

func (v *basicVisitor) binary(n *ast.BinaryNode) {
	if n.Operator == "??" || n.Left.Nature().Nil || n.Right.Nature().Nil || n.Operator == "in" && holds(n.Right, n.Left) {
		return
	}
	v.convert(&n.Left)
	v.convert(&n.Right)
}

// key gives the constant key of an entry the type that the map wants.
func (v *basicVisitor) key(n *ast.MemberNode) {
	var by any
	switch property := n.Property.(type) {
	case *ast.StringNode:
		by = property.Value
	case *ast.IntegerNode:
		by = property.Value
	}
	base := n.Node.Nature().Deref(&v.c.conf.NtCache)
	if by == nil || base.Kind != reflect.Map || base.TypeData != nil {
		if !holds(n.Node, n.Property) {
			v.convert(&n.Property)
		}
		return
	}
	key, want := reflect.ValueOf(by), base.Type.Key()
	if key.Type() == want || !sameSort(key.Type(), want) {
		return
	}
	if fitting, ok := convert(key, want); ok {
		ast.Patch(&n.Property, &ast.ConstantNode{Value: fitting.Interface()})
	}
}

func (v *basicVisitor) convert(node *ast.Node) {
	n := *node
	if basicType(n.Type()) == n.Type() {
		return
	}
	call := v.c.call(basicName, n)
	call.SetLocation(n.Location())
	*node = call
}

// holds reports whether a list or map has elements or keys of just the type of n.
func holds(list, n ast.Node) bool {
	switch t := list.Type(); t.Kind() {
	case reflect.Slice, reflect.Array:
		return t.Elem() == n.Type()
	case reflect.Map:
		return t.Key() == n.Type()
	}
	return false
}

// basicType returns the predeclared type that a named one is made of, or a pointer to it for a pointer. All other types
// it returns as they are.
func basicType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		if basic := basicType(t.Elem()); basic != t.Elem() {
			return reflect.PointerTo(basic)
		}
		return t
	}
	if t == durationType {
		return t
	}
	if basic, ok := basicTypes[t.Kind()]; ok {
		return basic
	}
	return t
}

var basicTypes = func() map[reflect.Kind]reflect.Type {
	types := map[reflect.Kind]reflect.Type{}
	for _, v := range []any{false, "", 0, int8(0), int16(0), int32(0), int64(0), uint(0), uint8(0), uint16(0), uint32(0), uint64(0), uintptr(0), float32(0), 0.0} {
		t := reflect.TypeOf(v)
		types[t.Kind()] = t
	}
	return types
}()

func basicCheck(args []reflect.Type) (reflect.Type, error) { return basicType(args[0]), nil }

// basic converts a value of a named basic type, or a pointer to one, to its basic type. nil stays nil.
func basic(x any) any {
	v := indirect(reflect.ValueOf(x))
	if !v.IsValid() {
		return nil
	}
	if t := basicType(v.Type()); t != v.Type() {
		v = v.Convert(t)
	}
	return v.Interface()
}
