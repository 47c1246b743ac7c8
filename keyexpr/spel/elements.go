package spel

import (
	"reflect"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// What has elements. It takes the nodes {…}, .?[…], .^[…], .$[…] and .![…], and gives code whose
// value is a list, or one of its elements; below that stand the two ways in which lists and maps
// are read. A list is one of a fact, whose elements stay values of Go until somebody asks for
// them, or one that an expression has made. Both are charged before the first element is looked
// at: their length is the request's to choose, and what is done for each element is the
// annotation's.

// list has the type that all its elements have, so that {1, 42} is known to hold Integers; one
// Long among them, and equals decides by each value. It is what between and contains are given,
// and sometimes a key of several parts. InlineList is an unmodifiable List of what its elements
// come to, each boxed by its own type. {1, 42} holds Integers. Asking it for a Long finds
// nothing, ever, and a key that branches on the answer takes one branch for all requests.
func (c *compiler) list(n *node) *code {
	t, cost := typ{k: listK, elem: &typ{}}, 1
	items := make([]*code, len(n.args))
	for i, a := range n.args {
		items[i] = c.compile(a)
		cost += items[i].cost
		if i == 0 {
			t.elem = &items[i].typ
		} else {
			elem := join(*t.elem, items[i].typ)
			t.elem = &elem
		}
	}
	return &code{typ: t, cost: cost, value: func(st *run.State) (any, error) {
		if err := st.List(len(items)); err != nil {
			return nil, err
		}
		made := make([]any, len(items))
		for i, x := range items {
			var err error
			if made[i], err = x.value(st); err != nil {
				return nil, err
			}
		}
		return list{made: made}, nil
	}}
}

// overElements is a selection or projection. The type of an element is noted while the body is
// compiled, so that a property of it is checked as any other is. Selection and Projection take a
// Map as well, and go through its entries. HashMap has them in an order that changes with its
// size. Two equal requests would make two keys, or lock two lists in two orders.
func (c *compiler) overElements(n *node) *code {
	base := c.compile(n.args[0])
	elem := typ{}
	switch base.typ.k {
	case listK:
		elem = *base.typ.elem
	case anyK:
	case mapK:
		c.fail(n, "entries of a map come in no order: name one")
	default:
		c.fail(n, "%s has no elements", describe(base.typ))
	}
	body := c.inLoop(n.args[0], n.args[1], elem)
	out := typ{k: listK, elem: &elem}
	switch {
	case n.kind == kindProject:
		out.elem = &body.typ
	case n.text != "?":
		out = elem
	}
	if n.kind == kindSelect {
		c.wantBool(n.args[1], body)
	}
	x := c.after(n, base, out, func(st *run.State, v any) (any, error) {
		l, ok := v.(list)
		if !ok {
			return nil, run.Faulty("has a value that is no list where one is wanted")
		}
		return choose(st, n, l, body)
	})
	x.cost += body.cost
	return x
}

// choose evaluates body for the elements of a list. A selection of the last element goes from
// the end, as it stops where it finds one. An error in an element that Spring does not look at
// must not be one here. The steps of the body are charged for each element before it runs. 64
// KiB of JSON can hold thirty thousand elements, and a projection in a projection goes through
// all of them for each. A budget that is only looked at afterwards would be too late.
func choose(st *run.State, n *node, l list, body *code) (any, error) {
	made := []any{}
	for i := range l.len() {
		if err := st.Step(1 + body.cost); err != nil {
			return nil, err
		}
		if err := st.Spend(24); err != nil {
			return nil, err
		}
		// Selection goes through a list once for ^ and from its end for $, and stops at what it finds.
		if n.kind == kindSelect && n.text == "$" {
			i = l.len() - 1 - i
		}
		e, err := l.at(st, i)
		if err != nil {
			return nil, err
		}
		if l.of.IsValid() {
			st.Push(l.of.Index(i))
		} else {
			st.Push(goValue(e))
		}
		var v any
		holds := false
		if n.kind == kindProject {
			v, err = body.value(st)
		} else {
			holds, err = test(st, body)
		}
		st.Pop()
		switch {
		case err != nil:
			return nil, err
		case n.kind == kindProject:
			made = append(made, v)
		case holds && n.text != "?":
			return e, nil
		case holds:
			made = append(made, e)
		}
	}
	if n.kind == kindSelect && n.text != "?" {
		return nil, nil
	}
	return list{made: made}, nil
}

// goValue is a value of Java as one of Go, for paths that start at an element. A path through an
// element starts at the value of Go, if there is one. What an expression has made has no fields.
// Elements of a list that was made come as values of Java. They are pushed as they are, and
// valueOf knows them again, so that #this in a projection of a projection keeps its type.
func goValue(x any) reflect.Value {
	switch x := x.(type) {
	case object:
		return x.of
	case mapping:
		return x.of
	case list:
		if x.of.IsValid() {
			return x.of
		}
	}
	return reflect.ValueOf(x)
}

func (l list) len() int {
	if l.of.IsValid() {
		return l.of.Len()
	}
	return len(l.made)
}

// A byte of Java has a sign. Go's byte is unsigned. 0xff in a key is -1 in Java, where a program
// in Go would write 255: two keys for one digest.
func (l list) at(st *run.State, i int) (any, error) {
	if l.of.IsValid() {
		e := l.of.Index(i)
		if e.Kind() == reflect.Uint8 && l.elem.k == smallK {
			return small(int8(e.Uint())), nil
		}
		return valueOf(st, e, l.elem)
	}
	return l.made[i], nil
}

// get is the element that stands at x, as List.get and Indexer take it. Java throws beyond
// either end, and so does no index wrap around or count from the end. Spring can grow a list on
// access (SpelParserConfiguration.autoGrowCollections), which is off unless asked for, and would
// change the request.
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

// get is the entry of a map, null if there is none. A key whose value is null is there, as
// containsKey and getOrDefault say. Go's map of texts has no null. JSON's has, and {"k": null}
// answers true to containsKey and null to get, whatever the default is that getOrDefault was
// given.
func (m mapping) get(st *run.State, key string) (any, bool, error) {
	v, err := run.Entry(m.of, key)
	if err != nil || !v.IsValid() {
		return nil, m.of.MapIndex(reflect.ValueOf(key).Convert(m.of.Type().Key())).IsValid(), err
	}
	x, err := valueOf(st, v, m.elem)
	return x, true, err
}

// find goes on behind what is not equal, and ends in an error where equality is in doubt: which
// element comes first is part of the answer. A list of a million is charged before the first
// element is compared. ArrayList.indexOf and Arrays.asList(…).indexOf call o.equals(element) for
// the sought object, and both of our sides have the same answer for it, as equals is symmetric
// for all types that are let through.
func find(st *run.State, l list, x any) (int, error) {
	if err := st.Step(2 * l.len()); err != nil {
		return 0, err
	}
	for i := range l.len() {
		e, err := l.at(st, i)
		if err != nil {
			return 0, err
		}
		if same, err := equals(st, e, x); same || err != nil {
			return i, err
		}
	}
	return -1, nil
}
