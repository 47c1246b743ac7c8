package adapter

import (
	"reflect"

	"github.com/latchkey-go/latchkey/guard"
)

// A Field is one with a guard tag, in a struct that an adapter binds.
type Field struct {
	// Path leads to it, as in "Orders.Pay".
	Path string
	// Tag has all of its tags.
	Tag reflect.StructTag
	// Type is its type.
	Type reflect.Type
	// Value is what it holds: no nil. CheckFields has none.
	Value reflect.Value
	// Guard is the one of BindFields with what the tag says.
	Guard *guard.Guard
}

// BindFields is guard.Bind for adapters, whose functions are of other types: wrap returns what a field is to hold in place of
// its value. All else is as in Bind.
func BindFields(g *guard.Guard, target any, wrap func(Field) (reflect.Value, error)) error {
	return g.Adapter().BindFields(target, func(path string, f reflect.StructField, v reflect.Value, tagged *guard.Guard) (reflect.Value, error) {
		return wrap(Field{path, f.Tag, f.Type, v, tagged})
	})
}

// CheckFields reports the mistakes that guard.Bind would find in a struct of type t, or in a pointer to one, as far as
// they depend on types and tags and not on values. It is for tools, as CheckRequest is. With check, it reports the
// mistakes that BindFields would find, and calls check for each tagged field.
func CheckFields(g *guard.Guard, t reflect.Type, check func(Field) error) error {
	if check == nil {
		return g.Adapter().CheckFields(t, nil)
	}
	return g.Adapter().CheckFields(t, func(path string, f reflect.StructField, v reflect.Value, tagged *guard.Guard) (reflect.Value, error) {
		return v, check(Field{path, f.Tag, f.Type, v, tagged})
	})
}
