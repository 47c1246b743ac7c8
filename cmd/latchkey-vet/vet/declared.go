package vet

import (
	"go/ast"
	"go/constant"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/gotype"
	"github.com/latchkey-go/latchkey/lock"
)

// declared is a guard of the source, made anew of the options that are written out.
type declared struct {
	guard *guard.Guard // nil if New refuses it
	// open says that some options are not known, and functions that templates may have functions that are not known.
	open, functions bool
	facts           bool            // there may be some that are not known
	registered      bool            // in a registry
	texts           []*ast.BasicLit // in its options
}

// guardOf returns the guard that e is, if it is made in this package, once, and New has no complaint.
func (p *pass) guardOf(e ast.Expr) *declared {
	if c := p.made(e); c.is("guard", "New", "Stack") {
		if d := p.declared(c); d.guard != nil {
			return d
		}
	}
	return nil
}

// made is the call that makes e, also by way of a variable that is set once and of Must.
func (p *pass) made(e ast.Expr) *call {
	if d, ok := p.only(e); ok && d.result <= 0 {
		e = d.from
	}
	c := p.callOf(e)
	if c.is("guard", "Must") && len(c.Args) == 1 {
		return p.made(c.Args[0])
	}
	return c
}

// declared makes the guard of a call of New or Stack, and reports what that says, once.
func (p *pass) declared(c *call) *declared {
	if d, ok := p.guards[c.CallExpr]; ok {
		return d
	}
	d := new(declared)
	p.guards[c.CallExpr] = d
	switch {
	case c.name == "New" && len(c.Args) > 0:
		p.options(d, c)
	case c.name == "Stack" && !c.Ellipsis.IsValid():
		p.stack(d, c)
	}
	return d
}

func (p *pass) stack(d *declared, c *call) {
	var parts []*guard.Guard
	for _, arg := range c.Args {
		if p.isNil(arg) {
			parts = append(parts, nil)
			continue
		}
		part := p.guardOf(arg)
		if part == nil {
			return
		}
		parts = append(parts, part.guard)
		d.open, d.functions, d.registered = d.open || part.open, d.functions || part.functions, d.registered || part.registered
		d.texts = append(d.texts, part.texts...)
	}
	var err error
	if d.guard, err = guard.Stack(parts...); err != nil {
		p.fail(err, d, c)
	}
}

// options makes a guard of the options of c, and reports what New says to them: what is wrong with one at that one, and the
// rest at the call.
func (p *pass) options(d *declared, c *call) {
	var locker lock.Locker = anyLocker{}
	if p.isNil(c.Args[0]) {
		locker = nil
	}
	exprs := p.spread(d, c.Args[1:], c.Ellipsis.IsValid())
	opts := make([]guard.Option, len(exprs))
	for i, e := range exprs {
		opts[i] = p.option(d, e)
	}
	_, err := guard.New(locker, opts...)
	if err == nil {
		d.guard, err = guard.New(locker, d.forChecks(p, exprs, opts)...)
	}
	for _, f := range d.filtered(err) {
		p.failOne(f, p.blame(c, exprs, opts, f), d.texts)
	}
}

// spread returns the options one by one, also those of a slice.
func (p *pass) spread(d *declared, exprs []ast.Expr, slice bool) []ast.Expr {
	if !slice {
		return exprs
	}
	if list, ok := ast.Unparen(p.follow(exprs[len(exprs)-1])).(*ast.CompositeLit); ok {
		return append(append([]ast.Expr{}, exprs[:len(exprs)-1]...), list.Elts...)
	}
	d.open = true
	return exprs[:len(exprs)-1]
}

// blame is the option that alone gets the same complaint, and else the call.
func (p *pass) blame(c *call, exprs []ast.Expr, opts []guard.Option, f fault) ast.Node {
	var name []guard.Option
	for i, e := range exprs {
		if p.callOf(e).is("guard", "Name") {
			name = opts[i : i+1]
		}
	}
	for i, e := range exprs {
		_, err := guard.New(anyLocker{}, append([]guard.Option{opts[i]}, name...)...)
		if err != nil && opts[i] != nil && slices.Contains(strings.Split(err.Error(), "\n"), f.message) {
			return e
		}
	}
	return c.CallExpr
}

