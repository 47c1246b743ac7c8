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
	for _, file := range p.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				c := p.callOf(n)
				p.bareArgs(c)
				return !c.is("guard", "FromSpec")
			case *ast.KeyValueExpr:
				p.bareField(n.Key, n.Value)
			case *ast.AssignStmt:
				for i, to := range n.Lhs {
					if len(n.Lhs) == len(n.Rhs) {
						p.bareField(to, n.Rhs[i])
					}
				}
			}
			return true
		})
	}
	return p.lost, nil
}

// bareArgs looks at the arguments of an exported function of Latchkey that is no option.
func (p *pass) bareArgs(c *call) {
	if c == nil || !ast.IsExported(c.name) || c.recv != "" && !ast.IsExported(c.recv) {
		return
	}
	fn, ok := p.TypesInfo.TypeOf(c.Fun).(*types.Signature)
	if !ok || c.pkg == "guard" && fn.Results().Len() == 1 && named(fn.Results().At(0).Type()) == "Option" {
		return
	}
	for i, arg := range c.Args {
		if i < fn.Params().Len() && isDuration(fn.Params().At(i).Type()) {
			p.bare(arg, fmt.Sprintf("%s of %s", fn.Params().At(i).Name(), c.name))
		}
	}
}

func isDuration(t types.Type) bool { return types.TypeString(types.Unalias(t), nil) == "time.Duration" }

// bareField looks at what a field of a struct of Latchkey is set to.
func (p *pass) bareField(field, value ast.Expr) {
	if v, ok := p.object(field).(*types.Var); ok && v.IsField() && v.Exported() && ours(v.Pkg()) != "" && isDuration(v.Type()) {
		p.bare(value, v.Name())
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
