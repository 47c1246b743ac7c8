package vet

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"reflect"

	"golang.org/x/tools/go/analysis"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/internal/roots"
	"github.com/latchkey-go/latchkey/keyexpr"
)

const docDeclarations = `find declarations of guards that the program would refuse when it starts

Options, tags and texts that are written out are given to the checks that run at start, with the types of the source: templates
and conditions against the type of the request, struct tags that package reflect can't read or that have another name by a slip,
attributes and their values, routes, and what contradicts itself. The messages are those of the program. A key that reads query.x is
also held to its handler, which may take x from the body, as FormValue does.`

// declarations is a run of latchkeydecl.
type declarations struct {
	*pass
	checked map[*types.Struct]bool // structs whose tags were checked where they are used
}

func runDeclarations(a *analysis.Pass) (any, error) {
	d := &declarations{newPass(a), make(map[*types.Struct]bool)}
	for _, file := range d.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			if e, ok := n.(*ast.CallExpr); ok {
				d.call(d.callOf(e))
			}
			return true
		})
	}
	d.tags()
	return d.lost, nil
}

// call checks what one call of a function of Latchkey declares.
func (d *declarations) call(c *call) {
	defer d.recoverPanic()
	switch {
	case c == nil, d.inGeneric(c):
	case c.is("guard", "New", "Stack"):
		d.declared(c)
	case c.is("guard", "NewRegistry"):
		d.registry(c)
	case c.is("guard", "Func", "Action", "Try", "Job", "TryJob", "Check"):
		d.entry(c, 0)
	case c.is("guard", "Do", "Lead"):
		d.entry(c, 1)
	case c.is("guard", "Bind"):
		d.bind(c)
	case c.is("guard", "ParseSpecs"), c.pkg == "guard" && c.recv == "Spec":
		d.text(c)
	case c.is("middleware", "New", "Bind"), c.is("middleware/ginguard", "New", "Bind"):
		d.handlers(c)
	case c.is("interceptor", "Method"):
		d.method(c)
	}
}

// registry checks the options of NewRegistry.
func (d *declarations) registry(c *call) {
	known := new(declared)
	var opts []guard.Option
	for _, e := range d.spread(known, c.Args, c.Ellipsis.IsValid()) {
		opts = append(opts, d.option(known, e))
	}
	_, err := guard.NewRegistry(opts...)
	d.fail(err, known, c)
}

// entry checks a call of Func or the like, whose guard is its n-th argument.
func (d *declarations) entry(c *call, n int) {
	if len(c.Args) <= n || len(c.targs) == 0 && !c.is("guard", "Job", "TryJob", "Lead") {
		return
	}
	none := func(i int) bool { return i < len(c.Args) && d.isNil(c.Args[i]) }
	g := d.guardOf(c.Args[n])
	switch {
	case none(n):
		d.fail(nothing(c.name, nil), new(declared), c)
	case g == nil:
	case len(c.targs) == 0 && !none(n+1):
		d.fail(adapter.CheckRequest(g.guard, nil), g, c)
	case c.name != "Check" && none(len(c.Args)-1):
		d.fail(nothing(c.name, g.guard), new(declared), c)
	default:
		embedded := structs(c.targs[0], false)
		d.mark(embedded)
		d.fail(adapter.CheckRequest(g.guard, d.typeOf(c.targs[0])), g, c, d.tagsOf(embedded)...)
	}
}

// nothing is the error of an entry point for a nil function, or for a nil guard.
func nothing(entry string, g *guard.Guard) (err error) {
	switch entry {
	case "Check":
		err = guard.Check[any, any](g)
	case "Func":
		_, err = guard.Func[any, any](g, nil)
	case "Action":
		_, err = guard.Action[any](g, nil)
	case "Try":
		_, err = guard.Try[any, any](g, nil)
	case "Job":
		_, err = guard.Job(g, nil)
	case "TryJob":
		_, err = guard.TryJob(g, nil)
	case "Lead":
		err = guard.Lead(context.Background(), g, nil)
	case "Do":
		_, err = guard.Do[any, any](context.Background(), g, nil, nil)
		if fault, ok := errors.AsType[*guard.Error](err); ok {
			err = fault.Cause
		}
	}
	return err
}

// bind checks a call of Bind.
func (d *declarations) bind(c *call) {
	if target, ok := d.target(c); ok {
		if g := d.guardOf(c.Args[0]); g != nil {
			d.failFields(adapter.CheckFields(g.guard, d.typeOf(target), nil), g, c, target)
		}
	}
}

// target is the struct that a call of a Bind is about, if the source says so.
func (d *declarations) target(c *call) (types.Type, bool) {
	if len(c.Args) < 2 {
		return nil, false
	}
	t := d.TypesInfo.TypeOf(c.Args[1])
	p, ok := t.Underlying().(*types.Pointer)
	if ok {
		if _, ok = p.Elem().Underlying().(*types.Struct); ok {
			return p.Elem(), true
		}
	}
	if !types.IsInterface(t) && !d.isNil(c.Args[1]) {
		d.fail(fmt.Errorf("guard: Bind wants a pointer to a struct, not %v", d.typeOf(t)), new(declared), c)
	}
	return nil, false
}

// text checks a text that is read as one or several Specs.
func (d *declarations) text(c *call) {
	var err error
	texts := make([]string, len(c.Args))
	for i, arg := range c.Args {
		v, ok := d.value(arg, reflect.TypeFor[string]())
		if !ok {
			return
		}
		texts[i] = v.String()
	}
	switch c.name {
	case "ParseSpecs":
		_, err = guard.ParseSpecs(texts[0])
	case "UnmarshalText":
		err = new(guard.Spec).UnmarshalText([]byte(texts[0]))
	case "UnmarshalJSON":
		err = new(guard.Spec).UnmarshalJSON([]byte(texts[0]))
	case "Set":
		err = new(guard.Spec).Set(texts[0], texts[1])
	}
	d.fail(err, new(declared), c, literals(c.CallExpr)...)
}

// method checks a rule for a method of gRPC, if it says the type of the request, or generated code of this program has a constant for
// its name, and so its types.
func (d *declarations) method(c *call) {
	g := d.guardOf(c.Args[min(1, len(c.Args)-1)])
	name := d.TypesInfo.Types[c.Args[0]].Value
	var request types.Type
	if obj, ok := d.object(c.Args[0]).(*types.Const); ok {
		request = messageOf(obj)
	}
	var can []adapter.Ability
	for _, opt := range c.Args[min(2, len(c.Args)):] {
		switch o := d.callOf(opt); {
		case o.is("interceptor", "Request"):
			request = o.targs[0]
		case o.is("interceptor", "Fallback"):
			can = append(can, adapter.ServesFallback)
		default:
			return
		}
	}
	if g == nil || name == nil || request == nil {
		return
	}
	if _, err := adapter.Prepare(g.guard, roots.RPC(keyexpr.Type(d.typeOf(request))), can...); err != nil {
		d.fail(fmt.Errorf("interceptor: method %s: %w", name.ExactString(), err), g, c)
	}
}

// structOf is the struct that t, or what it points to, is made of; nil if it is none.
func structOf(t types.Type) *types.Struct {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, _ := t.Underlying().(*types.Struct)
	return s
}
