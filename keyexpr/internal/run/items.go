package run

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
)

// Lists. A program may have one list that makes a key of each element, and any number of lists
// that are joined into one value. Both go over their elements in the same way, and both charge
// for all of it before they begin.

// Items are the values of a list. Parts of an element are made like those of a key, one element
// at a time, so that a list of keys needs no memory but the keys. A list is rendered at the end
// of the stack of elements, so that a list within a list sees both.
type Items struct {
	Src  string
	List func(st *State) (reflect.Value, error) // nil for a single value
	// Item is what a value is made of, with the element of List at the end of State.Elems.
	Item []Part
}

// Weigh returns what parts cost each time they are made: steps, and bytes of literals. A list
// within charges by itself. Costs are known at start for everything but lists within, and so a
// loop can charge all of its rounds before the first.
func Weigh(parts []Part) (steps, bytes int) {
	for i := range parts {
		steps += 1 + parts[i].Cost
		if parts[i].Literal() {
			bytes += len(parts[i].Text)
		}
	}
	return steps, bytes
}

// open evaluates the list, and charges all of its elements before the first is made, each with some
// more bytes: a list of a million must not be found too long by making half of it. most is not the
// budget. It is what makes an error that says what is wrong: a thousand keys are no mistake of a
// client, but of a template that was meant for shorter lists.
//
// It returns the list and the number of rounds that the caller has to make, with push and pop around
// each. A callback would be shorter, and would take more memory than the keys.
func (it *Items) open(st *State, most, more int) (list reflect.Value, n int, err error) {
	if it.List == nil {
		return list, 1, nil
	}
	if list, err = it.List(st); err != nil {
		return list, 0, err
	}
	// Nil is told from empty, since they have different causes: a field that was not filled in, and a
	// request with no lines. The first has a remedy in the template.
	if list = Indirect(list); !list.IsValid() {
		return list, 0, ErrNil
	}
	if k := list.Kind(); k != reflect.Slice && k != reflect.Array {
		return list, 0, Faulty("is no list, but of type %v", list.Type())
	}
	// The bound on keys comes before that on steps, though both hold: 1025 keys cost few steps, but
	// each is a lock that Redis has to hold, and that somebody has to renew and release.
	if n = list.Len(); n > most {
		return list, 0, Faulty("makes more than %d keys", most)
	}
	steps, bytes := Weigh(it.Item)
	return list, n, st.Times(n, 1+steps, bytes+more)
}

// push enters the i-th round over a list, if there is one.
func (it *Items) push(st *State, list reflect.Value, i int) {
	if it.List != nil {
		st.Push(Tame(list.Index(i)))
	}
}

func (it *Items) pop(st *State) {
	if it.List != nil {
		st.Pop()
	}
}

// expandItems renders what stands before and behind the list once, whatever the length of the
// list. Keys are sorted, so that two requests with the same elements in another order take their
// locks in one order, and can't wait for each other. Equal keys are one key. A request that has
// one product on two lines would otherwise wait for itself.
func (p *Program) expandItems(st *State, keys []string, src *string) (_ []string, err error) {
	if st.buf, err = st.parts(st.buf[:0], p.Parts[:p.At], src); err != nil {
		return nil, BlameHole(*src, err)
	}
	before := len(st.buf)
	if st.buf, err = st.parts(st.buf, p.Parts[p.At:], src); err != nil {
		return nil, BlameHole(*src, err)
	}
	var behind []byte
	if len(st.buf) > before {
		// A copy, as the elements are rendered over the place where it stands.
		behind = bytes.Clone(st.buf[before:])
	}
	start := len(keys)
	for i := range p.Items {
		it := &p.Items[i]
		*src = it.Src
		// What the lists before have made counts, so that ten lists in one template have one bound. What
		// the caller had in keys does not: a guard of several templates bounds itself.
		list, n, err := it.open(st, MaxKeys-len(keys)+start, 0)
		if err != nil {
			return nil, BlameHole(it.Src, err)
		}
		keys = slices.Grow(keys, n)
		for i := range n {
			it.push(st, list, i)
			key, err := p.item(st, it, before, behind)
			it.pop(st)
			if err != nil {
				return nil, BlameHole(it.Src, err)
			}
			keys = append(keys, key)
		}
	}
	if len(keys) == start {
		return nil, BlameHole(*src, ErrEmpty)
	}
	// Only the new ones are sorted. The caller's own stand in an order that this package knows nothing
	// about.
	slices.Sort(keys[start:])
	return append(keys[:start], slices.Compact(keys[start:])...), nil
}

// item puts an element between what is before it and what is behind. The buffer keeps the
// beginning, and is cut back to it for the next element. An error in an element says that it is
// one, since the source names the list.
func (p *Program) item(st *State, it *Items, before int, behind []byte) (string, error) {
	src := ""
	key, err := st.parts(st.buf[:before], it.Item, &src)
	// Each part has refused what is empty, but an item may have no parts that make anything. The empty
	// key is one that all programs share.
	if err == nil && len(key)+len(behind) == 0 {
		err = ErrEmpty
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		err = Faulty("has an element that %s", f.Reason)
	}
	if err != nil {
		return "", err
	}
	key = append(key, behind...)
	st.buf = key
	if len(key) > MaxKey {
		// The digest reads all of the key once more, for each element: a thousand elements behind one
		// text of a megabyte would be a gigabyte of SHA-256.
		if err := st.Spend(len(key)); err != nil {
			return "", err
		}
		if key, err = p.shorten(key); err != nil {
			return "", err
		}
	}
	return string(key), nil
}
