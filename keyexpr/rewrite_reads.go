package keyexpr

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// What a text reads of the request. A template that reads nothing locks one key for the whole
// world, and so it is an error unless its author says that it is meant. To name a fact is not to
// read it: `true ? "a" : req.ID` never looks at it, and shard(req.ID, 1) makes the same of all.
// So each node is asked whether what it comes to depends on a fact, from the leaves up.
//
// FuzzStrangers holds the rule from both sides, with requests that have nothing in common: what
// starts gives them different keys, and what is refused would have given them the same.

// insight is what is known at start of what a node comes to. The value is known of few nodes,
// and needed of fewer: only what decides between others is asked for it.
type insight struct {
	reads bool // something of the request
	value any  // what a test always is: true or false; nil if that is not known
}

// sameForAll reports whether a node is the same for all requests although its operands are not,
// and what it then is if it is a test. There are two reasons: the operands are equal, as in a ==
// a, which is mostly a slip of the pen; or one of them leaves nothing of the other, as in a * 0.
// That is all the algebra that there is: it knows operators and not values, so that what it
// calls the same is the same, and a template that anybody means is let through. It looks at a
// node alone, with what is known of its operands. So it costs little, and finds nothing that is
// spread over several nodes: req.Seq + 1 - req.Seq is the same for all, and starts. To find all
// of these is not possible, and to find more of them is not worth it, as nobody writes them.
// What counts is the other direction. A template that is refused with reason has a way out,
// OneKey; one that is refused without reason has made somebody say a thing that is not true.
func (c *compilation) sameForAll(node ast.Node) (value any, same bool) {
	switch n := node.(type) {
	case *ast.UnaryNode:
		if v, ok := c.known[n.Node].value.(bool); ok && n.Operator != "-" && n.Operator != "+" {
			return !v, true
		}
	case *ast.BinaryNode:
		if decides, ok := deciding[n.Operator]; ok {
			return c.decided(decides, n)
		}
		return sameResult(n.Operator, n.Left, n.Right)
	case *ast.BuiltinNode:
		if n.Name == "len" {
			return nil, c.fixedLength(n.Arguments[0])
		}
		if l, ok := loops[n.Name]; ok && !l.values && len(n.Arguments) > 1 {
			never, ok := n.Arguments[1].(*ast.PredicateNode).Node.(*ast.BoolNode)
			return nil, ok && never.Value == l.miss // no element is a hit, whatever the list is
		}
		if len(n.Arguments) == 2 {
			return sameResult(n.Name, n.Arguments[0], n.Arguments[1])
		}
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok && len(n.Arguments) == 2 {
			return sameResult(name.Value, n.Arguments[0], n.Arguments[1])
		}
	case *ast.SliceNode:
		return nil, n.To != nil && (n.From == nil && n.To.String() == "0" || n.From != nil && n.From.String() == n.To.String())
	}
	return nil, false
}

// deciding are the operators that one operand can decide, and what that operand is. and is
// decided by false and or by true; the other operand may say what it likes.
var deciding = map[string]bool{"and": false, "&&": false, "or": true, "||": true}

// decided is sameForAll for and and or. A fact beside true in an or is read by nobody, on
// whichever side it stands.
func (c *compilation) decided(decides bool, n *ast.BinaryNode) (value any, same bool) {
	left, right := c.known[n.Left].value, c.known[n.Right].value
	if left == decides || right == decides {
		return decides, true
	}
	return !decides, left != nil && right != nil
}

// sameResult is sameForAll for an operator, or a function of two arguments. Nodes are equal if
// they are written alike, as facts don't change while a key is made. Errors don't count.
// req.Tags[9] == req.Tags[9] is an error for a request without ten tags, and true for all
// others; one key and no key is not two keys.
func sameResult(operator string, a, b ast.Node) (value any, same bool) {
	left, right := a.String(), b.String()
	switch operator {
	case "==", "<=", ">=":
		return true, left == right
	case "!=", "<", ">":
		return false, left == right
	case "contains", "startsWith", "endsWith", "hasPrefix", "hasSuffix":
		return true, left == right || right == `""`
	case "matches":
		return true, right == `""` || right == `".*"`
	case "in":
		list, ok := writtenOut(b)
		return true, ok && slices.ContainsFunc(list, func(n ast.Node) bool { return n.String() == left })
	// A number that is always the same is known to be so, and its value is left open: only tests choose
	// between branches.
	case "-":
		return nil, left == right
	case "*":
		return nil, left == "0" || right == "0"
	case "%", "mod":
		return nil, left == right || left == "0" || right == "1" || right == "-1"
	case "div":
		return nil, left == right || left == "0"
	case "shard":
		return nil, right == "1"
	}
	return nil, false
}

