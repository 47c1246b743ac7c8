package guard

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// A Directive is what a comment //latchkey:guard says about a method or a function, in the code that latchkey-gen writes
// from it; see the documentation of cmd/latchkey-gen. By hand, Func and Bind are less to write.
//
// Req is the only argument behind the context, a struct of several, or struct{}; Res is the only result before the error, a
// struct of several, or struct{}.
type Directive[Req, Res any] struct {
	// Name is the default of Spec.Name, as in "Orders.Pay".
	Name string
	// Text is what the directive says, in the words of a tag.
	Text string
	// Of is what is guarded, for its type: the method of the interface as an expression, as in Orders.Pay, or the function.
	Of any
	// Args are the names of the arguments behind the context, between commas. They are the facts. Without it, the only argument
	// is req.
	Args string
	// Fact returns an argument by its name. Without it, Req is the only one.
	Fact func(req *Req, name string) any
	// Call makes the call.
	Call func(ctx context.Context, req Req) (Res, error)
	// To is set to the guarded call.
	To *func(ctx context.Context, req Req) (Res, error)
}

// Wrapped is a Directive of any types.
type Wrapped interface {
	wrap(g *Guard) (*wrapped, error)
}

// wrapped is a method or function with its guard.
type wrapped struct {
	runner *Runner
	set    func() // sets Directive.To
}

// Wrap puts a guard over l in front of each method or function that has a directive, for code that latchkey-gen writes. opts
// are for all of them, as those of a guard for Bind are; directives have the last word. Name among them takes the place of the
// interface's name, or of the function's, in the names of the guards, so that a Registry can tell two wrappers apart.
//
// The error joins the mistakes of all directives; then none was wrapped.
func Wrap(l lock.Locker, opts []Option, directives ...Wrapped) error {
	g, err := New(l, opts...)
	if err != nil {
		return err
	}
	if err := g.withoutKey(); err != nil {
		return err
	}
	var all []*wrapped
	var faults []error
	named := make(map[string]bool)
	falls := false
	for _, d := range directives {
		w, err := d.wrap(g)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if spec := w.runner.spec; named[spec.Name] {
			faults = append(faults, spec.errorf("two directives have this name: name=... gives one of them another"))
		}
		named[w.runner.spec.Name] = true
		falls = falls || w.runner.spec.fallsBack()
		all = append(all, w)
	}
	if g.fallback != nil && !falls && len(faults) == 0 {
		faults = append(faults, errors.New("guard: a Fallback that never runs: all directives say busy and outage otherwise"))
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	for _, w := range all {
		w.set()
	}
	return nil
}

func (d Directive[Req, Res]) wrap(g *Guard) (*wrapped, error) {
	owner, t := origin(d.Of)
	if t == nil || d.Call == nil || d.To == nil {
		return nil, fmt.Errorf("guard: directive of %s is not as latchkey-gen writes it: Of is a %T", d.Name, d.Of)
	}
	r, err := g.direct(d.Name, d.Text, d.Args, t, fitting{owner: owner, fallback: fallbackType(t)})
	if err != nil {
		return nil, err
	}
	f := &function[Req, Res]{runner: r, fn: d.Call, fallback: fallbackOf[Req, Res](g.fallback), facts: d.facts, inPlace: d.Fact == nil}
	return &wrapped{r, func() { *d.To = f.call }}, nil
}

// facts is the Facts of a call.
func (d Directive[Req, Res]) facts(req Req) keyexpr.Facts {
	if d.Fact == nil {
		return factsOf(req)
	}
	return func(root string) (any, error) { return d.Fact(&req, root), nil }
}

// withoutKey reports a key that is not that of a directive.
func (g *Guard) withoutKey() error {
	if g.spec.Key != "" || g.keyFunc != nil {
		return errors.New("guard: Wrap with a key among the options: each directive says its own")
	}
	return nil
}

// direct fits g to a function of type t with a directive; see Directive for its name, text and args. The name of g, if it has one,
// takes the place of the first part of the guard's. f says the rest.
func (g *Guard) direct(name, text, args string, t reflect.Type, f fitting) (*Runner, error) {
	wrong := func(err error) (*Runner, error) {
		return nil, fmt.Errorf("guard: directive of %s: %w", name, err)
	}
	if !guardable(t) {
		return wrong(fmt.Errorf("%v does not take a context.Context first and return an error last", t))
	}
	tag, err := parseTag(text)
	if err != nil {
		return wrong(err)
	}
	names, err := argumentNames(t, args)
	if err != nil {
		return wrong(err)
	}
	f.name, f.tag, f.roots = name, tag, make(keyexpr.Roots)
	for i, name := range names {
		f.roots[name] = keyexpr.Type(t.In(i + 1))
	}
	if len(names) == 1 && names[0] == requestRoot {
		f.request = t.In(1)
	}
	unnamed := *g
	if unnamed.spec.Name = ""; g.spec.Name != "" {
		f.tag.Name = g.spec.Name
		if _, method, ok := strings.Cut(name, "."); ok {
			f.tag.Name += "." + method
		}
	}
	return unnamed.fit(f)
}

// CheckDirective reports what Wrap would say to a Directive with this name, text and args of a function of type t, which takes
// its context first, whose types need not be of the running program. It is for latchkey-gen. The Spec has what tags of a request
// say, too. The type of a Fallback is not looked at.
func (g *Guard) CheckDirective(name, text, args string, t reflect.Type) (s Spec, err error) {
	if err := g.unmade("Check of"); err != nil {
		return s, err
	}
	if err := g.withoutKey(); err != nil {
		return s, err
	}
	r, err := g.direct(name, text, args, t, fitting{fallback: reflect.TypeOf(g.fallback)})
	if err != nil {
		return s, err
	}
	return r.Specs()[0], nil
}

// origin returns the type of a function, or of a method without its receiver, and what tells its declaration from others.
func origin(of any) (owner any, t reflect.Type) {
	v := reflect.ValueOf(of)
	switch {
	case v.Kind() != reflect.Func || v.IsNil():
		return nil, nil
	case v.Type().NumIn() == 0 || v.Type().In(0) == contextType:
		return runtime.FuncForPC(v.Pointer()).Name(), v.Type()
	}
	in, out := slices.Collect(v.Type().Ins()), slices.Collect(v.Type().Outs())
	return in[0], reflect.FuncOf(in[1:], out, v.Type().IsVariadic())
}
