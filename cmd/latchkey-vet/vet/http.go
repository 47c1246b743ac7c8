package vet

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"maps"
	"net/http"
	"reflect"
	"strings"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/roots"
	"github.com/latchkey-go/latchkey/internal/route"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/middleware"
)

// adapted are the options of an adapter of HTTP, as far as they are written out.
type adapted struct {
	opts      []middleware.Option // for what New says to them alone
	path      keyexpr.Root
	body      keyexpr.Root
	own       keyexpr.Roots // the application's facts
	can       []guard.Ability
	open      bool // there may be other facts
	queryOnly bool
	text      []*ast.BasicLit
}

// handlers checks a call of New or Bind of an adapter of HTTP.
func (d *declarations) handlers(c *call) {
	if len(c.Args) == 0 {
		return
	}
	rest := 1
	if c.name == "Bind" {
		rest = 2
	}
	g := d.guardOf(c.Args[0])
	if g == nil || len(c.Args) < rest {
		return
	}
	a := d.adapter(c.Args[rest:], c.Ellipsis.IsValid())
	known := &declared{guard: g.guard, open: g.open, functions: g.functions, registered: g.registered, texts: append(a.text, g.texts...)}
	if c.name == "New" {
		specs, err := a.check(g.guard, a.path)
		d.failOpen(err, known, place{node: c.CallExpr})
		d.guarded(c, a, specs)
		return
	}
	target, ok := d.target(c)
	if !ok {
		return
	}
	ofGin := c.pkg == "middleware/ginguard"
	d.failFields(guard.CheckFields(g.guard, d.typeOf(target), func(f guard.Field) error {
		v := d.varAt(target, f.Path)
		if err := d.handlerFault(f, v, ofGin); err != nil {
			return err
		}
		path, err := pathOf(f.Tag, ofGin)
		if err != nil {
			return err
		}
		pattern, ok, _ := route.Lookup(f.Tag)
		if !ok {
			path = a.path
		}
		specs, err := a.check(f.Guard, path)
		for _, set := range d.values[v] {
			if a.queryOnly || !strings.HasPrefix(pattern, "GET ") {
				d.reads(set.from, specs)
			}
		}
		return err
	}), known, c, target)
}

// check is what New of an adapter would say to g, and what g then is.
func (a *adapted) check(g *guard.Guard, path keyexpr.Root) ([]guard.Spec, error) {
	plain, err := guard.New(anyLocker{}, guard.FromSpec(guard.Spec{Name: g.Spec().Name, Key: "any", OneKey: true}))
	if err != nil {
		return nil, err
	}
	_, faults := middleware.New(plain, a.opts...)
	all := roots.HTTP(path, a.body)
	maps.Copy(all, a.own)
	for err == nil {
		r, refused := g.Prepare(all, a.can...)
		if err = refused; err == nil {
			return r.Specs(), faults
		}
		name, unknown := unknownName(err)
		if !a.open || !unknown || len(all) > 30 {
			break
		}
		all[name], err = keyexpr.Root{}, nil // as an option that is not known may offer it
	}
	return nil, errors.Join(faults, fmt.Errorf("middleware: %w", err))
}

// unknownName is the name of a fact that err misses.
func unknownName(err error) (name string, ok bool) {
	for _, e := range templates(err) {
		if n, scanErr := fmt.Sscanf(e.Reason, "unknown name %s", &name); n == 1 && scanErr == nil {
			for i, r := range name {
				if r == ',' || r == ':' {
					return name[:i], true
				}
			}
		}
	}
	return "", false
}

// adapter makes the options of an adapter anew.
func (d *declarations) adapter(exprs []ast.Expr, slice bool) *adapted {
	a := &adapted{path: keyexpr.AnyName(), own: make(keyexpr.Roots), can: []guard.Ability{guard.ServesMethods}}
	known := new(declared)
	exprs = d.spread(known, exprs, slice)
	a.open = known.open
	for _, e := range exprs {
		if v, ok := d.only(e); ok && v.result < 0 {
			e = v.from
		}
		a.text = append(a.text, literals(e)...)
		c := d.callOf(e)
		switch {
		case d.isNil(e):
			a.opts = append(a.opts, nil)
		case c == nil || c.recv != "" || c.pkg != "middleware" && c.pkg != "middleware/ginguard":
			a.open = true
		default:
			a.opts = append(a.opts, d.adapterOption(a, c))
		}
	}
	return a
}