// fixedLength reports whether all values of a node are of one length. An array of Go has one
// length, as a list has that is written out, and a digest. A list of the request has its own.
func (c *compilation) fixedLength(n ast.Node) bool {
	if _, ok := writtenOut(n); ok {
		return true
	}
	if call, ok := n.(*ast.CallNode); ok {
		return call.Callee.String() == "hash"
	}
	t := c.typeOf(n)
	return t != nil && t.Kind() == reflect.Array
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

// taken returns the one element of a list or map, which stands in the template, that a node
// takes: nothing of the others is read. It is the same thought as behind a choice: ["a",
// req.ID][0] names a fact as `true ? "a" : req.ID` does. Indexes beyond the end are left to the
// request, which will fail.
func taken(node ast.Node) (ast.Node, bool) {
	var from, by ast.Node
	switch n := node.(type) {
	case *ast.MemberNode:
		from, by = n.Node, n.Property
	case *ast.BuiltinNode:
		switch {
		case n.Name == "first":
			from, by = n.Arguments[0], &ast.IntegerNode{}
		case n.Name == "last":
			from, by = n.Arguments[0], &ast.IntegerNode{Value: -1}
		case n.Name == "get" && len(n.Arguments) == 2:
			from, by = n.Arguments[0], n.Arguments[1]
		}
	}
	if m, ok := from.(*ast.MapNode); ok {
		for _, p := range m.Pairs {
			if pair := p.(*ast.PairNode); pair.Key.String() == by.String() {
				return pair.Value, true
			}
		}
		return nil, false
	}
	list, ok := writtenOut(from)
	i, fixed := integer(by)
	if !ok || !fixed {
		return nil, false
	}
	if i < 0 {
		i += len(list)
	}
	if i < 0 || i >= len(list) {
		return nil, false
	}
	return list[i], true
}

// named reports whether a node names anything: a fact, a variable, a function or the element of
// a loop. A body that names nothing makes one key of each element. So the keys of the list are
// the same for all requests that have an element, however many they have, since a list of keys
// is a set.
func named(node ast.Node) bool {
	v := nameVisitor{}
	ast.Walk(&node, &v)
	return v.found
}

// Functions count as well. What one of the user's returns is not known before it is asked.
type nameVisitor struct{ found bool }

func (v *nameVisitor) Visit(node *ast.Node) {
	switch (*node).(type) {
	case *ast.IdentifierNode, *ast.PointerNode:
		v.found = true
	}
}

// fold compiles a node, and evaluates it if it is the same for all requests: fixed is nil if it
// is not. A node that varies is not evaluated although it reads nothing: the element of 1..3 is
// another one each time, now is another time, and a function of the user's is for requests, and
// may not be ready when the program starts.
func (c *compilation) fold(n ast.Node) (x *code, fixed any, err error) {
	reads, varies := c.reads, c.varies
	c.reads, c.varies = false, false
	x, err = c.compile(n)
	same := !c.reads && !c.varies && err == nil
	c.reads, c.varies = c.reads || reads, c.varies || varies
	if !same {
		return x, nil, err
	}
	st := run.NewState(context.Background(), nil, nil)
	defer st.Release()
	_, _ = st.Step(run.MaxSteps-foldSteps), st.Spend(run.MaxBytes-foldBytes)
	defer func() { _ = recover() }() // what panics now does so for each request, and is an error then
	if v, err := x.value(st); err == nil {
		fixed = v
		c.known[n] = insight{value: v}
	}
	return x, fixed, nil
}

// What folding one node may cost. A text can have many of them, and a program that starts has
// many texts: what is larger is left to each request, whose bounds it must keep. A fold that was
// not made is no fault. The branch counts as read, and the request evaluates it.
const (
	foldSteps = run.MaxSteps / 20
	foldBytes = run.MaxBytes / 20
)

// foldTest is fold for a test, which becomes no part of a key. Two texts beside each other need
// no text between them in a test: they become no part of the key.
func (c *compilation) foldTest(n ast.Node) (x *code, fixed any, err error) {
	c.plain++
	defer func() { c.plain-- }()
	return c.fold(n)
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
	if run.Spells(reflect.PointerTo(t)) && t.Kind() != reflect.String {
		return t.String()
	}
	return basicType(t).String()
}
