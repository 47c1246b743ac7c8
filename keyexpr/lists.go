package keyexpr

import (
	"math/bits"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// listFuncs are the engine's functions on lists and texts, which it does without counting.
var listFuncs = map[string]callFunc{
	"len": func(st *run.State, args []any) (any, error) {
		v := run.Indirect(reflect.ValueOf(args[0]))
		if !v.IsValid() {
			return nil, run.Faulty("asks nil for its length")
		}
		if v.Kind() == reflect.String {
			return len([]rune(v.String())), st.Spend(v.Len())
		}
		if k := v.Kind(); k != reflect.Slice && k != reflect.Array && k != reflect.Map {
			return nil, run.Faulty("asks a value of type %v for its length", v.Type())
		}
		return v.Len(), nil
	},
	"trim":       trimmed(strings.TrimSpace, strings.Trim),
	"trimPrefix": trimmed(func(s string) string { return strings.TrimPrefix(s, " ") }, strings.TrimPrefix),
	"trimSuffix": trimmed(func(s string) string { return strings.TrimSuffix(s, " ") }, strings.TrimSuffix),
	"indexOf": func(st *run.State, args []any) (any, error) {
		list, err := texts(st, args)
		if err != nil {
			return nil, err
		}
		return strings.Index(list[0], list[1]), nil
	},
	"lastIndexOf": func(st *run.State, args []any) (any, error) {
		list, err := texts(st, args)
		if err != nil {
			return nil, err
		}
		return strings.LastIndex(list[0], list[1]), nil
	},
	"first": func(_ *run.State, args []any) (any, error) { return nth(args[0], 0) },
	"last":  func(_ *run.State, args []any) (any, error) { return nth(args[0], -1) },
	"get": func(_ *run.State, args []any) (any, error) {
		v := run.Indirect(reflect.ValueOf(args[0]))
		if v.IsValid() && v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
			e, err := run.Entry(v, basicKeyOf(v, args[1]))
			return run.Plain(e), err
		}
		i, err := run.Integer(args[1])
		if err != nil {
			return nil, err
		}
		return nth(args[0], i)
	},
	"take": func(st *run.State, args []any) (any, error) {
		v, err := listOf(args[0])
		if err != nil {
			return nil, err
		}
		n, err := run.Integer(args[1])
		if err != nil {
			return nil, err
		}
		return copied(st, v, int(min(max(n, 0), int64(v.Len()))))
	},
	"reverse": func(st *run.State, args []any) (any, error) {
		v, err := listOf(args[0])
		if err != nil {
			return nil, err
		}
		list, err := copied(st, v, v.Len())
		if err == nil {
			slices.Reverse(list)
		}
		return list, err
	},
	"concat": func(st *run.State, args []any) (any, error) {
		var all []any
		for _, x := range args {
			v, err := listOf(x)
			if err != nil {
				return nil, err
			}
			list, err := copied(st, v, v.Len())
			if err != nil {
				return nil, err
			}
			all = append(all, list...)
		}
		return all, st.List(len(all))
	},
	"flatten": func(st *run.State, args []any) (any, error) {
		var all []any
		v, err := listOf(args[0])
		if err == nil {
			err = flatten(st, v, &all, 0)
		}
		return all, err
	},
	"sort": func(st *run.State, args []any) (any, error) {
		v, err := listOf(args[0])
		if err != nil {
			return nil, err
		}
		list, err := copied(st, v, v.Len())
		if err != nil {
			return nil, err
		}
		order := "asc"
		if len(args) == 2 {
			if order, err = text(args[1]); err != nil {
				return nil, err
			}
		}
		return list, sortBy(st, list, list, order)
	},
}

// trimmed bounds the product: each character of the one text is looked for in the other.
func trimmed(space func(s string) string, cut func(s, part string) string) callFunc {
	return func(st *run.State, args []any) (any, error) {
		list, err := texts(st, args)
		switch {
		case err != nil:
			return nil, err
		case len(list) == 1:
			return space(list[0]), nil
		case len(list[0])*len(list[1]) > run.MaxBytes:
			return nil, run.Faulty("trims too much")
		}
		return cut(list[0], list[1]), nil
	}
}

