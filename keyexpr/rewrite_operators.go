package keyexpr

import (
	"cmp"
	"errors"
	"reflect"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Operators other than + on texts, which rewrite.go takes apart. They compare what values are
// rather than what types they have: an int64 of JSON equals the 7 in the template, and a Status
// equals the text that it is made of. Each charges for texts that it reads, as both sides may be
// a megabyte.

// Operands of numbers may become part of the key. Those of tests never do: what they put
// together is put together as it is.
func (c *compilation) binary(n *ast.BinaryNode) (*code, error) {
	switch n.Operator {
	case "+":
		return c.plus(n)
	case "??":
		return c.orElse(n)
	case "and", "&&", "or", "||":
		return c.logic(n)
	}
	var list []*code
	var cost int
	var err error
	switch n.Operator {
	// What is calculated may be a value of the key, and a sum of texts in it is one that could not be
	// told apart. So these operands follow the rules of keys.
	case "-", "*", "%", "/", "**", "^", "..":
		list, cost, err = c.compileAll([]ast.Node{n.Left, n.Right})
	case "matches": // whose right side is written out
		list, cost, err = c.asIs(n.Left)
	default:
		list, cost, err = c.asIs(n.Left, n.Right)
	}
	if err != nil {
		return nil, err
	}
	switch n.Operator {
	case "matches":
		return c.matches(n, list[0])
	case "-":
		return both(list, cost, arithmetic(minus, runtime.Subtract)), nil
	case "*":
		return both(list, cost, arithmetic(times, runtime.Multiply)), nil
	case "%":
		return both(list, cost, remainder), nil
	case "/":
		return both(list, cost, byEngine(runtime.Divide)), nil
	case "**", "^":
		return both(list, cost, byEngine(runtime.Exponent)), nil
	case "..":
		return c.span(list, cost), nil
	case "in":
		return c.in(list, cost), nil
	case "contains", "startsWith", "endsWith":
		return c.textTest(list, cost, textTests[n.Operator]), nil
	}
	holds, ok := comparisons[n.Operator]
	if !ok {
		return nil, c.at(n, "%s is not understood here", n.Operator)
	}
	return holds.compile(list, cost), nil
}

// operands evaluates both sides of an operator. The left one comes first, as in Go: which error a
// request gets should not depend on the operator. An operator that stops between its sides, as
// and does, can't use it.
func operands(st *run.State, x, y *code) (a, b any, err error) {
	if a, err = x.value(st); err == nil {
		b, err = y.value(st)
	}
	return a, b, err
}

// both is an operator that needs both of its operands, and charges nothing by itself.
func both(list []*code, cost int, op func(a, b any) (any, error)) *code {
	return valueCode(1+cost, func(st *run.State) (any, error) {
		a, b, err := operands(st, list[0], list[1])
		if err != nil {
			return nil, err
		}
		return op(a, b)
	})
}

// orElse is a ?? b. A text in front, which is never nil, leaves nothing to read of the other. A
// chain in front has ended by itself, so that a header that is not there and a ?. that found
// nothing are the same here. It takes nothing else for nil: what is empty is an error of the
// request, unless or stands there.
func (c *compilation) orElse(n *ast.BinaryNode) (*code, error) {
	left, err := c.compile(n.Left)
	if err != nil || left.fails || left.fixed && left.constant != nil {
		return left, err
	}
	right, err := c.compile(n.Right)
	if err != nil {
		return nil, err
	}
	x := valueCode(1+left.cost+right.cost, func(st *run.State) (any, error) {
		v, err := left.value(st)
		if err != nil || !runtime.IsNil(v) {
			return v, err
		}
		return right.value(st)
	})
	// header.Tenant ?? "none" is in half of all keys. As a text it spares the interface around the
	// value, which is an allocation. Only a path can tell a text that is missing from an empty one.
	if p := left.path; p != nil && left.text != nil && right.text != nil {
		x.text = func(st *run.State) (string, error) {
			v, err := p.Follow(&st.Source, st.Elems)
			if err != nil {
				return "", err
			}
			if !v.IsValid() {
				return right.text(st)
			}
			return v.String(), nil
		}
	}
	return x, nil
}

// logic is and and or. Behind a literal that decides, nothing is read. A fold must not hide a
// mistake: both sides were checked, and the left one is still evaluated first where neither is
// known.
func (c *compilation) logic(n *ast.BinaryNode) (*code, error) {
	decides := n.Operator == "or" || n.Operator == "||"
	// Both sides are compiled although one of them decides, since a mistake in the other should be
	// found at start and not when somebody changes the literal.
	x, err := c.plainly(n.Left)
	if err != nil || x.fails || c.guess != nil && x.always(decides) {
		return x, err
	}
	y, err := c.plainly(n.Right)
	if err != nil {
		return nil, err
	}
	if x.always(decides) || y.always(decides) {
		return constant(decides), nil
	}
	left, right := x.asTest(), y.asTest()
	return testCode(1+x.cost+y.cost, func(st *run.State) (bool, error) {
		holds, err := left(st)
		if err != nil || holds == decides {
			return holds, err
		}
		return right(st)
	}), nil
}

// span is the list from a to b, which is empty if b is the smaller one. The distance is taken as
// an uint64: from the least to the largest int64 there are 2^64 numbers, which an int64 would
// take for none.
func (c *compilation) span(list []*code, cost int) *code {
	return valueCode(1+cost, func(st *run.State) (any, error) {
		a, b, err := operands(st, list[0], list[1])
		if err != nil {
			return nil, err
		}
		first, last, err := integers(a, b)
		switch {
		case err != nil:
			return nil, err
		case last < first:
			return []int{}, nil
		// The bound is checked before the budget, whose sums are of ints. On a machine of 32 bits an end
		// may not fit an int, and would wrap around to another number.
		case uint64(last)-uint64(first) >= run.MaxSteps || int64(int(first)) != first:
			return nil, run.Faulty("makes too long a list")
		}
		n := int(last-first) + 1
		if err := st.List(n); err != nil {
			return nil, err
		}
		values := make([]int, n)
		for i := range values {
			values[i] = int(first) + i
		}
		return values, nil
	})
}

// in compares as == does, so that a list of named types, of pointers or of numbers of another
// size has what it seems to have. The engine compares by Go's ==, for which int64(7) is not in
// [7], as JSON and a literal make them.
func (c *compilation) in(list []*code, cost int) *code {
	return testCode(1+cost, func(st *run.State) (bool, error) {
		x, l, err := operands(st, list[0], list[1])
		if err != nil {
			return false, err
		}
		return among(st, x, l)
	})
}

// among reports whether x is an element of a list, a key of a map or a field of a struct. All
// elements are charged before the first is compared. A list of a million costs nothing to
// refuse.
func among(st *run.State, x, list any) (bool, error) {
	v := run.Indirect(reflect.ValueOf(list))
	if !v.IsValid() {
		return false, nil
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		// Two steps an element, as each is made an interface and compared. A text in the list is charged
		// by equal, and only if it is as long as the one that is looked for.
		if err := st.Step(2 * v.Len()); err != nil {
			return false, err
		}
		for i := range v.Len() {
			e, err := st.Plain(run.Tame(v.Index(i)))
			if err != nil {
				return false, err
			}
			if same, err := equal(st, x, e); same || err != nil {
				return same, err
			}
		}
		return false, nil
	case reflect.Map, reflect.Struct:
		if runtime.IsNil(x) { // a pointer to nothing as well as nothing
			return false, nil
		}
	}
	switch v.Kind() {
	case reflect.Map:
		found, err := run.Entry(v, basicKey(v, x))
		return found.IsValid() && err == nil, err
	case reflect.Struct:
		name, err := text(x)
		if err != nil {
			return false, err
		}
		// The engine's "in" of a struct asks whether there is a field of that name, whatever it holds. An
		// unexported one must not be found, as nothing else here shows that it exists.
		f, ok := v.Type().FieldByName(name)
		return ok && f.IsExported(), nil
	}
	return false, run.Faulty("looks for something in a value of type %v", v.Type())
}

// textTest is false for nil, as the engine's is: a header that is not there contains nothing.
// Both texts are charged, as the time is that of the longer one; none of these goes back.
func (c *compilation) textTest(list []*code, cost int, test func(s, part string) bool) *code {
	return testCode(1+cost, func(st *run.State) (bool, error) {
		var s [2]string
		for i, x := range list {
			v, err := x.value(st)
			if err != nil || runtime.IsNil(v) {
				return false, err
			}
			if s[i], err = text(v); err == nil {
				err = st.Spend(len(s[i]))
			}
			if err != nil {
				return false, err
			}
		}
		return test(s[0], s[1]), nil
	})
}

// comparison is an operator that compares whole numbers of all types and sizes as numbers, and
// leaves the rest to the engine. uint64 above the largest int64 and negative numbers are
// compared right, which neither Go's conversions nor the engine do.
type comparison struct {
	holds  func(order int) bool
	engine func(a, b any) bool
}

// == and != have no function of the engine, as equal does what they need.
var comparisons = map[string]comparison{
	"==": {holds: func(o int) bool { return o == 0 }},
	"!=": {holds: func(o int) bool { return o != 0 }},
	"<":  {func(o int) bool { return o < 0 }, runtime.Less},
	"<=": {func(o int) bool { return o <= 0 }, runtime.LessOrEqual},
	">":  {func(o int) bool { return o > 0 }, runtime.More},
	">=": {func(o int) bool { return o >= 0 }, runtime.MoreOrEqual},
}

// compile has a way without interfaces for whole numbers, which most conditions compare. An id
// against a number is what most conditions are. Without interfaces, that takes some nanoseconds.
func (op comparison) compile(list []*code, cost int) *code {
	x, y := list[0], list[1]
	// Both are int64 for sure. An uint64 has no such form, because its upper half is negative there.
	if a, b := x.num, y.num; a != nil && b != nil {
		return testCode(1+cost, func(st *run.State) (bool, error) {
			m, err := a(st)
			if err != nil {
				return op.missing(st, x, y, err)
			}
			n, err := b(st)
			if err != nil {
				return op.missing(st, x, y, err)
			}
			return op.holds(cmp.Compare(m, n)), nil
		})
	}
	return testCode(1+cost, func(st *run.State) (bool, error) { return op.values(st, x, y) })
}

// missing compares again where a number was not there, which is no error for == and !=. The
// error is known by its value, which no fact can have.
func (op comparison) missing(st *run.State, x, y *code, err error) (bool, error) {
	if !errors.Is(err, run.ErrNoText) || op.engine != nil {
		return false, err
	}
	return op.values(st, x, y)
}

// values takes the quick way for texts only where neither can be nil: a path may end in nil,
// which equals no text, not even an empty one.
func (op comparison) values(st *run.State, x, y *code) (bool, error) {
	if op.engine == nil && x.text != nil && y.text != nil && x.path == nil && y.path == nil {
		a, err := x.text(st)
		if err != nil {
			return false, err
		}
		b, err := y.text(st)
		return op.holds(strings.Compare(a, b)), err
	}
	a, b, err := operands(st, x, y)
	if err != nil {
		return false, err
	}
	if op.engine == nil {
		same, err := equal(st, a, b)
		return same == op.holds(0), err
	}
	a, b = basic(a), basic(b)
	if whole(a) && whole(b) {
		return op.holds(order(reflect.ValueOf(a), reflect.ValueOf(b))), nil
	}
	// Two texts have as much in common as the left one is long, at most.
	if s, ok := a.(string); ok {
		if err := st.Spend(len(s)); err != nil {
			return false, err
		}
	}
	return engines(op.engine, a, b)
}

// equal compares as the engine does, but numbers as numbers, and named types as what they are
// made of. What is neither text, bool nor number goes to the engine, which compares by
// reflection and to any depth. So it is weighed first: two lists of a million would be compared
// for a second.
func equal(st *run.State, a, b any) (_ bool, err error) {
	if a, err = basicOf(st, a); err != nil {
		return false, err
	}
	if b, err = basicOf(st, b); err != nil {
		return false, err
	}
	switch x := a.(type) {
	case nil:
		return b == nil || runtime.IsNil(b), nil
	case string:
		y, ok := b.(string)
		// Texts of different lengths are told apart without reading them. So a list of a thousand ids can
		// be searched for one of another length at no cost in bytes.
		if ok && len(x) == len(y) {
			if err := st.Spend(len(x)); err != nil {
				return false, err
			}
		}
		return ok && x == y, nil
	case bool:
		y, ok := b.(bool)
		return ok && x == y, nil
	}
	if whole(a) && whole(b) {
		return order(reflect.ValueOf(a), reflect.ValueOf(b)) == 0, nil
	}
	// A pointer, map or list that is nil equals nil. A typed nil in an interface would not, by Go's ==,
	// and an author can't see the difference.
	if b == nil {
		return runtime.IsNil(a), nil
	}
	if err := weigh(st, a); err != nil {
		return false, err
	}
	return runtime.Equal(a, b), nil
}
