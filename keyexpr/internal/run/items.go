package run

import (
	"errors"
	"reflect"
	"slices"
)

// Lists. A program may have one list that makes a key of each element. It charges for all of them before the first.

// Items are the elements of a list, each of which makes a key.
type Items struct {
	Src  string
	List func(st *State) (reflect.Value, error)
	Item Part // with the element at the end of State.Elems
}

// open evaluates the list. A thousand keys are no mistake of a client, but of a template that was meant for shorter lists, and
// so its bound comes first.
func (it *Items) open(st *State) (list reflect.Value, err error) {
	if list, err = it.List(st); err != nil {
		return list, err
	}
	list = Indirect(list)
	switch k := list.Kind(); {
	case !list.IsValid():
		return list, ErrNil
	case k != reflect.Slice && k != reflect.Array:
		return list, Faulty("is no list, but of type %v", list.Type())
	case list.Len() == 0:
		return list, ErrEmpty
	case list.Len() > MaxKeys:
		return list, Faulty("makes more than %d keys", MaxKeys)
	}
	return list, st.Step(list.Len() * (2 + it.Item.Cost))
}

// expandItems renders what stands before and behind the list once. Keys are sorted, so that two requests with the same
// elements in another order can't wait for each other, and equal keys are one.
func (p *Program) expandItems(st *State, keys []string, src *string) (_ []string, err error) {
	if st.buf, err = st.parts(st.buf[:0], p.Parts[:p.At], src); err != nil {
		return nil, err
	}
	before := string(st.buf)
	if st.buf, err = st.parts(st.buf[:0], p.Parts[p.At:], src); err != nil {
		return nil, err
	}
	behind := string(st.buf)
	*src = p.Items.Src
	list, err := p.Items.open(st)
	if err != nil {
		return nil, err
	}
	start, item := len(keys), []Part{p.Items.Item}
	keys = slices.Grow(keys, list.Len())
	for i := range list.Len() {
		st.Push(Tame(list.Index(i)))
		key, err := st.parts(append(st.buf[:0], before...), item, src)
		st.Pop()
		if f, ok := errors.AsType[*Fault](err); ok {
			err = Faulty("has an element that %s", f.Reason)
		}
		if err != nil {
			return nil, err
		}
		st.buf = append(key, behind...)
		text, err := p.finish(st, st.buf)
		if err != nil {
			return nil, err
		}
		keys = append(keys, text)
	}
	slices.Sort(keys[start:])
	return append(keys[:start], slices.Compact(keys[start:])...), nil
}
