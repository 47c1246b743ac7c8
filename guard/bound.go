package guard

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// bound is a function that Bind found, with its guard.
type bound struct {
	runner   *runner
	fn       reflect.Value
	names    []string      // of the arguments behind the context, which are the facts
	fallback reflect.Value // or invalid
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// guardable reports whether functions of type t can have a guard.
func guardable(t reflect.Type) bool {
	return t.Kind() == reflect.Func && t.NumIn() > 0 && t.In(0) == contextType &&
		t.NumOut() > 0 && t.Out(t.NumOut()-1) == errorType
}

// bind fits g to the function in a field.
func (g *Guard) bind(field taggedField) (*bound, error) {
	t := field.field.Type
	switch {
	case !guardable(t):
		return nil, fmt.Errorf("field has a guard tag, but is of type %v, not a function that takes a context.Context first and "+
			"returns an error last", t)
	case field.value.IsValid() && isGuarded(field.value):
		return nil, errors.New("function is guarded already (or made by package reflect, which looks the same)")
	}
	merged, defaults := *g, g.defaults()
	merged.fill(Spec{Args: field.spec.Args}, defaults)
	f := fitting{name: field.path, owner: field.owner, tag: field.spec, args: true, fallback: reflect.TypeOf(g.fallback)}
	names, err := f.arguments(t, merged.spec.Args)
	if err != nil {
		return nil, err
	}
	b := &bound{names: names}
	if field.value.IsValid() {
		f.fallback = fallbackType(t)
		b.fn = reflect.ValueOf(field.value.Interface()) // a copy, as the field is going to change
	}
	if b.runner, err = g.fit(f); err != nil {
		return nil, err
	}
	if b.runner.current().spec.fallsBack() {
		b.fallback = reflect.ValueOf(g.fallback)
	}
	return b, nil
}

// arguments notes the arguments behind the context of a function of type t, and returns their names.
func (f *fitting) arguments(t reflect.Type, args string) ([]string, error) {
	names, err := argumentNames(t, args)
	f.roots = make(keyexpr.Roots)
	for i, name := range names {
		f.roots[name] = keyexpr.Type(t.In(i + 1))
	}
	if len(names) == 1 && names[0] == requestRoot {
		f.request = t.In(1)
	}
	return names, err
}

// argumentNames returns the names of the arguments behind the context, as args gives them.
func argumentNames(t reflect.Type, args string) ([]string, error) {
	n := t.NumIn() - 1
	switch {
	case args == "" && n == 0:
		return nil, nil
	case args == "" && n == 1:
		return []string{requestRoot}, nil
	case args == "":
		return nil, fmt.Errorf("%v has %d arguments behind its context: name them, as in args=%s", t, n, exampleArgs(n))
	}
	names := strings.Split(args, ",")
	if len(names) != n {
		return nil, fmt.Errorf("args=%s names %d, but %v has %d behind its context", args, len(names), t, n)
	}
	for i, name := range names {
		tag, err := requestTag(t.In(i + 1))
		if err == nil && (tag.template || len(tag.keyParts) > 0) {
			return nil, fmt.Errorf("the guard tags of argument %s (%v) would be ignored: they are for a function without args", name, t.In(i+1))
		}
	}
	return names, nil
}

func exampleArgs(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = string(rune('a' + i%26))
	}
	return strings.Join(names, ",")
}

// fallbackType is the type of a fallback for functions of type t: with an error behind the arguments.
func fallbackType(t reflect.Type) reflect.Type {
	in, out := slices.Collect(t.Ins()), slices.Collect(t.Outs())
	return reflect.FuncOf(append(in, errorType), out, false)
}

// function returns the guarded function, or the zero Value if only types are checked.
func (b *bound) function() reflect.Value {
	if !b.fn.IsValid() {
		return b.fn
	}
	return reflect.MakeFunc(b.fn.Type(), b.call)
}

func (b *bound) call(args []reflect.Value) []reflect.Value {
	t := b.fn.Type()
	last := t.NumOut() - 1
	results := make([]reflect.Value, t.NumOut())
	for i := range results {
		results[i] = reflect.Zero(t.Out(i))
	}
	facts := func(root string) (any, error) { return args[1+slices.Index(b.names, root)].Interface(), nil }
	instead := func(ctx context.Context, refused error) error {
		results = b.fallback.Call(append(withContext(ctx, args), reflect.ValueOf(refused)))
		return errorOf(results[last])
	}
	ctx, _ := reflect.TypeAssert[context.Context](args[0])
	_, err := b.runner.RunOr(ctx, facts, func(ctx context.Context) error {
		if args := withContext(ctx, args); t.IsVariadic() {
			results = b.fn.CallSlice(args)
		} else {
			results = b.fn.Call(args)
		}
		return errorOf(results[last])
	}, instead)
	results[last] = reflect.Zero(errorType)
	if err != nil {
		results[last] = reflect.ValueOf(err)
	}
	return results
}

// withContext returns args behind ctx.
func withContext(ctx context.Context, args []reflect.Value) []reflect.Value {
	return append([]reflect.Value{reflect.ValueOf(ctx)}, args[1:]...)
}

func errorOf(result reflect.Value) error {
	err, _ := reflect.TypeAssert[error](result)
	return err
}
