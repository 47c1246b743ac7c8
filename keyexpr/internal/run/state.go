package run

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"sync"

	"github.com/expr-lang/expr/vm"
)

// The bounds of a run, and what it has used of them. Bounds are in steps and bytes and not in time, since they have to
// be the same on each machine and under each load: a request that makes a key today makes it tomorrow. The cost of a
// step was found by measuring.

// The bounds of one evaluation. Steps and bytes are charged before the work is done, so that an evaluation that is
// refused has not cost more than one that is not: a step is well under 100 ns, and the text under 1 MiB. The numbers
// keep the worst evaluation that was found under 50 ms and 8 MiB, with the race detector off. A key that people write
// takes some tens of steps and a hundred bytes.
const (
	MaxSteps = 200_000 // nodes evaluated, elements visited, and what matching patterns and sorting come to
	MaxBytes = 8 << 20 // text read, made and put into keys, and the memory of lists that are made
	MaxKeys  = 1024    // keys of one list template
)

// State is the memory of one evaluation. It is pooled and never shared. Everything that a run writes is in here. The
// closures and paths that it follows are shared.
type State struct {
	Source
	Ctx   context.Context
	Elems []reflect.Value // of the loops that are under way, the innermost last
	buf   []byte
	steps int
	bytes int

	machine  vm.VM
	fault    error // of the last call that a program has made
	panicked *any  // by facts, in a program
}

var states = sync.Pool{New: func() any { return new(State) }}

// NewState returns a state to be given back with Release. The slots are those of the last
// request, cleared. There are few programs with many roots.
func NewState(ctx context.Context, facts func(root string) (any, error), roots []Root) *State {
	st := states.Get().(*State)
	st.Ctx, st.Facts, st.Roots = ctx, facts, roots
	// Slots that are too many are cut off and not cleared: Release has cleared all that were in use.
	if cap(st.slots) < len(roots) {
		st.slots = make([]slot, len(roots))
	}
	st.slots = st.slots[:len(roots)]
	return st
}

// Release gives the state back with nothing of the request left in it. All of a stack is cleared
// up to its capacity: a value that was popped is still in it.
func (st *State) Release() {
	clear(st.slots)
	if cap(st.Elems) > 0 {
		clear(st.Elems[:cap(st.Elems)])
		st.Elems = st.Elems[:0]
	}
	// One request of a megabyte would otherwise leave a megabyte in the pool for each processor, for
	// keys of fifty bytes.
	if cap(st.buf) > 16*MaxKey {
		st.buf = nil
	}
	st.Facts, st.Request, st.Roots, st.Asking = nil, nil, nil, false
	st.Ctx, st.steps, st.bytes = nil, 0, 0
	st.forget()
	states.Put(st)
}

// Push enters a loop, or goes on to its next element after Pop. Loops nest, and so elements lie
// on a stack.
func (st *State) Push(elem reflect.Value) {
	st.Elems = append(st.Elems, elem)
}

// Pop undoes Push.
func (st *State) Pop() {
	st.Elems = st.Elems[:len(st.Elems)-1]
}

// Spend charges n bytes of text or memory that are about to be read or made. It compares with
// what is left rather than adding up first, as n may be close to the largest int.
func (st *State) Spend(n int) error {
	if n < 0 || n > MaxBytes-st.bytes {
		return ErrBytes
	}
	st.bytes += n
	return nil
}

// Step charges n steps that are about to be taken.
func (st *State) Step(n int) error {
	if n < 0 || n > MaxSteps-st.steps {
		return ErrSteps
	}
	st.steps += n
	return nil
}

// List charges the memory of a list of n values, and a step for each. 24 bytes are an interface
// and what is behind it, mostly.
func (st *State) List(n int) error {
	if n > MaxBytes {
		return ErrBytes
	}
	if err := st.Step(n); err != nil {
		return err
	}
	return st.Spend(24 * n)
}

// Plain returns what v holds, and nil if it holds nothing. An interface around a struct or an
// array is a copy of it, which can be large, and is charged.
func (st *State) Plain(v reflect.Value) (any, error) {
	if !v.IsValid() {
		return nil, nil
	}
	if k := v.Kind(); k == reflect.Struct || k == reflect.Array {
		if err := st.Spend(int(v.Type().Size())); err != nil {
			return nil, err
		}
	}
	return v.Interface(), nil
}

