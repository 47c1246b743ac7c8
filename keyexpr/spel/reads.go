package spel

import (
	"errors"
	"iter"
	"slices"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
	"github.com/latchkey-go/latchkey/keyexpr/spel/internal/insight"
)

// An expression that reads nothing of the request locks one key for the whole world. That is
// more than to name no parameter: 'a' ?: #order.id names one and never looks at it, and
// #order.id == #order.id makes the same of all orders. What follows is the analysis that templates
// have (insight.go of package run), for Java's operators; the two agree, so that a key which is
// moved from one language to the other stays refused, or stays allowed. It takes each node when it
// has been compiled, and notes whether it can differ between two requests. It decides nothing by
// itself; key.go asks once, for the whole key.

// known is what is known at start of what a node comes to, and its type, which a value of Go
// does not have.
type known struct {
	insight.Insight
	typ     typ
	present bool // never null
}

// insightInto returns what is known of a node that was just compiled to x. c.seen says whether its
// operands differ.
func (c *compiler) insightInto(n *node, x *code) insight.Insight {
	if x.path != nil {
		return c.ofPath(n, x)
	}
	if in, ok := c.rule(n, x); ok {
		return in
	}
	in := c.outcomes(n)
	if in.IsKnown() {
		return in
	}
	return in.OrElse(c.ofUnknown(n, x))
}

// ofPath is insightInto for a fact, or what is in the element of a selection or projection.
func (c *compiler) ofPath(n *node, x *code) insight.Insight {
	in := insight.Insight{Differs: true, Asks: true}
	if x.path.Elem {
		in = c.rounds[len(c.rounds)-1]
		if len(x.path.Steps) == 0 {
			return in
		}
		in = insight.Insight{Differs: in.Differs, Asks: true, Rounds: insight.Round(len(c.rounds) - 1)}
	}
	return c.ofBool(in, n, x)
}

// ofBool is the insight into what is true or false, and null where a value may be missing.
func (c *compiler) ofBool(in insight.Insight, n *node, x *code) insight.Insight {
	switch {
	case x.typ.k != boolK:
		return in
	case !neverNull(x) && n.kind != kindOp && n.kind != kindUnary:
		return in.Of(true, false, nil)
	case in.Rounds != 0:
		return in.Of(true, false)
	}
	opposite, differs := map[string]string{"!=": "==", ">=": "<", "<=": ">"}[n.text]
	if differs && n.kind == kindOp {
		n = &node{kind: kindOp, text: opposite, args: n.args}
	}
	number := slices.IndexFunc(c.tests, func(test *node) bool { return alike(test, n) })
	if number < 0 && len(c.tests) < insight.MaxTests {
		number, c.tests = len(c.tests), append(c.tests, n)
	}
	return in.Test(number, !differs || n.kind != kindOp)
}

// neverNull reports whether code is a field, by way of fields, of a type of Go that has no nil.
func neverNull(x *code) bool {
	return x.path != nil && x.path.Fields() && !x.typ.pointer && (x.typ.number() || x.typ.k == textK || x.typ.k == nameK || x.typ.k == enumK || x.typ.k == boolK)
}

// outcomes tries a node with all that its operands may come to.
func (c *compiler) outcomes(n *node) insight.Insight {
	seen, fields, depth := c.seen, c.fields, len(c.elems)
	defer func() { c.seen, c.fields, c.guess = seen, fields, nil }()
	return c.trials.Outcomes(seen, depth, func(g *insight.Guess) (value func(*run.State) (any, error), cost int, err error) {
		defer func() {
			if r := recover(); r != nil { // c.fail, unless a guess has ended
				var ok bool
				if err, ok = r.(error); !ok {
					err = insight.ErrUnknown
				}
			}
			c.elems, c.rounds = c.elems[:depth], c.rounds[:depth]
		}()
		c.guess = g
		x := c.compileNode(n)
		return x.value, x.cost, nil
	})
}

// guessed is compile during a trial: what the guess takes an operand for. An operand that differs
// between the elements of a list in the trial is no such value, and is evaluated for each.
func (c *compiler) guessed(n *node) *code {
	in, ok := c.insights[n]
	if !ok || in.Rounds>>c.guess.Depth != 0 {
		return c.compileNode(n)
	}
	switch v, err := c.guess.Pick(in.Insight); {
	case errors.Is(err, insight.ErrFails):
		return &code{typ: in.typ, cost: 1, value: func(*run.State) (any, error) { return nil, err }}
	case err != nil:
		panic(err)
	default:
		return constant(v, in.typ)
	}
}

// ask notes that a node can be evaluated for a request only.
func (c *compiler) ask() {
	if c.guess != nil {
		panic(insight.ErrUnknown)
	}
	c.seen.Asks = true
}

// inLoop compiles what is evaluated for each element of a list.
func (c *compiler) inLoop(list, body *node, t typ) *code {
	depth := len(c.elems)
	elem := c.elementsOf(list)
	if _, same := elem.Single(); !same {
		elem.Rounds = insight.Round(depth)
	}
	elem.Asks = true
	elem.Differs = elem.Differs && !c.oneList(list)
	around := c.seen
	c.elems, c.rounds, c.seen = append(c.elems, t), append(c.rounds, elem), insight.Insight{}
	x := c.compile(body)
	c.elems, c.rounds, c.seen = c.elems[:depth], c.rounds[:depth], around.Beside(c.seen.Outside(depth))
	return x
}

// elementsOf is the insight into each element of a list.
func (c *compiler) elementsOf(n *node) insight.Insight {
	return c.insights[n].Elements(func(v any) (iter.Seq[any], bool) {
		l, ok := v.(list)
		return slices.Values(l.made), ok && !l.of.IsValid()
	})
}

// oneList reports whether all requests that have a list of elements have the same one. An empty one
// makes no key.
func (c *compiler) oneList(n *node) bool {
	in := c.insights[n]
	lists := slices.DeleteFunc(slices.Clone(in.Values), func(v insight.Value) bool { l, ok := v.Is.(list); return !ok || l.len() == 0 })
	return in.IsKnown() && len(lists) < 2
}

// spelt is the insight into the text that a node has in a key.
func (c *compiler) spelt(in insight.Insight, converted bool) insight.Insight {
	return c.trials.Spelt(in, func(st *run.State, v any) (string, error) {
		spelling := spell
		if converted {
			spelling = convert
		}
		s, err := spelling(st, v)
		if err == nil {
			_, err = st.Text(nil, s, nil) // which is refused if it is empty
		}
		return s, err
	})
}
