package route

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// tagName is the key of the tag with a handler's pattern: `route:"POST /orders/{id}"`.
const tagName = "route"

// Lookup returns the pattern in the tags of a field. Tags that package reflect can't read are an error, as the pattern
// would silently be overlooked.
func Lookup(tag reflect.StructTag) (pattern string, ok bool, err error) {
	pattern, ok = tag.Lookup(tagName)
	if !ok && misread(string(tag)) {
		return "", false, fmt.Errorf("malformed struct tag %q, want route:\"...\" behind a blank", tag)
	}
	return pattern, ok, nil
}

var pair = regexp.MustCompile(`^ *([^ ":]+):"(?:[^"\\]|\\.)*"`)

// misread reports whether package reflect overlooks a route tag: behind a comma, which it takes for a part of the name, or
// behind a mistake.
func misread(tag string) bool {
	for {
		found := pair.FindStringSubmatch(tag)
		if found == nil {
			return strings.Contains(tag, tagName+":")
		}
		if strings.Trim(found[1], ",;") == tagName {
			return true
		}
		tag = tag[len(found[0]):]
	}
}

// Each calls f for every field with a route tag in the struct that target points to, and in the structs that it embeds or
// has as fields, by value or behind a pointer. It joins the mistakes, each with the path of its field.
func Each(target any, f func(pattern string, field reflect.StructField, v reflect.Value) error) error {
	v := reflect.ValueOf(target)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("want a pointer to a struct, not %T", target)
	}
	w := walker{f: f, seen: make(map[place]bool)}
	w.walk(v.Elem(), v.Elem().Type().Name())
	if w.found == 0 {
		return fmt.Errorf("no field of %T has a route tag", target)
	}
	return errors.Join(w.faults...)
}

// place tells structs apart: by address, and by type as a struct can begin with another.
type place struct {
	address uintptr
	t       reflect.Type
}

type walker struct {
	f      func(string, reflect.StructField, reflect.Value) error
	seen   map[place]bool
	found  int
	faults []error
}

func (w *walker) walk(v reflect.Value, path string) {
	here := place{v.Addr().Pointer(), v.Type()}
	if w.seen[here] {
		return
	}
	w.seen[here] = true
	for i := range v.NumField() {
		f := v.Type().Field(i)
		path := strings.TrimPrefix(path+"."+f.Name, ".")
		pattern, ok, err := Lookup(f.Tag)
		switch {
		case err != nil:
		case ok && !f.IsExported():
			err = errors.New("field has a route tag, but is not exported")
		case ok:
			err = w.f(pattern, f, v.Field(i))
		case f.IsExported() || f.Anonymous:
			w.nested(v.Field(i), path)
			continue
		default:
			continue
		}
		w.found++
		if err != nil {
			w.faults = append(w.faults, fmt.Errorf("%s: %w", path, err))
		}
	}
}

func (w *walker) nested(v reflect.Value, path string) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem() // no struct, if it is nil
	}
	if v.Kind() == reflect.Struct {
		w.walk(v, path)
	}
}
