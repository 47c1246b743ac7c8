package vet

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/latchkey-go/latchkey/guard"
)

// A key that reads the query is another one than the handler's, where that prefers the body.

// fromQuery finds what a key or a condition reads from the query.
var fromQuery = regexp.MustCompile(`\bquery\??(?:\.|\[["'])([\w-]+)`)

// behind looks at the handlers that are behind what c returns, but at a route of GET, which has no form.
func (d *declarations) behind(c *call, a *adapted, specs []guard.Spec) {
	isMade := func(e ast.Expr) bool { made := d.made(e); return made != nil && made.CallExpr == c.CallExpr }
	for _, file := range d.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(*ast.CallExpr)
			if !ok || len(e.Args) == 0 {
				return true
			}
			if id := identOf(e.Fun); !a.queryOnly && (id != nil && id.Name == "GET" || strings.HasPrefix(d.textOf(e.Args[0]), "GET ")) {
				return false
			}
			if isMade(e.Fun) || slices.ContainsFunc(e.Args, isMade) {
				for _, arg := range e.Args {
					d.reads(arg, specs)
				}
			}
			return true
		})
	}
}

// textOf is a constant text, and empty if e is none.
func (p *pass) textOf(e ast.Expr) string {
	if v := p.TypesInfo.Types[e].Value; v != nil && v.Kind() == constant.String {
		return constant.StringVal(v)
	}
	return ""
}

// reads reports what a handler reads from the body and its guard from the query.
func (d *declarations) reads(handler ast.Expr, specs []guard.Spec) {
	body := d.bodyOf(handler)
	if body == nil {
		return
	}
	for _, s := range specs {
		for _, m := range fromQuery.FindAllStringSubmatch(s.Key+" "+s.When+" "+s.Levels, -1) {
			ast.Inspect(body, func(n ast.Node) bool {
				e, ok := n.(*ast.CallExpr)
				if !ok || len(e.Args) == 0 {
					return true
				}
				if fn, write := d.prefersBody(e, m[1]); fn != nil {
					d.emit(analysis.Diagnostic{Pos: e.Pos(), End: e.End(), Message: fmt.Sprintf(
						"guard %q reads query.%s, and %s prefers the body, which gets 415, or another key with QueryOnly: %s", s.Name, m[1], fn.Name(), write)})
				}
				return true
			})
		}
	}
}

// bodyOf returns the body of a handler, if it is a function of this package, and nil for others.
func (d *declarations) bodyOf(e ast.Expr) *ast.BlockStmt {
	switch e := ast.Unparen(d.follow(e)).(type) {
	case *ast.FuncLit:
		return e.Body
	case *ast.CallExpr:
		if d.TypesInfo.Types[e.Fun].IsType() { // a conversion
			return d.bodyOf(e.Args[0])
		}
	case *ast.Ident, *ast.SelectorExpr:
		return d.bodies[d.object(e)]
	}
	return nil
}

// prefersBody returns what e calls, if that takes a name from the body before the query, and what to write.
func (d *declarations) prefersBody(e *ast.CallExpr, name string) (fn *types.Func, write string) {
	fn, ok := typeutil.Callee(d.TypesInfo, e).(*types.Func)
	if !ok {
		return nil, ""
	}
	switch fn.FullName() {
	case "(*net/http.Request).FormValue", "(*net/http.Request).PostFormValue", ginContext + ".PostForm", ginContext + ".GetPostForm":
		if d.textOf(e.Args[0]) == name {
			return fn, fmt.Sprintf("write form.%s in the key, or read the query here", name)
		}
	case ginContext + ".ShouldBind", ginContext + ".Bind", ginContext + ".ShouldBindJSON", ginContext + ".BindJSON",
		ginContext + ".ShouldBindBodyWith", ginContext + ".ShouldBindBodyWithJSON":
		s := structOf(d.TypesInfo.TypeOf(e.Args[0]))
		for i := 0; s != nil && i < s.NumFields(); i++ {
			for _, key := range []string{"form", "json"} {
				if bound, _, _ := strings.Cut(reflect.StructTag(s.Tag(i)).Get(key), ","); bound == name {
					return fn, fmt.Sprintf("write form.%s or body.%s in the key, or ShouldBindQuery here", name, name)
				}
			}
		}
	}
	return nil, ""
}

const ginContext = "(*github.com/gin-gonic/gin.Context)"
