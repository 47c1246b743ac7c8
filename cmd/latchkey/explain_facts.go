package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// offer makes roots and facts of a document.
func offer(doc map[string]any) (keyexpr.Roots, keyexpr.Facts, error) {
	roots, values := keyexpr.Roots{}, map[string]any{}
	for name, member := range doc {
		if object, ok := member.(map[string]any); ok && slices.Contains(lookups, name) {
			find, err := lookup(name, object)
			if err != nil {
				return nil, nil, faulty(err)
			}
			roots[name], values[name] = keyexpr.AnyName(), find
			continue
		}
		values[name] = plain(member)
		switch values[name].(type) {
		case map[string]any, nil:
			roots[name] = keyexpr.Root{} // any: the program knows its type, and we don't
		default:
			roots[name] = keyexpr.Type(reflect.TypeOf(values[name]))
		}
	}
	return roots, func(root string) (any, error) { return values[root], nil }, nil
}

// lookup is a root whose members are texts.
func lookup(root string, object map[string]any) (keyexpr.Lookup, error) {
	texts := make(map[string]string, len(object))
	for name, member := range object {
		if root == "header" || root == "md" {
			name = http.CanonicalHeaderKey(name)
		}
		switch v := member.(type) {
		case string:
			texts[name] = v
		case json.Number:
			texts[name] = v.String()
		default:
			return nil, fmt.Errorf("facts: %s.%s: want a string", root, name)
		}
	}
	return func(name string) (string, bool, error) {
		if root == "header" || root == "md" {
			name = http.CanonicalHeaderKey(name)
		}
		text, ok := texts[name]
		return text, ok, nil
	}, nil
}

// plain is a value of JSON with integers for whole numbers: a key may have these and no others.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		for name, member := range v {
			v[name] = plain(member)
		}
	case []any:
		for i, member := range v {
			v[i] = plain(member)
		}
	}
	return v
}

// errObject says why a key is not shown: to hash, an object of JSON is a map, and a struct of the program another thing.
var errObject = errors.New("the key depends on an object as a whole, such as by hash: in a program, the name of its type is a part of that, and is not known here")

// marked are facts whose objects have one member more. An expression that reads only their members does not notice it.
func marked(facts keyexpr.Facts) keyexpr.Facts {
	return func(root string) (any, error) {
		v, err := facts(root)
		return mark(v), err
	}
}

func mark(v any) any {
	switch v := v.(type) {
	case map[string]any:
		more := map[string]any{"": true}
		for name, member := range v {
			more[name] = mark(member)
		}
		return more
	case []any:
		more := make([]any, len(v))
		for i, member := range v {
			more[i] = mark(member)
		}
		return more
	}
	return v
}
