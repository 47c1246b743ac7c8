package keyexpr

import (
	"errors"
	"reflect"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// The engine would compile a tree to the code of a machine with a stack. That machine has no
// idea of what an instruction costs: one of them may add two numbers or sort a million texts.
// Here each node becomes a closure over those of its operands, which charges the state of the
// request before it works. What the closures mean is what the engine means, and
// TestExpressionsMeanWhatTheyMeanToTheEngine and TestRandomConditions hold them to it; where
// they differ on purpose, TestExpressionsThatTheEngineReadsOtherwise says so.
//
// A closure has up to four forms: as a value, a text, a test and a number. The last three spare
// the interface that the first one needs, and with it an allocation for each value.

// code is a compiled node. value is always there. The others do the same for nodes whose type is
// known to be that at start: they spare the memory that an interface takes. Closures are what is
// left of a node. They are several times as fast as the engine's machine for what is in keys,
// which is short, and they can charge the budget where work is done: the machine counts neither
// bytes nor rounds.
//
// A closure is shared by all requests. It must not write to a variable outside of itself: what a
// run has to keep is in its State. One that did mixed up the errors of two requests, and
// TestManyRequestsAtOnce is there to find the next one.
type code struct {
	cost  int // steps of one evaluation
	path  *run.Path
	of    reflect.Type        // what the path comes to; nil if it is not known
	from  *run.Path           // if it is what
	via   func(string) string // makes of the text there
	value func(st *run.State) (any, error)
	text  func(st *run.State) (string, error)
	test  func(st *run.State) (bool, error)
	num   func(st *run.State) (int64, error)

	fixed    bool // it is constant for all requests
	constant any
	fails    bool // in a trial, in its worlds
}

// errChain is how a ?. leaves the chain that it stands in. An error is the one thing that all
// closures on the way pass on without looking at it.
var errChain = errors.New("nil in a chain")

// compile makes a closure of a node, and notes what is known of it. The note is made on the way
// up, from what the operands have noted, so that no tree is gone through twice: to ask each node
// for all below it would take the square of the nodes, and an expression could be built that way
// to take seconds at start.
func (c *compilation) compile(n ast.Node) (*code, error) {
	if c.guess != nil {
		return c.guessed(n)
	}
	around := c.seen
	c.seen = run.Insight{}
	c.nested++
	x, err := c.compileNode(n)
	if c.nested--; err != nil {
		return nil, err
	}
	in := c.insightInto(n, x)
	c.known[n], c.seen = in, around.Beside(in)
	switch v, _ := in.Constant(); v.(type) {
	case string, bool, int, float64: // and no list, which is made anew each time
		return constant(v), nil
	}
	return x, nil
}

// compileNode takes paths first: they are most of what is in keys, and what the quick ways of
// other nodes are built on. A sequence is what the engine makes of texts with semicolons: its
// last node is its value.
func (c *compilation) compileNode(n ast.Node) (*code, error) {
	if p, ok := c.pathOf(n); ok {
		return c.pathCode(p, c.typeOf(n)), nil
	}
	switch n := n.(type) {
	case *ast.NilNode:
		return constant(nil), nil
	case *ast.IntegerNode:
		return c.integer(n), nil
	case *ast.FloatNode:
		return constant(n.Value), nil
	case *ast.BoolNode:
		return constant(n.Value), nil
	case *ast.StringNode:
		return constant(n.Value), nil
	case *ast.BytesNode:
		return constant(n.Value), nil
	case *ast.ConstantNode:
		return constant(n.Value), nil
	case *ast.IdentifierNode:
		return c.variable(n)
	case *ast.PointerNode: // #index, as # itself is a path
		c.seen.Asks, c.seen.Rounds = true, run.Round(len(c.elems)-1)
		return valueCode(1, func(st *run.State) (any, error) { return st.Index[len(st.Index)-1], nil }), nil
	case *ast.ChainNode:
		return c.chain(n)
	case *ast.MemberNode:
		return c.member(n)
	case *ast.SliceNode:
		return c.slice(n)
	case *ast.CallNode:
		return c.call(n)
	case *ast.BuiltinNode:
		return c.builtin(n)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		return c.conditional(n)
	case *ast.VariableDeclaratorNode:
		return c.let(n)
	case *ast.SequenceNode:
		return c.compile(n.Nodes[len(n.Nodes)-1])
	case *ast.ArrayNode:
		return c.array(n)
	case *ast.MapNode:
		return c.mapOf(n)
	}
	return nil, c.at(n, "this is not understood here")
}

// compileAll compiles several nodes, and adds up their costs. An error in any of them is an
// error of the whole: a template is not half compiled.
func (c *compilation) compileAll(nodes []ast.Node) (list []*code, cost int, err error) {
	for _, n := range nodes {
		x, err := c.compile(n)
		if err != nil {
			return nil, 0, err
		}
		list, cost = append(list, x), cost+x.cost
	}
	return list, cost, nil
}

// asIs compiles what becomes no part of a key: + in it puts texts together as they are. A
// method, a test and a user's function want the text that the author sees. With escapes in it,
// "a:b" == req.A + ":" + req.B would be false.
func (c *compilation) asIs(nodes ...ast.Node) (list []*code, cost int, err error) {
	c.plain++
	defer func() { c.plain-- }()
	return c.compileAll(nodes)
}

// plainly is compile for what becomes no part of a key. It is a count and not a flag, as one of
// these may lie within another.
func (c *compilation) plainly(n ast.Node) (*code, error) {
	c.plain++
	defer func() { c.plain-- }()
	return c.compile(n)
}

// Costs are summed up when a node is compiled, and charged by loops for each round: a closure
// that charged for itself would take longer for that than for its work.
func valueCode(cost int, value func(st *run.State) (any, error)) *code {
	return &code{cost: cost, value: value}
}

// A test in front of a choice, of an and or of a loop is asked in this form, which makes no
// interface.
func testCode(cost int, test func(st *run.State) (bool, error)) *code {
	return &code{cost: cost, test: test, value: func(st *run.State) (any, error) {
		b, err := test(st)
		return b, err
	}}
}

// An error must come without a value. An interface around the empty text would be one.
func textCode(cost int, text func(st *run.State) (string, error)) *code {
	return &code{cost: cost, text: text, value: func(st *run.State) (any, error) {
		s, err := text(st)
		if err != nil {
			return nil, err
		}
		return s, nil
	}}
}

// constant knows its type, so that a comparison with it needs no interface. A literal is the
// most common thing to compare with.
func constant(v any) *code {
	x := valueCode(1, func(*run.State) (any, error) { return v, nil })
	x.fixed, x.constant = true, v
	switch v := v.(type) {
	case string:
		x.text = func(*run.State) (string, error) { return v, nil }
	case bool:
		x.test = func(*run.State) (bool, error) { return v, nil }
	case int:
		x.num = func(*run.State) (int64, error) { return int64(v), nil }
	}
	return x
}

// integer is a literal, which the checker may have made a float. The checker gives a literal the
// type of what it is compared or passed with. To the engine, 1 beside a float is a float.
func (c *compilation) integer(n *ast.IntegerNode) *code {
	if t := n.Type(); t.Kind() != reflect.Int && reflect.TypeFor[int]().ConvertibleTo(t) && t.Kind() < reflect.Complex64 && t.Kind() > reflect.Bool {
		return constant(reflect.ValueOf(n.Value).Convert(t).Interface())
	}
	return constant(n.Value)
}

// always reports whether x is b for all requests.
func (x *code) always(b bool) bool { return x.fixed && x.constant == b }

// asTest returns x as a test, whatever is known of its type. A value of any may turn out to be a
// bool, or a pointer to one: JSON has both.
func (x *code) asTest() func(st *run.State) (bool, error) {
	if x.test != nil {
		return x.test
	}
	return func(st *run.State) (bool, error) {
		v, err := x.value(st)
		if err != nil {
			return false, err
		}
		b := run.Indirect(reflect.ValueOf(v))
		if b.Kind() != reflect.Bool {
			return false, run.Faulty("is neither true nor false")
		}
		return b.Bool(), nil
	}
}

// asText returns x as a text, which nil and numbers are not. A number is no text. lower(7) is a
// mistake, and a key of it would depend on how a number is spelt.
func (x *code) asText() func(st *run.State) (string, error) {
	if x.text != nil {
		return x.text
	}
	return func(st *run.State) (string, error) {
		v, err := x.value(st)
		if err != nil {
			return "", err
		}
		return text(v)
	}
}

// asList returns x as a list. A path gives its list without an interface around it, which for an
// array would be a copy.
func (x *code) asList() func(st *run.State) (reflect.Value, error) {
	if p := x.path; p != nil {
		return func(st *run.State) (reflect.Value, error) {
			v, err := p.Follow(&st.Source, st.Elems)
			return run.Indirect(v), err
		}
	}
	return func(st *run.State) (reflect.Value, error) {
		v, err := x.value(st)
		return run.Indirect(reflect.ValueOf(v)), err
	}
}

// The list is charged before its elements are made. A list of lists charges for each of them by
// itself.
func (c *compilation) array(n *ast.ArrayNode) (*code, error) {
	list, cost, err := c.compileAll(n.Nodes)
	if err != nil {
		return nil, err
	}
	return valueCode(1+cost, func(st *run.State) (any, error) {
		if err := st.List(len(list)); err != nil {
			return nil, err
		}
		values := make([]any, len(list))
		for i, x := range list {
			v, err := x.value(st)
			if err != nil {
				return nil, err
			}
			values[i] = v
		}
		return values, nil
	}), nil
}

// An entry is charged several times what an element is: a map keeps room for more than it holds.
func (c *compilation) mapOf(n *ast.MapNode) (*code, error) {
	var nodes []ast.Node
	for _, p := range n.Pairs {
		pair := p.(*ast.PairNode)
		nodes = append(nodes, pair.Key, pair.Value)
	}
	list, cost, err := c.compileAll(nodes)
	if err != nil {
		return nil, err
	}
	return valueCode(1+cost, func(st *run.State) (any, error) {
		if err := st.List(4 * len(list)); err != nil {
			return nil, err
		}
		m := make(map[string]any, len(list)/2)
		for i := 0; i < len(list); i += 2 {
			key, err := list[i].asText()(st)
			if err != nil {
				return nil, err
			}
			if m[key], err = list[i+1].value(st); err != nil {
				return nil, err
			}
		}
		return m, nil
	}), nil
}

// conditional compiles both branches, so that a mistake in the one that is rarely taken shows at
// start, too. A condition that is known without a request leaves one branch, and only that one
// counts as read.
func (c *compilation) conditional(n *ast.ConditionalNode) (*code, error) {
	cond, err := c.plainly(n.Cond)
	if err != nil {
		return nil, err
	}
	switch { // what is never looked at is not read
	case cond.fails:
		return cond, nil
	case cond.always(true):
		return c.compile(n.Exp1)
	case cond.always(false):
		return c.compile(n.Exp2)
	}
	list, more, err := c.compileAll([]ast.Node{n.Exp1, n.Exp2})
	if err != nil {
		return nil, err
	}
	test, yes, no := cond.asTest(), list[0], list[1]
	pick := func(st *run.State) (*code, error) {
		holds, err := test(st)
		if holds {
			return yes, err
		}
		return no, err
	}
	x := valueCode(1+cond.cost+more, func(st *run.State) (any, error) {
		branch, err := pick(st)
		if err != nil {
			return nil, err
		}
		return branch.value(st)
	})
	if yes.text != nil && no.text != nil {
		x.text = func(st *run.State) (string, error) {
			branch, err := pick(st)
			if err != nil {
				return "", err
			}
			return branch.text(st)
		}
	}
	return x, nil
}

// unary has no way for + but to leave it out: it does nothing to a number, and the checker
// refuses all else. A minus may overflow, for the smallest number, and is calculated as 0 - x.
func (c *compilation) unary(n *ast.UnaryNode) (*code, error) {
	x, err := c.compile(n.Node)
	if err != nil {
		return nil, err
	}
	switch n.Operator {
	case "!", "not":
		test := x.asTest()
		return testCode(1+x.cost, func(st *run.State) (bool, error) {
			b, err := test(st)
			return !b, err
		}), nil
	case "-":
		// The engine negates the smallest int64 to itself, and an uint64 to a large one.
		negate := arithmetic(minus, func(_, b any) any { return runtime.Negate(b) })
		return valueCode(1+x.cost, func(st *run.State) (any, error) {
			v, err := x.value(st)
			if err != nil {
				return nil, err
			}
			return negate(0, v)
		}), nil
	}
	return x, nil
}
