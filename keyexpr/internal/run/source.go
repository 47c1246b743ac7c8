package run

import (
	"fmt"
	"reflect"
)

// Root is what is known of a root at start.
type Root struct {
	Name   string
	Type   reflect.Type // nil for any
	Lookup bool         // the value is looked up by name
	Names  []string     // the names that there are, if Closed
	Closed bool
}

// lookup is what keyexpr.Lookup has.
type lookup interface {
	Find(name string) (string, bool, error)
}

// Source gives the values of the roots that a text uses, and asks for each at most once.
type Source struct {
	Facts func(root string) (any, error)
	Roots []Root
	slots []slot // one a root
	// Asking is true while facts are asked for, whose panics are not ours to hide.
	Asking bool
}

type slot struct {
	value reflect.Value
	find  lookup // in the place of value for a lookup root
	known bool
}

// root returns the slot of the i-th root, filled.
func (s *Source) root(i int) (*slot, error) {
	at := &s.slots[i]
	if at.known {
		return at, nil
	}
	root := &s.Roots[i]
	s.Asking = true
	v, err := s.Facts(root.Name)
	s.Asking = false
	if err == nil {
		err = root.admit(v, at)
	}
	if err != nil {
		return nil, &FactError{root.Name, err}
	}
	at.known = true
	return at, nil
}

// admit puts a value from Facts into a slot, if it is what was promised.
func (r *Root) admit(v any, at *slot) error {
	if r.Lookup {
		find, ok := v.(lookup)
		if !ok {
			return fmt.Errorf("is of type %T, and was declared as a Lookup", v)
		}
		at.find = find
		return nil
	}
	at.value = reflect.ValueOf(v)
	if r.Type == nil || v == nil {
		return nil
	}
	if t := at.value.Type(); t != r.Type && !t.AssignableTo(r.Type) {
		return fmt.Errorf("is of type %T, and was declared as %v", v, r.Type)
	}
	return nil
}

// look asks a lookup root for a name.
func (s *Source) look(i int, name string) (value string, ok bool, err error) {
	at, err := s.root(i)
	if err != nil {
		return "", false, err
	}
	s.Asking = true
	value, ok, err = at.find.Find(name)
	s.Asking = false
	if err != nil {
		return "", false, &FactError{s.Roots[i].Name, err}
	}
	return value, ok, nil
}
