package guard

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Bind puts a guard in front of each function that a struct declares with a guard tag, in place. target points to the
// struct. Tagged fields are those of the struct itself and of the structs that it embeds or has as fields, by value or
// behind a pointer; fields without a tag stay as they are. g mostly has defaults, which tags override:
//
//	type Orders struct {
//		Pay   func(context.Context, PayRequest) (Receipt, error) `guard:"order:#{req.OrderID}; wait=2s"`
//		Move  func(ctx context.Context, from, to string) error   `guard:"#{[from, to]}; args=from,to"`
//		Clean func(context.Context) error                        `guard:"nightly-clean; busy=skip"`
//	}
//	err := guard.Bind(guard.Must(guard.New(locker)), &orders)
//
// A function takes a context first and returns an error last. A single argument between them is the fact req; args
// names several. The name of a guard defaults to the path of the field, as in "Orders.Pay".
//
// The options of g apply to all fields. Settings of a single field stand in its tag, or in Registry.Override under the
// name of its guard. A Fallback must fit each function whose policy it is: busy=fail; outage=fail does without. A
// KeyFunc must fit the request of each. A function that wants options of its own has no tag, and goes through Func.
//
// The error joins the mistakes of all fields, and names each; then nothing was replaced. Call Bind once, before the
// functions are used: it does not synchronise with callers. Several structs of a type may be bound. Their guards have the
// same names and keys, and so share their locks, and a line in a Registry if they declare the same; the names of fields tell
// them apart, as in Bind of a struct{ EU, US *Orders }.
func Bind(g *Guard, target any) error {
	return g.bindFields(target, g.wrap, false)
}

// wrap puts g in front of a function.
func (g *Guard) wrap(f taggedField) (binding, error) {
	bound, err := g.bind(f)
	if err != nil {
		return binding{}, err
	}
	spec := &bound.runner.spec
	return binding{spec.Name, f.value, bound.function(), spec.fallsBack()}, nil
}

// taggedField is a field with a guard tag.
type taggedField struct {
	path  string
	owner reflect.Type // the struct that declares it
	field reflect.StructField
	value reflect.Value // invalid if only types are checked
	spec  Spec          // that the tag says
}

// binding is the new value of a field for Bind.
type binding struct {
	name           string // of the guard
	field, guarded reflect.Value
	falls          bool // back, where a policy says so
}

// wrapper makes the guarded value of a field.
type wrapper func(taggedField) (binding, error)

// bindFields is Bind for functions of any type, which wrap knows. falls says that they may use the fallback.
func (g *Guard) bindFields(target any, wrap wrapper, falls bool) error {
	if err := g.unmade("Bind with"); err != nil {
		return err
	}
	v := reflect.ValueOf(target)
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return fmt.Errorf("guard: Bind of a nil %T", target)
	case v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct:
		return fmt.Errorf("guard: Bind wants a pointer to a struct, not %T", target)
	}
	bindings, err := g.findFields(v.Elem().Type(), v.Elem(), wrap, falls)
	if err != nil {
		return err
	}
	for _, b := range bindings {
		b.field.Set(b.guarded)
	}
	return nil
}

// findFields finds the tagged fields of the struct t with the value v, which is invalid if only types are checked.
func (g *Guard) findFields(t reflect.Type, v reflect.Value, wrap wrapper, falls bool) ([]binding, error) {
	b := binder{wrap: wrap, seen: make(map[place]bool), named: make(map[string]string)}
	b.walk(t, v, t.Name())
	falls = falls || slices.ContainsFunc(b.bindings, func(one binding) bool { return one.falls })
	switch {
	case len(b.faults) > 0:
		return nil, errors.Join(b.faults...)
	case len(b.bindings) == 0 && !b.unknown && v.IsValid() && v.Addr().NumMethod() > 0:
		return nil, fmt.Errorf("guard: Bind of *%v: no field has a guard tag, and methods can't be replaced: cmd/latchkey-gen guards those of an interface", t)
	case len(b.bindings) == 0 && !b.unknown:
		return nil, fmt.Errorf("guard: Bind of *%v: no field has a guard tag", t)
	case g.fallback != nil && !falls:
		return nil, errors.New("guard: Bind with a Fallback that never runs: the tags of all fields say busy and outage otherwise")
	}
	return b.bindings, nil
}

// binder collects the replacements of Bind, and the mistakes in them. It goes by the types of the fields, and looks at
// their values where there are any: CheckFields has none.
type binder struct {
	wrap     wrapper
	seen     map[place]bool
	named    map[string]string // the field of each guard's name
	unknown  bool              // whether an interface has tagged functions behind it
	bindings []binding
	faults   []error
}

