package run

import (
	"reflect"
	"slices"
	"strings"
)

// Aliases returns the Go names of the fields of struct t that name may stand for: by JSON, by protobuf, or in another case.
func Aliases(t reflect.Type, name string) (fields []string) {
	for _, f := range reflect.VisibleFields(t) {
		if f.IsExported() && f.Tag.Get("expr") == "" && hasAlias(f, name) && !slices.Contains(fields, f.Name) {
			fields = append(fields, f.Name)
		}
	}
	return fields
}

// hasAlias compares JSON and protobuf names as they are, and Go names in any spelling. A name that fits two fields is an error
// of the caller's, never the first of them.
func hasAlias(f reflect.StructField, name string) bool {
	if json, _, _ := strings.Cut(f.Tag.Get("json"), ","); json == name && json != "-" {
		return true
	}
	for option := range strings.SplitSeq(f.Tag.Get("protobuf"), ",") {
		if option == "name="+name || option == "json="+name {
			return true
		}
	}
	return Fold(f.Name) == Fold(name)
}

// Fold makes the usual spellings of a name alike: OrderID, orderId, order_id.
func Fold(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// Getter returns the method of t that reads a field which can only be reached so, as in opaque protobuf messages.
func Getter(t reflect.Type, name string) (method string, ok bool) {
	for m := range t.Methods() {
		if Fold(m.Name) == "get"+Fold(name) && m.Type.NumIn() == 1 && m.Type.NumOut() == 1 {
			return m.Name, true
		}
	}
	return "", false
}

// CallMethod calls a method without arguments. Behind ?. there is nothing to call on nil.
func CallMethod(base any, name string, optional bool) (v any, err error) {
	on := reflect.ValueOf(base)
	if !on.IsValid() || on.Kind() == reflect.Pointer && on.IsNil() && optional {
		if optional {
			return nil, nil
		}
		return nil, Faulty("can't go on: what should have %s() is nil", name)
	}
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, Recovered(r)
		}
	}()
	out := on.MethodByName(name).Call(nil)
	if len(out) == 2 && !out[1].IsNil() {
		return nil, Faulty("can't go on: %s() fails", name)
	}
	return out[0].Interface(), nil
}
