package vet

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"reflect"
	"strings"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
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
	can       []adapter.Ability
	queryOnly bool
	declared  // open where there may be other facts
}

// handlers checks a call of New or Bind of an adapter of HTTP.
func (d *declarations) handlers(c *call) {
	rest := map[string]int{"New": 1, "Bind": 2}[c.name]
	if len(c.Args) < rest || d.guardOf(c.Args[0]) == nil {
		return
	}
	g, a := d.guardOf(c.Args[0]), d.adapter(c.Args[rest:], c.Ellipsis.IsValid())
	known := &declared{open: g.open, functions: g.functions, facts: a.open, registered: g.registered, texts: append(a.texts, g.texts...)}
	if c.name == "New" {
		specs, err := a.check(g.guard, a.path)
		d.fail(err, known, c)
		d.behind(c, a, specs)
		return
	}
	target, ok := d.target(c)
	if !ok {
		return
	}
	ofGin := c.pkg == "middleware/ginguard"
	d.failFields(adapter.CheckFields(g.guard, d.typeOf(target), func(f adapter.Field) error {
		v := d.varAt(target, f.Path)
		if err := d.handlerFault(f, v, ofGin); err != nil {
			return err
		}
		path, err := pathOf(f.Tag, ofGin, a.path)
		if err != nil {
			return err
		}
		specs, err := a.check(f.Guard, path)
		for _, set := range d.values[v] {
			if a.queryOnly || !strings.HasPrefix(f.Tag.Get("route"), "GET ") {
				d.reads(set.from, specs)
			}
		}
		return err
	}), known, c, target)
}

// check is what New of an adapter would say to g, and what g then is.
func (a *adapted) check(g *guard.Guard, path keyexpr.Root) ([]guard.Spec, error) {
	_, faults := middleware.New(guard.Must(guard.New(anyLocker{}, guard.FromSpec(guard.Spec{Name: g.Spec().Name, Key: "any", OneKey: true}))), a.opts...)
	all := roots.HTTP(path, a.body)
	maps.Copy(all, a.own)
	r, err := adapter.Prepare(g, all, a.can...)
	if err != nil {
		return nil, errors.Join(faults, fmt.Errorf("middleware: %w", err))
	}
	return r.Specs(), faults
}

// adapter makes the options of an adapter anew.
func (d *declarations) adapter(exprs []ast.Expr, slice bool) *adapted {
	a := &adapted{path: keyexpr.AnyName(), own: make(keyexpr.Roots), can: []adapter.Ability{adapter.ServesMethods}}
	for _, e := range d.spread(&a.declared, exprs, slice) {
		e = d.follow(e)
		a.texts = append(a.texts, literals(e)...)
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
	opt, known := d.called(&call{CallExpr: c.CallExpr, pkg: "middleware", name: c.name})
	switch c.name {
	case "Body":
		a.body = keyexpr.Type(d.typeOf(c.targs[0]))
	case "Pattern":
		if names, err := route.Check(d.textOf(c.Args[0])); err == nil {
			a.path = keyexpr.Names(names...)
		}
		a.open = a.open || !known
	case "WithFacts", "Value":
		root := d.textOf(c.Args[0])
		if _, taken := roots.HTTP(a.path, a.body)[root]; !taken && !d.isNil(c.Args[len(c.Args)-1]) {
			a.own[root] = keyexpr.Type(d.typeOf(c.targs[0]))
		}
		a.open = a.open || root == ""
	case "QueryOnly":
		a.queryOnly = true
	case "Fallback":
		a.can = append(a.can, adapter.ServesFallback)
	}
	if !known {
		return middleware.Stream()
	}
	option, _ := reflect.TypeAssert[middleware.Option](opt)
	return option
}

// handlerFault says why a field can't hold a handler.
func (d *declarations) handlerFault(f adapter.Field, v *types.Var, gin bool) error {
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
	return types.TypeString(types.Unalias(t), nil) == "net/http.Handler" || takes(t, "net/http.ResponseWriter*net/http.Request")
}

// isGin reports whether a field of type t can hold a handler of gin.
func isGin(t types.Type) bool { return takes(t, strings.Trim(ginContext, "()")) }

// takes reports whether t is a function of these types without a result.
func takes(t types.Type, want string) bool {
	s, ok := t.Underlying().(*types.Signature)
	if !ok {
		return false
	}
	var got strings.Builder
	for v := range s.Params().Variables() {
		got.WriteString(types.TypeString(v.Type(), nil))
	}
	return got.String() == want && s.Results().Len() == 0
}
