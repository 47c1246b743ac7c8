// Package vet has the analysers of latchkey-vet, for drivers of golang.org/x/tools/go/analysis. They find mistakes in the
// declarations of Latchkey before the program runs: mostly those that the program would find when it starts, in the same
// words, as the checks that run then are the ones that run here.
//
// They see only text that is written out in the source. They do not see an option that comes out of a variable with
// several values or from another package, a locker, or the order of calls across functions. In doubt, nothing is
// reported.
package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/latchkey-go/latchkey/internal/gotype"
)

// module is where Latchkey's packages are.
const module = "github.com/latchkey-go/latchkey"

// Analyzers returns the analysers. Each is of use without the others.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{
		{Name: "latchkeydecl", Doc: docDeclarations, URL: url, Run: runDeclarations, ResultType: lost},
		{Name: "latchkeyunit", Doc: docUnits, URL: url, Run: runUnits, ResultType: lost},
		{Name: "latchkeyheld", Doc: docHeld, URL: url, Run: runHeld, ResultType: lost},
	}
}

var lost = reflect.TypeFor[[]string]()

const url = "https://pkg.go.dev/" + module + "/cmd/latchkey-vet"

// pass is one run of an analyser on one package.
type pass struct {
	*analysis.Pass
	world    *gotype.World
	values   map[types.Object][]definition
	excused  map[token.Pos]bool // starts of lines
	reported map[string]bool
	guards   map[*ast.CallExpr]*declared
	fields   map[*types.Var]*ast.Field // with a tag
	generic  []*ast.FuncDecl
	bodies   map[types.Object]*ast.BlockStmt // of functions
	lost     []string                        // panics, by which nothing was reported
}

// recoverPanic, deferred, ends a check that panics, which none is known to do. It has seen nothing: the code may well be right.
func (p *pass) recoverPanic() {
	if v := recover(); v != nil {
		p.lost = append(p.lost, fmt.Sprint(v))
	}
}

// definition is where a variable gets a value: the expression, or one of the results of a call. Without an expression, the
// value is not known.
type definition struct {
	from   ast.Expr
	result int // -1 for an expression of one value
}

// excuse is a comment that says why something is as it is. It takes back what is reported on its line, or, if it stands
// alone, on the next one.
const excuse = "//latchkey:ok "

func newPass(p *analysis.Pass) *pass {
	own := &pass{
		Pass: p, values: make(map[types.Object][]definition), excused: make(map[token.Pos]bool),
		reported: make(map[string]bool), guards: make(map[*ast.CallExpr]*declared),
		fields: make(map[*types.Var]*ast.Field), bodies: make(map[types.Object]*ast.BlockStmt),
	}
	for _, f := range p.Files {
		file := p.Fset.File(f.Pos())
		code := make(map[int]bool) // lines with some
		ast.Inspect(f, func(n ast.Node) bool {
			switch n.(type) {
			case nil, *ast.CommentGroup, *ast.Comment, *ast.File:
			default:
				code[file.Line(n.Pos())], code[file.Line(n.End())] = true, true
			}
			return own.note(n)
		})
		for _, group := range f.Comments {
			for _, c := range group.List {
				if why, ok := strings.CutPrefix(c.Text, excuse); ok && strings.TrimSpace(why) != "" {
					at := file.Line(c.Pos())
					if !code[at] {
						at++
					}
					own.excused[file.LineStart(min(at, file.LineCount()))] = true
				}
			}
		}
	}
	return own
}

// concerns reports whether the package imports one of Latchkey's, or is one.
func (p *pass) concerns() bool {
	return ours(p.Pkg) != "" || slices.ContainsFunc(p.Pkg.Imports(), func(pkg *types.Package) bool { return ours(pkg) != "" })
}

// inGeneric reports whether n is in a function or a method with type parameters, of which types may be.
func (p *pass) inGeneric(n ast.Node) bool {
	return slices.ContainsFunc(p.generic, func(fn *ast.FuncDecl) bool { return fn.Pos() <= n.Pos() && n.Pos() < fn.End() })
}

// ours is the name of a package of Latchkey below the module, and empty for others.
func ours(pkg *types.Package) string {
	if pkg == nil {
		return ""
	}
	path, _, _ := strings.Cut(pkg.Path(), " ")
	if name, ok := strings.CutPrefix(path, module+"/"); ok {
		return name
	}
	return ""
}

// call is a call of a function of Latchkey.
type call struct {
	*ast.CallExpr
	pkg, recv, name string
	targs           []types.Type
}

// is reports whether c is a call of one of the named functions of a package.
func (c *call) is(pkg string, names ...string) bool {
	return c != nil && c.pkg == pkg && c.recv == "" && slices.Contains(names, c.name)
}