// Sort charges the sorting of n values. A sort compares each of n elements about log n times.
func (st *State) Sort(n int) error {
	if n > MaxSteps {
		return ErrSteps
	}
	// Len is above the logarithm, so that a list of one is charged as well.
	return st.Step(n * bits.Len(uint(n)))
}

// Spent returns the steps and bytes used so far, for tests. Tests hold what is hostile to
// counts, as time depends on the machine.
func (st *State) Spent() (steps, bytes int) { return st.steps, st.bytes }

var (
	// ErrBytes says that the bytes of a request are spent.
	ErrBytes = Faulty("takes or makes too much text")
	// ErrSteps says that its steps are.
	ErrSteps = Faulty("takes too many steps")
)

// Root is what is known of a root at start. It is what is left of keyexpr.Root when the text is
// compiled.
type Root struct {
	Name   string
	Type   reflect.Type // nil for any
	Lookup bool         // the value is looked up by name
	Names  []string     // the names that there are, if Closed
	Closed bool
}

// lookup is what keyexpr.Lookup has. It is an interface, so that this package need not know the
// type of its user.
type lookup interface {
	Find(name string) (string, bool, error)
}

// Source gives the values of the roots that a text uses, and reads each at most once. It reads facts at the latest
// moment. A body that must be read, or a token that must be parsed, costs nothing in a request that does not get so
// far.
type Source struct {
	Facts func(root string) (any, error)
	// Request points to the value of each root, if there are no Facts.
	Request any
	Roots   []Root
	slots   []slot // one a root
	// Asking is true while facts are read, whose panics are not ours to hide.
	Asking bool
}

// slot holds the value of one root. It is not an entry of a map, as there are few roots, and each knows its number.
type slot struct {
	value reflect.Value
	find  lookup // in the place of value for a lookup root
	err   error
	known bool
}

// root returns the slot of the i-th root, filled.
func (s *Source) root(i int) (*slot, error) {
	at := &s.slots[i]
	if at.known {
		return at, at.err
	}
	s.Asking = true
	// Not set by defer: after a panic Asking has to stay true, as that is how the one who recovers
	// knows whose it was.
	at.fill(&s.Roots[i], s.Facts, s.Request)
	s.Asking = false
	return at, at.err
}

// fill asks for the value of a root, by facts or where request points to. An error is kept apart by type from here on, since only
// here is known where it comes from. A value of another type than was declared is a mistake of the adapter's: paths know the
// places of fields in the declared type, and would read others.
func (at *slot) fill(r *Root, facts func(root string) (any, error), request any) {
	at.known = true
	var err error
	if facts == nil {
		at.value, err = target(request)
	} else {
		var v any
		v, err = facts(r.Name)
		at.value = reflect.ValueOf(v)
	}
	if err == nil && at.value.Kind() == reflect.Interface {
		at.value = at.value.Elem()
	}
	if err == nil && r.Lookup {
		ok := false
		if at.value.IsValid() {
			at.find, ok = reflect.TypeAssert[lookup](at.value)
		}
		if !ok {
			err = errors.New("is no Lookup, and was declared as one")
		}
	} else if err == nil {
		at.value, err = r.typed(at.value)
	}
	if err != nil {
		at.value, at.err = reflect.Value{}, &OutsideError{"root " + r.Name, err}
	}
}

// target is the value that request points to.
func target(request any) (reflect.Value, error) {
	p := reflect.ValueOf(request)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return reflect.Value{}, fmt.Errorf("is given by a %T, want a pointer to it", request)
	}
	return p.Elem(), nil
}

// typed returns v, which is invalid for nil, if it may be a value of the root.
func (r *Root) typed(v reflect.Value) (reflect.Value, error) {
	if r.Type == nil || !v.IsValid() {
		return v, nil
	}
	// The comparison comes first as it is nearly always true, and a look at two types costs less than
	// the call.
	if t := v.Type(); t != r.Type && !t.AssignableTo(r.Type) {
		return v, fmt.Errorf("is of type %v, and was declared as %v", t, r.Type)
	}
	return v, nil
}

// look asks a lookup root for the name that p begins with. A lookup may panic as facts may, and is
// let through in the same way.
func (s *Source) look(p *Path) (value string, ok bool, err error) {
	at, err := s.root(p.Root)
	if err != nil {
		return "", false, err
	}
	name, _ := p.Steps[0].By.(string)
	s.Asking = true
	value, ok, err = at.find.Find(name)
	s.Asking = false
	if err != nil {
		return "", false, &OutsideError{"root " + s.Roots[p.Root].Name, err}
	}
	return value, ok, nil
}
