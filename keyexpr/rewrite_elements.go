package keyexpr

import (
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// What is known of lists and their elements: rewrite_rules.go for what takes an element of a list,
// or gives another list. A list of the request may be of any length, and its elements are known
// nevertheless if each is made by the template, as in map(req.Lines, "x").

// ofLoop is the rule of a loop whose test is the same for all elements: then none is a hit, or the
// list stays what it is.
func (c *compilation) ofLoop(name string, l loop, args []ast.Node) (run.Insight, bool) {
	if len(args) < 2 || l.values {
		return run.Insight{}, false
	}
	test := c.known[args[1].(*ast.PredicateNode).Node]
	switch {
	case test.Only(l.miss):
		return c.seen.Of(l.end(&round{list: []any{}})), true
	case !test.Only(!l.miss):
	case name == "filter":
		return c.as(args[0]), true
	case name == "find":
		return c.taken(args[0], &ast.IntegerNode{})
	case name == "findLast":
		return c.taken(args[0], &ast.IntegerNode{Value: -1})
	default:
		n, ok := c.length(args[0])
		return c.seen.Of(l.end(&round{hits: n})), ok
	}
	return run.Insight{}, false
}

// taken is the rule of what takes an element of a list or map that stands in the template: nothing
// of the others is read. It is the same thought as behind a choice: ["a", req.ID][0] names a fact
// as `true ? "a" : req.ID` does. Indexes beyond the end are left to the request.
func (c *compilation) taken(from, by ast.Node) (run.Insight, bool) {
	if m, ok := from.(*ast.MapNode); ok {
		_, written := by.(*ast.StringNode)
		for _, p := range m.Pairs {
			pair := p.(*ast.PairNode)
			if alike(pair.Key, by) {
				return c.as(pair.Value), true
			}
			_, name := pair.Key.(*ast.StringNode)
			written = written && name
		}
		return c.seen.Of(nil), written // which is none of the names
	}
	list, ok := writtenOut(from)
	i, fixed := integer(by)
	if !fixed {
		i, fixed = c.number(by)
	}
	if i < 0 {
		i += len(list)
	}
	if !ok || !fixed || i < 0 || i >= len(list) {
		return run.Insight{}, false
	}
	return c.as(list[i]), true
}

// writtenOut returns the elements of a list that stands in the template, in their order. The
// names of functions are those that move elements and don't look at them.
func writtenOut(n ast.Node) ([]ast.Node, bool) {
	switch n := n.(type) {
	case *ast.ArrayNode:
		return n.Nodes, true
	case *ast.BuiltinNode:
		if n.Name != "reverse" && n.Name != "take" {
			return nil, false
		}
		list, ok := writtenOut(n.Arguments[0])
		if ok && n.Name == "reverse" {
			list = slices.Clone(list)
			slices.Reverse(list)
		}
		if ok && n.Name == "take" {
			count, fixed := integer(n.Arguments[1])
			if !fixed {
				return nil, false
			}
			list = list[:min(max(count, 0), len(list))]
		}
		return list, ok
	}
	return nil, false
}

// integer returns what a literal says. -1 is a minus and a number to the parser.
func integer(n ast.Node) (int, bool) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return n.Value, true
	case *ast.UnaryNode:
		i, ok := integer(n.Node)
		return -i, ok && n.Operator == "-"
	}
	return 0, false
}

// length returns the length that all values of a node have. An array of Go has one length, as a
// list has that is written out, what is made of either element by element, and a digest. A list of
// the request has its own.
func (c *compilation) length(n ast.Node) (int, bool) {
	if list, ok := writtenOut(n); ok {
		return len(list), true
	}
	switch n := n.(type) {
	case *ast.BuiltinNode:
		if slices.Contains([]string{"map", "sort", "sortBy", "reverse"}, n.Name) {
			return c.length(n.Arguments[0])
		}
	case *ast.CallNode:
		if n.Callee.String() == "hash" {
			return hashLen, true
		}
	}
	if t := c.typeOf(n); t != nil && t.Kind() == reflect.Array {
		return t.Len(), true
	}
	return 0, false
}

// ofListFunction is ofUnknown for a function that gives elements of a list, or some of them.
func (c *compilation) ofListFunction(name string, args []ast.Node) (run.Insight, bool) {
	switch name {
	case "first", "last", "get", "find", "findLast", "max", "min":
		return c.elementOf(args[0], true), len(args) == 1 || name != "max" && name != "min"
	case "filter", "take", "reverse", "sort", "sortBy":
		return c.listLike(args[0]), true
	case "map":
		return c.listOf(args[1].(*ast.PredicateNode).Node), true
	case "concat":
		elems := make([]run.Insight, len(args))
		for i, list := range args {
			elems[i] = c.elementsOf(list)
		}
		return c.listOver(c.seen.Or(elems...)), true
	}
	return run.Insight{}, false
}

// either is the insight into a choice between two nodes.
func (c *compilation) either(test, a, b ast.Node) run.Insight {
	if in := c.seen.Or(c.known[a], c.known[b]); in.IsKnown() {
		return in
	}
	yes, no := c.known[test].Branches()
	return c.listOver(c.seen.Or(c.elementsOf(a).Within(yes), c.elementsOf(b).Within(no)))
}

// listOf is the insight into a list that is made of these nodes.
func (c *compilation) listOf(elems ...ast.Node) run.Insight {
	list := make([]run.Insight, len(elems))
	for i, e := range elems {
		list[i] = c.known[e]
	}
	return c.listOver(c.seen.Or(list...))
}

// listLike is the insight into a list with no elements but those of another one.
func (c *compilation) listLike(list ast.Node) run.Insight { return c.listOver(c.elementsOf(list)) }

func (c *compilation) listOver(elem run.Insight) run.Insight {
	in := c.seen
	in.Elem = &elem
	return in
}

// elementOf is the insight into one of the elements of a list or map. It may be nil where none is
// found, which brackets behind a list take for an error.
func (c *compilation) elementOf(list ast.Node, none bool) run.Insight {
	elem := c.elementsOf(list)
	if m, ok := list.(*ast.MapNode); ok {
		values := make([]run.Insight, len(m.Pairs))
		for i, p := range m.Pairs {
			values[i] = c.known[p.(*ast.PairNode).Value]
		}
		elem, none = c.seen.Or(values...), true
	}
	if none {
		return c.seen.Or(elem, run.Always(nil))
	}
	return c.seen.Or(elem)
}

// eachKey compiles a list that makes a key of each element. How many there are makes no difference
// where all make the same key, since the keys of a request are a set.
func (c *compilation) eachKey(list, body ast.Node, follow []rune, escape func([]rune) *run.Escape) ([]run.Items, error) {
	around, before := c.seen, len(c.key)
	c.seen = run.Insight{}
	it, in, err := c.items(list, body, follow, escape)
	if err != nil {
		return nil, err
	}
	k := keys{always: !c.seen.Differs}
	switch same := !in.Differs && in.Rounds == 0; {
	case same:
		k.parts = slices.Clone(c.key[before:])
		if text, ok := body.(*ast.StringNode); ok {
			k.parts = []run.Insight{run.Always(text.Value)}
		}
	case body == nil:
		k.parts, k.differ = []run.Insight{c.filled(list)}, !c.oneList(list)
	default:
		k.differ = c.seen.Differs && (in.Differs || !c.oneList(list))
	}
	c.keys, c.key = append(c.keys, k), c.key[:before]
	c.seen = around.Beside(c.seen)
	return []run.Items{*it}, nil
}

// keys are what is known of those that one list of a hole makes.
type keys struct {
	parts  []run.Insight // of each, if all are the same one
	differ bool          // between requests that have any
	always bool          // all requests have them
}

// setOf is the insight into the keys of a hole, of which some make one set. Lists that may be empty
// make different ones, unless each makes the same key, or one is always there.
func setOf(all []keys) []run.Insight {
	if len(all) == 1 && (len(all[0].parts) > 0 || !all[0].differ) {
		return all[0].parts
	}
	var texts []run.Insight
	for _, k := range all {
		if len(k.parts) == 1 {
			texts = append(texts, k.parts[0])
		}
	}
	one := run.Insight{Differs: true}.Or(texts...)
	switch {
	case slices.ContainsFunc(all, func(k keys) bool { return k.differ }):
		one = run.Insight{Differs: true}
	case slices.ContainsFunc(all, func(k keys) bool { return k.always }):
		one = run.Insight{}
	case len(texts) < len(all):
		one = run.Insight{Differs: true}
	}
	return []run.Insight{one}
}
