package gen

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// wrapper is the code generated for an interface, or for a function.
type wrapper struct {
	name    string
	obj     types.Object
	tparams *types.TypeParamList
	methods []*method // of an interface all that it has; of a function itself
	iface   bool
}

// method is a method of an interface, or a function.
type method struct {
	*wrapper
	fn        *types.Func
	sig       *types.Signature
	params    []param // with the context, if there is a directive
	guarded   bool    // has a directive
	unfit     bool    // and can't have one
	directive directive
	guard     string // the name of its guard, if it has one
}

// param is a parameter by the name that it has in the generated code.
type param struct {
	name string
	t    types.Type
}

// guardName is the default of the guard's name.
func (m *method) guardName() string {
	if m.iface {
		return m.name + "." + m.fn.Name()
	}
	return m.fn.Name()
}

// args are the parameters behind the context, and results those before the error.
func (m *method) args() []param { return m.params[1:] }

// argNames are the Args of an adapter.Directive.
func (m *method) argNames() string {
	var names []string
	for _, a := range m.args() {
		names = append(names, a.name)
	}
	if len(names) == 1 && names[0] == "req" {
		return "" // also for an argument without a name
	}
	return strings.Join(names, ",")
}

func (m *method) results() []types.Type {
	var all []types.Type
	for i := range m.sig.Results().Len() - 1 {
		all = append(all, m.sig.Results().At(i).Type())
	}
	return all
}

// declared returns the wrappers of a file.
func (p *pkg) declared(f *ast.File) []*wrapper {
	var all []*wrapper
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if fn, ok := p.TypesInfo.Defs[d.Name].(*types.Func); ok && p.directives[d.Name.Pos()].pos.IsValid() {
				all = append(all, p.function(fn))
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				t, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if w := p.interfaceOf(t); w != nil {
					all = append(all, w)
				}
			}
		}
	}
	return all
}

func (p *pkg) function(fn *types.Func) *wrapper {
	w := &wrapper{name: fn.Name(), obj: fn, tparams: fn.Signature().TypeParams()}
	w.methods = []*method{p.method(w, fn)}
	return w
}

// interfaceOf returns the wrapper of an interface with directives, and nil for any other type.
func (p *pkg) interfaceOf(spec *ast.TypeSpec) *wrapper {
	obj := p.TypesInfo.Defs[spec.Name]
	if _, ok := spec.Type.(*ast.InterfaceType); !ok || obj == nil {
		return nil
	}
	t := obj.Type().Underlying().(*types.Interface)
	w := &wrapper{name: obj.Name(), obj: obj, iface: true}
	if named, ok := obj.Type().(interface{ TypeParams() *types.TypeParamList }); ok {
		w.tparams = named.TypeParams()
	}
	guarded := false
	for m := range t.Methods() {
		made := p.method(w, p.declaration(w, obj.Type(), m))
		w.methods = append(w.methods, made)
		guarded = guarded || made.guarded
	}
	if !guarded {
		return nil
	}
	if !t.IsMethodSet() {
		p.fault(spec.Name.Pos(), "%s is a constraint, which no value has: move the methods with directives to an interface of their own", w.name)
	}
	slices.SortFunc(w.methods, func(a, b *method) int { return strings.Compare(p.order(a.fn), p.order(b.fn)) })
	return w
}

// order is where a method comes among others: by its place in the package, or behind those by its name.
func (p *pkg) order(fn *types.Func) string {
	if fn.Pkg() != p.Types {
		return "~" + fn.Name()
	}
	at := p.Fset.Position(fn.Pos()) // places in the set of files differ from run to run
	return fmt.Sprintf(" %s %12d", at.Filename, at.Offset)
}

