package keyexpr

import (
	"context"
	"reflect"
	"sync"

	"github.com/expr-lang/expr/vm"
)

const (
	memoryBudget = 10_000  // elements that one run of an expression may make
	maxSteps     = 10_000  // rounds of all loops of one expansion
	maxBytes     = 4 << 20 // text that the functions of one expansion may make
	maxKeys      = 1024    // keys of one list template
)

// state is what one expansion or evaluation needs. It is pooled and never shared.
type state struct {
	ctx    context.Context
	facts  Facts
	values []any // of the roots, as far as asked for
	asked  []bool
	asking bool // in Facts, whose panics are not ours to hide
	buf    []byte
	raw    bool           // text in buf must stay as it is
	args   []any          // of the calls that are under way
	env    map[string]any // what the engine sees
	vm     vm.VM
	steps  int
	bytes  int
}

var states = sync.Pool{New: func() any {
	return &state{env: map[string]any{}, vm: vm.VM{MemoryBudget: memoryBudget}}
}}

func newState(ctx context.Context, facts Facts, roots int) *state {
	st := states.Get().(*state)
	st.ctx, st.facts = ctx, facts
	if cap(st.values) < roots {
		st.values, st.asked = make([]any, roots), make([]bool, roots)
	}
	st.values, st.asked = st.values[:roots], st.asked[:roots]
	return st
}

// release gives the state back with nothing of the request left in it.
func (st *state) release() {
	clear(st.values)
	clear(st.asked)
	clear(st.env)
	clear(st.args)
	st.args = st.args[:0]
	clear(st.vm.Variables)
	clear(st.vm.Stack[:cap(st.vm.Stack)])
	st.vm.Stack = st.vm.Stack[:0]
	if cap(st.buf) > 16*maxKey {
		st.buf = nil
	}
	st.buf = st.buf[:0]
	st.ctx, st.facts, st.asking, st.raw, st.steps, st.bytes = nil, nil, false, false, 0, 0
	states.Put(st)
}

// value returns the value of the i-th root of a template, asking for it once.
func (st *state) value(i int, root *usedRoot) (any, error) {
	if st.asked[i] {
		return st.values[i], nil
	}
	st.asking = true
	v, err := st.facts(root.name)
	st.asking = false
	if err != nil {
		return nil, &factError{root.name, err}
	}
	if v, err = root.admit(v); err != nil {
		return nil, &factError{root.name, err}
	}
	st.values[i], st.asked[i] = v, true
	return v, nil
}

// spend counts n bytes of text that a function is about to make.
func (st *state) spend(n int) error {
	if n < 0 || n > maxBytes-st.bytes {
		return faulty("makes too much text")
	}
	st.bytes += n
	return nil
}

// step counts a round of a loop.
func (st *state) step() error {
	if st.steps++; st.steps > maxSteps {
		return faulty("takes too many steps")
	}
	return nil
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
