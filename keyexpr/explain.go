package keyexpr

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// engineError converts an error of the engine, whose offset counts runes of src.
func (c *compilation) engineError(err error) error {
	fault, ok := errors.AsType[*file.Error](err)
	if !ok {
		return errAt(c.text, c.off, "%v", err)
	}
	return errAt(c.text, c.off+byteOffset(c.src, fault.From), "%s", showOr(fault.Message))
}

// at is an error at a node of the tree.
func (c *compilation) at(n ast.Node, format string, args ...any) error {
	return errAt(c.text, c.off+byteOffset(c.src, n.Location().From), format, args...)
}

// explain finds a better message than the engine's for an unknown name.
func (c *compilation) explain(tree *parser.Tree, err error) error {
	fault, ok := errors.AsType[*file.Error](err)
	if !ok {
		return c.engineError(err)
	}
	v := unknownVisitor{c: c, at: fault.Location}
	ast.Walk(&tree.Node, &v)
	if v.err != nil {
		return v.err
	}
	return c.engineError(err)
}

// unknownVisitor explains the unknown name at a place.
type unknownVisitor struct {
	c   *compilation
	at  file.Location
	err error
}

func (v *unknownVisitor) Visit(node *ast.Node) {
	if (*node).Location() != v.at || v.err != nil {
		return
	}
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		v.err = v.c.unknownName(n)
	case *ast.MemberNode:
		v.err = v.c.unknownMember(n)
	}
}

func (c *compilation) unknownName(n *ast.IdentifierNode) error {
	if _, ok := c.conf.Env.Fields[n.Value]; ok {
		return nil
	}
	if _, ok := c.conf.Functions[n.Value]; ok {
		return nil
	}
	names := slices.Sorted(maps.Keys(c.roots))
	reason := fmt.Sprintf("unknown name %s", n.Value)
	if near := didYouMean(n.Value, append(slices.Clone(names), c.functionNames()...)); near != "" {
		return c.at(n, "%s%s", reason, near)
	}
	return c.at(n, "%s: there is %s", reason, listNames(names))
}

func (c *compilation) unknownMember(n *ast.MemberNode) error {
	name, ok := n.Property.(*ast.StringNode)
	if !ok {
		return nil
	}
	if root, ok := c.lookupRoot(n.Node); ok {
		if !root.closed || slices.Contains(root.names, name.Value) {
			return nil
		}
		return c.at(n, "unknown name %s of %s%s", name.Value, c.source(n.Node), didYouMeanOr(name.Value, root.names))
	}
	base := n.Node.Nature().Deref(&c.conf.NtCache)
	if base.Kind != reflect.Struct {
		return nil
	}
	if _, ok := base.FieldByName(&c.conf.NtCache, name.Value); ok {
		return nil
	}
	sort := "field"
	names := slices.Sorted(maps.Keys(nature.StructFields(&c.conf.NtCache, base.Type)))
	if n.Method {
		sort, names = "method", methodNames(n.Node.Type())
	}
	return c.at(n, "unknown %s %s of %s%s", sort, name.Value, typeName(base.Type), didYouMeanOr(name.Value, names))
}

// didYouMeanOr lists the names there are where none is near.
func didYouMeanOr(name string, names []string) string {
	if near := didYouMean(name, names); near != "" {
		return near
	}
	return ": there is " + listNames(names)
}

func listNames(names []string) string {
	const most = 12
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}

func methodNames(t reflect.Type) (names []string) {
	for m := range t.Methods() {
		names = append(names, m.Name)
	}
	return names
}

func typeName(t reflect.Type) string {
	if t.Name() != "" {
		return t.Name()
	}
	return t.String()
}

// functionNames lists what can be called, for suggestions.
func (c *compilation) functionNames() (names []string) {
	for _, f := range builtin.Builtins {
		if allowed(f.Name, c.cond) {
			names = append(names, f.Name)
		}
	}
	for name := range c.hosts {
		if isLetter(rune(name[0])) {
			names = append(names, showOr(name))
		}
	}
	slices.Sort(names)
	return names
}
