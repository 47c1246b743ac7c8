package spel

import (
	"cmp"
	"reflect"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Lists and maps of a request, and those that an expression has made. Elements of a fact stay values
// of Go until somebody asks for them. Each length is charged before the first element is looked at.

func (l list) len() int {
	if l.of.IsValid() {
		return l.of.Len()
	}
	return len(l.made)
}

// at returns an element. A byte of Java has a sign.
func (l list) at(st *run.State, i int) (any, error) {
	if !l.of.IsValid() {
		return l.made[i], nil
	}
	e := l.of.Index(i)
	if e.Kind() == reflect.Uint8 && l.elem.k == smallK {
		return small(int8(e.Uint())), nil
	}
	return valueOf(st, e, l.elem)
}

// get is List.get and Spring's index. Java throws beyond either end.
func (l list) get(st *run.State, x any) (any, error) {
	i, ok := integer(x)
	if !ok {
		return nil, run.Faulty("asks a list by what is no number")
	}
	if i < 0 || i >= int64(l.len()) {
		return nil, run.Faulty("asks a list of %d elements for number %d", l.len(), i)
	}
	return l.at(st, int(i))
}

// contains ends in an error where equality is in doubt.
func (l list) contains(st *run.State, x any) (any, error) {
	if err := st.Step(2 * l.len()); err != nil {
		return false, err
	}
	for i := range l.len() {
		e, err := l.at(st, i)
		if err != nil {
			return false, err
		}
		if same, err := equals(st, e, x); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// each evaluates body for each element. The steps are charged before it runs, as a projection in a
// projection goes through all elements for each.
func (l list) each(st *run.State, body *code) (any, error) {
	if err := cmp.Or(st.List(l.len()), st.Step(l.len()*body.cost)); err != nil {
		return nil, err
	}
	made := make([]any, l.len())
	for i := range made {
		e, err := l.at(st, i)
		if err != nil {
			return nil, err
		}
		st.Push(goValue(e))
		made[i], err = body.value(st)
		st.Pop()
		if err != nil {
			return nil, err
		}
	}
	return list{made: made}, nil
}

// goValue is an element as paths take it: the value of Go, if it is one. An element without fields is
// pushed as it is, and valueOf knows it again.
func goValue(e any) reflect.Value {
	switch e := e.(type) {
	case object:
		return e.of
	case mapping:
		return e.of
	}
	return reflect.ValueOf(e)
}

// get is the entry of a map, null if there is none. There may be a null in JSON, which is an entry
// to containsKey. A key that is no text finds nothing in Java, for all requests alike.
func (m mapping) get(st *run.State, key any) (x any, there bool, err error) {
	s, ok := key.(string)
	if !ok {
		return nil, false, run.Faulty("asks a map by what is no text")
	}
	v, err := run.Entry(m.of, s)
	if err != nil || !v.IsValid() {
		return nil, m.of.MapIndex(reflect.ValueOf(s).Convert(m.of.Type().Key())).IsValid(), err
	}
	x, err = valueOf(st, v, m.elem)
	return x, true, err
}