// option makes an option of the source. One that is not known is replaced by one that says nothing.
func (p *pass) option(d *declared, e ast.Expr) guard.Option {
	unknown := guard.FromSpec(guard.Spec{})
	e = p.follow(e)
	if p.isNil(e) {
		return nil
	}
	c := p.callOf(e)
	if c == nil || c.pkg != "guard" || c.recv != "" {
		d.open = true
		return unknown
	}
	d.texts = append(d.texts, literals(e)...)
	switch c.name {
	case "TemplateFunc":
		return p.templateFunc(d, c)
	case "In": // which may have functions, too
		d.functions, d.registered = true, len(c.Args) > 0 && !p.isNil(c.Args[0])
	}
	v, ok := p.called(c)
	if !ok {
		d.open = true
		return unknown
	}
	opt, _ := reflect.TypeAssert[guard.Option](v)
	return opt
}

// templateFunc is the option for a function of the source, which has its type and is never called.
func (p *pass) templateFunc(d *declared, c *call) guard.Option {
	unknown := guard.FromSpec(guard.Spec{})
	d.functions = true
	if len(c.Args) != 2 || p.TypesInfo.Types[c.Args[0]].Value == nil {
		return unknown
	}
	name := constant.StringVal(p.TypesInfo.Types[c.Args[0]].Value)
	arg := p.TypesInfo.Types[c.Args[1]]
	switch t := p.typeOf(arg.Type); {
	case p.isNil(c.Args[1]):
		return guard.TemplateFunc(name, nil)
	case arg.Value != nil:
		return guard.TemplateFunc(name, constant.Val(arg.Value))
	case t.Kind() != reflect.Func:
		return unknown
	default:
		if _, uncompiled := gotype.Source(t); uncompiled {
			return guard.TemplateFunc(name, t)
		}
		return guard.TemplateFunc(name, reflect.MakeFunc(t, nil).Interface())
	}
}

// forChecks are the options for the checks of an entry point, which are about more than texts. A function of the program's that
// makes the key is one that fits all, and what is not known may say that one key for all calls is meant.
func (d *declared) forChecks(p *pass, exprs []ast.Expr, opts []guard.Option) []guard.Option {
	all := append([]guard.Option{}, opts...)
	for i, e := range exprs {
		switch c := p.callOf(e); {
		case c.is("guard", "KeyFunc", "KeysFunc"):
			all[i] = guard.KeyFrom(anyKey{})
		case c.is("guard", "In"): // where names are taken from one check to the next
			all[i] = guard.FromSpec(guard.Spec{})
		}
	}
	if d.open {
		all = append(all, guard.FromSpec(guard.Spec{OneKey: true}))
	}
	return all
}

// literals are the texts that are written out in e.
func literals(e ast.Node) (all []*ast.BasicLit) {
	ast.Inspect(e, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok {
			all = append(all, lit)
		}
		return true
	})
	return all
}

// supplied are complaints that an option which is not known may answer.
var supplied = regexp.MustCompile(`no key: give guard\.Key|: give guard\.Name|kind permit needs a limit|waiters without wait|` +
	`policy fallback without a fallback|switchable, but in no registry|limit \d+ belongs to kind permit|fields marked as key follow the guard's name`)

// unknownFact is the complaint over one that may be the application's own.
var unknownFact = regexp.MustCompile(`keyexpr: unknown name [^ ,:]+[,:]`)

// filtered are the mistakes in err that nothing which is not known can have set right.
func (d *declared) filtered(err error) []fault {
	return slices.DeleteFunc(faultsOf(err), func(f fault) bool {
		return d.registered && strings.Contains(f.message, "switchable, but in no registry") || d.open && supplied.MatchString(f.message) ||
			(d.open || d.functions) && strings.Contains(f.message, "keyexpr: unknown function ") || d.facts && unknownFact.MatchString(f.message)
	})
}
