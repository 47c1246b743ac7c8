package adapter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

// A Directive is what a comment //latchkey:guard says about a method or a function, in the code that latchkey-gen writes
// from it; see the documentation of cmd/latchkey-gen. By hand, guard.Func and guard.Bind are less to write.
//
// Req is the only argument behind the context, a struct of several, or struct{}; Res is the only result before the error, a
// struct of several, or struct{}.
type Directive[Req, Res any] struct {
	// Name is the default of Spec.Name, as in "Orders.Pay".
	Name string
	// Text is what the directive says, in the words of a tag.
	Text string
	// Of identifies the guarded code by its type: the method of the interface as an expression, as in Orders.Pay, or
	// the function.
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
	// fit returns the guard of the function, made of g.
	fit(g *guard.Guard) (*guard.Guard, error)
	// set sets To to the call behind that guard.
	set(fitted *guard.Guard)
}

// Wrap puts a guard over l in front of each method or function that has a directive, for code that latchkey-gen writes. opts
// are for all of them, as those of a guard for guard.Bind are; directives have the last word. Name among them takes the place of
// the interface's name, or of the function's, in the names of the guards, so that a Registry can tell two wrappers apart.
//
// The error joins the mistakes of all directives; then none was wrapped.
func Wrap(l lock.Locker, opts []guard.Option, directives ...Wrapped) error {
	g, err := guard.New(l, opts...)
	if err := cmp.Or(err, withoutKey(g)); err != nil {
		return err
	}
	all := make([]*guard.Guard, len(directives))
	var faults []error
	named := make(map[string]bool)
	falls := !g.Adapter().HasFallback()
	for i, d := range directives {
		if all[i], err = d.fit(g); err != nil {
			faults = append(faults, err)
			continue
		}
		spec := all[i].Spec()
		if named[spec.Name] {
			faults = append(faults, fmt.Errorf("guard %q: two directives have this name: name=... gives one of them another", spec.Name))
		}
		named[spec.Name] = true
		falls = falls || spec.Busy == guard.RunFallback || spec.Outage == guard.RunFallback
	}
	if !falls && len(faults) == 0 {
		faults = append(faults, errors.New("guard: a Fallback that never runs: all directives say busy and outage otherwise"))
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	for i, d := range directives {
		d.set(all[i])
	}
	return nil
}

// withoutKey reports a key that is not that of a directive.
func withoutKey(g *guard.Guard) error {
	if g != nil && (g.Spec().Key != "" || RequestType(g) != nil) {
		return errors.New("guard: Wrap with a key among the options: each directive says its own")
	}
	return nil
}

func (d Directive[Req, Res]) fit(g *guard.Guard) (*guard.Guard, error) {
	owner, t := origin(d.Of)
	if t == nil || d.Call == nil || d.To == nil {
		return nil, fmt.Errorf("guard: directive of %s is not as latchkey-gen writes it: Of is a %T", d.Name, d.Of)
	}
	return g.Adapter().Directive(d.Name, d.Text, d.Args, t, owner, d.Fact)
}

func (d Directive[Req, Res]) set(fitted *guard.Guard) { *d.To = guard.Must(guard.Func(fitted, d.Call)) }

// origin returns the type of a function, or of a method without its receiver, and what tells its declaration from others.
func origin(of any) (owner any, t reflect.Type) {
	v := reflect.ValueOf(of)
	switch {
	case v.Kind() != reflect.Func || v.IsNil():
		return nil, nil
	case v.Type().NumIn() == 0 || v.Type().In(0) == reflect.TypeFor[context.Context]():
		return runtime.FuncForPC(v.Pointer()).Name(), v.Type()
	}
	in, out := slices.Collect(v.Type().Ins()), slices.Collect(v.Type().Outs())
	return in[0], reflect.FuncOf(in[1:], out, v.Type().IsVariadic())
}

// CheckDirective reports what Wrap would say to a Directive with this name, text and args of a function of type t, which takes
// its context first, whose types need not be of the running program. It is for latchkey-gen. The Spec has what tags of a request
// say, too. The type of a Fallback is not looked at.
func CheckDirective(g *guard.Guard, name, text, args string, t reflect.Type) (guard.Spec, error) {
	if err := withoutKey(g); err != nil {
		return guard.Spec{}, err
	}
	fitted, err := g.Adapter().Directive(name, text, args, t, nil, nil)
	if err != nil {
		return guard.Spec{}, err
	}
	return Runner{fitted}.Specs()[0], nil
}
