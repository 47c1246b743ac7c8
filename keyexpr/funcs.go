package keyexpr

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm/runtime"
)

// hostFunc is a function that we give to the engine, or that takes the place of one of its operators or builtins.
type hostFunc struct {
	name  string
	check checkFunc
	call  callFunc
	text  func(string) string // what call does, for functions from text to text
}

type (
	// checkFunc returns the type of a call's result, from those of its arguments; any stands for those that are not known.
	checkFunc func(args []reflect.Type) (reflect.Type, error)
	callFunc  func(st *state, args []any) (any, error)
)

func host(name string, check checkFunc, call callFunc) hostFunc {
	return hostFunc{name: name, check: check, call: call}
}

// function is h as the engine wants to have it. The state is the first argument of every call.
func (h *hostFunc) function() *builtin.Function {
	return &builtin.Function{
		Name: h.name,
		Validate: func(args []reflect.Type) (reflect.Type, error) {
			for i, t := range args {
				args[i] = cmp.Or(t, anyType) // nil has no type
			}
			return h.check(args)
		},
		Func: func(args ...any) (any, error) { return h.call(args[0].(*state), args[1:]) },
	}
}

var (
	stringType = reflect.TypeFor[string]()
	intType    = reflect.TypeFor[int]()
	anyType    = reflect.TypeFor[any]()
)

// takes checks that there are between least and most arguments, and gives result.
func takes(least, most int, result reflect.Type) checkFunc {
	return func(args []reflect.Type) (reflect.Type, error) {
		if len(args) < least || len(args) > most {
			return nil, fmt.Errorf("%d arguments where %s are wanted", len(args), wanted(least, most))
		}
		return result, nil
	}
}

// stringCheck checks that the first argument may be a string.
func stringCheck(least, most int, result reflect.Type) checkFunc {
	count := takes(least, most, result)
	return func(args []reflect.Type) (reflect.Type, error) {
		if len(args) > 0 {
			t := args[0]
			if t.Kind() == reflect.Pointer {
				t = t.Elem()
			}
			if t.Kind() != reflect.String && t.Kind() != reflect.Interface {
				return nil, fmt.Errorf("the first argument is of type %v, and should be a string", args[0])
			}
		}
		return count(args)
	}
}

func wanted(least, most int) string {
	if least == most {
		return strconv.Itoa(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// hostFuncs returns all functions of ours by name.
func hostFuncs(cond bool) map[string]*hostFunc {
	list := slices.Concat(keyFuncs(), textFuncs(), javaFuncs(), operators())
	if cond {
		list = append(list, host("now", takes(0, 0, timeType), now))
	}
	funcs := make(map[string]*hostFunc, len(list))
	for i := range list {
		funcs[list[i].name] = &list[i]
	}
	return funcs
}

func now(*state, []any) (any, error) { return time.Now().UTC(), nil }

// operators take the place of what the engine does itself.
func operators() []hostFunc {
	list := []hostFunc{
		host("+", nil, add),
		host("-", nil, arithmetic(minus, runtime.Subtract)),
		host("*", nil, arithmetic(times, runtime.Multiply)),
		host("%", nil, remainder),
		host(stepName, nil, func(st *state, args []any) (any, error) { return args[0], st.step() }),
		host(basicName, basicCheck, func(_ *state, args []any) (any, error) { return basic(args[0]), nil }),
	}
	for name, c := range comparisons() {
		list = append(list, host(name, nil, c.call))
	}
	return list
}

var errNoText = faulty("has nil where a string is wanted")

// text returns a string argument.
func text(x any) (string, error) {
	if s, ok := x.(string); ok {
		return s, nil
	}
	v := indirect(reflect.ValueOf(x))
	if !v.IsValid() {
		return "", errNoText
	}
	if v.Kind() != reflect.String {
		return "", faulty("has a value of type %v where a string is wanted: use string(x)", v.Type())
	}
	return v.String(), nil
}

// texts returns several string arguments.
func texts(args []any) ([]string, error) {
	list := make([]string, len(args))
	for i, x := range args {
		s, err := text(x)
		if err != nil {
			return nil, err
		}
		list[i] = s
	}
	return list, nil
}

// integer returns a whole number as an int64.
func integer(x any) (int64, error) {
	v := indirect(reflect.ValueOf(x))
	switch {
	case !v.IsValid():
		return 0, faulty("has nil where a whole number is wanted")
	case v.CanInt():
		return v.Int(), nil
	case !v.CanUint():
		return 0, faulty("has a value of type %v where a whole number is wanted", v.Type())
	case v.Uint() > math.MaxInt64:
		return 0, faulty("has a number that is too large to calculate with")
	}
	return int64(v.Uint()), nil
}