// adapterOption makes one option anew, and notes what it says about facts.
func (d *declarations) adapterOption(a *adapted, c *call) middleware.Option {
	nothing := middleware.Stream()
	none := len(c.Args) > 0 && d.isNil(c.Args[len(c.Args)-1])
	text := ""
	if len(c.Args) > 0 {
		if v := d.TypesInfo.Types[c.Args[0]].Value; v != nil && v.Kind() == constant.String {
			text = constant.StringVal(v)
		} else if c.name == "Pattern" || c.name == "WithFacts" || c.name == "Value" {
			a.open = true
			return nothing
		}
	}
	switch c.name {
	case "Body":
		if len(c.targs) == 1 && !parametric(c.targs[0]) {
			a.body = keyexpr.Type(d.typeOf(c.targs[0]))
		}
		return nothing
	case "Pattern":
		if names, err := route.Check(text); err == nil {
			a.path = keyexpr.Names(names...)
		}
		return middleware.Pattern(text)
	case "WithFacts", "Value":
		if len(c.targs) != 1 || parametric(c.targs[0]) {
			a.open = true
			return nothing
		}
		if _, taken := roots.HTTP(a.path, a.body)[text]; !taken && !none {
			a.own[text] = keyexpr.Type(d.typeOf(c.targs[0]))
		}
		if none {
			return middleware.WithFacts[any](text, nil)
		}
		return middleware.WithFacts(text, func(*http.Request) (any, error) { return nil, nil })
	case "QueryOnly":
		a.queryOnly = true
	case "Fallback":
		if none {
			return middleware.Fallback(nil)
		}
		a.can = append(a.can, guard.ServesFallback)
	case "Respond":
		if none {
			return middleware.Respond(nil)
		}
	case "BodyLimit":
		if v, ok := d.value(c.Args[0], reflect.TypeFor[int64]()); ok {
			return middleware.BodyLimit(v.Int())
		}
	case "Status":
		status, ok := d.value(c.Args[1], reflect.TypeFor[int]())
		if failure, known := d.failure(c.Args[0]); ok && known {
			return middleware.Status(failure, int(status.Int()))
		}
	}
	return nothing
}

// failure is the error of package guard that e names.
func (d *declarations) failure(e ast.Expr) (error, bool) {
	obj := d.object(e)
	switch {
	case obj == nil || obj.Pkg() == nil:
		return nil, d.isNil(e)
	case obj.Pkg().Path() == "context" && obj.Name() == "Canceled":
		return context.Canceled, true
	case obj.Pkg().Path() == "context" && obj.Name() == "DeadlineExceeded":
		return context.DeadlineExceeded, true
	case ours(obj.Pkg()) != "guard":
		return nil, false
	}
	err, ok := map[string]error{
		"ErrKey": guard.ErrKey, "ErrBusy": guard.ErrBusy, "ErrOutage": guard.ErrOutage, "ErrLost": guard.ErrLost,
		"ErrUnsupported": guard.ErrUnsupported, "ErrFault": guard.ErrFault, "ErrReplaced": guard.ErrReplaced,
	}[obj.Name()]
	return err, ok
}

// handlerFault says why a field can't hold a handler.
func (d *declarations) handlerFault(f guard.Field, v *types.Var, gin bool) error {
	switch {
	case v == nil, gin && isGin(v.Type()), !gin && isHandler(v.Type()):
		return nil
	case gin && isHandler(v.Type()) && !types.IsInterface(v.Type()):
		return fmt.Errorf("field has a tag of a handler, but is a %v: bind it by package middleware, or make it a gin.HandlerFunc", f.Type)
	case gin:
		return fmt.Errorf("field has a tag of a handler, but is a %v, not a gin.HandlerFunc", f.Type)
	}
	return fmt.Errorf("field has a tag of a handler, but is a %v, not an http.HandlerFunc or an http.Handler", f.Type)
}

// isHandler reports whether a field of type t can hold a handler of net/http.
func isHandler(t types.Type) bool {
	if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "net/http" && n.Obj().Name() == "Handler" {
		return true
	}
	return takes(t, "net/http.ResponseWriter", "*net/http.Request")
}

// isGin reports whether a field of type t can hold a handler of gin.
func isGin(t types.Type) bool { return takes(t, strings.Trim(gin, "().")) }

// takes reports whether t is a function of these types without a result.
func takes(t types.Type, want ...string) bool {
	s, ok := t.Underlying().(*types.Signature)
	if !ok || s.Variadic() || s.Results().Len() > 0 || s.Params().Len() != len(want) {
		return false
	}
	for i, name := range want {
		if types.TypeString(s.Params().At(i).Type(), nil) != name {
			return false
		}
	}
	return true
}