// place identifies a struct: by address, and by type as a struct can begin with another.
type place struct {
	address uintptr
	t       reflect.Type
}

// walk notes the tagged fields of the struct t with the value v, which is found at path.
func (b *binder) walk(t reflect.Type, v reflect.Value, path string) {
	here := place{t: t}
	if v.IsValid() {
		here.address = v.Addr().Pointer()
	}
	if b.seen[here] {
		return
	}
	if b.seen[here] = true; !v.IsValid() {
		defer delete(b.seen, here) // it is about circles; two fields of a type are another matter
	}
	for i := range t.NumField() {
		f, value := t.Field(i), reflect.Value{}
		if v.IsValid() {
			value = v.Field(i)
		}
		path := strings.TrimPrefix(path+"."+f.Name, ".")
		tag, ok, err := lookupTag(f)
		switch {
		case err != nil:
		case ok:
			err = b.field(taggedField{path: path, owner: t, field: f, value: value}, tag)
		case f.Anonymous && embeds(f.Type), declares(f.Type):
			err = b.nested(path, f, f.Type, value)
		case f.Type.Kind() == reflect.Interface && !value.IsValid():
			b.unknown = true
		case f.Type.Kind() == reflect.Interface && !value.IsNil() && declares(value.Elem().Type()):
			err = b.nested(path, f, value.Elem().Type(), value.Elem())
		}
		if err != nil {
			b.faults = append(b.faults, fmt.Errorf("guard: Bind of %s: %w", path, err))
		}
	}
}

// nested walks a field that has tagged functions somewhere below it, or says why it can't.
func (b *binder) nested(path string, f reflect.StructField, t reflect.Type, v reflect.Value) error {
	for t.Kind() == reflect.Pointer && (!v.IsValid() || !v.IsNil()) {
		if t = t.Elem(); v.IsValid() {
			v = v.Elem()
		}
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return fmt.Errorf("nil %v, but its fields have guard tags", t)
	case t.Kind() != reflect.Struct:
		return fmt.Errorf("functions with guard tags in a %v, where Bind does not look: bind each element", t)
	case !f.IsExported() && !f.Anonymous:
		return errors.New("functions with guard tags, but the field is not exported")
	case v.IsValid() && !v.CanAddr():
		return fmt.Errorf("functions with guard tags in a %v that is a copy: use a pointer", t)
	}
	b.walk(t, v, path)
	return nil
}

// embeds reports whether t, or what it points to, is a struct with guard tags.
func embeds(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && slices.ContainsFunc(slices.Collect(t.Fields()), func(f reflect.StructField) bool {
		_, ok, err := lookupTag(f)
		return ok || err != nil
	})
}

// declares reports whether a value of type t can lead to functions with guard tags. The tags of requests do not count.
func declares(t reflect.Type) bool { return leads(t, make(map[reflect.Type]bool)) }

func leads(t reflect.Type, seen map[reflect.Type]bool) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map, reflect.Chan:
		return leads(t.Elem(), seen)
	case reflect.Struct:
	default:
		return false
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	for f := range t.Fields() {
		tag, ok, err := lookupTag(f)
		// Handlers are interfaces to some adapters, and so can be a part of a request's key.
		callable := f.Type.Kind() == reflect.Func || f.Type.Kind() == reflect.Interface && tag != "key"
		if callable && (ok || err != nil) || leads(f.Type, seen) {
			return true
		}
	}
	return false
}

// field notes a tagged field for replacement.
func (b *binder) field(f taggedField, tag string) (err error) {
	t, v := f.field.Type, f.value
	switch f.spec, err = parseTag(tag); {
	case !f.field.IsExported() || v.IsValid() && !v.CanSet():
		return errors.New("field has a guard tag, but is not exported")
	case t.Kind() == reflect.Func && v.IsValid() && v.IsNil():
		return errors.New("function is nil")
	case t.Kind() == reflect.Interface && v.IsValid() && v.IsNil():
		return fmt.Errorf("%v is nil", t)
	case err != nil:
		return err
	}
	one, err := b.wrap(f)
	if err != nil {
		return err
	}
	if other, ok := b.named[one.name]; ok {
		return fmt.Errorf("guard %q is also that of %s: give each a name of its own", one.name, other)
	}
	b.named[one.name] = f.path
	b.bindings = append(b.bindings, one)
	return nil
}
