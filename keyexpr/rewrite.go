package keyexpr

import (
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// What puts values together (+, join, and string around them) is taken apart again, into
// literals and values. So each value is escaped by itself, for the literal that follows it, and
// the key can be read back into the values. A hole
//
//	#{req.Tenant + "/" + req.ID}:…
//
// is the same as #{req.Tenant}/#{req.ID}:… . Where such a text is no part of the key itself, as
// in lower(a + "/" + b), it is put together with escapes of its own, so that it still says what
// it was made of. Only what is compared, counted or given to a user's function is put together
// as it is.

// piece is a literal, or a node that stands for one value or, with items, for several. A node
// that is a join is noted beside its items, for the place in errors.
type piece struct {
	lit   string
	node  ast.Node
	items *series
}

// series is a list whose values have a text between them. A map within a join is taken in, as
// its body is what stands between the separators. So join(map(req.Lines, .SKU), ",") never makes
// the list of the map, and the operands of a + in the body are values of their own.
type series struct {
	list ast.Node
	body ast.Node // what each element becomes; nil for itself
	sep  string
}

// pieces takes node apart. What is not taken apart here is one value. That is right for
// everything else: a choice, a let or a function may come to any text, in which nobody can find
// the places where its parts met. TestChoicesAreOneValue has the two requests that would share a
// key otherwise.
func (c *compilation) pieces(node ast.Node, list []piece) ([]piece, error) {
	switch n := node.(type) {
	case *ast.StringNode:
		return append(list, piece{lit: n.Value}), nil
	case *ast.BinaryNode:
		// All operands of a text are values by themselves, on whatever side the text stands. In Java, 1 + 2
		// + "x" is 3x. Here the checker refuses a number beside a text, so that no sum of numbers is cut in
		// two by this.
		if n.Operator == "+" && c.textual(n) {
			list, err := c.pieces(n.Left, list)
			if err != nil {
				return nil, err
			}
			return c.pieces(n.Right, list)
		}
	case *ast.CallNode:
		name, ok := n.Callee.(*ast.IdentifierNode)
		if !ok {
			break
		}
		switch name.Value {
		case basicName, "string": // a hole needs no string: it is for + alone
			return c.pieces(n.Arguments[0], list)
		case "required":
			if sum, ok := n.Arguments[0].(*ast.BinaryNode); ok && c.textual(sum) { // which is never empty
				return c.pieces(sum, list)
			}
		case "join":
			j, err := c.joinOf(n)
			return append(list, piece{items: j, node: n}), err
		}
	}
	return append(list, piece{node: node}), nil
}

// textual reports whether n puts texts together, rather than numbers. One operand of type string
// is enough, since the checker lets nothing else stand beside it. Where a type is not known at
// start, plus decides for each request.
func (c *compilation) textual(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.StringNode:
		return true
	case *ast.BinaryNode:
		if n.Operator == "+" {
			return c.textual(n.Left) || c.textual(n.Right)
		}
	}
	t := c.typeOf(n)
	return t != nil && t.Kind() == reflect.String
}

// joinOf reads join(list, "text"). Without the text, ["a", "b"] and ["ab"] would be one key. The
// text between must be written out because what follows a value decides what is escaped in it,
// and that is decided at start.
func (c *compilation) joinOf(n *ast.CallNode) (*series, error) {
	j := &series{list: n.Arguments[0]}
	if len(n.Arguments) > 1 {
		sep, ok := n.Arguments[1].(*ast.StringNode)
		if !ok {
			return nil, c.at(n.Arguments[1], "what join puts between values of a key must be written out")
		}
		j.sep = sep.Value
	}
	if j.sep == "" {
		return nil, c.at(n, "join needs a text to put between the values, as in join(%s, \",\"): without one they could not be told apart", c.source(j.list))
	}
	if m, ok := j.list.(*ast.BuiltinNode); ok && m.Name == "map" {
		j.list, j.body = m.Arguments[0], m.Arguments[1].(*ast.PredicateNode).Node
	}
	return j, nil
}