// method returns the code generated for a method or function.
func (p *pkg) method(w *wrapper, fn *types.Func) *method {
	m := &method{wrapper: w, fn: fn, sig: fn.Signature()}
	m.directive, m.guarded = p.directiveOf(fn, w.obj.Pos())
	if fn.Pkg() != p.Types && !fn.Exported() {
		p.fault(w.obj.Pos(), "%s embeds an interface with the method %s, which only package %s can have", w.name, fn.Name(), fn.Pkg().Path())
	}
	if m.unfit = m.guarded && !p.guardable(m); m.unfit {
		return m
	}
	used := make(map[string]bool)
	for v := range m.sig.Params().Variables() {
		used[v.Name()] = true
	}
	for i := range m.sig.Params().Len() {
		v := m.sig.Params().At(i)
		name := v.Name()
		switch {
		case name != "" && name != "_":
		case m.guarded && i == 0:
			name = fresh("ctx", used)
		case m.guarded:
			name = "req"
		default:
			name = fresh(fmt.Sprintf("p%d", i), used)
		}
		m.params = append(m.params, param{name, v.Type()})
	}
	return m
}

// guardable reports whether a guard can stand before m, and says what to write if not.
func (p *pkg) guardable(m *method) bool {
	params, results := m.sig.Params(), m.sig.Results()
	context := params.Len() > 0 && isContext(params.At(0).Type())
	fails := results.Len() > 0 && types.Identical(results.At(results.Len()-1).Type(), types.Universe.Lookup("error").Type())
	var lacks []string
	if !context {
		lacks = append(lacks, "has no context.Context in front")
	}
	if !fails {
		lacks = append(lacks, "does not return an error last")
	}
	if len(lacks) > 0 {
		p.fault(m.at(p), "%s %s: write %s", m.fn.Name(), strings.Join(lacks, ", and "), m.suggestion(context, fails))
		return false
	}
	for i := 1; i < params.Len() && params.Len() > 2; i++ {
		if name := params.At(i).Name(); name == "" || name == "_" {
			p.fault(m.at(p), "argument %d of %s has no name, and the facts of a directive are the names of arguments: write %s",
				i, m.fn.Name(), m.suggestion(true, true))
			return false
		}
	}
	return true
}

// at is where to show a mistake in the declaration of m.
func (m *method) at(p *pkg) token.Pos {
	if m.fn.Pkg() == p.Types {
		return m.fn.Pos()
	}
	return m.obj.Pos()
}

func isContext(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "context" && named.Obj().Name() == "Context"
}

// suggestion is the declaration of m as it could be guarded.
func (m *method) suggestion(context, fails bool) string {
	short := func(p *types.Package) string {
		if p == m.fn.Pkg() {
			return ""
		}
		return p.Name()
	}
	var params, results []string
	if !context {
		params = append(params, "ctx context.Context")
	}
	for i := range m.sig.Params().Len() {
		v := m.sig.Params().At(i)
		name, t := v.Name(), types.TypeString(v.Type(), short)
		if m.sig.Variadic() && i == m.sig.Params().Len()-1 {
			t = "..." + types.TypeString(v.Type().(*types.Slice).Elem(), short)
		}
		switch {
		case name != "" && name != "_":
		case i == 0 && context:
			name = "ctx"
		default:
			name = string(rune('a' + i%26))
		}
		params = append(params, name+" "+t)
	}
	for v := range m.sig.Results().Variables() {
		results = append(results, types.TypeString(v.Type(), short))
	}
	if !fails {
		results = append(results, "error")
	}
	text := m.fn.Name() + "(" + strings.Join(params, ", ") + ") "
	if len(results) == 1 {
		return text + results[0]
	}
	return text + "(" + strings.Join(results, ", ") + ")"
}

// fresh returns name, or one like it that is not used yet, and notes it.
func fresh(name string, used map[string]bool) string {
	for used[name] || token.IsKeyword(name) {
		name += "_"
	}
	used[name] = true
	return name
}

// title is name behind verb, and exported if name is.
func title(verb, name string) string {
	if !token.IsExported(name) {
		verb = lower(verb)
	}
	return verb + upper(name)
}

// upper is name with a capital, and lower is name without.
func upper(name string) string {
	r, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(r)) + name[size:]
}

func lower(name string) string {
	r, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(r)) + name[size:]
}
