package keyexpr

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

var rawType = reflect.TypeFor[rawText]()

// keyFuncs are the functions that keys are made with.
func keyFuncs() []hostFunc {
	return []hostFunc{
		host("hash", hashCheck, hash),
		host("shard", numbers(1, 2), shard),
		host("mod", numbers(0, 2), modulo),
		host("div", numbers(0, 2), divide),
		host(orName, orCheck, or),
		host("required", requiredCheck, required),
		host("fmtTime", fmtTimeCheck, fmtTime),
		host("raw", rawCheck, raw),
		host("prefixed", prefixedCheck, prefixed),
	}
}

// numbers checks that all arguments from the first on may be whole numbers.
func numbers(first, count int) checkFunc {
	return func(args []reflect.Type) (reflect.Type, error) {
		if len(args) != count {
			return nil, fmt.Errorf("%d arguments where %d are wanted", len(args), count)
		}
		for _, t := range args[first:] {
			if t = basicType(t); t.Kind() == reflect.Pointer {
				t = t.Elem()
			}
			if t != anyType && (t.Kind() < reflect.Int || t.Kind() > reflect.Uint64) {
				return nil, fmt.Errorf("%v is no whole number", t)
			}
		}
		if why := refusal(args[0]); first > 0 && why != "" {
			return nil, fmt.Errorf("the first argument %s", why)
		}
		return intType, nil
	}
}

func hashCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("hash takes 1 argument")
	}
	t := args[0]
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == timeType || t.Kind() == reflect.Func || t.Kind() == reflect.Chan {
		return nil, fmt.Errorf("what hash gets %s", refusal(t))
	}
	return stringType, nil
}

// hash digests what is too long, too private or too composite for a key: the text of key material, and the JSON of
// everything else, which has its fields and entries in a fixed order. Its result is 32 hex digits.
func hash(st *state, args []any) (any, error) {
	if isEmpty(args[0]) {
		return nil, errEmpty
	}
	v := reflect.ValueOf(args[0])
	data, err := textOf(v)
	if err != nil {
		doc, err := json.Marshal(args[0])
		if err != nil {
			return nil, faulty("has no JSON to hash")
		}
		data = "\x00" + string(doc) // no text of key material begins so, and is JSON
	}
	if err := st.spend(len(data)); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:16]), nil
}

// shard spreads the text of a value over the numbers from 0 to n-1, the same way in every process and release.
func shard(_ *state, args []any) (any, error) {
	n, err := integer(args[1])
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, faulty("has no shards")
	}
	if isEmpty(args[0]) {
		return nil, errEmpty
	}
	text, err := textOf(reflect.ValueOf(args[0]))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(text))
	return int(binary.BigEndian.Uint64(sum[:]) % uint64(n)), nil
}

// modulo is the remainder that is never negative.
func modulo(_ *state, args []any) (any, error) {
	n, err := integer(args[1])
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, faulty("divides by what is not positive")
	}
	v := indirect(reflect.ValueOf(args[0]))
	if v.IsValid() && v.CanUint() {
		return int(v.Uint() % uint64(n)), nil
	}
	a, err := integer(args[0])
	return int(((a % n) + n) % n), err
}

// divide divides whole numbers and drops the rest, as Go and Java do.
func divide(_ *state, args []any) (any, error) {
	a, b := indirect(reflect.ValueOf(args[0])), indirect(reflect.ValueOf(args[1]))
	if a.IsValid() && a.CanUint() && b.IsValid() && (b.CanInt() || b.CanUint()) && !negative(b) {
		if size(b) == 0 {
			return nil, faulty("divides by zero")
		}
		n, err := integer(a.Uint() / size(b))
		return int(n), err
	}
	x, err := integer(args[0])
	if err != nil {
		return nil, err
	}
	y, err := integer(args[1])
	switch {
	case err != nil:
		return nil, err
	case y == 0:
		return nil, faulty("divides by zero")
	case y == -1 && x == -x && x != 0:
		return nil, faulty("calculates more than an int can hold")
	}
	return int(x / y), nil
}

// isEmpty reports whether x is nil or has nothing in it. A number is never empty.
func isEmpty(x any) bool {
	v := indirect(reflect.ValueOf(x))
	if !v.IsValid() {
		return true
	}
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return false
}

func orCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) < 2 {
		return nil, fmt.Errorf("or takes at least 2 arguments")
	}
	for _, t := range args[1:] {
		if t != args[0] {
			return orMixed(args)
		}
	}
	return args[0], nil
}

// orMixed gives strings of several types, and pointers to them, the type string.
func orMixed(args []reflect.Type) (reflect.Type, error) {
	for _, t := range args {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.String {
			return anyType, nil
		}
	}
	return stringType, nil
}

// or returns the first of its arguments that is neither nil nor empty, and nil if there is none. Strings come back as
// plain strings, as their static type says.
func or(_ *state, args []any) (any, error) {
	for _, x := range args {
		if isEmpty(x) {
			continue
		}
		if v := indirect(reflect.ValueOf(x)); v.Kind() == reflect.String && v.Type() != rawType {
			return v.String(), nil
		}
		return x, nil
	}
	return nil, nil
}

func requiredCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) != 2 || args[1] != stringType {
		return nil, fmt.Errorf("required takes a value and a message")
	}
	return args[0], nil
}

// required fails with a message of the template's author if a value is nil or empty.
func required(_ *state, args []any) (any, error) {
	if isEmpty(args[0]) {
		return nil, faulty("is missing: %s", args[1])
	}
	return args[0], nil
}

// timed is what protobuf timestamps have.
type timed interface{ AsTime() time.Time }

func fmtTimeCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) != 2 || args[1] != stringType {
		return nil, fmt.Errorf("fmtTime takes a time and a layout, as time.Format does")
	}
	t := args[0]
	if t != anyType && t != timeType && t != reflect.PointerTo(timeType) && !t.Implements(reflect.TypeFor[timed]()) {
		return nil, fmt.Errorf("fmtTime takes a time, not %v", t)
	}
	return stringType, nil
}

// fmtTime spells a time in UTC, so that one instant makes one key.
func fmtTime(_ *state, args []any) (any, error) {
	v := reflect.ValueOf(args[0])
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errNil
	}
	var t time.Time
	switch x := args[0].(type) {
	case time.Time:
		t = x
	case *time.Time:
		t = *x
	case timed:
		t = x.AsTime()
	default:
		return nil, faulty("is no time, but of type %T", x)
	}
	if t.IsZero() {
		return nil, errEmpty
	}
	return t.UTC().Format(args[1].(string)), nil
}

// listOf returns the type of what raw and prefixed make of a value of type t.
func listOf(t reflect.Type) (reflect.Type, error) {
	if isList(t) {
		if why := refusal(t.Elem()); why != "" {
			return nil, fmt.Errorf("each element %s", why)
		}
		return reflect.SliceOf(rawType), nil
	}
	if why := refusal(t); why != "" {
		return nil, fmt.Errorf("what is put in %s", why)
	}
	return rawType, nil
}

func rawCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("raw takes 1 argument")
	}
	return listOf(args[0])
}

func raw(_ *state, args []any) (any, error) { return rawBehind("", args[0]) }

func prefixedCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) != 2 || args[0] != stringType {
		return nil, fmt.Errorf("prefixed takes a string, and what is put behind it")
	}
	return listOf(args[1])
}

// prefixed is raw with a text before each key.
func prefixed(_ *state, args []any) (any, error) { return rawBehind(args[0].(string), args[1]) }

func rawBehind(prefix string, x any) (any, error) {
	v := indirect(reflect.ValueOf(x))
	if !v.IsValid() {
		return nil, errNil
	}
	if !isList(v.Type()) {
		return rawOf(prefix, reflect.ValueOf(x))
	}
	if v.Len() > maxKeys {
		return nil, faulty("makes more than %d keys", maxKeys)
	}
	list := make([]rawText, v.Len())
	for i := range list {
		text, err := rawOf(prefix, v.Index(i))
		if err != nil {
			return nil, err
		}
		list[i] = text
	}
	return list, nil
}

func rawOf(prefix string, v reflect.Value) (rawText, error) {
	text, err := textOf(v)
	if err == nil && text == "" {
		err = errEmpty
	}
	return rawText(prefix + text), err
}
