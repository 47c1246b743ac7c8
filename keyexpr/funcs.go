package keyexpr

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm/runtime"
)

// hostFunc is a function that we give to the engine, or that takes the place of one of its operators or builtins.
type hostFunc struct {
	name   string
	params []reflect.Type // of a user's function
	check  func(args []reflect.Type) (reflect.Type, error)
	call   func(st *state, args []any) (any, error)
}

func (h *hostFunc) param(i int) reflect.Type {
	if i < len(h.params) {
		return h.params[i]
	}
	return nil
}

// function is h as the engine wants to have it. The state is the first argument of every call.
func (h *hostFunc) function() *builtin.Function {
	return &builtin.Function{
		Name:     h.name,
		Validate: h.check,
		Func:     func(args ...any) (any, error) { return h.call(args[0].(*state), args[1:]) },
	}
}

var (
	stringType = reflect.TypeFor[string]()
	intType    = reflect.TypeFor[int]()
	anyType    = reflect.TypeFor[any]()
)

// takes checks that there are between least and most arguments, and gives result.
func takes(least, most int, result reflect.Type) func([]reflect.Type) (reflect.Type, error) {
	return func(args []reflect.Type) (reflect.Type, error) {
		if len(args) < least || len(args) > most {
			return nil, fmt.Errorf("%d arguments where %s are wanted", len(args), wanted(least, most))
		}
		return result, nil
	}
}

