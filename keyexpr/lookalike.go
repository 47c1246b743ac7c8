package keyexpr

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// A template that reads no fact locks one key for the whole world. The rule is that alone, and needs no list of mistakes:
// what stands here only finds the sentence that fits one. Some mistakes are refused by themselves, as nobody means them:
// ${, {{, and braces without a partner.

// checkBraces refuses literals that no key has: braces that do not pair, and what other languages begin their holes with.
func checkBraces(text string, parts []part) error {
	var open []int
	for _, p := range parts {
		if p.hole {
			continue
		}
		for i := range len(p.text) {
			at := place(text, p, i)
			switch {
			case strings.HasPrefix(p.text[i:], "${"):
				return errAt(text, at, "${…} is not filled in: write %s", suggestHole(p.text[i+1:], "#{req.OrderID}"))
			case strings.HasPrefix(p.text[i:], "{{"):
				return errAt(text, at, "{{…}} is not filled in: write %s", suggestHole(strings.TrimLeft(p.text[i+1:], "{. "), "#{req.OrderID}"))
			case p.text[i] == '{':
				open = append(open, at)
			case p.text[i] == '}' && len(open) == 0:
				return errAt(text, at, "a } without a {: a hole is written #{…}, and ends at its }")
			case p.text[i] == '}':
				open = open[:len(open)-1]
			}
		}
	}
	if len(open) > 0 {
		return errAt(text, open[len(open)-1], "a { without a }: a hole is written #{…}, and a hash tag {…}")
	}
	return nil
}

// place returns where the i-th byte of a literal stands in the text, in which some hashes count half.
func place(text string, p part, i int) int {
	for at, n := p.off, 0; at < len(text); {
		hashes := countHashes(text[at:])
		literal, source := max(hashes, 1), max(hashes, 1)
		each := 1
		if hashes > 0 && at+hashes < len(text) && text[at+hashes] == '{' {
			literal, source, each = hashes/2+1-hashes%2, hashes+1, 2
		}
		if i < n+literal {
			return min(at+each*(i-n), at+source-1)
		}
		n, at = n+literal, at+source
	}
	return len(text)
}

var fieldName = regexp.MustCompile(`^[{. ]*((?:[\pL_][\pL\d_]*\.)*[\pL_][\pL\d_]*)`)

// suggestHole writes the name that s begins with as a hole.
func suggestHole(s, otherwise string) string {
	m := fieldName.FindStringSubmatch(s)
	if m == nil {
		return otherwise
	}
	if name := m[1]; strings.Contains(name, ".") && name[0] != '.' {
		return "#{" + name + "}"
	}
	return "#{req." + m[1] + "}"
}

// mistakes are how a value is put into a text elsewhere.
var mistakes = []struct {
	pattern *regexp.Regexp
	reason  string
}{
	{regexp.MustCompile(`##+\{`), "##{ is a literal #{: write #{…} for a hole"},
	{regexp.MustCompile(`# +\{`), "a hole is written #{…}, without a blank"},
	{regexp.MustCompile(`'\s*\+|\+\s*'|"\s*\+|\+\s*"`), "this looks like Java: give it to package spel, or write order:#{req.OrderID}"},
	{regexp.MustCompile(`#\pL`), "a hole is written #{req.OrderID}; a key in Java's language goes through package spel"},
	{regexp.MustCompile(`\{[^{}]*\}`), "{…} is a hash tag, and no hole: write #{…}"},
	{regexp.MustCompile(`%[sdvq]`), "%s is not filled in: write #{req.OrderID}"},
	{regexp.MustCompile(`[/:]:\pL`), ":name is not filled in: write #{path.name}"},
}

