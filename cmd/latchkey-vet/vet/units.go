package vet

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"time"

	"golang.org/x/tools/go/analysis"
)

const docUnits = `find durations that are bare numbers

A time.Duration counts nanoseconds: lock.Request{Wait: 5} waits for five of them. Reported are numbers without a unit, of less than
a millisecond, which is the shortest time that a lock service knows, where Latchkey takes a duration. What the options of package
guard get is latchkeydecl's to find.`

func runUnits(a *analysis.Pass) (any, error) {
	p := newPass(a)
	spec := make(map[*ast.CompositeLit]bool) // of an option
	p.calls(func(c *call) {
		fn, ok := p.TypesInfo.TypeOf(c.Fun).(*types.Signature)
		if !ok || !ast.IsExported(c.name) || c.recv != "" && !ast.IsExported(c.recv) {
			return
		}
		option := c.pkg == "guard" && isOption(fn)
		for i, arg := range c.Args {
			if lit, ok := ast.Unparen(arg).(*ast.CompositeLit); ok && c.is("guard", "FromSpec") {
				spec[lit] = true
			}
			if !option && i < fn.Params().Len() && isDuration(fn.Params().At(i).Type()) {
				p.bare(arg, fmt.Sprintf("%s of %s", fn.Params().At(i).Name(), c.name))
			}
		}
	})
	for _, file := range p.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if !spec[n] {
					p.bareFields(n)
				}
			case *ast.AssignStmt:
				p.bareAssigned(n)
			}
			return true
		})
	}
	return p.lost, nil
}

func isOption(fn *types.Signature) bool {
	return fn.Results().Len() == 1 && named(fn.Results().At(0).Type()) == "Option"
}

func isDuration(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == "Duration" && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "time"
}

// bareFields looks at the fields of a struct of Latchkey.
func (p *pass) bareFields(lit *ast.CompositeLit) {
	n, ok := types.Unalias(p.TypesInfo.TypeOf(lit)).(*types.Named)
	if !ok || ours(n.Obj().Pkg()) == "" {
		return
	}
	s, ok := n.Underlying().(*types.Struct)
	for i, elt := range lit.Elts {
		var field types.Object
		value := elt
		if pair, isPair := elt.(*ast.KeyValueExpr); isPair {
			field, value = p.object(pair.Key), pair.Value
		} else if ok && i < s.NumFields() {
			field = s.Field(i)
		}
		if field != nil && field.Exported() && isDuration(field.Type()) {
			p.bare(value, fmt.Sprintf("%s of %s", field.Name(), n.Obj().Name()))
		}
	}
}

// bareAssigned looks at what is assigned to fields of Latchkey's structs.
func (p *pass) bareAssigned(n *ast.AssignStmt) {
	if len(n.Lhs) != len(n.Rhs) {
		return
	}
	for i, to := range n.Lhs {
		if v, ok := p.object(to).(*types.Var); ok && v.IsField() && v.Exported() && ours(v.Pkg()) != "" && isDuration(v.Type()) {
			p.bare(n.Rhs[i], v.Name())
		}
	}
}

// bare reports e if it is a number without a unit that is too small to be meant.
func (p *pass) bare(e ast.Expr, what string) {
	v := p.TypesInfo.Types[e].Value
	if v == nil || p.hasUnit(e) {
		return
	}
	if n, ok := constant.Int64Val(constant.ToInt(v)); ok && n > 0 && n < int64(time.Millisecond) {
		p.emit(analysis.Diagnostic{Pos: e.Pos(), End: e.End(), Message: fmt.Sprintf(
			"%s is %v: a bare number counts nanoseconds, write %d*time.Second or another unit", what, time.Duration(n), n)})
	}
}

// hasUnit reports whether a part of e is a duration by itself, as time.Second is and 5 is not.
func (p *pass) hasUnit(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			obj := p.TypesInfo.ObjectOf(n)
			found = found || obj != nil && isDuration(obj.Type())
		case *ast.CallExpr: // a conversion: somebody has thought of the type
			found = true
		}
		return !found
	})
	return found
}
