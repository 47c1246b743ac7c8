package run

import (
	"context"
	"fmt"
	"reflect"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
	anyType     = reflect.TypeFor[any]()
)

// Function is a function of the user's own. It is called by reflection, as its type is known to
// nobody here. That takes a microsecond, and a lock takes a hundred.
type Function struct {
	Name string
	fn   reflect.Value
	typ  reflect.Type
	ctx  int // 1 if the first parameter is a context
}

// NewFunction checks the shape of fn. A function whose only result is an error would be a check,
// which belongs in front of the guard and not into a key.
func NewFunction(name string, fn any) (*Function, error) {
	v := reflect.ValueOf(fn)
	if t, ok := fn.(reflect.Type); ok && Uncompiled(t) && t.Kind() == reflect.Func { // of source code, and never called
		return functionOf(name, reflect.Value{}, t)
	}
	// A nil function is found here, when the program starts. Called, it would panic in the first
	// request that comes.
	if v.Kind() != reflect.Func || v.IsNil() {
		return nil, fmt.Errorf("function %s is of type %T", name, fn)
	}
	return functionOf(name, v, v.Type())
}

func functionOf(name string, v reflect.Value, t reflect.Type) (*Function, error) {
	if n := t.NumOut(); n < 1 || n > 2 || n == 2 && t.Out(1) != errorType || t.Out(0) == errorType {
		return nil, fmt.Errorf("function %s must return a value, or a value and an error", name)
	}
	f := &Function{Name: name, fn: v, typ: t}
	if t.NumIn() > 0 && t.In(0) == contextType {
		f.ctx = 1
	}
	return f, nil
}

// Contextual reports whether f takes the context of a call, and so may know the request without
// an argument. The context of an HTTP handler or a gRPC method holds who is calling. So a key of
// such a function alone reads the request.
func (f *Function) Contextual() bool { return f.ctx == 1 }

// Uncompiled reports whether f is known by its type alone, which is one of source code.
func (f *Function) Uncompiled() bool { return !f.fn.IsValid() }

// Out is the type of the result. Package spel asks for it, to know what type the result has in
// Java.
func (f *Function) Out() reflect.Type { return f.typ.Out(0) }

// param returns the type of the i-th argument, without a context. A variadic function gets its
// arguments one by one, so that each is checked for itself.
func (f *Function) param(i int) reflect.Type {
	// The context is no argument of the template, so that all of its arguments are one further on.
	i += f.ctx
	if last := f.typ.NumIn() - 1; f.typ.IsVariadic() && i >= last {
		return f.typ.In(last).Elem()
	}
	return f.typ.In(i)
}

// Check reports whether a call with arguments of these types can work, any standing for a type
// that is not known. It errs on the side of letting through. A number that may not fit, or a
// value of any, is looked at when there is one.
func (f *Function) Check(args []reflect.Type) (reflect.Type, error) {
	want := f.typ.NumIn() - f.ctx
	if f.typ.IsVariadic() && len(args) < want-1 || !f.typ.IsVariadic() && len(args) != want {
		return nil, fmt.Errorf("%d arguments for %s, which takes %d", len(args), f.Name, want)
	}
	for i, arg := range args {
		if p := f.param(i); !passes(arg, p) {
			return nil, fmt.Errorf("argument %d of %s is of type %v, and should be %v", i+1, f.Name, arg, p)
		}
	}
	return f.typ.Out(0), nil
}

