package keyexpr

import (
	"encoding/base64"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// textFuncs are the engine's functions on text that are done better here.
func textFuncs() []hostFunc {
	return []hostFunc{
		textFunc("lower", strings.ToLower),
		textFunc("upper", strings.ToUpper),
		textFunc("toBase64", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
		host("string", textCheck, toString),
		host("int", takes(1, 1, intType), toInt),
		host("split", takes(2, 3, reflect.TypeFor[[]string]()), split),
		host("join", joinCheck, join),
		host("replace", takes(3, 3, stringType), replace),
		host("uniq", uniqCheck, uniq),
	}
}

// textFunc is a function from text to text.
func textFunc(name string, f func(string) string) hostFunc {
	call := func(st *state, args []any) (any, error) {
		s, err := text(args[0])
		if err != nil {
			return nil, err
		}
		return f(s), st.spend(len(s))
	}
	return hostFunc{name: name, check: stringCheck(1, 1, stringType), call: call, text: f}
}

func uniqCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("uniq takes 1 argument")
	}
	if k := args[0].Kind(); k != reflect.Slice && k != reflect.Array && k != reflect.Interface {
		return nil, fmt.Errorf("uniq takes a list, not %v", args[0])
	}
	return reflect.TypeFor[[]any](), nil
}

// uniq keeps the first of equal texts, numbers and the like. The engine's compares each with each, which takes for ever
// with what a hostile request sends.
func uniq(st *state, args []any) (any, error) {
	v := indirect(reflect.ValueOf(args[0]))
	if !v.IsValid() || v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return nil, faulty("has no list to make unique")
	}
	if err := st.spend(64 * v.Len()); err != nil {
		return nil, err
	}
	seen := make(map[any]bool, v.Len())
	list := make([]any, 0, v.Len())
	for i := range v.Len() {
		x := basic(v.Index(i).Interface())
		if !reflect.ValueOf(&x).Elem().Comparable() {
			return nil, faulty("has elements that can't be compared")
		}
		if !seen[x] {
			seen[x] = true
			list = append(list, x)
		}
	}
	return list, nil
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
