package keyexpr

import (
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"
)

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

// fieldVisitor collects the paths that start at a root, as far as they are known at start.
type fieldVisitor struct {
	c     *compilation
	inner map[ast.Node]bool // parts of a longer path
	paths []ast.Node
}

// Visit comes to the parts of a path before it comes to the path, and then forgets them: req.Customer.Name reads one field.
func (v *fieldVisitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		v.paths = append(v.paths, n)
	case *ast.MemberNode:
		if v.c.pathText(n) != "" {
			v.inner[n.Node] = true
			v.paths = append(v.paths, n)
		}
	case *ast.ChainNode:
		if v.c.pathText(n) != "" {
			v.inner[n.Node] = true
			v.paths = append(v.paths, n)
		}
	}
}

// addFields adds what the tree reads to the fields of the text.
func (c *compilation) addFields(root *ast.Node) {
	v := fieldVisitor{c: c, inner: map[ast.Node]bool{}}
	ast.Walk(root, &v)
	for _, n := range v.paths {
		if path := c.pathText(n); path != "" && !v.inner[n] && !slices.Contains(c.fields, path) {
			c.fields = append(c.fields, path)
		}
	}
	slices.Sort(c.fields)
}

// pathText returns the path that n is, and "" if it is none.
func (c *compilation) pathText(n ast.Node) string {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		if _, ok := c.roots[n.Value]; ok {
			return n.Value
		}
	case *ast.ChainNode:
		return c.pathText(n.Node)
	case *ast.MemberNode:
		base := c.pathText(n.Node)
		if name := propertyName(n.Property); base != "" && name != "" {
			return base + "." + name
		}
		return base
	}
	return ""
}

// propertyName returns the name of a field or entry, and "" if it is found by a number or computed.
func propertyName(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.ConstantNode:
		if v := reflect.ValueOf(n.Value); v.Kind() == reflect.String {
			return v.String()
		}
	}
	return ""
}