// nth returns an element of a list, and nil beyond its ends.
func nth(x any, i int64) (any, error) {
	v, err := listOf(x)
	if err != nil {
		return nil, err
	}
	if i < 0 {
		i += int64(v.Len())
	}
	if i < 0 || i >= int64(v.Len()) {
		return nil, nil
	}
	return run.Plain(run.Tame(v.Index(int(i)))), nil
}

// copied returns the first n elements of a list.
func copied(st *run.State, v reflect.Value, n int) ([]any, error) {
	if err := st.List(n); err != nil {
		return nil, err
	}
	list := make([]any, n)
	for i := range list {
		list[i] = run.Plain(run.Tame(v.Index(i)))
	}
	return list, nil
}

// flatten does not take ids that are made of bytes, or that spell themselves, for lists.
func flatten(st *run.State, v reflect.Value, all *[]any, depth int) error {
	if depth > maxDepth {
		return run.Faulty("goes too deep")
	}
	if err := st.List(v.Len()); err != nil {
		return err
	}
	for i := range v.Len() {
		e := run.Indirect(v.Index(i))
		if e.IsValid() && (e.Kind() == reflect.Slice || e.Kind() == reflect.Array) && run.IsList(e.Type()) {
			if err := flatten(st, e, all, depth+1); err != nil {
				return err
			}
			continue
		}
		*all = append(*all, run.Plain(run.Tame(v.Index(i))))
	}
	return nil
}

