package run

import (
	"cmp"
	"reflect"

	"github.com/expr-lang/expr/vm"
)

// An expression that is more than a path runs on the machine of expr-lang. The environment of a program is the State: each
// fact is read by a call of an accessor, which follows a Path and charges for what it reads. The machine bounds neither
// rounds nor bytes, so that lists are charged for all of their rounds before a loop begins.

// MaxElements is the length of the longest list that an expression goes through.
const MaxElements = 50_000

// Call is a function that a program calls, with the state of the request.
type Call func(st *State, args []any) (any, error)

// Func is the function in the form that the machine calls. The error is kept in the state, since that of the machine may have
// values of the request in its text.
func (f Call) Func(args ...any) (v any, err error) {
	st := args[0].(*State)
	defer func() {
		if r := recover(); r != nil {
			if st.Asking {
				st.panicked = &r
			}
			err = Recovered(r)
		}
		if err != nil {
			st.fault = err
		}
	}()
	if err = cmp.Or(st.Step(1), st.Spend(16)); err != nil { // for what it returns
		return nil, err
	}
	return f(st, args[1:])
}

// ErrEvaluated is the error of an expression whose operators don't fit its values. The engine has words of its own for it,
// which may quote the values.
var ErrEvaluated = Faulty("can't be evaluated: an operator has a value that it is not for")

// Run evaluates a program.
func (st *State) Run(p *vm.Program) (any, error) {
	st.machine.MemoryBudget = 8 * MaxElements // of elements, where each round may make some
	v, err := st.machine.Run(p, st)
	switch {
	case err == nil:
		return v, nil
	case st.panicked != nil:
		panic(*st.panicked) // of facts, which are not ours to hide
	case st.fault != nil:
		return nil, st.fault
	}
	return nil, ErrEvaluated
}

// forget clears what the machine has left of a request.
func (st *State) forget() {
	if st.machine.Stack == nil {
		return
	}
	if cap(st.machine.Stack) > 1024 {
		st.machine = vm.VM{}
	}
	clear(st.machine.Stack[:cap(st.machine.Stack)])
	st.machine.Stack = st.machine.Stack[:0]
	clear(st.machine.Scopes[:cap(st.machine.Scopes)])
	st.panicked, st.fault = nil, nil
}

// method calls the method that a step names on v, with an address if it needs one.
func method(v reflect.Value, s *Step) (reflect.Value, error) {
	m := v.MethodByName(s.Method)
	if !m.IsValid() {
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		m = p.MethodByName(s.Method)
	}
	out := m.Call(nil)
	if len(out) == 2 && !out[1].IsNil() {
		return reflect.Value{}, Faulty("can't go on: %s() fails", s.Method)
	}
	if s.Method == "String" && out[0].Kind() == reflect.String && spellsNothing(out[0].String(), v) {
		return reflect.Value{}, nil
	}
	return Tame(out[0]), nil
}

// receiver returns what the method of a step is called on: a pointer as it is, since a method may be made for nil.
func receiver(v reflect.Value, s *Step) (reflect.Value, error) {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer && (v.Type().Elem().Kind() == reflect.Pointer || !v.MethodByName(s.Method).IsValid()) {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() && (s.Optional || !IsMessage(v.Type())) {
		if s.Optional {
			return reflect.Value{}, nil
		}
		return reflect.Value{}, Faulty("can't go on: %s is nil", s.Src)
	}
	return v, nil
}

// Composite is the value of key(a, b): its parts are escaped by themselves, with a colon between them.
type Composite []string

// composite appends the parts of c.
func (st *State) composite(dst []byte, c Composite, e *Escape) (_ []byte, err error) {
	for i, s := range c {
		if i > 0 {
			dst = append(dst, ':')
		}
		if dst, err = st.Text(dst, s, e); err != nil {
			return dst, err
		}
	}
	return dst, nil
}
