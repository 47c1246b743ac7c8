package keyexpr

import (
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Functions on lists. In a key, a list is either a hole of its own, which makes a key of each
// element, or what join, a test or a choice makes one value of. rewrite.go takes apart what it
// can, and what is left comes here.
//
// A request decides how long its lists are, so that each of these charges for what it is about
// to do. It also decides what is in them: an element may be nil, a list, or the list itself.

// listFuncs are the engine's functions on lists and texts, which it does without counting. The
// engine's own are as short, and charge nothing: flatten of a list that holds itself does not
// end, and concat in a loop takes all memory.
var listFuncs = map[string]callFunc{
	// A text is read to count its runes, and is charged; a list and a map know their length. Bytes
	// that are no UTF-8 count as one each. A struct has no length, though the engine's checker lets
	// one pass that comes in an any.
	"len": func(st *run.State, args []any) (any, error) {
		v := run.Indirect(reflect.ValueOf(args[0]))
		if !v.IsValid() {
			return nil, run.Faulty("asks nil for its length")
		}
		if v.Kind() == reflect.String {
			if err := st.Spend(v.Len()); err != nil {
				return nil, err
			}
			return utf8.RuneCountInString(v.String()), nil
		}
		if k := v.Kind(); k != reflect.Slice && k != reflect.Array && k != reflect.Map {
			return nil, run.Faulty("asks a value of type %v for its length", v.Type())
		}
		return v.Len(), nil
	},
	// Without a second text, the engine's trimPrefix cuts one blank and its trim all white space. That
	// is odd, and kept: an expression that was tried out with the engine must mean the same here.
	"trim":        trimmed(strings.TrimSpace, strings.Trim),
	"trimPrefix":  trimmed(func(s string) string { return strings.TrimPrefix(s, " ") }, strings.TrimPrefix),
	"trimSuffix":  trimmed(func(s string) string { return strings.TrimSuffix(s, " ") }, strings.TrimSuffix),
	"indexOf":     finder(strings.Index),
	"lastIndexOf": finder(strings.LastIndex),
	"max":         extreme(1),
	"min":         extreme(-1),
	"first":       func(st *run.State, args []any) (any, error) { return nth(st, args[0], 0) },
	"last":        func(st *run.State, args []any) (any, error) { return nth(st, args[0], -1) },
	// get is how an author says that an element of a list may be missing: nil where brackets are an error. A key
	// of the map's own type is looked for as it is, and any other as what it is made of.
	"get": func(st *run.State, args []any) (any, error) {
		v := run.Indirect(reflect.ValueOf(args[0]))
		if v.IsValid() && v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
			e, err := run.Entry(v, basicKey(v, args[1]))
			if err != nil {
				return nil, err
			}
			return st.Plain(e)
		}
		i, err := run.Integer(args[1])
		if err != nil {
			return nil, err
		}
		return nth(st, args[0], i)
	},
	// take is charged for what it takes and not for the list that it takes it from: take(list, 1) of a
	// million costs one. That makes it the way to bound what comes behind it.
	"take": func(st *run.State, args []any) (any, error) {
		v, err := listOf(reflect.ValueOf(args[0]))
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
		list, err := copyOf(st, args[0])
		slices.Reverse(list)
		return list, err
	},
	"concat": func(st *run.State, args []any) (any, error) {
		var all []any
		for _, x := range args {
			list, err := copyOf(st, x)
			if err != nil {
				return nil, err
			}
			all = append(all, list...)
		}
		// Charged once more as a whole, as append has made room for it several times over.
		return all, st.List(len(all))
	},
	"flatten": func(st *run.State, args []any) (any, error) {
		var all []any
		// A list that is flat already is copied all the same. What comes out is always ours, so that sort
		// behind it can't move the elements of the request.
		v, err := listOf(reflect.ValueOf(args[0]))
		if err == nil {
			err = flatten(st, v, &all, 0)
		}
		return all, err
	},
	"sort": func(st *run.State, args []any) (any, error) {
		list, err := copyOf(st, args[0])
		if err != nil {
			return nil, err
		}
		return list, sortBy(st, list, list, args[1:])
	},
}