// lookAlike is the error of a template that reads nothing of the request.
func lookAlike(text string, parts []part, roots Roots, named bool) error {
	rule := "all requests would share one key, as nothing of the request is read"
	if named {
		rule = "all requests would share one key, as nothing that is read of the request makes a difference"
	}
	literals := []byte(text) // with blanks for holes
	for _, p := range parts {
		for i := p.off - len("#{"); p.hole && i <= p.off+len(p.text); i++ {
			literals[i] = ' '
		}
	}
	for _, m := range mistakes {
		if at := m.pattern.FindIndex(literals); at != nil {
			return errAt(text, at[0], "%s: %s; OneKey (one-key in a tag) says that it is meant", rule, m.reason)
		}
	}
	for _, p := range parts {
		if p.hole {
			return errAt(text, p.off, "%s: write something like #{req.OrderID}, from %s; OneKey (one-key in a tag) says that it is meant",
				rule, suggest.List(slices.Collect(maps.Keys(roots))))
		}
	}
	return errAt(text, 0, "%s: write something like order:#{req.OrderID}; OneKey (one-key in a tag) says that it is meant", rule)
}

// insight is what is known at start of what a node comes to.
type insight struct {
	reads bool // something of the request
	value any  // what a test always is: true or false; nil if that is not known
}

// sameForAll reports whether a node is the same for all requests although its operands are not, and what it then is if it is
// a test. There are two reasons: the operands are equal, as in a == a, which is mostly a slip of the pen; or one of them
// leaves nothing of the other, as in a * 0. That is all the algebra that there is: it knows operators and not values, so
// that what it calls the same is the same, and a template that anybody means is let through.
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

// deciding are the operators that one operand can decide, and what that operand is.
var deciding = map[string]bool{"and": false, "&&": false, "or": true, "||": true}

// decided is sameForAll for and and or.
func (c *compilation) decided(decides bool, n *ast.BinaryNode) (value any, same bool) {
	left, right := c.known[n.Left].value, c.known[n.Right].value
	if left == decides || right == decides {
		return decides, true
	}
	return !decides, left != nil && right != nil
}

// sameResult is sameForAll for an operator, or a function of two arguments. Nodes are equal if they are written alike, as
// facts don't change while a key is made.
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

// fixedLength reports whether all values of a node are of one length.
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

// writtenOut returns the elements of a list that stands in the template, in their order.
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

// integer returns what a literal says.
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

// taken returns the one element of a list or map, which stands in the template, that a node takes: nothing of the others is
// read.
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

// named reports whether a node names anything: a fact, a variable, a function or the element of a loop.
func named(node ast.Node) bool {
	v := nameVisitor{}
	ast.Walk(&node, &v)
	return v.found
}

type nameVisitor struct{ found bool }

func (v *nameVisitor) Visit(node *ast.Node) {
	switch (*node).(type) {
	case *ast.IdentifierNode, *ast.PointerNode:
		v.found = true
	}
}

var tag = regexp.MustCompile(`\{([^{}]*)\}`)

// checkTag refuses a hash tag whose text is a fact, or a field of one: somebody meant it to be a hole.
func (c *compilation) checkTag(lit part) error {
	for _, m := range tag.FindAllStringSubmatchIndex(lit.text, -1) {
		name := strings.TrimSpace(lit.text[m[2]:m[3]])
		hole, ok := c.inReach(name)
		if ok && strings.HasSuffix(lit.text[:m[0]], "#") {
			return errAt(c.text, place(c.text, lit, m[0])-2, "##{ is a literal #{, and %s could be read: write #{%s}", hole, hole)
		}
		if ok {
			return errAt(c.text, place(c.text, lit, m[0]), "{%s} is a hash tag, and %s could be read: write #{%s}", name, hole, hole)
		}
	}
	return nil
}

// inReach reports whether a name is a root, a path from one, or a field of one.
func (c *compilation) inReach(name string) (hole string, ok bool) {
	first, _, _ := strings.Cut(name, ".")
	if _, ok := c.roots[first]; ok {
		return name, true
	}
	for _, root := range slices.Sorted(maps.Keys(c.roots)) {
		of := c.roots[root].of
		if slices.Contains(of.Names, name) {
			return root + "." + name, true
		}
		t := of.Type
		for t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t == nil || t.Kind() != reflect.Struct || first == "" {
			continue
		}
		if f, ok := t.FieldByName(first); ok && f.IsExported() || len(run.Aliases(t, first)) > 0 {
			return root + "." + name, true
		}
	}
	return "", false
}
