package run

import (
	"bytes"
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
		return nil, BlameHole(*src, err)
	}
	before := len(st.buf)
	if st.buf, err = st.parts(st.buf, p.Parts[p.At:], src); err != nil {
		return nil, BlameHole(*src, err)
	}
	behind := bytes.Clone(st.buf[before:]) // as the elements are rendered over the place where it stands
	*src = p.Items.Src
	list, err := p.Items.open(st)
	if err != nil {
		return nil, BlameHole(*src, err)
	}
	start := len(keys)
	keys = slices.Grow(keys, list.Len())
	for i := range list.Len() {
		st.Push(Tame(list.Index(i)))
		key, err := p.item(st, before, behind)
		st.Pop()
		if err != nil {
			return nil, BlameHole(*src, err)
		}
		keys = append(keys, key)
	}
	slices.Sort(keys[start:])
	return append(keys[:start], slices.Compact(keys[start:])...), nil
}

// item puts an element between what is before it and what is behind.
func (p *Program) item(st *State, before int, behind []byte) (string, error) {
	src := ""
	key, err := st.parts(st.buf[:before], []Part{p.Items.Item}, &src)
	if f, ok := errors.AsType[*Fault](err); ok {
		err = Faulty("has an element that %s", f.Reason)
	}
	if err != nil {
		return "", err
	}
	key = append(key, behind...)
	st.buf = key
	if len(key) <= MaxKey {
		return string(key), nil
	}
	// The digest reads all of the key once more, for each element.
	if err = st.Spend(len(key)); err == nil {
		key, err = p.shorten(key)
	}
	return string(key), err
}