// Call calls f. It gets copies of the request's lists, so that sorting one changes nothing for
// the work that follows. Its panic is caught here and not further out, as it is the function's
// fault and not the request's.
func (f *Function) Call(st *State, args []any) (v any, err error) {
	in := make([]reflect.Value, 0, len(args)+f.ctx)
	if f.ctx == 1 {
		// By way of a pointer, so that the value has the type of the interface. ValueOf of a nil context
		// is invalid, and Call would panic on it.
		in = append(in, reflect.ValueOf(&st.Ctx).Elem())
	}
	for i, arg := range args {
		x, err := st.pass(reflect.ValueOf(arg), f.param(i))
		if err != nil {
			return nil, err
		}
		in = append(in, x)
	}
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, &OutsideError{"function " + f.Name, Recovered(r)}
		}
	}()
	out := f.fn.Call(in)
	if len(out) == 2 && !out[1].IsNil() {
		return nil, &OutsideError{"function " + f.Name, out[1].Interface().(error)}
	}
	return out[0].Interface(), nil
}

// passes reports whether a value of type from can be passed as to, as far as is known at start.
// A list passes if its elements do: named strings are passed as strings, one by one.
func passes(from, to reflect.Type) bool {
	switch {
	case from == anyType || from.AssignableTo(to):
		return true
	case from.Kind() == reflect.Pointer:
		return passes(from.Elem(), to)
	case from.Kind() == reflect.Slice && to.Kind() == reflect.Slice:
		return passes(from.Elem(), to.Elem())
	}
	// From Array on, kinds alone say nothing: two structs are of one kind. A type that is refused here
	// can never fit, whatever the request.
	return SameSort(from, to) || from.Kind() == to.Kind() && from.Kind() < reflect.Array && from.Kind() > reflect.Invalid
}

// pass converts a value to the type that a function takes. Numbers must fit. A pointer is followed, as
// a request has pointers where a value may be missing, and a function that wants a string has no use
// for nil. Numbers keep their value or are refused: an id that was cut to 32 bits would be another id.
func (st *State) pass(v reflect.Value, to reflect.Type) (reflect.Value, error) {
	if v.IsValid() && v.Kind() != reflect.Slice && v.Type().AssignableTo(to) {
		return v, nil
	}
	if v = Indirect(v); !v.IsValid() {
		return v, Faulty("passes nil to a function")
	}
	from := v.Type()
	switch {
	case from.Kind() == reflect.Slice && (to.Kind() == reflect.Slice || from.AssignableTo(to)):
		return st.passList(v, to)
	case from.AssignableTo(to):
		return v, nil
	case SameSort(from, to):
		if x, ok := Convert(v, to); ok {
			return x, nil
		}
		return v, Faulty("passes a number that does not fit")
	case from.Kind() == to.Kind() && from.ConvertibleTo(to):
		return v.Convert(to), nil
	}
	return v, Faulty("passes a value of type %v where %v is wanted", from, to)
}

// The copy is charged, with what its elements take. Lists in the list are copied as well; what
// lies behind pointers in it is not.
func (st *State) passList(v reflect.Value, to reflect.Type) (reflect.Value, error) {
	if err := st.Spend(v.Len() * int(v.Type().Elem().Size())); err != nil {
		return v, err
	}
	// A function that takes any gets a list of the list's own type, as it would without the copy: it
	// may switch on the type.
	if v.Type().AssignableTo(to) {
		to = v.Type()
	}
	list := reflect.MakeSlice(to, v.Len(), v.Len())
	// Elements of the same type are copied as memory. A list of a hundred thousand numbers that went
	// through pass one by one would take milliseconds, which no budget here counts.
	if to == v.Type() && to.Elem().Kind() != reflect.Slice {
		reflect.Copy(list, v)
		return list, nil
	}
	for i := range v.Len() {
		x, err := st.pass(v.Index(i), to.Elem())
		if err != nil {
			return v, err
		}
		list.Index(i).Set(x)
	}
	return list, nil
}

// Setup is what a compiler of another language than templates gets to know. It is the whole of
// what the two languages share before there is a program.
type Setup struct {
	Roots     map[string]Root
	Functions map[string]*Function
	// A flag of the declaration and not of the text, as a template that reads nothing is the commonest
	// mistake: it has to be said twice.
	OneKey bool // a key that reads nothing of the request is meant
}

// Compiler makes a program of a key in another language.
type Compiler func(*Setup) (*Program, error)
