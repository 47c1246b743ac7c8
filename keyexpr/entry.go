package keyexpr

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/vm/runtime"
)

// entryOf returns what is found in v under by, a string or an integer: an entry of a map, an element of a list, or a
// field of a struct. What is not in a map is nil, an invalid value: for the engine it would be "" or 0, and all requests
// without it would share a key.
func entryOf(v reflect.Value, by any) (reflect.Value, error) {
	switch v.Kind() {
	case reflect.Map:
		return mapEntry(v, by)
	case reflect.Slice, reflect.Array:
		i, err := integer(by)
		if err != nil {
			return reflect.Value{}, err
		}
		if i < 0 {
			i += int64(v.Len())
		}
		if i < 0 || i >= int64(v.Len()) {
			return reflect.Value{}, faulty("asks a list of %d elements for number %v", v.Len(), by)
		}
		return tame(v.Index(int(i))), nil
	case reflect.Struct:
		return tame(reflect.ValueOf(runtime.Fetch(v.Interface(), by))), nil
	}
	return reflect.Value{}, faulty("has no fields or entries: it is of type %v", v.Type())
}

func mapEntry(v reflect.Value, by any) (reflect.Value, error) {
	if m, ok := reflect.TypeAssert[map[string]any](v); ok {
		if name, ok := by.(string); ok {
			return tame(reflect.ValueOf(m[name])), nil
		}
	}
	key := reflect.ValueOf(by)
	if !key.IsValid() {
		return reflect.Value{}, errNil
	}
	want := v.Type().Key()
	if key.Type() != want {
		if !sameSort(key.Type(), want) {
			return reflect.Value{}, faulty("asks a map by %v for an entry by %v", want, key.Type())
		}
		fitting, ok := convert(key, want)
		if !ok { // there can be no such entry
			return reflect.Value{}, nil
		}
		key = fitting
	}
	return tame(v.MapIndex(key)), nil
}

// sameSort reports whether values of both types are strings, or of both whole numbers, or otherwise interchangeable.
func sameSort(from, to reflect.Type) bool {
	if from.AssignableTo(to) {
		return true
	}
	whole := func(t reflect.Type) bool { return t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 }
	return from.Kind() == reflect.String && to.Kind() == reflect.String || whole(from) && whole(to)
}

// convert converts v to another type of the same sort, and reports whether it fits.
func convert(v reflect.Value, to reflect.Type) (reflect.Value, bool) {
	x := v.Convert(to)
	return x, x.Convert(v.Type()).Equal(v) && negative(x) == negative(v)
}

// tame turns a json.Number that is a whole number into an integer, so that conditions can compare it.
func tame(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || v.Type() != numberType || !wholeNumber(v.String()) {
		return v
	}
	if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
		return reflect.ValueOf(i)
	}
	if u, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
		return reflect.ValueOf(u)
	}
	return v
}

// wholeNumber reports whether s is a whole number in its only spelling.
func wholeNumber(s string) bool {
	if s == "0" {
		return true
	}
	digits := strings.TrimPrefix(s, "-")
	return digits != "" && digits[0] != '0' && strings.Trim(digits, "0123456789") == ""
}
