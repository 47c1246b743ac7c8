package vet

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/internal/route"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// Structs with guard tags that are used elsewhere, or in ways that the source does not say: the tags are checked as far as
// they can be wrong whatever the guard is.

// tags checks the structs of the package that were not checked where they are used.
func (d *declarations) tags() {
	for _, t := range d.TypesInfo.Types {
		if s, ok := t.Type.(*types.Struct); ok && t.IsType() { // what tags in a struct that it embeds are about may be its fields
			d.mark(slices.DeleteFunc(structs(s, false)[1:], func(inner *types.Struct) bool { return !isRequest(inner) }))
		}
	}
	for _, file := range d.Files {
		owners := make(map[ast.Expr]types.Object)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				owners[n.Type] = d.TypesInfo.Defs[n.Name]
			case *ast.StructType:
				d.structTags(n, owners[n])
			}
			return true
		})
	}
}

func (d *declarations) structTags(n *ast.StructType, owner types.Object) {
	defer d.recoverPanic()
	s, ok := d.TypesInfo.TypeOf(n).(*types.Struct)
	if !ok || d.checked[s] || !d.mayBeOurs(s) || d.inGeneric(n) {
		return
	}
	var t types.Type = s
	if owner != nil {
		t = owner.Type()
	}
	switch named, _ := t.(*types.Named); {
	case named != nil && named.TypeParams().Len() > 0:
	case isRequest(s):
		d.requestTags(t)
	default:
		for i := range s.NumFields() {
			if field := d.fields[s.Field(i)]; field != nil {
				d.fieldTag(t, s.Field(i), s.Tag(i), field)
			}
		}
	}
}

// mayBeOurs reports whether tags with our key in s are about guards, and not another library's.
func (d *declarations) mayBeOurs(s *types.Struct) bool {
	for i := range s.NumFields() {
		if tag := s.Tag(i); strings.Contains(tag, "#{") || tag != "" && d.concerns() {
			return true
		}
	}
	return false
}

// isRequest reports whether the tags of s are those of a request, and not of functions.
func isRequest(s *types.Struct) bool {
	for i := range s.NumFields() {
		_, basic := s.Field(i).Type().Underlying().(*types.Basic)
		if tag := s.Tag(i); s.Field(i).Name() == "_" && tag != "" || strings.Contains(tag, `guard:"key"`) || basic && strings.Contains(tag, `guard:"`) {
			return true
		}
	}
	return false
}

// someGuard is a guard of which nothing is known.
func someGuard(opts ...guard.Option) (*guard.Guard, *declared) {
	g, err := guard.New(anyLocker{}, append(opts, guard.FromSpec(guard.Spec{OneKey: true}))...)
	if err != nil {
		g, _ = guard.New(anyLocker{}) // the name is a strange one
	}
	return g, &declared{guard: g, open: true, functions: true}
}

func (d *declarations) requestTags(t types.Type) {
	g, open := someGuard()
	err := adapter.CheckRequest(g, d.typeOf(t))
	if err != nil && strings.Contains(err.Error(), "fields marked as key follow the guard's name") {
		g, open = someGuard(guard.Name(named(t)))
		err = adapter.CheckRequest(g, d.typeOf(t))
	}
	texts := d.tagsOf(structs(t, false))
	onlyBlank := !slices.ContainsFunc(slices.Collect(structOf(t).Fields()), func(f *types.Var) bool { return f.Name() != "_" })
	for _, f := range open.filtered(err) {
		if elsewhere := onlyBlank && strings.Contains(f.message, "keyexpr: unknown field "); len(texts) > 0 && !elsewhere {
			d.failOne(f, d.blameField(t, f, texts), texts)
		}
	}
}

// blameField is the tag that f is about: that of the field it names, or the first one.
func (d *declarations) blameField(t types.Type, f fault, texts []*ast.BasicLit) ast.Node {
	s := structOf(t)
	for i := range s.NumFields() {
		if field := d.fields[s.Field(i)]; field != nil && strings.Contains(f.message, fmt.Sprintf("field %v.%s: ", d.typeOf(t), s.Field(i).Name())) {
			return field.Tag
		}
	}
	return texts[max(0, slices.IndexFunc(texts, func(lit *ast.BasicLit) bool { return strings.Contains(lit.Value, "guard:") }))]
}

// fieldTag checks the tag of one field, as Bind of a struct with this field alone would.
func (d *declarations) fieldTag(owner types.Type, f *types.Var, tag string, field *ast.Field) {
	g, open := someGuard()
	alone := types.Type(types.NewStruct([]*types.Var{f}, []string{tag}))
	if n, ok := owner.(*types.Named); ok {
		alone = types.NewNamed(types.NewTypeName(n.Obj().Pos(), n.Obj().Pkg(), n.Obj().Name(), nil), alone, nil)
	}
	var check func(adapter.Field) error
	if open.facts = !guardable(f.Type()); open.facts {
		check = func(g adapter.Field) error { return d.handlerTag(g, f.Type()) }
	}
	for _, fault := range open.filtered(adapter.CheckFields(g, d.typeOf(alone), check)) {
		if !strings.HasSuffix(fault.message, "no field has a guard tag") {
			d.failOne(fault, field.Tag, []*ast.BasicLit{field.Tag})
		}
	}
}

// guardable reports whether functions of type t can be bound by package guard.
func guardable(t types.Type) bool {
	s, ok := t.Underlying().(*types.Signature)
	if !ok || s.Params().Len() == 0 || s.Results().Len() == 0 {
		return false
	}
	last := s.Results().At(s.Results().Len() - 1).Type()
	return isContext(s.Params().At(0).Type()) && types.Identical(last, types.Universe.Lookup("error").Type())
}

func isContext(t types.Type) bool {
	return types.TypeString(types.Unalias(t), nil) == "context.Context"
}

// handlerTag checks the tag of a field that holds a handler, or something of another adapter.
func (d *declarations) handlerTag(f adapter.Field, t types.Type) error {
	gin, plain := isGin(t), isHandler(t)
	if !gin && !plain {
		spec := f.Guard.Spec()
		spec.Name = ""
		return spec.Validate()
	}
	path, err := pathOf(f.Tag, gin, keyexpr.AnyName())
	if err != nil {
		return err
	}
	_, err = (&adapted{can: []adapter.Ability{adapter.ServesMethods, adapter.ServesFallback}}).check(f.Guard, path)
	return err
}

// pathOf is what the route tag of a field says about path values, and path if it has none.
func pathOf(tag reflect.StructTag, gin bool, path keyexpr.Root) (keyexpr.Root, error) {
	pattern, ok, err := route.Lookup(tag)
	if err != nil || !ok {
		return path, err
	}
	if gin {
		_, path, err := route.Gin(pattern)
		if err != nil {
			return keyexpr.Root{}, err
		}
		pattern = route.FromGin(path)
	}
	names, err := route.Check(pattern)
	return keyexpr.Names(names...), err
}
