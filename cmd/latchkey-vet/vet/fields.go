package vet

import (
	"go/ast"
	"go/types"
	"iter"
	"regexp"
	"strings"
)

// boundTo finds the path of the field in an error of Bind.
var boundTo = regexp.MustCompile(`^guard: Bind of ([^:*]+): `)

// failFields reports what a Bind says to a struct: at the tags of its fields, or at the call.
func (d *declarations) failFields(err error, g *declared, c *call, target types.Type) {
	d.mark(target, make(map[types.Type]bool))
	for _, f := range d.filtered(err, g) {
		at := place{c.CallExpr, g.texts}
		if m := boundTo.FindStringSubmatch(f.message); m != nil {
			if field := d.fieldAt(target, m[1]); field != nil {
				at = place{field.Tag, append([]*ast.BasicLit{field.Tag}, g.texts...)}
			}
		}
		d.failOne(f, at)
	}
}

// fieldAt is the field of the source at a path such as Orders.Eu.Pay, if it is in this package and has a tag.
func (d *declarations) fieldAt(t types.Type, path string) *ast.Field {
	return d.fields[d.varAt(t, path)]
}

// varAt is the field at a path, wherever it is declared.
func (d *declarations) varAt(t types.Type, path string) *types.Var {
	names := strings.Split(path, ".")
	if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Name() == names[0] {
		names = names[1:]
	}
	var found *types.Var
	for _, name := range names {
		s := structOf(t)
		if s == nil {
			return nil
		}
		found = nil
		for f := range s.Fields() {
			if f.Name() == name {
				found, t = f.Origin(), f.Type()
			}
		}
		if found == nil {
			return nil
		}
	}
	return found
}

// mark notes that the tags of a struct, and of those that Bind finds in it, have been checked.
func (d *declarations) mark(t types.Type, seen map[types.Type]bool) {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s := structOf(t)
	if s == nil || seen[t] {
		return
	}
	seen[t], d.checked[s] = true, true
	for f := range s.Fields() {
		d.mark(f.Type(), seen)
	}
}

// markEmbedded notes that the tags of a request, and of those that it embeds, have been checked.
func (d *declarations) markEmbedded(t types.Type) {
	s := structOf(t)
	if s == nil || d.checked[s] {
		return
	}
	d.checked[s] = true
	for f := range s.Fields() {
		if f.Embedded() {
			d.markEmbedded(f.Type())
		}
	}
}

// tagsOf are the tags of a struct of this package, and of those that it embeds.
func (d *declarations) tagsOf(t types.Type) (all []*ast.BasicLit) {
	s := structOf(t)
	if s == nil {
		return nil
	}
	for f := range s.Fields() {
		if field := d.fields[f.Origin()]; field != nil {
			all = append(all, field.Tag)
		}
		if f.Embedded() && structOf(f.Type()) != s {
			all = append(all, d.tagsOf(f.Type())...)
		}
	}
	return all
}

// methodsOf are the methods of an object that is an interface for servers of gRPC.
func methodsOf(obj types.Object) iter.Seq[*types.Func] {
	return func(yield func(*types.Func) bool) {
		i, ok := obj.Type().Underlying().(*types.Interface)
		if _, isType := obj.(*types.TypeName); !ok || !isType || !strings.HasSuffix(obj.Name(), "Server") {
			return
		}
		for m := range i.ExplicitMethods() {
			if !yield(m) {
				return
			}
		}
	}
}

func trimServer(name string) string { return strings.TrimSuffix(name, "Server") }

// messageOf is the message that a method of a server gets: an argument behind the context, or that of a stream whose type
// says so.
func messageOf(s *types.Signature) types.Type {
	for v := range s.Params().Variables() {
		if p, ok := types.Unalias(v.Type()).(*types.Pointer); ok {
			return p
		}
		if n, ok := types.Unalias(v.Type()).(*types.Named); ok && n.TypeArgs().Len() == 2 && strings.HasSuffix(n.Obj().Name(), "StreamingServer") {
			return types.NewPointer(n.TypeArgs().At(0))
		}
	}
	return nil
}
