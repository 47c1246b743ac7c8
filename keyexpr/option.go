package keyexpr

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/expr-lang/expr/builtin"
)

// Option changes how Parse and ParseCondition read a text.
type Option interface{ apply(*config) }

type config struct{ funcs []userFunc }

// Func gives templates a function of the user's own under name. fn takes any arguments, after a context.Context if it
// wants that of Expand, and returns a value and perhaps an error: func(ctx context.Context, id string) (string, error).
// Calls are type-checked at start. An error of fn fails the expansion and is returned wrapped; it does not match ErrValue
// unless it does so itself. fn must be safe for concurrent use, and quick: it runs for each request, before the lock.
func Func(name string, fn any) Option { return userFunc{name, fn} }

// userFunc is a function of the user's own.
type userFunc struct {
	name string
	fn   any
}

func (f userFunc) apply(c *config) { c.funcs = append(c.funcs, f) }

// callError is an error of a user's function.
type callError struct {
	name string
	err  error
}

func (e *callError) Error() string { return fmt.Sprintf("function %s: %v", e.name, e.err) }
func (e *callError) Unwrap() error { return e.err }

var (
	errPanicked = errors.New("panicked")
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// addFunc makes a user's function known.
func (c *compilation) addFunc(f userFunc) error {
	fn := reflect.ValueOf(f.fn)
	_, taken := c.hosts[f.name]
	_, isRoot := c.roots[f.name]
	_, isBuiltin := builtin.Index[f.name]
	switch {
	case !isName(f.name):
		return errAt(c.text, 0, "a function can't be called %q", f.name)
	case taken || isRoot || isBuiltin:
		return errAt(c.text, 0, "function %s: there is something of that name already", f.name)
	case fn.Kind() != reflect.Func || fn.IsNil():
		return errAt(c.text, 0, "function %s is of type %T", f.name, f.fn)
	}
	t := fn.Type()
	if n := t.NumOut(); n < 1 || n > 2 || n == 2 && t.Out(1) != errorType || t.Out(0) == errorType {
		return errAt(c.text, 0, "function %s must return a value, or a value and an error", f.name)
	}
	u := &boundFunc{name: f.name, fn: fn, typ: t}
	if t.NumIn() > 0 && t.In(0) == contextType {
		u.ctx = 1
	}
	c.hosts[f.name] = &hostFunc{name: f.name, check: u.check, call: u.call}
	return nil
}

// isName reports whether the engine reads s as the name of a function.
func isName(s string) bool {
	for i, r := range s {
		if !isLetter(r) && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	const words = " true false nil not in or and matches contains startsWith endsWith let if else "
	return s != "" && !strings.Contains(words, " "+s+" ")
}

// boundFunc calls a user's function.
type boundFunc struct {
	name string
	fn   reflect.Value
	typ  reflect.Type
	ctx  int // 1 if the first parameter is a context
}

// param returns the type of the i-th argument, without a context.
func (u *boundFunc) param(i int) reflect.Type {
	i += u.ctx
	if last := u.typ.NumIn() - 1; u.typ.IsVariadic() && i >= last {
		return u.typ.In(last).Elem()
	}
	return u.typ.In(i)
}

func (u *boundFunc) check(args []reflect.Type) (reflect.Type, error) {
	want := u.typ.NumIn() - u.ctx
	if u.typ.IsVariadic() && len(args) < want-1 || !u.typ.IsVariadic() && len(args) != want {
		return nil, fmt.Errorf("%d arguments for %s, which takes %d", len(args), u.name, want)
	}
	for i, arg := range args {
		if p := u.param(i); !passes(arg, p) {
			return nil, fmt.Errorf("argument %d of %s is of type %v, and should be %v", i+1, u.name, arg, p)
		}
	}
	return u.typ.Out(0), nil
}

func (u *boundFunc) call(st *state, args []any) (v any, err error) {
	in := make([]reflect.Value, 0, len(args)+u.ctx)
	if u.ctx == 1 {
		in = append(in, reflect.ValueOf(st.ctx))
	}
	for i, arg := range args {
		x, err := pass(reflect.ValueOf(arg), u.param(i))
		if err != nil {
			return nil, err
		}
		in = append(in, x)
	}
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, &callError{u.name, errPanicked}
		}
	}()
	out := u.fn.Call(in)
	if len(out) == 2 && !out[1].IsNil() {
		return nil, &callError{u.name, out[1].Interface().(error)}
	}
	return out[0].Interface(), nil
}

// passes reports whether a value of type from can be passed as to, as far as is known at start.
func passes(from, to reflect.Type) bool {
	switch {
	case from == anyType || from.AssignableTo(to):
		return true
	case from.Kind() == reflect.Pointer:
		return passes(from.Elem(), to)
	case from.Kind() == reflect.Slice && to.Kind() == reflect.Slice:
		return passes(from.Elem(), to.Elem())
	}
	return sameSort(from, to) || from.Kind() == to.Kind() && basicType(from) != from
}

// pass converts a value to what a function takes. Numbers must fit.
func pass(v reflect.Value, to reflect.Type) (reflect.Value, error) {
	if v.IsValid() && v.Type().AssignableTo(to) {
		return v, nil
	}
	if v = indirect(v); !v.IsValid() {
		return v, faulty("passes nil to a function")
	}
	from := v.Type()
	switch {
	case from.AssignableTo(to):
		return v, nil
	case from.Kind() == reflect.Slice && to.Kind() == reflect.Slice:
		return passList(v, to)
	case sameSort(from, to):
		if x, ok := convert(v, to); ok {
			return x, nil
		}
		return v, faulty("passes a number that does not fit")
	case from.Kind() == to.Kind() && from.ConvertibleTo(to):
		return v.Convert(to), nil
	}
	return v, faulty("passes a value of type %v where %v is wanted", from, to)
}

func passList(v reflect.Value, to reflect.Type) (reflect.Value, error) {
	list := reflect.MakeSlice(to, v.Len(), v.Len())
	for i := range v.Len() {
		x, err := pass(v.Index(i), to.Elem())
		if err != nil {
			return v, err
		}
		list.Index(i).Set(x)
	}
	return list, nil
}
