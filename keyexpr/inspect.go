package keyexpr

import (
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// Fields returns what the template reads of each root, in Go's spelling and sorted, such as req.OrderID and header.Tenant.
func (t *Template) Fields() []string { return slices.Clone(t.fields) }

// Fields returns what the condition reads of each root, in Go's spelling and sorted.
func (c *Condition) Fields() []string { return slices.Clone(c.fields) }

// Shape shows what the keys look like, with the type of each hole: order:<string>:<int64>. A list template has the shape
// of one of its keys.
func (t *Template) Shape() string {
	var b strings.Builder
	for _, p := range t.parts {
		if p.hole == nil {
			b.WriteString(p.lit)
			continue
		}
		typ := p.hole.typ
		if p.hole.elem != nil {
			typ = *p.hole.elem
		}
		b.WriteString("<" + shapeOf(typ) + ">")
	}
	return b.String()
}

func shapeOf(t reflect.Type) string {
	if t == nil {
		return "any"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if spells(reflect.PointerTo(t)) && t.Kind() != reflect.String {
		return t.String()
	}
	return basicType(t).String()
}

// Warning says what is allowed but probably not meant, and is empty if there is nothing: a template without a hole
// makes the same key for all requests.
func (t *Template) Warning() string {
	for _, p := range t.parts {
		if p.hole != nil {
			return ""
		}
	}
	if i := strings.IndexByte(t.text, '#'); i >= 0 {
		return "no hole: all requests share one key; holes are written #{…}, and SpringEL goes through SpEL"
	}
	return "no hole: all requests share one key"
}

// fieldVisitor collects the paths that start at a root, as far as they are known at start.
type fieldVisitor struct {
	c     *compilation
	inner map[ast.Node]bool // parts of a longer path
	paths []ast.Node
}

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
