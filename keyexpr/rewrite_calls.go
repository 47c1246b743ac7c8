package keyexpr

import (
	"reflect"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm/runtime"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Calls are of three kinds. Our own functions have taken the place of nearly all of the
// engine's, since those neither count nor refuse. A user's function is called through package
// run, which copies what it gets. A method of the request's own types is called as it is, and is
// checked at start to be one that only tells something.
//
// Arguments are evaluated from left to right, before the call, but for those of or, which are
// not looked at behind one that is never empty.

// A callee that is no name is a method, since nothing else is left by the rules.
func (c *compilation) call(n *ast.CallNode) (*code, error) {
	if name, ok := n.Callee.(*ast.IdentifierNode); ok {
		return c.host(n, name.Value)
	}
	return c.method(n)
}

// host calls one of our functions or of the user's. join in a key is put together from parts,
// which keeps its values apart; in a test, it is the function. A user's function counts as
// reading the request if it takes a context: that is how claim("sub") gets at the token. What it
// makes of its arguments is not known, as it is for requests, and may not be ready at start.
func (c *compilation) host(n *ast.CallNode, name string) (*code, error) {
	h, ok := c.hosts[name]
	if !ok {
		return nil, c.at(n, "%s is not a function", name)
	}
	if name == "join" && c.plain == 0 && !c.cond {
		return c.together(n)
	}
	compile := c.compileAll
	if h.user != nil || name == "now" {
		if err := c.ask(); err != nil {
			return nil, err
		}
	}
	if h.user != nil {
		c.seen.Differs = h.user.Contextual()
		compile = func(nodes []ast.Node) ([]*code, int, error) { return c.asIs(nodes...) }
	}
	if name == orName {
		return c.or(n, h)
	}
	c.raw = c.raw || name == "raw"
	args, cost, err := compile(n.Arguments)
	if err != nil {
		return nil, err
	}
	// Only an argument that is a text for sure goes without an interface. One of any may be a number,
	// for which the function has a sentence.
	if h.text != nil && args[0].text != nil {
		return mapped(args[0], h.text, 1+cost), nil
	}
	return arguments(args, 1+cost, h.call), nil
}

// or compiles the function or, whose arguments are not looked at behind one that is never empty.
// Arguments behind one that is never empty are not compiled. So they don't count as read, and a
// mistake in them is found by the checker, which has seen them all.
func (c *compilation) or(n *ast.CallNode, h *hostFunc) (*code, error) {
	var args []*code
	cost := 1
	for _, arg := range n.Arguments {
		x, err := c.compile(arg)
		if err != nil {
			return nil, err
		}
		args, cost = append(args, x), cost+x.cost
		if x.fails || x.fixed && !isEmpty(x.constant) {
			break
		}
	}
	if len(args) == 1 {
		return args[0], nil
	}
	return arguments(args, cost, h.call), nil
}

// mapped applies a function from text to text. A path through one such function is followed by
// package run without any closure. lower(req.Tenant) is the one thing that people write around a
// path.
func mapped(arg *code, f func(string) string, cost int) *code {
	x := textCode(cost, func(st *run.State) (string, error) {
		s, err := arg.text(st)
		if err == nil {
			err = st.Spend(len(s))
		}
		if err != nil {
			return "", err
		}
		return f(s), nil
	})
	if p := arg.path; p != nil {
		x.from, x.via = p, f
	}
	return x
}

// arguments evaluates arguments and calls f with them. They lie on a stack in the state, so that
// calls need no memory. The stack is cut back by its own length and not popped, as an argument
// may be a call itself. What was on it is cleared at once: a pooled state must not keep a
// request's values alive.
func arguments(args []*code, cost int, f callFunc) *code {
	return valueCode(cost, func(st *run.State) (any, error) {
		// An error leaves on the stack what was pushed. That does no harm where evaluation goes on, as
		// behind a chain: each call has its own bottom, and Release clears all of the stack.
		bottom := len(st.Args)
		for _, arg := range args {
			v, err := arg.value(st)
			if err != nil {
				return nil, err
			}
			st.Args = append(st.Args, v)
		}
		v, err := f(st, st.Args[bottom:])
		clear(st.Args[bottom:])
		st.Args = st.Args[:bottom]
		return v, err
	})
}

// method calls a method of the request's own types. They have no arguments and run with the
// values as they are, so that nothing in a template can make them do anything but tell. A method
// on a nil pointer is called as Go would call it, and may panic. That is an error of the request
// with the place in it.
func (c *compilation) method(n *ast.CallNode) (*code, error) {
	m := n.Callee.(*ast.MemberNode) // or it would have been refused
	name := m.Property.(*ast.StringNode).Value
	if err := c.ask(); err != nil {
		return nil, err
	}
	list, cost, err := c.asIs(m.Node)
	if err != nil {
		return nil, err
	}
	base := list[0]
	return valueCode(1+cost, func(st *run.State) (any, error) {
		v, err := base.value(st)
		if err != nil {
			return nil, err
		}
		// Without the question mark a nil pointer is called: a method may well be made for one, as the getters
		// of protobuf messages are.
		if m.Optional && runtime.IsNil(v) {
			return nil, errChain
		}
		return run.CallMethod(v, name, m.Optional)
	}), nil
}

// builtin calls one of the engine's functions. Those that keys may use are our own code. The
// engine's own are left for conditions: dates, floats, sums. What they go through is weighed
// before, as they count nothing, and pointers are followed for them, as they don't. Some of them
// panic about a wrong argument, with its value in the text: float("secret") must not put it into
// a log. So the value is left out.
func (c *compilation) builtin(n *ast.BuiltinNode) (*code, error) {
	if loop, ok := loops[n.Name]; ok {
		return c.loop(n, loop)
	}
	args, cost, err := c.compileAll(n.Arguments)
	if err != nil {
		return nil, err
	}
	if f, ok := listFuncs[n.Name]; ok {
		return arguments(args, 1+cost, f), nil
	}
	if test, ok := textTests[n.Name]; ok {
		return c.textTest(args, cost, test), nil
	}
	f := builtin.Builtins[builtin.Index[n.Name]]
	return arguments(args, 1+cost, func(st *run.State, args []any) (_ any, err error) {
		defer func() {
			if r := recover(); r != nil {
				err = run.Faulty("gives %s what it does not take", n.Name)
			}
		}()
		for i, x := range args {
			if err := weigh(st, x); err != nil {
				return nil, err
			}
			if k := reflect.TypeOf(x); k != nil && k.Kind() == reflect.Pointer {
				if args[i], err = st.Plain(run.Indirect(reflect.ValueOf(x))); err != nil {
					return nil, err
				}
			}
		}
		switch {
		case f.Fast != nil:
			return f.Fast(args[0]), nil
		case f.Func != nil:
			return f.Func(args...)
		}
		v, _, err := f.Safe(args...)
		return v, err
	}), nil
}

// basicKey leaves a key of a map's own type as it is. A map[Status]T is asked by a Status as it
// is, and by anything else as what it is made of. What is no map has no such type: get takes a
// struct as well.
func basicKey(v reflect.Value, x any) any {
	if v.Kind() == reflect.Map && reflect.TypeOf(x) == v.Type().Key() {
		return x
	}
	return basic(x)
}

// methodVisitor refuses, now that types are known, calls that may have effects and lookup roots
// that are not looked up. Both need what only the last run of the checker has found out.
type methodVisitor struct {
	c      *compilation
	err    error
	roots  []ast.Node
	looked map[ast.Node]bool
}

// Visit sees a lookup root before it sees whether it is looked up: parents come after their
// children. So roots are noted, and judged at the end. The name of a root alone is fine in
// header.Tenant and wrong in len(header), and the node looks the same.
func (v *methodVisitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.CallNode:
		if member, ok := n.Callee.(*ast.MemberNode); ok && v.err == nil {
			v.err = v.c.checkMethod(n, member)
		}
	case *ast.IdentifierNode:
		if v.c.isLookup(n) {
			v.roots = append(v.roots, n)
		}
	case *ast.MemberNode:
		if v.c.isLookup(n.Node) {
			v.looked[n.Node] = true
		}
	}
}

