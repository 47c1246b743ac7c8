package keyexpr

import (
	"cmp"
	"math/big"
	"reflect"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Comparisons of values whose types are not known at start, or that the engine would compare wrongly. They are exact for all
// numbers, and look at scalars only: a list may contain itself.

// compare is one of the operators == != < <= > >=.
func compare(op string, a, b any) (bool, error) {
	if op == "==" || op == "!=" {
		equal, err := equals(a, b)
		return equal == (op == "=="), err
	}
	a, b = basic(a), basic(b)
	sign, ok := order(a, b)
	switch {
	case a == nil || b == nil:
		return false, run.Faulty("compares nil: if it may be, write what stands for it: ?? 0")
	case !ok:
		return false, run.Faulty("compares values of types %T and %T, which have no order", a, b)
	case op == "<":
		return sign < 0, nil
	case op == "<=":
		return sign <= 0, nil
	case op == ">":
		return sign > 0, nil
	}
	return sign >= 0, nil
}

func equals(a, b any) (bool, error) {
	a, b = basic(a), basic(b)
	if a == nil || b == nil {
		return a == nil && b == nil, nil
	}
	if sign, ok := order(a, b); ok {
		return sign == 0, nil
	}
	for _, v := range []reflect.Value{reflect.ValueOf(a), reflect.ValueOf(b)} {
		bytes := v.Kind() == reflect.Array && v.Type().Elem().Kind() == reflect.Uint8
		if k := v.Kind(); !bytes && k != reflect.String && k != reflect.Bool && !v.CanInt() && !v.CanUint() && !v.CanFloat() {
			return false, run.Faulty("compares a list, a map or a struct as a whole")
		}
	}
	return a == b, nil
}

// order compares texts, numbers, times and durations; nothing else has an order.
func order(a, b any) (sign int, ok bool) {
	switch x := a.(type) {
	case int:
		if y, ok := b.(int); ok {
			return cmp.Compare(x, y), true
		}
	case string:
		y, ok := b.(string)
		return cmp.Compare(x, y), ok
	case time.Time:
		y, ok := b.(time.Time)
		return x.Compare(y), ok
	case time.Duration:
		y, ok := b.(time.Duration)
		return cmp.Compare(x, y), ok
	}
	if x, y := numberOf(a), numberOf(b); x != nil && y != nil {
		return x.Cmp(y), true
	}
	return 0, false
}

// numberOf is x as a number that is exact, and nil if it is none. A duration is compared with durations only, as 5 of it
// could be anything.
func numberOf(x any) *big.Float {
	v := reflect.ValueOf(x)
	f := new(big.Float).SetPrec(64)
	switch {
	case v.CanFloat() && v.Float() == v.Float():
		return f.SetFloat64(v.Float())
	case v.IsValid() && v.CanInt() && v.Type() != durationType:
		return f.SetInt64(v.Int())
	case v.IsValid() && v.CanUint():
		return f.SetUint64(v.Uint())
	}
	return nil
}

// basic gives a value of a named type, and of a number of any size, that type which the engine knows. nil stays nil.
func basic(x any) any {
	switch x := x.(type) {
	case nil, string, bool, int:
		return x
	}
	v := run.Tame(run.Indirect(reflect.ValueOf(x)))
	switch k := v.Kind(); {
	case !v.IsValid():
		return nil
	case v.Type() == numberType:
		if f, err := strconv.ParseFloat(v.String(), 64); err == nil { // 2.5, or 7.0
			return f
		}
		return v.String()
	case k == reflect.String:
		return v.String()
	case k == reflect.Bool:
		return v.Bool()
	case v.Type() == durationType:
	case v.CanInt():
		return int(v.Int())
	case v.CanUint() && v.Uint() <= 1<<63-1:
		return int(v.Uint())
	case v.CanUint():
		return v.Uint()
	case v.CanFloat():
		return v.Float()
	}
	return v.Interface()
}

// member is the operator in, for lists and for the keys of maps.
func member(st *run.State, x, of any) (bool, error) {
	v := run.Indirect(reflect.ValueOf(of))
	x = basic(x)
	switch {
	case !v.IsValid():
		return false, nil
	case v.Kind() == reflect.Map:
		if x == nil || !run.SameSort(reflect.TypeOf(x), v.Type().Key()) {
			return false, nil
		}
		e, err := run.Entry(v, x)
		return e.IsValid(), err
	}
	v, err := listOf(st, of)
	for i := 0; err == nil && i < v.Len(); i++ {
		e, err := read(st, run.Tame(v.Index(i)))
		if err != nil {
			return false, err
		}
		if equal, err := equals(x, e); err != nil || equal {
			return equal, err
		}
	}
	return false, err
}

// aList is a list that may be gone through.
func aList(x any) (reflect.Value, error) {
	v := run.Indirect(reflect.ValueOf(x))
	if !v.IsValid() {
		return v, run.ErrNil
	}
	if k := v.Kind(); k != reflect.Slice && k != reflect.Array {
		return v, run.Faulty("has a value of type %v where a list is wanted", v.Type())
	}
	return v, nil
}

// listOf returns x as a list, and charges the rounds of a loop over it before the first.
func listOf(st *run.State, x any) (reflect.Value, error) {
	v, err := aList(x)
	if err == nil && v.Len() > run.MaxElements {
		err = run.Faulty("goes through a list of more than %d elements", run.MaxElements)
	}
	if err != nil {
		return v, err
	}
	return v, cmp.Or(st.List(v.Len()), st.Spend(v.Len()*int(v.Type().Elem().Size())))
}