// callOf returns the function that e calls, if that is one of Latchkey.
func (p *pass) callOf(e ast.Expr) *call {
	expr, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return nil
	}
	fn, ok := typeutil.Callee(p.TypesInfo, expr).(*types.Func)
	if !ok || ours(fn.Pkg()) == "" {
		return nil
	}
	c := &call{CallExpr: expr, pkg: ours(fn.Pkg()), name: fn.Name()}
	if recv := fn.Signature().Recv(); recv != nil {
		c.recv = named(recv.Type())
	}
	if id := identOf(expr.Fun); id != nil {
		for t := range p.TypesInfo.Instances[id].TypeArgs.Types() {
			c.targs = append(c.targs, t)
		}
	}
	return c
}

// identOf is the name of a function or a type, behind its package and in front of its type arguments.
func identOf(e ast.Expr) *ast.Ident {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.StarExpr:
		return identOf(e.X)
	case *ast.IndexExpr:
		return identOf(e.X)
	case *ast.IndexListExpr:
		return identOf(e.X)
	}
	return nil
}

// named is the name of a type or of what it points to.
func named(t types.Type) string {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// note notes what variables are set to, and the fields of structs.
func (p *pass) note(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		p.bodies[p.TypesInfo.Defs[n.Name]] = n.Body
		if fn, ok := p.TypesInfo.Defs[n.Name].(*types.Func); ok && fn.Signature().TypeParams().Len()+fn.Signature().RecvTypeParams().Len() > 0 {
			p.generic = append(p.generic, n)
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			p.set(to, sourceOf(n.Rhs, i, len(n.Lhs)))
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if len(n.Values) > 0 {
				p.set(name, sourceOf(n.Values, i, len(n.Names)))
			} else if obj := p.TypesInfo.Defs[name]; obj != nil && named(obj.Type()) != "Guard" { // a guard that is not set is used by nobody
				p.set(name, definition{})
			}
		}
	case *ast.KeyValueExpr:
		if v, ok := p.object(n.Key).(*types.Var); ok && v.IsField() {
			p.set(n.Key, definition{n.Value, -1})
		}
	case *ast.RangeStmt:
		p.set(n.Key, definition{})
		p.set(n.Value, definition{})
	case *ast.IncDecStmt:
		p.set(n.X, definition{})
	case *ast.UnaryExpr:
		if n.Op == token.AND { // through the pointer it may be set to anything, by a call say
			p.set(n.X, definition{})
		}
	case *ast.Field:
		for _, name := range append([]*ast.Ident{identOf(n.Type)}, n.Names...) { // the type has it, if there is no name
			if v, ok := p.TypesInfo.Defs[name].(*types.Var); ok && n.Tag != nil {
				p.fields[v] = n
			}
		}
	}
	return true
}

// sourceOf is where the i-th of n variables gets its value.
func sourceOf(values []ast.Expr, i, n int) definition {
	if len(values) == n {
		return definition{from: values[i], result: -1}
	}
	return definition{from: values[0], result: i}
}

func (p *pass) set(to ast.Expr, d definition) {
	if obj := p.object(to); obj != nil {
		p.values[obj] = append(p.values[obj], d)
	}
	switch to := to.(type) { // a part of it
	case *ast.IndexExpr:
		p.set(to.X, definition{})
	case *ast.SelectorExpr:
		p.set(to.X, definition{})
	case *ast.StarExpr:
		p.set(to.X, definition{})
	case *ast.ParenExpr:
		p.set(to.X, definition{})
	}
}

// object is the variable or field that e names, and nil if it names none.
func (p *pass) object(e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return p.TypesInfo.ObjectOf(e)
	case *ast.SelectorExpr:
		return p.TypesInfo.ObjectOf(e.Sel)
	}
	return nil
}

// isNil reports whether e is nil, or a conversion of it.
func (p *pass) isNil(e ast.Expr) bool {
	if c, ok := ast.Unparen(e).(*ast.CallExpr); ok && len(c.Args) == 1 && p.TypesInfo.Types[c.Fun].IsType() {
		return p.isNil(c.Args[0])
	}
	return p.TypesInfo.Types[e].IsNil()
}

// only returns the value of a variable of this package, if it is set once.
func (p *pass) only(e ast.Expr) (definition, bool) {
	obj, ok := p.object(e).(*types.Var)
	if !ok || obj.IsField() || obj.Kind() == types.ParamVar || obj.Pkg() != p.Pkg || len(p.values[obj]) != 1 || p.values[obj][0].from == nil {
		return definition{}, false
	}
	return p.values[obj][0], true
}

// follow is what e is, by way of a variable that is set once.
func (p *pass) follow(e ast.Expr) ast.Expr {
	if v, ok := p.only(e); ok && v.result < 0 {
		return v.from
	}
	return e
}

// typeOf is a type of the source as the checks want it.
func (p *pass) typeOf(t types.Type) reflect.Type {
	if p.world == nil {
		p.world = gotype.New()
	}
	return p.world.Of(t)
}