// parts compiles pieces. follow is what the literal behind them may begin with. It goes from
// left to right and looks ahead: what a value is escaped for is what stands behind it, up to the
// first literal. Nothing is known to be needed for what stands in front. A reader comes from the
// left, and has found the place where a value begins when it has found where the one before it
// ends.
func (c *compilation) parts(pieces []piece, follow []rune, escape func([]rune) *run.Escape) ([]run.Part, error) {
	var parts []run.Part
	for i, p := range pieces {
		if p.items == nil && p.node == nil {
			if p.lit == "" {
				continue
			}
			// Literals that meet are one. The rules about what a literal begins and ends with, and Match, must
			// not depend on how an author has cut it: "a" + "%" + x is "a%" + x.
			if n := len(parts); n > 0 && parts[n-1].Literal() {
				parts[n-1].Text += p.lit
				continue
			}
			parts = append(parts, run.Part{Text: p.lit})
			continue
		}
		next, err := c.follow(p, pieces[i+1:], follow)
		if err != nil {
			return nil, err
		}
		var part run.Part
		if p.items != nil {
			part, err = c.joinPart(p, next, escape)
		} else {
			part, err = c.leaf(p.node, escape(next))
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// partsOf takes a node apart and compiles its pieces.
func (c *compilation) partsOf(n ast.Node, follow []rune, escape func([]rune) *run.Escape) ([]run.Part, error) {
	pieces, err := c.pieces(n, nil)
	if err != nil {
		return nil, err
	}
	return c.parts(pieces, follow, escape)
}

// asItIs escapes nothing: it is for raw, and for the one value of a text.
func asItIs([]rune) *run.Escape { return nil }

// follow returns what may follow a value: the beginning of the next literal, or what follows all
// pieces. An empty literal in between is as none. A % begins each escape, so that behind a value
// it could be the end of that value.
func (c *compilation) follow(p piece, rest []piece, follow []rune) ([]rune, error) {
	for _, next := range rest {
		// No escape could help here, as there is nothing to escape for. A length in front would, and would
		// make another key than a service that puts the same two texts together.
		if next.node != nil {
			return nil, c.at(next.node, "two values without text between them could not be told apart: put text there, as in a + \":\" + b")
		}
		if next.lit != "" {
			r, _ := utf8.DecodeRuneInString(next.lit)
			if r == '%' && !c.isRaw(p.node) {
				return nil, c.at(p.node, "a %% behind a value would look like an escape: put another text between them")
			}
			return []rune{r}, nil
		}
	}
	return follow, nil
}

// leaf compiles one value of a key. The ways are tried from the quickest on: a path, a path through
// one function from text to text, what is a text for sure, and anything else. They differ in what
// they allocate. The first two make nothing but the key.
func (c *compilation) leaf(n ast.Node, e *run.Escape) (run.Part, error) {
	part := run.Part{Src: strings.TrimSpace(c.src), Escape: e}
	compile := c.compile
	if call, ok := n.(*ast.CallNode); ok && c.isRaw(n) { // which is not escaped within either
		c.raw, n, part.Escape, compile = true, call.Arguments[0], nil, c.plainly
	}
	// Asked before it is compiled: that a struct makes no key is what its author has to know, and not
	// that some closure can't be made of it.
	if err := c.checkHole(n); err != nil {
		return part, err
	}
	part.Type = c.typeOf(n)
	around := c.seen
	x, err := compile(n)
	if err != nil {
		return part, err
	}
	c.part(c.spelt(c.known[n]), around)
	part.Cost = x.cost
	switch {
	case x.path != nil:
		// Not the type of n, which may be a choice between a text and anything else: the checker takes
		// that for a text.
		part.Path, part.Leaf, part.Type = x.path, run.LeafAt(x.path, x.of), x.of
	case x.via != nil:
		part.Path, part.Leaf, part.Via = x.from, run.LeafAt(x.from, stringType), x.via
	case x.text != nil:
		part.Append = func(st *run.State, key []byte, e *run.Escape) ([]byte, error) {
			s, err := x.text(st)
			if err != nil {
				return key, err
			}
			return st.Text(key, s, e)
		}
	default:
		part.Append = func(st *run.State, key []byte, e *run.Escape) ([]byte, error) {
			v, err := x.value(st)
			if err != nil {
				return key, err
			}
			return st.Value(key, v, e)
		}
	}
	return part, nil
}

// isRaw looks at the call alone: raw deeper within an expression gives a value that knows itself
// to be raw. That value tells the renderer, since only a value that is computed for a request is
// known to be raw there.
func (c *compilation) isRaw(n ast.Node) bool {
	call, ok := n.(*ast.CallNode)
	if !ok {
		return false
	}
	name, ok := call.Callee.(*ast.IdentifierNode)
	return ok && name.Value == "raw"
}

// joinPart compiles a list whose values have a text between them. A value ends where that text
// begins, or what follows the list; the two must not begin alike, or the end of the list could
// not be found. An item of a join may be a join again, whose end is found by the outer
// separator. The rule that the two don't begin alike holds on each level, and so the whole can
// be read without looking back.
func (c *compilation) joinPart(p piece, follow []rune, escape func([]rune) *run.Escape) (part run.Part, err error) {
	part = run.Part{Src: strings.TrimSpace(c.src), Text: p.items.sep}
	first, _ := utf8.DecodeRuneInString(p.items.sep)
	if slices.Contains(follow, first) {
		return part, c.at(p.node, "the text behind join begins like what is between its values: the end of the list could not be found")
	}
	if first == '%' {
		return part, c.at(p.node, "a %% behind a value would look like an escape: put another text between them")
	}
	around := c.seen
	c.seen = run.Insight{}
	before := len(c.key)
	if part.Join, _, err = c.items(p.items.list, p.items.body, append([]rune{first}, follow...), escape); err != nil {
		return part, err
	}
	c.key = c.key[:before] // what an element is made of is no part
	list, ok := p.items.list.(*ast.ArrayNode)
	switch {
	case c.nested > 0 || c.guess != nil:
		c.seen = around.Beside(c.seen)
	case ok && p.items.body == nil: // each of its elements is one
		for _, e := range list.Nodes {
			c.part(c.spelt(c.known[e]), around)
		}
	default:
		c.part(c.spelt(c.outcomes(p.node)), around)
	}
	return part, nil
}

// plus compiles + outside of parts. Texts of unknown types can't be taken apart at start. To put
// them together as they are would give up the promise for them, so that one of the two has to
// show what it is: by a text between them, or by string(x).
func (c *compilation) plus(n *ast.BinaryNode) (*code, error) {
	if c.cond || c.plain > 0 || !c.textual(n) {
		list, cost, err := c.compileAll([]ast.Node{n.Left, n.Right})
		if err != nil {
			return nil, err
		}
		left, right := list[0], list[1]
		keyed := !c.cond && c.plain == 0
		return valueCode(1+cost, func(st *run.State) (any, error) {
			a, b, err := operands(st, left, right)
			if err != nil {
				return nil, err
			}
			if _, ok := basic(a).(string); ok && keyed {
				return nil, run.Faulty("puts two texts of unknown types together: put text between them, as in a + \":\" + b")
			}
			return add(st, a, b)
		}), nil
	}
	return c.together(n)
}

// together puts the pieces of a sum or a join into one text, which says what it was made of. One value needs no
// escapes for that. A text of one value says what it was made of as it is: the literals around
// it are the same for all requests. Escapes within a text are fewer than those of a key, as only
// what has to be read back is escaped: order ids in a hash should not look different from order
// ids in a key.
func (c *compilation) together(n ast.Node) (*code, error) {
	pieces, err := c.pieces(n, nil)
	if err != nil {
		return nil, err
	}
	values := 0
	for _, p := range pieces {
		if p.node != nil {
			values++
		}
		if p.items != nil { // has any number
			values++
		}
	}
	escape := run.Within
	if values < 2 {
		escape = asItIs
	}
	parts, err := c.parts(pieces, nil, escape)
	if err != nil {
		return nil, err
	}
	steps, _ := run.Weigh(parts)
	return textCode(1+steps, func(st *run.State) (string, error) { return st.Together(parts) }), nil
}
