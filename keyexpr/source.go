package keyexpr

import "reflect"

// source gives the values of the roots that a template uses, and asks for each at most once.
type source struct {
	facts  Facts
	roots  []usedRoot
	slots  []slot // one a root
	asking bool   // in Facts, whose panics are not ours to hide
}

type slot struct {
	value any
	known bool
}

// value returns the value of the i-th root.
func (s *source) value(i int) (any, error) {
	if s.slots[i].known {
		return s.slots[i].value, nil
	}
	root := &s.roots[i]
	s.asking = true
	v, err := s.facts(root.name)
	s.asking = false
	if err != nil {
		return nil, &factError{root.name, err}
	}
	if v, err = root.admit(v); err != nil {
		return nil, &factError{root.name, err}
	}
	s.slots[i] = slot{v, true}
	return v, nil
}

// usedRoot is a root that a template names.
type usedRoot struct {
	name string
	Root
}

// admit checks that a value from Facts is what was promised.
func (r *usedRoot) admit(v any) (any, error) {
	if r.lookup {
		switch v := v.(type) {
		case Lookup:
			return v, nil
		case func(string) (string, bool):
			return Lookup(v), nil
		}
		return nil, errWrongFact(v, reflect.TypeFor[Lookup]())
	}
	if r.typ == nil || v == nil || reflect.TypeOf(v) == r.typ {
		return v, nil
	}
	if !reflect.TypeOf(v).AssignableTo(r.typ) {
		return nil, errWrongFact(v, r.typ)
	}
	return v, nil
}
