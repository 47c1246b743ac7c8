package vet

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// boundTo finds the path of the field in an error of Bind.
var boundTo = regexp.MustCompile(`^guard: Bind of ([^:*]+): `)

// failFields reports what a Bind says to a struct: at the tags of its fields, or at the call.
func (d *declarations) failFields(err error, g *declared, c *call, target types.Type) {
	d.mark(structs(target, true))
	for _, f := range g.filtered(err) {
		at, texts := ast.Node(c.CallExpr), g.texts
		if m := boundTo.FindStringSubmatch(f.message); m != nil {
			if field := d.fields[d.varAt(target, m[1])]; field != nil {
				at, texts = field.Tag, append([]*ast.BasicLit{field.Tag}, texts...)
			}
		}
		d.failOne(f, at, texts)
	}
}

// varAt is the field at a path, wherever it is declared.
func (d *declarations) varAt(t types.Type, path string) (found *types.Var) {
	names := strings.Split(path, ".")
	if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Name() == names[0] {
		names = names[1:]
	}
	for _, name := range names {
		obj, _, _ := types.LookupFieldOrMethod(t, true, d.Pkg, name)
		if found, _ = obj.(*types.Var); found == nil {
			return nil
		}
		found, t = found.Origin(), found.Type()
	}
	return found
}

// structs are the struct that t is made of and those that it embeds, or all that it has.
func structs(t types.Type, all bool, found ...*types.Struct) []*types.Struct {
	s := structOf(t)
	if s == nil || slices.Contains(found, s) {
		return found
	}
	found = append(found, s)
	for f := range s.Fields() {
		if all || f.Embedded() {
			found = structs(f.Type(), all, found...)
		}
	}
	return found
}

// mark notes that the tags of structs have been checked.
func (d *declarations) mark(all []*types.Struct) {
	for _, s := range all {
		d.checked[s] = true
	}
}

// tagsOf are the tags of structs of this package.
func (d *declarations) tagsOf(all []*types.Struct) (tags []*ast.BasicLit) {
	for _, s := range all {
		for f := range s.Fields() {
			if field := d.fields[f.Origin()]; field != nil {
				tags = append(tags, field.Tag)
			}
		}
	}
	return tags
}

// messageOf is the message that the method of a server of gRPC gets for which generated code has a constant: its argument behind the
// context, or that of a stream whose type says so.
func messageOf(constant types.Object) types.Type {
	name, ok := strings.CutSuffix(constant.Name(), "_FullMethodName")
	i := strings.LastIndexByte(name, '_')
	if !ok || i < 0 || constant.Pkg() == nil {
		return nil
	}
	server := constant.Pkg().Scope().Lookup(name[:i] + "Server")
	if server == nil {
		return nil
	}
	method, _, _ := types.LookupFieldOrMethod(server.Type(), false, constant.Pkg(), name[i+1:])
	fn, ok := method.(*types.Func)
	if !ok {
		return nil
	}
	for v := range fn.Signature().Params().Variables() {
		if p, ok := types.Unalias(v.Type()).(*types.Pointer); ok {
			return p
		}
		if n, ok := types.Unalias(v.Type()).(*types.Named); ok && n.TypeArgs().Len() == 2 && strings.HasSuffix(n.Obj().Name(), "StreamingServer") {
			return types.NewPointer(n.TypeArgs().At(0))
		}
	}
	return nil
}