func wanted(least, most int) string {
	if least == most {
		return strconv.Itoa(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

func hostFuncs(cond bool) map[string]*hostFunc {
	funcs := map[string]*hostFunc{}
	add := func(name string, check func([]reflect.Type) (reflect.Type, error), call func(*state, []any) (any, error)) {
		funcs[name] = &hostFunc{name: name, check: check, call: call}
	}
	add("+", nil, plus)
	add("-", nil, arithmetic(minus, runtime.Subtract))
	add("*", nil, arithmetic(times, runtime.Multiply))
	add("%", nil, remainder)
	for name, op := range comparisons {
		add(name, nil, comparison(op))
	}
	add(stepName, nil, func(st *state, args []any) (any, error) { return args[0], st.step() })
	add(basicName, basicCheck, func(_ *state, args []any) (any, error) { return basic(args[0]), nil })
	add("string", textCheck, toString)
	add("int", takes(1, 1, intType), toInt)
	add("split", takes(2, 3, reflect.TypeFor[[]string]()), split)
	add("join", joinCheck, join)
	add("replace", takes(3, 3, stringType), replace)
	if cond {
		add("now", takes(0, 0, timeType), func(*state, []any) (any, error) { return time.Now().UTC(), nil })
	}
	return funcs
}

func basicCheck(args []reflect.Type) (reflect.Type, error) { return basicType(args[0]), nil }

// basic converts a value of a named basic type, or a pointer to one, to its basic type. nil stays nil.
func basic(x any) any {
	v := indirect(reflect.ValueOf(x))
	if !v.IsValid() {
		return nil
	}
	if t := basicType(v.Type()); t != v.Type() {
		v = v.Convert(t)
	}
	return v.Interface()
}

// text returns a string argument.
func text(x any) (string, error) {
	if s, ok := x.(string); ok {
		return s, nil
	}
	v := indirect(reflect.ValueOf(x))
	if !v.IsValid() {
		return "", faulty("has nil where a string is wanted")
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

func plus(st *state, args []any) (any, error) {
	a, b := basic(args[0]), basic(args[1])
	if s, ok := a.(string); ok {
		t, err := text(b)
		if err != nil {
			return nil, err
		}
		return s + t, st.spend(len(s) + len(t))
	}
	if _, ok := b.(string); ok {
		return nil, faulty("adds text to what is no text: use string(x)")
	}
	return arithmetic(sum, runtime.Add)(st, args)
}

// arithmetic does what exact does for whole numbers, and leaves floats, times and durations to the engine.
func arithmetic(exact func(a, b int64) (int64, bool), other func(a, b any) any) func(*state, []any) (any, error) {
	return func(_ *state, args []any) (any, error) {
		a, b := basic(args[0]), basic(args[1])
		if !whole(a) || !whole(b) {
			return other(a, b), nil
		}
		x, err := integer(a)
		if err != nil {
			return nil, err
		}
		y, err := integer(b)
		if err != nil {
			return nil, err
		}
		z, ok := exact(x, y)
		if !ok || int64(int(z)) != z {
			return nil, faulty("calculates more than an int can hold")
		}
		return int(z), nil
	}
}

func whole(x any) bool {
	v := reflect.ValueOf(x)
	return v.IsValid() && v.Type() != durationType && (v.CanInt() || v.CanUint())
}

func sum(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

func minus(a, b int64) (int64, bool) {
	c := a - b
	return c, (c < a) == (b > 0)
}

func times(a, b int64) (int64, bool) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	if (a < 0) != (b < 0) {
		return -int64(low), high == 0 && low <= 1<<63
	}
	return int64(low), high == 0 && low < 1<<63
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// remainder is % with the sign of the dividend, as in Go and Java, also for large unsigned numbers.
func remainder(_ *state, args []any) (any, error) {
	a, b := reflect.ValueOf(basic(args[0])), reflect.ValueOf(basic(args[1]))
	if a.IsValid() && a.CanUint() && b.IsValid() {
		n, err := integer(args[1])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, faulty("divides by zero")
		}
		return int(a.Uint() % magnitude(n)), nil
	}
	x, err := integer(args[0])
	if err != nil {
		return nil, err
	}
	y, err := integer(args[1])
	if err != nil {
		return nil, err
	}
	if y == 0 {
		return nil, faulty("divides by zero")
	}
	if y == -1 {
		return 0, nil
	}
	return int(x % y), nil
}

// comparisons says of each operator what it makes of a comparison, and what the engine does for other than whole numbers.
var comparisons = map[string]struct {
	holds  func(order int) bool
	engine func(a, b any) bool
}{
	"==": {func(o int) bool { return o == 0 }, runtime.Equal},
	"!=": {func(o int) bool { return o != 0 }, func(a, b any) bool { return !runtime.Equal(a, b) }},
	"<":  {func(o int) bool { return o < 0 }, runtime.Less},
	"<=": {func(o int) bool { return o <= 0 }, runtime.LessOrEqual},
	">":  {func(o int) bool { return o > 0 }, runtime.More},
	">=": {func(o int) bool { return o >= 0 }, runtime.MoreOrEqual},
}

// comparison compares whole numbers of all types and sizes as numbers.
func comparison(op struct {
	holds  func(order int) bool
	engine func(a, b any) bool
}) func(*state, []any) (any, error) {
	return func(_ *state, args []any) (any, error) {
		a, b := basic(args[0]), basic(args[1])
		if !whole(a) || !whole(b) {
			return op.engine(a, b), nil
		}
		return op.holds(order(reflect.ValueOf(a), reflect.ValueOf(b))), nil
	}
}

// order compares two whole numbers as cmp.Compare would if there were a type for them.
func order(a, b reflect.Value) int {
	negative := func(v reflect.Value) bool { return v.CanInt() && v.Int() < 0 }
	size := func(v reflect.Value) uint64 {
		if v.CanInt() {
			return uint64(v.Int())
		}
		return v.Uint()
	}
	if negative(a) != negative(b) {
		if negative(a) {
			return -1
		}
		return 1
	}
	return cmp.Compare(size(a), size(b)) // two's complement keeps the order of two negative numbers
}

func textCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("%d arguments where 1 is wanted", len(args))
	}
	if why := refusal(args[0]); why != "" {
		return nil, fmt.Errorf("what string(x) gets %s", why)
	}
	return stringType, nil
}

// toString spells a value as a hole would. There is no text for nil.
func toString(st *state, args []any) (any, error) {
	v := reflect.ValueOf(args[0])
	if !v.IsValid() {
		return nil, errNil
	}
	s, err := textOf(v)
	if err != nil {
		return nil, err
	}
	return s, st.spend(len(s))
}

func toInt(_ *state, args []any) (any, error) {
	x := basic(args[0])
	switch v := reflect.ValueOf(x); v.Kind() {
	case reflect.String:
		n, err := strconv.Atoi(v.String())
		if err != nil {
			return nil, faulty("has text that is no whole number")
		}
		return n, nil
	case reflect.Float32, reflect.Float64:
		f := v.Float()
		if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return nil, faulty("has a float that is no whole number")
		}
		return int(f), nil
	}
	n, err := integer(x)
	return int(n), err
}

func split(st *state, args []any) (any, error) {
	list, err := texts(args[:2])
	if err != nil {
		return nil, err
	}
	most := int64(-1)
	if len(args) == 3 {
		if most, err = integer(args[2]); err != nil {
			return nil, err
		}
	}
	s, sep := list[0], list[1]
	// What stays in memory of each piece is the header of a string.
	if err := st.spend(16 * (strings.Count(s, sep) + 1)); err != nil {
		return nil, err
	}
	return strings.SplitN(s, sep, int(most)), nil
}

func joinCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, fmt.Errorf("%d arguments where 1 to 2 are wanted", len(args))
	}
	if k := args[0].Kind(); k != reflect.Slice && k != reflect.Array && k != reflect.Interface {
		return nil, fmt.Errorf("can't join %v", args[0])
	}
	return stringType, nil
}

func join(st *state, args []any) (any, error) {
	v := indirect(reflect.ValueOf(args[0]))
	if !v.IsValid() || v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return nil, faulty("joins what is no list")
	}
	sep := ""
	if len(args) == 2 {
		var err error
		if sep, err = text(args[1]); err != nil {
			return nil, err
		}
	}
	var b strings.Builder
	for i := range v.Len() {
		s, err := text(v.Index(i).Interface())
		if err != nil {
			return nil, err
		}
		if err := st.spend(len(s) + len(sep)); err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func replace(st *state, args []any) (any, error) {
	list, err := texts(args)
	if err != nil {
		return nil, err
	}
	s, old, by := list[0], list[1], list[2]
	if err := st.spend(len(s) + strings.Count(s, old)*len(by)); err != nil {
		return nil, err
	}
	return strings.ReplaceAll(s, old, by), nil
}
