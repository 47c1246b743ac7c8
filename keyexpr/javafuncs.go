package keyexpr

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf16"
)

// javaFuncs do what Java does to strings where Go does something else. Templates made by SpEL call them.
func javaFuncs() []hostFunc {
	return []hostFunc{
		host("plus", plusCheck, plus),
		host("javaHash", stringCheck(1, 1, intType), javaHash),
		host("javaLength", stringCheck(1, 1, intType), javaLength),
		host("javaSubstring", stringCheck(2, 3, stringType), javaSubstring),
		host("javaTrim", stringCheck(1, 1, stringType), javaTrim),
	}
}

func plusCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("plus takes 2 arguments")
	}
	text, number := false, true
	for _, t := range args {
		if why := refusal(t); why != "" {
			return nil, fmt.Errorf("an operand of plus %s", why)
		}
		if t = basicType(t); t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		text = text || t.Kind() == reflect.String
		number = number && t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64
	}
	switch {
	case text:
		return stringType, nil
	case number:
		return intType, nil
	case args[0] == anyType || args[1] == anyType:
		return anyType, nil
	}
	return nil, fmt.Errorf("plus takes numbers, or a string and something else")
}

// plus is the + of Java: it adds numbers, and puts together texts if one of its operands is one.
func plus(st *state, args []any) (any, error) {
	a, b := basic(args[0]), basic(args[1])
	if whole(a) && whole(b) {
		return add(st, args)
	}
	x, err := toString(st, args[:1])
	if err != nil {
		return nil, err
	}
	y, err := toString(st, args[1:])
	if err != nil {
		return nil, err
	}
	return x.(string) + y.(string), nil
}

// javaHash is String.hashCode.
func javaHash(_ *state, args []any) (any, error) {
	s, err := text(args[0])
	var h int32
	for _, c := range utf16.Encode([]rune(s)) {
		h = 31*h + int32(c)
	}
	return int(h), err
}

// javaLength is String.length.
func javaLength(_ *state, args []any) (any, error) {
	s, err := text(args[0])
	return len(utf16.Encode([]rune(s))), err
}

// javaSubstring is String.substring. It counts as Java does, and fails where that throws.
func javaSubstring(st *state, args []any) (any, error) {
	s, err := text(args[0])
	if err != nil {
		return nil, err
	}
	units := utf16.Encode([]rune(s))
	bounds := [2]int64{0, int64(len(units))}
	for i, x := range args[1:] {
		if bounds[i], err = integer(x); err != nil {
			return nil, err
		}
	}
	if bounds[0] < 0 || bounds[1] < bounds[0] || bounds[1] > int64(len(units)) {
		return nil, faulty("takes a part of a string that is not there")
	}
	return string(utf16.Decode(units[bounds[0]:bounds[1]])), st.spend(len(s))
}

// javaTrim is String.trim, for which white space is all up to the blank.
func javaTrim(_ *state, args []any) (any, error) {
	s, err := text(args[0])
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }), err
}
