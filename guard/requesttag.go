package guard

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// declared is the declaration in the tags of a request type.
type declared struct {
	spec     Spec
	template bool     // a blank field carries a tag
	keyParts []string // fields marked as `guard:"key"`
}

// requestTag reads the tags of a request type, a struct or a pointer to one: a Spec on a blank field, or fields that are
// marked as parts of the key, or both. Embedded structs count as if their fields were the request's own.
func requestTag(t reflect.Type) (declared, error) {
	var d declared
	if t = structType(t); t == nil {
		return d, nil
	}
	if err := d.scan(t, make(map[reflect.Type]bool)); err != nil {
		return d, err
	}
	if len(d.keyParts) == 0 {
		return d, nil
	}
	if d.spec.Key != "" {
		return d, fmt.Errorf("two sources of keys in %v: a template and fields marked as key", t)
	}
	for _, part := range d.keyParts {
		f, _ := t.FieldByName(part)
		if tag, _, _ := lookupTag(f); tag != "key" {
			return d, fmt.Errorf("field %v.%s: part of the key in an embedded struct, and hidden by another field of its name: mark that one, or rename one", t, part)
		}
	}
	if path := (below{}).marked(t, false); path != "" {
		return d, fmt.Errorf("field %v.%s: part of the key, in a field that is not embedded: write a template, with #{%s.%s}", t, path, requestRoot, path)
	}
	return d, nil
}

// below is what was looked through for marks below a request: by type, and whether a field leads there that is not embedded. It is true while its
// fields are at work.
type below map[visit]bool

type visit struct {
	t     reflect.Type
	named bool
}

// marked returns the path of a field of t that is marked as key, if a named field leads to it. It is part of another request's key there, and a
// key without it would be that of several requests. A request may point to others of its type.
func (b below) marked(t reflect.Type, named bool) (path string) {
	b[visit{t, named}] = true
	defer func() { b[visit{t, named}] = false }()
	for f := range t.Fields() {
		if tag, _, _ := lookupTag(f); named && tag == "key" && f.IsExported() {
			return f.Name
		}
		inner := structType(f.Type)
		next := visit{inner, named || !f.Anonymous}
		if _, seen := b[next]; inner == nil || seen || b[visit{inner, false}] || !f.IsExported() && !f.Anonymous {
			continue
		}
		if path := b.marked(inner, next.named); path != "" {
			return f.Name + "." + path
		}
	}
	return ""
}

func (d *declared) scan(t reflect.Type, seen map[reflect.Type]bool) error {
	if seen[t] {
		return nil
	}
	seen[t] = true
	defer delete(seen, t) // it is about circles; twice side by side is another matter
	for f := range t.Fields() {
		if err := d.field(f); err != nil {
			return fmt.Errorf("field %v.%s: %w", t, f.Name, err)
		}
		if embedded := structType(f.Type); f.Anonymous && embedded != nil {
			if err := d.scan(embedded, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *declared) field(f reflect.StructField) (err error) {
	tag, ok, err := lookupTag(f)
	switch {
	case err != nil || !ok:
		return err
	case f.Name == "_" && tag == "key":
		return fmt.Errorf("a blank field has no value to be part of a key")
	case f.Name == "_" && d.template:
		return fmt.Errorf("second guard tag of this request type")
	case f.Name == "_":
		d.template = true
		d.spec, err = parseTag(tag)
		return err
	case tag != "key":
		return fmt.Errorf("tag %q: want `key` (a template goes on a blank field, _ struct{})", tag)
	case !f.IsExported():
		return fmt.Errorf("part of the key, but not exported")
	case slices.Contains(d.keyParts, f.Name):
		return fmt.Errorf("part of the key, as another field %s is", f.Name)
	}
	d.keyParts = append(d.keyParts, f.Name)
	return nil
}

// key is the template of a request type with marked fields: "<name>:#{req.A}:#{req.B}".
func (d *declared) key(name string) string {
	parts := []string{strings.ReplaceAll(name, "#{", "##{")}
	for _, part := range d.keyParts {
		parts = append(parts, "#{"+requestRoot+"."+part+"}")
	}
	return strings.Join(parts, ":")
}

// structType returns t, or its element type for a pointer, if that is a struct, and else nil, as for a function that
// has no request.
func structType(t reflect.Type) reflect.Type {
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	return t
}