// nth returns an element of a list, and nil beyond its ends. The engine's first and last return
// nil for an empty list, so that ?? can stand behind them. An index in brackets is an error.
func nth(st *run.State, x any, i int64) (any, error) {
	v, err := listOf(reflect.ValueOf(x))
	if err != nil {
		return nil, err
	}
	if i < 0 {
		i += int64(v.Len())
	}
	if i < 0 || i >= int64(v.Len()) {
		return nil, nil
	}
	return st.Plain(run.Tame(v.Index(int(i))))
}

// copied returns the first n elements of a list. It is a copy in each case, since reverse and
// sort must not touch the request: the handler that is guarded reads it next.
func copied(st *run.State, v reflect.Value, n int) ([]any, error) {
	if err := st.List(n); err != nil {
		return nil, err
	}
	list := make([]any, n)
	for i := range list {
		// A number of JSON is made one here, so that what comes behind compares it with other numbers, and
		// sorts 9 before 10.
		x, err := st.Plain(run.Tame(v.Index(i)))
		if err != nil {
			return nil, err
		}
		list[i] = x
	}
	return list, nil
}

// copyOf is copied for an argument that has to be a list, all of it.
func copyOf(st *run.State, x any) ([]any, error) {
	v, err := listOf(reflect.ValueOf(x))
	if err != nil {
		return nil, err
	}
	return copied(st, v, v.Len())
}

// flatten does not take ids that are made of bytes, or that spell themselves, for lists. It goes
// as deep as maxDepth and no deeper, as a list of any may hold itself.
func flatten(st *run.State, v reflect.Value, all *[]any, depth int) error {
	if depth > maxDepth {
		return run.Faulty("goes too deep")
	}
	if err := st.List(v.Len()); err != nil {
		return err
	}
	for i := range v.Len() {
		// A pointer to a list is a list, too, as JSON decodes one into a field that may be missing. Each is
		// charged where it is entered: a list of a thousand pointers to one list is a million elements.
		e := run.Indirect(v.Index(i))
		if e.IsValid() && (e.Kind() == reflect.Slice || e.Kind() == reflect.Array) && run.IsList(e.Type()) {
			if err := flatten(st, e, all, depth+1); err != nil {
				return err
			}
			continue
		}
		x, err := st.Plain(run.Tame(v.Index(i)))
		if err != nil {
			return err
		}
		*all = append(*all, x)
	}
	return nil
}

// sortBy sorts list by keys of the same length, which are all texts or all numbers. Each
// comparison reads as much of two texts as they have in common. So texts are charged with the
// number of comparisons that sorting makes of each. Mixed types have no order.
//
// how is empty or holds the word for the order, which may be computed, and so is looked at before
// anything is charged for.
func sortBy(st *run.State, list, keys, how []any) error {
	order := "asc"
	if len(how) > 0 {
		order, _ = basic(how[0]).(string)
	}
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
	// Stable, so that elements with equal keys keep the order of the request. first(sortBy(…)) picks one
	// of them, and an unstable sort could pick another one in another release of Go.
	slices.SortStableFunc(pairs, func(a, b pair) int {
		if order == "desc" {
			a, b = b, a
		}
		if s, ok := a.key.(string); ok {
			return strings.Compare(s, b.key.(string))
		}
		return compareNumbers(a.key, b.key)
	})
	for i := range pairs {
		list[i] = pairs[i].value
	}
	return nil
}

// loop is a function that evaluates an expression for the elements of a list: for what it comes
// to, or as a test. A test counts its hits, and stops where no further one can change the
// answer. All of the engine's loops are these few decisions, which the table below makes for
// each. One loop that charges is easier to trust than twelve.
type loop struct {
	values bool // the expression is no test, and what it comes to is kept
	miss   bool // a hit is an element for which the test is false
	keep   bool // elements that are hits are kept
	most   int  // hits that decide; 0 if all elements count
	end    func(r *round) any
}

// round is a loop under way. It belongs to one run. The loop itself is shared by all requests.
type round struct {
	index int
	hits  int
	list  []any // what is kept
}

// hits are counted where the answer depends on how many there are, and the loop is left at the
// first one that decides. A test that must hold for all counts those for which it does not.
var loops = map[string]loop{
	"all":       {most: 1, miss: true, end: func(r *round) any { return r.hits == 0 }},
	"any":       {most: 1, end: func(r *round) any { return r.hits > 0 }},
	"none":      {most: 1, end: func(r *round) any { return r.hits == 0 }},
	"one":       {most: 2, end: func(r *round) any { return r.hits == 1 }},
	"count":     {end: func(r *round) any { return r.hits }},
	"findIndex": {most: 1, end: (*round).place},
	"find":      {most: 1, keep: true, end: (*round).first},
	"findLast":  {most: 1, keep: true, end: (*round).first},
	"filter":    {keep: true, end: (*round).kept},
	"map":       {values: true, end: (*round).kept},
	"sum":       {values: true},
	"sortBy":    {values: true},
}

func (r *round) kept() any { return r.list }

func (r *round) first() any {
	if r.hits == 0 {
		return nil
	}
	return r.list[0]
}

func (r *round) place() any {
	if r.hits == 0 {
		return nil
	}
	return r.index
}

// loop compiles a function of a list and an expression about its elements. Without an
// expression, the elements are meant. A list that is long enough is refused on the way, since a
// loop may well end at its first element: any and find are for that.
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
		if _, err := c.inLoop(n.Arguments[0], func() error {
			body, err = compile(n.Arguments[1].(*ast.PredicateNode).Node)
			return err
		}); err != nil {
			return nil, err
		}
	}
	how, err := c.order(n.Arguments[min(2, len(n.Arguments)):])
	if err != nil {
		return nil, err
	}
	elements, test := list.asList(), body.asTest()
	return valueCode(1+list.cost+body.cost, func(st *run.State) (any, error) {
		v, err := elements(st)
		if err != nil {
			return nil, err
		}
		if v, err = listOf(v); err != nil {
			return nil, err
		}
		r := &round{list: []any{}}
		for i := range v.Len() {
			if r.index = i; n.Name == "findLast" {
				r.index = v.Len() - 1 - i
			}
			if err := l.next(st, r, v, body, test); err != nil {
				return nil, err
			}
			// What is behind the element that decides is not looked at, as with the engine: it may have fields
			// that are nil, on which the test would fail.
			if l.most > 0 && r.hits == l.most {
				break
			}
		}
		switch n.Name {
		case "sortBy":
			list, err := copied(st, v, v.Len())
			if err != nil {
				return nil, err
			}
			return list, sortBy(st, list, r.list, how)
		case "sum":
			return total(r.list)
		}
		return l.end(r), nil
	}), nil
}

// order is what sortBy is told of the order, which must be written out.
func (c *compilation) order(args []ast.Node) (how []any, err error) {
	for _, arg := range args {
		s, _ := arg.(*ast.StringNode)
		if s == nil {
			return nil, c.at(arg, "asc or desc must be written out here")
		}
		how = append(how, s.Value)
	}
	return how, nil
}

// next is a round, which costs some steps, and the room that a list takes which is made of it.
// The room is charged for each round although only some keep anything: which ones is not known
// before.
func (l *loop) next(st *run.State, r *round, list reflect.Value, body *code, test func(*run.State) (bool, error)) error {
	if err := st.Times(1, 1+body.cost, 24); err != nil {
		return err
	}
	elem := run.Tame(list.Index(r.index))
	// The element is entered as a reflect.Value. An interface would be an allocation a round, and a
	// loop of a thousand lines would cost a thousand of them.
	st.Push(elem, r.index)
	defer st.Pop()
	if l.values {
		x, err := body.value(st)
		r.list = append(r.list, x)
		return err
	}
	// An error in one round ends the loop. To leave the element out would make the key of a request
	// whose lines are broken equal to that of one without these lines.
	holds, err := test(st)
	if err != nil || holds == l.miss {
		return err
	}
	r.hits++
	if !l.keep {
		return nil
	}
	x, err := st.Plain(elem)
	r.list = append(r.list, x)
	return err
}
