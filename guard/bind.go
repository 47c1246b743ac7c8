package guard

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/latchkey-go/latchkey/lock"
)

// Bind puts a guard in front of each function that a struct declares with a guard tag, in place. target points to the
// struct; each tagged field, also of embedded structs, holds a func(context.Context, Req) (Res, error) or a
// func(context.Context, Req) error. Other fields stay as they are. Options hold for all fields and win over tags; the
// name of a guard defaults to "<Struct>.<Field>". A Fallback is refused, and a KeyFunc unless it takes the request of each
// field. On error, which names the field, nothing was replaced.
//
//	type Orders struct {
//		Pay func(context.Context, PayRequest) (Receipt, error) `guard:"order:#{req.OrderID}; wait=2s"`
//	}
//
// Call Bind once, before the functions are used: it does not synchronise with callers.
func Bind(l lock.Locker, target any, opts ...Option) error {
	v := reflect.ValueOf(target)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("guard: Bind wants a pointer to a struct, not %T", target)
	}
	g, err := New(l, opts...)
	if err != nil {
		return err
	}
	if g.fallback != nil {
		return g.spec.errorf("a Fallback works with guard.Func only, and would be ignored by Bind")
	}
	b := binder{guard: g, seen: make(map[place]bool)}
	if err := b.walk(v.Elem()); err != nil {
		return err
	}
	if len(b.bindings) == 0 {
		return fmt.Errorf("guard: Bind of %T: no field has a guard tag", target)
	}
	for _, f := range b.bindings {
		f.field.Set(f.guarded)
	}
	return nil
}

// binder collects what Bind is going to replace.
type binder struct {
	guard    *Guard
	seen     map[place]bool
	bindings []binding
}

type binding struct{ field, guarded reflect.Value }

// place tells structs apart: by address, and by type as a struct can begin with another.
type place struct {
	address uintptr
	t       reflect.Type
}

func (b *binder) walk(v reflect.Value) error {
	t := v.Type()
	here := place{v.Addr().Pointer(), t}
	if b.seen[here] {
		return nil
	}
	b.seen[here] = true
	for i := range t.NumField() {
		f := t.Field(i)
		if err := b.field(t, f, v.Field(i)); err != nil {
			return fmt.Errorf("guard: Bind of %s: %w", qualified(t, f), err)
		}
		if f.Anonymous && structType(f.Type) != nil {
			if err := b.embedded(v.Field(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// embedded walks an embedded struct. A nil pointer to one has no functions to guard yet, and must not get any later.
func (b *binder) embedded(v reflect.Value) error {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() && hasTags(v.Type().Elem()) {
			return fmt.Errorf("guard: Bind of %v: nil, but its fields have guard tags", v.Type())
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return nil
	}
	return b.walk(v)
}

func hasTags(t reflect.Type) bool {
	for field := range t.Fields() {
		if _, ok, err := lookupTag(field); ok || err != nil {
			return true
		}
	}
	return false
}

// field notes a tagged field for replacement.
func (b *binder) field(t reflect.Type, f reflect.StructField, v reflect.Value) error {
	tag, ok, err := lookupTag(f)
	if err != nil || !ok {
		return err
	}
	switch {
	case !f.IsExported():
		return errors.New("field has a guard tag, but is not exported")
	case !guardable(f.Type):
		return fmt.Errorf("field has a guard tag, but is a %v, not a func(context.Context, Req) (Res, error) "+
			"or a func(context.Context, Req) error", f.Type)
	case v.IsNil():
		return errors.New("function is nil")
	}
	d := declared{name: qualified(t, f)}
	if d.spec, err = parseTag(tag); err != nil {
		return err
	}
	r, err := b.guard.forRequest(f.Type.In(1), d)
	if err != nil {
		return err
	}
	// A copy, as the field is going to hold the result.
	b.bindings = append(b.bindings, binding{v, r.wrap(reflect.ValueOf(v.Interface()))})
	return nil
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

func guardable(t reflect.Type) bool {
	return t.Kind() == reflect.Func && !t.IsVariadic() &&
		t.NumIn() == 2 && t.In(0) == contextType &&
		(t.NumOut() == 1 || t.NumOut() == 2) && t.Out(t.NumOut()-1) == errorType
}

// qualified is "<Struct>.<Field>", or only the field of a struct without a name.
func qualified(t reflect.Type, f reflect.StructField) string {
	if t.Name() == "" {
		return f.Name
	}
	return t.Name() + "." + f.Name
}

// wrap puts r in front of fn, which is guardable.
func (r *Runner) wrap(fn reflect.Value) reflect.Value {
	t := fn.Type()
	last := t.NumOut() - 1
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		results := make([]reflect.Value, t.NumOut())
		for i := range results {
			results[i] = reflect.Zero(t.Out(i))
		}
		ctx, _ := reflect.TypeAssert[context.Context](args[0])
		_, err := r.Run(ctx, requestFacts(args[1].Interface()), func(ctx context.Context) error {
			results = fn.Call([]reflect.Value{reflect.ValueOf(ctx), args[1]})
			err, _ := reflect.TypeAssert[error](results[last])
			return err
		})
		results[last] = reflect.Zero(errorType)
		if err != nil {
			results[last] = reflect.ValueOf(err)
		}
		return results
	})
}
