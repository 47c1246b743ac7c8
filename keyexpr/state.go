package keyexpr

import (
	"context"
	"sync"
	"time"

	"github.com/expr-lang/expr/vm"
)

const (
	memoryBudget = 10_000 // elements that one run of an expression may make
	maxSteps     = 10_000 // rounds of all loops of one expansion
	maxTime      = time.Second
	maxBytes     = 4 << 20 // text that the functions of one expansion may make
	maxKeys      = 1024    // keys of one list template
)

// state is what one expansion or evaluation needs. It is pooled and never shared.
type state struct {
	source
	ctx   context.Context
	buf   []byte
	raw   bool           // text in buf must stay as it is
	args  []any          // of the calls that are under way
	env   map[string]any // what the engine sees
	vm    vm.VM
	steps int
	until time.Time // when loops end; zero before the first
	bytes int
}

var states = sync.Pool{New: func() any {
	return &state{env: map[string]any{}, vm: vm.VM{MemoryBudget: memoryBudget}}
}}

func newState(ctx context.Context, facts Facts, roots []usedRoot) *state {
	st := states.Get().(*state)
	st.ctx, st.facts, st.roots = ctx, facts, roots
	if cap(st.slots) < len(roots) {
		st.slots = make([]slot, len(roots))
	}
	st.slots = st.slots[:len(roots)]
	return st
}

// release gives the state back with nothing of the request left in it.
func (st *state) release() {
	clear(st.slots)
	if len(st.env) > 0 {
		clear(st.env)
		clear(st.vm.Variables)
		clear(st.vm.Stack[:cap(st.vm.Stack)])
		st.vm.Stack = st.vm.Stack[:0]
	}
	clear(st.args)
	st.args = st.args[:0]
	if cap(st.buf) > 16*maxKey {
		st.buf = nil
	}
	st.buf = st.buf[:0]
	st.source = source{slots: st.slots}
	st.ctx, st.raw, st.steps, st.bytes, st.until = nil, false, 0, 0, time.Time{}
	states.Put(st)
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
	// Steps differ: one may search a megabyte that a hostile request has sent.
	now := time.Now()
	if st.until.IsZero() {
		st.until = now.Add(maxTime)
	}
	if now.After(st.until) {
		return faulty("takes too long")
	}
	return nil
}
