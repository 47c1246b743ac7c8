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
// of it: see the documentation of cmd/latchkey-gen. By hand, Func and Bind are less to write.
//
// Req is the only argument behind the context, a struct of several, or struct{}; Res is the only result before the error, a
// struct of several, or struct{}.
type Directive[Req, Res any] struct {
	// Name is the default of Spec.Name, as in "Orders.Pay".
	Name string
	// Text is that of the directive: that of a tag.
	Text string
	// Of is what is guarded: the method of the interface as an expression, as in Orders.Pay, or the function. It is not called.
	Of any
	// Args are the names of the arguments behind the context, between commas. They are the facts. An argument without a name
	// is req.
	Args string
	// Fact returns an argument by its name. Without it, Req is the only one.
	Fact func(req *Req, name string) any
	// Paths are the values of the key in their order, between blanks, and Key makes the key of them, as the Pattern has it. Key
	// is not called if the template turns out to have other values, as after an override. Without it, the template makes all keys.
	Paths string
	Key   func(p *Pattern, req *Req) string
	// Call makes the call.
	Call func(ctx context.Context, req Req) (Res, error)
	// To is set to the guarded call.
	To *func(ctx context.Context, req Req) (Res, error)
}

// Pattern is keyexpr.Pattern, for the function Key of a Directive.
type Pattern = keyexpr.Pattern

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
	if g.spec.Key != "" || g.keyFunc != nil {
		return errors.New("guard: the key of a directive is the one in its text: leave it out of the options")
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
	f, err := d.fitting(g.spec.Name)
	if err != nil {
		return nil, fmt.Errorf("guard: directive of %s: %w", d.Name, err)
	}
	unnamed := *g
	unnamed.spec.Name = ""
	r, err := unnamed.fit(f)
	if err != nil {
		return nil, err
	}
	if d.Key != nil {
		if p := r.key.Pattern(); p != nil && slices.Equal(p.Paths(), strings.Fields(d.Paths)) {
			r.pattern = p
		}
	}
	r.quick = r.pattern != nil && r.when == nil
	made := &directed[Req, Res]{d, r, d.fallback(g.fallback)}
	return &wrapped{r, func() { *d.To = made.call }}, nil
}

// fitting is what a guard is to fit. If given, name takes the place of the first part of the guard's.
func (d Directive[Req, Res]) fitting(name string) (fitting, error) {
	owner, t := origin(d.Of)
	if t == nil || !guardable(t) || d.Call == nil || d.To == nil {
		return fitting{}, fmt.Errorf("is not as latchkey-gen writes it: Of is a %T", d.Of)
	}
	f := fitting{name: d.Name, owner: owner, roots: make(keyexpr.Roots), fallback: fallbackType(t)}
	var err error
	if f.tag, err = parseTag(d.Text); err != nil {
		return f, err
	}
	names, err := argumentNames(t, d.Args)
	if err != nil {
		return f, err
	}
	for i, name := range names {
		f.roots[name] = keyexpr.Type(t.In(i + 1))
	}
	if len(names) == 1 && names[0] == requestRoot {
		f.request = t.In(1)
	}
	if name != "" {
		f.tag.Name = name
		if _, method, ok := strings.Cut(d.Name, "."); ok {
			f.tag.Name += "." + method
		}
	}
	return f, nil
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

// fallback is f, which is of the type of a fallback for d's method or nil, as a function of d's types.
func (d Directive[Req, Res]) fallback(f any) func(context.Context, Req, error) (Res, error) {
	type fallback = func(context.Context, Req, error) (Res, error)
	typed, _ := asFallback[Req, Res](f)
	if action, _ := asActionFallback[Req](f); action != nil {
		typed, _ = any(action).(fallback)
	}
	if job, _ := asJobFallback(f); job != nil {
		typed, _ = any(job).(fallback)
	}
	return typed
}
