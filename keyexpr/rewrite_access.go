package keyexpr

import (
	"errors"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Paths are most of what is in keys: req.OrderID, header["X-Tenant"], req.Lines[0].SKU. The
// engine follows them by reflection and by name, for each request, and allocates on the way.
// Here a path is resolved when the program starts, into a root and the indexes of fields, and
// package run follows it in a loop.
//
// Two traps of the engine are closed on the way. A map[string]string has "" for an entry that is
// not there, which would be one key for all requests without it; here it is nil. And what is
// called on a map or a text may be an entry of that name, which a request can fill in; here
// whether a name is a field, an entry or a method is decided by type, at start.

// pathOf returns the path that node is, if it is one. A path is followed by one loop in package
// run, without a closure for each step. The roots that it names are noted as used when it is
// found, also if it goes on in a way that is no path.
func (c *compilation) pathOf(node ast.Node) (*run.Path, bool) {
	if chain, ok := node.(*ast.ChainNode); ok {
		node = chain.Node
	}
	switch n := node.(type) {
	case *ast.IdentifierNode:
		if _, ok := c.roots[n.Value]; !ok {
			return nil, false
		}
		return &run.Path{Root: c.use(n.Value)}, true
	// # is the element of the innermost loop. #index has a name, and is no path: it is no part of the
	// element.
	case *ast.PointerNode:
		return &run.Path{Elem: true}, n.Name == ""
	case *ast.MemberNode:
		p, ok := c.pathOf(n.Node)
		if !ok {
			return nil, false
		}
		steps, ok := c.stepsOf(n)
		if !ok {
			return nil, false
		}
		p.Steps = append(p.Steps, steps...)
		return p, true
	}
	return nil, false
}

// stepsOf returns the steps of one access. Whether it is a field is decided here, by type, and
// not per request: a map that has an entry of the name of a method, or a struct that grows a
// field, can't change what a template reads. Where a type is known only when there is a request,
// the step fetches by name. It still can't call: to the engine, a method and an entry of one
// name are the same thing.
func (c *compilation) stepsOf(n *ast.MemberNode) ([]run.Step, bool) {
	s := run.Step{Src: c.source(n.Node), Optional: n.Optional}
	switch property := n.Property.(type) {
	case *ast.StringNode:
		s.By = property.Value
	case *ast.IntegerNode:
		s.By = property.Value
	case *ast.ConstantNode:
		s.By = property.Value
	default:
		return nil, false
	}
	// A header that is found by a number is refused by the checker, and by named here once more: Find
	// takes nothing but names.
	name, named := s.By.(string)
	if c.isLookup(n.Node) {
		s.Lookup = true
		return []run.Step{s}, named
	}
	// The name of a method must never be read as that of an entry. The type decides for all requests:
	// else a client could send an entry of that name and choose the key.
	if _, method := n.Node.Nature().MethodByName(&c.conf.NtCache, name); method || n.Method {
		return nil, false
	}
	base := n.Node.Nature().Deref(&c.conf.NtCache)
	if base.Kind != reflect.Struct {
		s.Fetch = true
		return []run.Step{s}, true
	}
	// Asked of the checker and not of reflect, so that both agree on which field of two embedded structs
	// is meant: what was type-checked is what will be read.
	index, ok := base.FieldIndex(&c.conf.NtCache, name)
	if !ok || !named {
		return nil, false
	}
	// A field of an embedded struct is several steps. Each follows its pointer, so that an embedded nil
	// is an error with a place, where reflect's FieldByIndex would panic.
	steps := make([]run.Step, len(index))
	for i, x := range index {
		steps[i] = run.Step{Src: s.Src, Optional: s.Optional, Field: x}
	}
	return steps, true
}

// pathCode compiles a path to a value of type t, nil if it is not known. A path may end in nil
// though its type is string: in a ?., a pointer, or a map without the entry. Then the quick
// forms fail with an error of their own, by which a comparison knows to look again.
func (c *compilation) pathCode(p *run.Path, t reflect.Type) *code {
	x := valueCode(1+len(p.Steps)/2, func(st *run.State) (any, error) {
		v, err := p.Follow(&st.Source, st.Elems)
		if err != nil {
			return nil, err
		}
		return st.Plain(v)
	})
	x.path, x.of = p, t
	switch {
	case t == nil:
	case run.LeafOf(t) == run.LeafString:
		x.text = quick(p, reflect.Value.String)
	case t.Kind() == reflect.Bool:
		x.test = quick(p, reflect.Value.Bool)
	// A duration is compared with durations only. As a number, 5 would equal 5ns.
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64 && t != durationType:
		x.num = quick(p, reflect.Value.Int)
	}
	return x
}

// quick is one of the quick forms of a path: what read takes out of the value at its end. It is one
// function for three types because all of them have to ask for nil first, of which reflect would
// panic, or make the text "<invalid Value>" and a key of it.
func quick[T any](p *run.Path, read func(reflect.Value) T) func(*run.State) (T, error) {
	return func(st *run.State) (x T, err error) {
		v, err := p.Follow(&st.Source, st.Elems)
		if err == nil && !v.IsValid() {
			err = run.ErrNoText
		}
		if err != nil {
			return x, err
		}
		return read(v), nil
	}
}

// chain ends where a ?. found nil. That is no error value but a way out of several calls of
// closures, so that it must not leave the chain: a user's function or a hole that saw it would
// take nil for a fault. The way out ends here, so that x?.y.z is nil as a whole if x is. That is
// the engine's rule. Java's has ?. guard one step only, and the table in README.md says so.
func (c *compilation) chain(n *ast.ChainNode) (*code, error) {
	x, err := c.compile(n.Node)
	if err != nil {
		return nil, err
	}
	return valueCode(x.cost, func(st *run.State) (any, error) {
		v, err := x.value(st)
		if errors.Is(err, errChain) {
			return nil, nil
		}
		return v, err
	}), nil
}

// member is an access to what is no plain path: of a result, or by a name or number that is
// computed. Its operands are no parts of the key, but ways to one.
func (c *compilation) member(n *ast.MemberNode) (*code, error) {
	// A text that a name is made of is no part of the key, and escapes in it would look for a header that
	// nobody has sent: header["X-" + req.Kind].
	list, cost, err := c.asIs(n.Node, n.Property)
	if err != nil {
		return nil, err
	}
	base, by := list[0], list[1]
	if c.isLookup(n.Node) {
		return c.lookup(base.path, by, cost), nil
	}
	// The place of a field is found at start here, too. By name, for each request, reflect would go
	// through all fields of the type.
	var steps []run.Step
	if n.Node.Nature().Deref(&c.conf.NtCache).Kind == reflect.Struct {
		steps, _ = c.stepsOf(n)
	}
	src := c.source(n.Node)
	return valueCode(1+cost, func(st *run.State) (any, error) {
		b, err := base.value(st)
		if err != nil {
			return nil, err
		}
		v := run.Indirect(reflect.ValueOf(b))
		if !v.IsValid() {
			if n.Optional {
				return nil, errChain
			}
			return nil, run.Faulty("can't go on: %s is nil", src)
		}
		if len(steps) > 0 {
			p := run.Path{Elem: true, Steps: steps}
			if v, err = p.Follow(nil, []reflect.Value{v}); err != nil {
				return nil, err
			}
			return st.Plain(v)
		}
		key, err := by.value(st)
		if err != nil {
			return nil, err
		}
		// A map is asked by what a pointer points to. Its address would find nothing, and each request
		// would be one without the entry.
		if k := run.Indirect(reflect.ValueOf(key)); k.IsValid() {
			key = k.Interface()
		}
		if v, err = run.Entry(v, key); err != nil {
			return nil, err
		}
		return st.Plain(v)
	}), nil
}

// lookup asks a lookup root for a name that is computed. The name may come from the request:
// header[req.Source]. It is asked for as any other name is, and an adapter refuses one that is
// there twice.
func (c *compilation) lookup(root *run.Path, by *code, cost int) *code {
	name := by.asText()
	return valueCode(1+cost, func(st *run.State) (any, error) {
		s, err := name(st)
		if err != nil {
			return nil, err
		}
		p := run.Path{Root: root.Root, Steps: []run.Step{{Lookup: true, By: s}}}
		v, err := p.Follow(&st.Source, nil)
		if err != nil {
			return nil, err
		}
		return st.Plain(v)
	})
}

// slice is a piece of a text or a list. Bounds beyond its ends are its ends, as with the engine.
// An array is copied, as only what has an address can be sliced, and what an interface holds has
// none. The copy is charged as a whole, since an array can be a megabyte that costs nothing to
// name.
func (c *compilation) slice(n *ast.SliceNode) (*code, error) {
	base, err := c.compile(n.Node)
	if err != nil {
		return nil, err
	}
	bounds := [2]*code{constant(0), constant(nil)}
	for i, b := range []ast.Node{n.From, n.To} {
		if b == nil {
			continue
		}
		if bounds[i], err = c.compile(b); err != nil {
			return nil, err
		}
	}
	return valueCode(1+base.cost+bounds[0].cost+bounds[1].cost, func(st *run.State) (any, error) {
		b, err := base.value(st)
		if err != nil {
			return nil, err
		}
		v := run.Indirect(reflect.ValueOf(b))
		if k := v.Kind(); k != reflect.String && k != reflect.Slice && k != reflect.Array {
			return nil, run.Faulty("takes a piece of what is neither text nor a list")
		}
		var at [2]int
		for i, bound := range bounds {
			x, err := bound.value(st)
			if err != nil {
				return nil, err
			}
			if at[i], err = position(x, v.Len()); err != nil {
				return nil, err
			}
		}
		// Bounds that have crossed make an empty piece. In a hole that is an error, as all that is empty.
		if at[0] > at[1] {
			at[0] = at[1]
		}
		if v.Kind() == reflect.Array {
			if err := st.Spend(int(v.Type().Size())); err != nil {
				return nil, err
			}
			s := reflect.MakeSlice(reflect.SliceOf(v.Type().Elem()), v.Len(), v.Len())
			reflect.Copy(s, v)
			v = s
		}
		return v.Slice(at[0], at[1]).Interface(), nil
	}), nil
}

// position is where a bound of a slice is; nil is the end. A negative one counts from the end.
// What lies beyond is cut back, as with Go's strings in the engine.
func position(x any, length int) (int, error) {
	if x == nil {
		return length, nil
	}
	i, err := run.Integer(x)
	if err != nil {
		return 0, err
	}
	if i < 0 {
		i += int64(length)
	}
	return int(min(max(i, 0), int64(length))), nil
}

// variable is what let has declared. Values lie in slots of the state, by number, and not in a
// map by name.
type variable struct {
	name  string
	slot  int
	is    run.Insight
	value *code
}

// The innermost of several with one name is meant, as in Go.
func (c *compilation) variable(n *ast.IdentifierNode) (*code, error) {
	for _, v := range slices.Backward(c.vars) {
		if v.name == n.Value {
			if v.value.fixed {
				return v.value, nil
			}
			c.seen = v.is
			c.seen.Asks = true // for its slot
			return valueCode(1, func(st *run.State) (any, error) { return st.Vars[v.slot], nil }), nil
		}
	}
	return nil, c.at(n, "unknown name %s", n.Value)
}

// let takes its variable off again behind the body, as the next hole must not see it; the slot
// is used anew. Values of a request don't stay in slots: the state clears them. The engine would
// allow a variable to be used behind the body that it was declared for.
func (c *compilation) let(n *ast.VariableDeclaratorNode) (*code, error) {
	set, err := c.declare(n)
	if err != nil {
		return nil, err
	}
	defer func() { c.vars = c.vars[:len(c.vars)-1] }()
	body, err := c.compile(n.Expr)
	if err != nil {
		return nil, err
	}
	return valueCode(1+set.cost+body.cost, func(st *run.State) (any, error) {
		if _, err := set.value(st); err != nil {
			return nil, err
		}
		return body.value(st)
	}), nil
}

// declare compiles the setting of a variable, which is there until the caller takes it off
// c.vars. What is assigned counts as read where the variable is used, and not where it is
// declared: let x = req.ID; "a" reads nothing.
func (c *compilation) declare(n *ast.VariableDeclaratorNode) (*code, error) {
	before := c.seen
	v, err := c.compile(n.Value)
	if err != nil {
		return nil, err
	}
	slot := len(c.vars)
	c.vars = append(c.vars, variable{n.Name, slot, c.known[n.Value], v})
	c.seen = before // unless the variable is used
	return valueCode(v.cost, func(st *run.State) (any, error) {
		x, err := v.value(st)
		for len(st.Vars) <= slot {
			st.Vars = append(st.Vars, nil)
		}
		st.Vars[slot] = x
		return nil, err
	}), nil
}
