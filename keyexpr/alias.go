package keyexpr

import (
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/parser"
)

// resolveNames replaces the names that JSON, protobuf and other cases have for a field by the Go name. It goes on as long
// as a new name brings to light the type of what comes after it.
func (c *compilation) resolveNames(tree *parser.Tree) error {
	for {
		_, _ = checker.Check(tree, c.conf)
		v := aliasVisitor{c: c}
		ast.Walk(&tree.Node, &v)
		if v.err != nil || !v.found {
			return v.err
		}
		ast.Walk(&tree.Node, forgetCalls{})
	}
}

type aliasVisitor struct {
	c     *compilation
	found bool
	err   error
}

func (v *aliasVisitor) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.MemberNode)
	if !ok || v.err != nil {
		return
	}
	name, ok := n.Property.(*ast.StringNode)
	if !ok || v.c.isLookup(n.Node) {
		return
	}
	cache := &v.c.conf.NtCache
	base := n.Node.Nature().Deref(cache)
	if base.Kind != reflect.Struct {
		return
	}
	if _, ok := n.Node.Nature().MethodByName(cache, name.Value); ok {
		return
	}
	if _, ok := base.FieldByName(cache, name.Value); ok || n.Method {
		return
	}
	switch fields := aliases(base.Type, name.Value); {
	case len(fields) == 1:
		name.Value, v.found = fields[0], true
	case len(fields) > 1:
		v.err = v.c.at(n, "%s of %s may be %s: use the Go name", name.Value, typeName(base.Type), strings.Join(fields, " or "))
	default:
		v.getter(node, n, name)
	}
}

// getter turns the name of a field that can only be reached by a getter, as in opaque protobuf messages, into a call.
func (v *aliasVisitor) getter(node *ast.Node, n *ast.MemberNode, name *ast.StringNode) {
	t := n.Node.Nature().Type
	for m := range t.Methods() {
		if fold(m.Name) != "get"+fold(name.Value) || m.Type.NumIn() != 1 || m.Type.NumOut() != 1 {
			continue
		}
		name.Value, n.Method, v.found = m.Name, true, true
		ast.Patch(node, &ast.CallNode{Callee: n})
		return
	}
}

// aliases returns the Go names of the fields of struct t that name may stand for.
func aliases(t reflect.Type, name string) (fields []string) {
	for _, f := range reflect.VisibleFields(t) {
		if f.IsExported() && f.Tag.Get("expr") == "" && hasAlias(f, name) && !slices.Contains(fields, f.Name) {
			fields = append(fields, f.Name)
		}
	}
	return fields
}

func hasAlias(f reflect.StructField, name string) bool {
	if json, _, _ := strings.Cut(f.Tag.Get("json"), ","); json == name && json != "-" {
		return true
	}
	for option := range strings.SplitSeq(f.Tag.Get("protobuf"), ",") {
		if option == "name="+name || option == "json="+name {
			return true
		}
	}
	return fold(f.Name) == fold(name)
}

// fold makes the usual spellings of a name alike: OrderID, orderId, order_id.
func fold(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }
