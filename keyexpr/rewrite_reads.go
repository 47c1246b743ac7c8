package keyexpr

import (
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// What a text reads of the request. A template that reads nothing locks one key for the whole
// world, and so it is an error unless its author says that it is meant. To name a fact is not to
// read it: `true ? "a" : req.ID` never looks at it, and shard(req.ID, 1) makes the same of all.
// So each node is asked whether what it comes to can differ between two requests, from the leaves
// up. Package run says how (insight.go), and rewrite_rules.go what is the same whatever a fact is.
//
// FuzzStrangers holds the rule from both sides, with requests that have nothing in common: what
// starts gives them different keys, and what is refused would have given them the same.

// insightInto returns what is known of a node that was just compiled to x. c.seen says whether its
// operands differ.
func (c *compilation) insightInto(n ast.Node, x *code) run.Insight {
	switch {
	case x.fixed:
		return run.Always(x.constant)
	case x.path != nil:
		return c.ofPath(x, n)
	}
	in, ok := c.rule(n)
	if !ok {
		in = c.outcomes(n)
	}
	if !ok && !in.IsKnown() {
		in = in.OrElse(c.ofUnknown(n, x))
	}
	if strict(n) {
		return in.Strict(c.seen)
	}
	return in
}

// strict reports whether a node evaluates all of its operands. What looks for a text in nil does not.
func strict(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryNode:
		_, decides := deciding[n.Operator]
		return !decides && n.Operator != "??" && textTests[n.Operator] == nil
	case *ast.BuiltinNode:
		_, ok := loops[n.Name]
		return !ok && textTests[n.Name] == nil
	case *ast.MemberNode:
		return !n.Optional
	case *ast.CallNode, *ast.ArrayNode, *ast.MapNode, *ast.UnaryNode, *ast.SliceNode:
		return true
	}
	return false
}

// ofPath is insightInto for a fact, or what is in the element of a loop.
func (c *compilation) ofPath(x *code, n ast.Node) run.Insight {
	in := run.Insight{Differs: true, Asks: true}
	if x.path.Elem {
		in = c.elems[len(c.elems)-1]
		if len(x.path.Steps) == 0 {
			return in
		}
		in = run.Insight{Differs: in.Differs, Asks: true, Rounds: run.Round(len(c.elems) - 1)}
	}
	switch {
	case x.of != boolType:
		return in
	case neverNil(x):
		return c.ofTest(in, n)
	}
	return in.Of(false, true, nil)
}

var boolType = reflect.TypeFor[bool]()

// ofTest is the insight into a node that is true or false. It is known again where it is written
// alike, unless its names are those of elements or variables, which may stand for something else
// there.
func (c *compilation) ofTest(in run.Insight, n ast.Node) run.Insight {
	if in.Rounds != 0 || len(c.vars) > 0 && !c.isPath(n) {
		return in.Of(true, false)
	}
	text, holds := n.String(), true
	if b, ok := n.(*ast.BinaryNode); ok && opposites[b.Operator] != "" {
		text, holds = (&ast.BinaryNode{Operator: opposites[b.Operator], Left: b.Left, Right: b.Right}).String(), false
	}
	number := slices.Index(c.tests, text)
	if number < 0 && len(c.tests) < run.MaxTests {
		number, c.tests = len(c.tests), append(c.tests, text)
	}
	return in.Test(number, holds)
}

// opposites are operators that hold where others don't.
var opposites = map[string]string{"!=": "==", ">=": "<", "<=": ">"}

func (c *compilation) isPath(n ast.Node) bool {
	_, ok := c.pathOf(n)
	return ok
}

// outcomes tries a node with all that its operands may come to.
func (c *compilation) outcomes(n ast.Node) run.Insight {
	defer func(seen run.Insight) { c.seen, c.guess = seen, nil }(c.seen)
	return c.trials.Outcomes(c.seen, len(c.elems), func(g *run.Guess) (func(*run.State) (any, error), int, error) {
		c.guess = g
		x, err := c.compileNode(n)
		if err != nil {
			return nil, 0, err
		}
		return func(st *run.State) (any, error) {
			v, err := x.value(st)
			if errors.Is(err, errChain) { // the chain around it is another node
				err = run.ErrUnknown
			}
			return v, err
		}, x.cost, nil
	})
}

// guessed is compile during a trial: what the guess takes an operand for. An operand that differs
// between the rounds of a loop in the trial is no such value, and goes round with it.
func (c *compilation) guessed(n ast.Node) (*code, error) {
	in := c.known[n]
	if in.Rounds>>c.guess.Depth != 0 {
		return c.compileNode(n)
	}
	v, err := c.guess.Pick(in)
	if errors.Is(err, run.ErrFails) {
		x := valueCode(1, func(*run.State) (any, error) { return nil, err })
		x.fails = true
		return x, nil
	}
	return constant(v), err
}

// ask notes that a node can be evaluated for a request only.
func (c *compilation) ask() error {
	if c.guess != nil {
		return run.ErrUnknown
	}
	c.seen.Asks = true
	return nil
}

// inLoop compiles what is evaluated for each element of a list, and returns what is seen in it. An
// element is the same in all rounds if all elements are.
func (c *compilation) inLoop(list ast.Node, body func() error) (inner run.Insight, err error) {
	depth, elem := len(c.elems), c.element(list)
	around := c.seen
	defer func() { c.elems, c.seen = c.elems[:depth], around.Beside(inner.Outside(depth)) }()
	c.elems, c.seen = append(c.elems, elem), run.Insight{}
	err = body()
	return c.seen, err
}

// element is the insight into the element that a loop over a list is at.
func (c *compilation) element(list ast.Node) run.Insight {
	elem := c.elementsOf(list)
	elem.Asks = true
	elem.Differs = elem.Differs && !c.oneList(list)
	if _, same := elem.Single(); !same {
		elem.Rounds = run.Round(len(c.elems))
	}
	return elem
}

// elementsOf is the insight into each element of a list.
func (c *compilation) elementsOf(list ast.Node) run.Insight {
	return c.known[list].Elements(func(list any) (iter.Seq[any], bool) {
		v, err := listOf(reflect.ValueOf(list))
		return func(yield func(any) bool) {
			for i := range v.Len() {
				var elem any
				if e := run.Tame(v.Index(i)); e.IsValid() {
					elem = e.Interface()
				}
				if !yield(elem) {
					return
				}
			}
		}, err == nil
	})
}

// filled is the insight into a list that makes a key. An empty one makes none.
func (c *compilation) filled(n ast.Node) run.Insight {
	in := c.known[n]
	return in.Comes(slices.DeleteFunc(slices.Clone(in.Values), func(v run.Value) bool { return isEmpty(v.Is) }), in.Known)
}

// oneList reports whether all requests that have a list of elements have the same one.
func (c *compilation) oneList(n ast.Node) bool {
	in := c.filled(n)
	return in.IsKnown() && len(in.Values) < 2
}

// spelt is the insight into the text that a node has in a key.
func (c *compilation) spelt(in run.Insight) run.Insight {
	return c.trials.Spelt(in, func(st *run.State, v any) (string, error) {
		key, err := st.Value(nil, v, nil)
		return string(key), err
	})
}

// part notes a part of the key that was compiled while something else was seen. What is in it is no
// part by itself.
func (c *compilation) part(in, around run.Insight) {
	if c.nested == 0 && c.guess == nil {
		c.key = append(c.key, in)
	}
	c.seen = around.Beside(in)
}

// fieldVisitor collects the paths that start at a root, as far as they are known at start. It
// serves the registry of guards, where somebody who is about to rename a field looks for the
// locks that depend on it. What is computed, such as header[req.Name], is listed as far as it is
// known: as header.
type fieldVisitor struct {
	c     *compilation
	inner map[ast.Node]bool // parts of a longer path
	paths []ast.Node
}

// Visit comes to the parts of a path before it comes to the path, and then forgets them:
// req.Customer.Name reads one field. A chain with ?. is a node around a path, and lists as the
// path does.
func (v *fieldVisitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		v.paths = append(v.paths, n)
	case *ast.MemberNode:
		v.longer(n, n.Node)
	case *ast.ChainNode:
		v.longer(n, n.Node)
	}
}

// longer takes a path in the place of the one that it begins with.
func (v *fieldVisitor) longer(n, begin ast.Node) {
	if v.c.pathText(n) != "" {
		v.inner[begin] = true
		v.paths = append(v.paths, n)
	}
}

// addFields adds what the tree reads to the fields of the text. It runs on the tree as it was
// resolved, so that order_id and OrderID are listed as one.
func (c *compilation) addFields(root *ast.Node) {
	v := fieldVisitor{c: c, inner: map[ast.Node]bool{}}
	ast.Walk(root, &v)
	for _, n := range v.paths {
		if path := c.pathText(n); path != "" && !v.inner[n] && !slices.Contains(c.fields, path) {
			c.fields = append(c.fields, path)
		}
	}
	slices.Sort(c.fields)
}

// pathText returns the path that n is, and "" if it is none. An index is left out of the path,
// as which element is read says little: req.Lines[0].SKU is listed as req.Lines.SKU.
func (c *compilation) pathText(n ast.Node) string {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		if _, ok := c.roots[n.Value]; ok {
			return n.Value
		}
	case *ast.ChainNode:
		return c.pathText(n.Node)
	case *ast.MemberNode:
		base := c.pathText(n.Node)
		if name := propertyName(n.Property); base != "" && name != "" {
			return base + "." + name
		}
		return base
	}
	return ""
}

// propertyName returns the name of a field or entry, and "" if it is found by a number or
// computed. Names that are constants of a map's own key type are names, too.
func propertyName(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.ConstantNode:
		if v := reflect.ValueOf(n.Value); v.Kind() == reflect.String {
			return v.String()
		}
	}
	return ""
}

// They are sorted for people. A path finds its root by the order in which roots were first used.
func rootNames(used []run.Root) []string {
	names := make([]string, len(used))
	for i, r := range used {
		names[i] = r.Name
	}
	slices.Sort(names)
	return names
}

// An ellipsis says that a join may have any number of values.
func writeShape(b *strings.Builder, parts []run.Part) {
	for _, p := range parts {
		switch {
		case p.Literal():
			b.WriteString(p.Text)
		case p.Join != nil:
			writeShape(b, p.Join.Item)
			b.WriteString(p.Text + "…")
		default:
			b.WriteString("<" + shapeOf(p.Type) + ">")
		}
	}
}

// What spells itself is shown as its type, since its text has a form of its own: <uuid.UUID>
// says more than <[16]uint8>.
func shapeOf(t reflect.Type) string {
	if t == nil {
		return "any"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if run.Spells(run.PointerTo(t)) && t.Kind() != reflect.String {
		return t.String()
	}
	return basicType(t).String()
}