// sortBy sorts list by keys of the same length, which are all texts or all numbers.
func sortBy(st *run.State, list, keys []any, order string) error {
	if order != "asc" && order != "desc" {
		return run.Faulty("sorts by neither asc nor desc")
	}
	if err := st.Sort(len(list)); err != nil {
		return err
	}
	type pair struct{ key, value any }
	pairs := make([]pair, len(list))
	for i := range list {
		pairs[i] = pair{basic(keys[i]), list[i]}
		s, isText := pairs[i].key.(string)
		if err := st.Spend(48 + len(s)*bits.Len(uint(len(list)))); err != nil {
			return err
		}
		if i > 0 {
			if _, first := pairs[0].key.(string); first != isText || !isText && !number(pairs[i].key) {
				return run.Faulty("sorts what is neither all text nor all numbers")
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		if order == "desc" {
			a, b = b, a
		}
		if s, ok := a.key.(string); ok {
			return strings.Compare(s, b.key.(string))
		}
		switch {
		case runtime.Less(a.key, b.key):
			return -1
		case runtime.Less(b.key, a.key):
			return 1
		}
		return 0
	})
	for i := range pairs {
		list[i] = pairs[i].value
	}
	return nil
}

func number(x any) bool {
	v := reflect.ValueOf(x)
	return v.IsValid() && (v.CanInt() || v.CanUint() || v.CanFloat())
}

// loop is a function that evaluates an expression for the elements of a list. next is given what that comes to, and says
// whether to stop; end gives the result.
type loop struct {
	test bool // the expression is true or false
	next func(r *round, holds bool, v any) (stop bool)
	end  func(r *round) any
}

// round is a loop under way.
type round struct {
	elem  reflect.Value
	index int
	count int
	list  []any
	found any
}

var loops = map[string]loop{
	"all":      {true, func(r *round, holds bool, _ any) bool { r.hit(!holds); return !holds }, func(r *round) any { return r.count == 0 }},
	"any":      {true, func(r *round, holds bool, _ any) bool { r.hit(holds); return holds }, func(r *round) any { return r.count > 0 }},
	"none":     {true, func(r *round, holds bool, _ any) bool { r.hit(holds); return holds }, func(r *round) any { return r.count == 0 }},
	"one":      {true, func(r *round, holds bool, _ any) bool { r.hit(holds); return r.count > 1 }, func(r *round) any { return r.count == 1 }},
	"count":    {true, func(r *round, holds bool, _ any) bool { r.hit(holds); return false }, func(r *round) any { return r.count }},
	"find":     {true, (*round).find, func(r *round) any { return r.found }},
	"findLast": {true, (*round).find, func(r *round) any { return r.found }},
	"findIndex": {true, (*round).find, func(r *round) any {
		if r.count == 0 {
			return nil
		}
		return r.index
	}},
	"filter": {true, func(r *round, holds bool, _ any) bool {
		if holds {
			r.list = append(r.list, run.Plain(r.elem))
		}
		return false
	}, func(r *round) any { return r.list }},
	"map":    {false, func(r *round, _ bool, v any) bool { r.list = append(r.list, v); return false }, func(r *round) any { return r.list }},
	"sum":    {false, func(r *round, _ bool, v any) bool { r.list = append(r.list, v); return false }, nil},
	"sortBy": {false, func(r *round, _ bool, v any) bool { r.list = append(r.list, v); return false }, func(r *round) any { return r.list }},
}

func (r *round) hit(holds bool) {
	if holds {
		r.count++
	}
}

func (r *round) find(holds bool, _ any) bool {
	if holds {
		r.found, r.count = run.Plain(r.elem), 1
	}
	return holds
}

// loop compiles a function of a list and an expression about its elements. Without an expression, the elements are meant.
func (c *compilation) loop(n *ast.BuiltinNode, l loop) (*code, error) {
	list, err := c.compile(n.Arguments[0])
	if err != nil {
		return nil, err
	}
	body := c.pathCode(&run.Path{Elem: true}, nil)
	if len(n.Arguments) > 1 {
		compile := c.compile
		if n.Name != "map" { // what is tested, added up or sorted by is no part of the key
			compile = c.plainly
		}
		if body, err = compile(n.Arguments[1].(*ast.PredicateNode).Node); err != nil {
			return nil, err
		}
	}
	elements, test := list.asList(), body.asTest()
	return valueCode(1+list.cost+body.cost, func(st *run.State) (any, error) {
		v, err := elements(st)
		if err != nil {
			return nil, err
		}
		if !v.IsValid() {
			return nil, run.Faulty("has nil where a list is wanted")
		}
		if k := v.Kind(); k != reflect.Slice && k != reflect.Array {
			return nil, run.Faulty("has a value of type %v where a list is wanted", v.Type())
		}
		r, err := each(st, v, n.Name == "findLast", 1+body.cost, func(r *round) (bool, error) {
			if l.test {
				holds, err := test(st)
				return l.next(r, holds, nil), err
			}
			x, err := body.value(st)
			return l.next(r, false, x), err
		})
		if err != nil {
			return nil, err
		}
		switch n.Name {
		case "sortBy":
			return c.sorted(st, n, v, r.list)
		case "sum":
			return total(r.list)
		}
		return l.end(r), nil
	}), nil
}

// total adds up numbers.
func total(list []any) (sum any, err error) {
	sum = 0
	for _, x := range list {
		if sum, err = addNumbers(sum, x); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// each runs f for the elements of a list, from the end if backwards. Each round costs some steps.
func each(st *run.State, v reflect.Value, backwards bool, cost int, f func(r *round) (bool, error)) (*round, error) {
	r := &round{list: []any{}}
	for i := range v.Len() {
		if err := st.Step(cost); err != nil {
			return r, err
		}
		if err := st.Spend(24); err != nil { // what a list takes that is made of it
			return r, err
		}
		if r.index = i; backwards {
			r.index = v.Len() - 1 - i
		}
		r.elem = run.Tame(v.Index(r.index))
		st.Push(r.elem, r.index)
		stop, err := f(r)
		st.Pop()
		if stop || err != nil {
			return r, err
		}
	}
	return r, nil
}

// sorted is sortBy, which knows the keys of the elements.
func (c *compilation) sorted(st *run.State, n *ast.BuiltinNode, v reflect.Value, keys []any) (any, error) {
	order := "asc"
	if len(n.Arguments) > 2 {
		s, ok := n.Arguments[2].(*ast.StringNode)
		if !ok {
			return nil, run.Faulty("sorts by neither asc nor desc")
		}
		order = s.Value
	}
	list, err := copied(st, v, v.Len())
	if err != nil {
		return nil, err
	}
	return list, sortBy(st, list, keys, order)
}