// checkCalls applies methodVisitor to a tree.
func (c *compilation) checkCalls(root *ast.Node) error {
	v := methodVisitor{c: c, looked: map[ast.Node]bool{}}
	ast.Walk(root, &v)
	for _, n := range v.roots {
		if !v.looked[n] && v.err == nil {
			name := n.String()
			v.err = c.at(n, onlyLookedUp, name, name, name)
		}
	}
	return v.err
}

const (
	onlyTelling  = "only methods without arguments and with a result can be called"
	onlyLookedUp = "%s is looked up by name, as in %s.name or %s[\"name\"]"
)

// checkMethod lets through the methods that only tell something: without arguments and with one
// result. A method is code of the program, which a template may call only to be told something.
// With arguments it could be made to do something: account.Withdraw(100). The engine would also
// call a function in a field or in an entry of a map, which a request may have filled.
func (c *compilation) checkMethod(call *ast.CallNode, m *ast.MemberNode) error {
	if m.Node.Nature().IsUnknown(&c.conf.NtCache) {
		return c.at(call, "methods need a type that is known at start")
	}
	name, _ := m.Property.(*ast.StringNode)
	if name == nil {
		return c.at(call, "the name of a method must be written out")
	}
	if _, ok := m.Node.Nature().MethodByName(&c.conf.NtCache, name.Value); !ok {
		return c.at(call, "%s of %v is no method: a function in a field or an entry can't be called", name.Value, m.Node.Type())
	}
	if on := m.Node.Type(); name.Value == "String" && run.IsMessage(on) { // which has other blanks in each build, and a text for nil
		return c.at(call, "the String of a message, %v, is for people: name one of its fields", on)
	}
	t := m.Nature().Type
	if t == nil || t.Kind() != reflect.Func {
		return nil
	}
	result := t.NumOut() == 1 || t.NumOut() == 2 && t.Out(1) == reflect.TypeFor[error]()
	if !result || len(call.Arguments) > 0 {
		return c.at(call, onlyTelling)
	}
	return nil
}
