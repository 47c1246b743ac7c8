package run

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
)

// What is known at start of what an expression comes to. One question is asked of it: can the key
// differ between two requests? To name a fact is not to read it. `true ? "a" : req.ID` never looks
// at the fact, and neither req.Seq * 0 nor req.ID[0:0] has anything left of it.
//
// The answer is made from the leaves up. A fact may be anything, and a literal is itself. A node
// whose operands are known is tried: it is compiled with values in the place of its operands, and
// evaluated, once for all that they may be. So an operator or a function needs no rule here, and
// what is found out can't be other than what a request gets. Rules are left to each language for
// what comes to the same although its operands are not known, such as x * 0.
//
// What is said to be known holds for all requests, but for those that fail: one key and no key is
// not two keys. What is not known counts as differing wherever a fact is in it.

// Insight is what is known of one node.
type Insight struct {
	Differs bool     // between two requests
	Asks    bool     // for facts or functions, without which it can't be evaluated; also if it never differs
	Rounds  uint64   // differs between the rounds of these loops around it, by their depth
	Known   bool     // comes to one of Values, or fails
	Values  []any    // each once
	Elem    *Insight // what each element of a list comes to; nil if that is not known
}

// maxValues bounds what a node may come to. What comes to more is not known.
const maxValues = 8

// Always is what comes to v for all requests.
func Always(v any) Insight { return Insight{Known: true, Values: []any{v}} }

// Of returns the insight into a node that comes to one of values, or fails, and otherwise is as in
// is. With one value at most there is nothing left to differ.
func (in Insight) Of(values ...any) Insight {
	in.Known, in.Values, in.Elem = true, nil, nil
	for _, v := range values {
		in.Values = with(in.Values, v)
	}
	if len(in.Values) < 2 {
		in.Differs, in.Rounds = false, 0
	}
	return in
}

// with adds a value to those that don't have it.
func with(values []any, v any) []any {
	if slices.ContainsFunc(values, func(x any) bool { return reflect.DeepEqual(x, v) }) {
		return values
	}
	return append(values, v)
}

// Beside adds what a further operand says to the flags.
func (in Insight) Beside(operand Insight) Insight {
	return Insight{Differs: in.Differs || operand.Differs, Asks: in.Asks || operand.Asks, Rounds: in.Rounds | operand.Rounds}
}

// Or is the insight into a node that comes to what one of several others comes to. in has the
// flags of the whole.
func (in Insight) Or(others ...Insight) Insight {
	var values []any
	for _, o := range others {
		for _, v := range o.Values {
			values = with(values, v)
		}
		if !o.Known || len(values) > maxValues {
			return in
		}
	}
	return in.Of(values...)
}

// Only reports whether it is known to come to v and to nothing else.
func (in Insight) Only(v any) bool { return len(in.Values) == 1 && reflect.DeepEqual(in.Values[0], v) }

// Constant returns what it comes to if no request is needed to find out.
func (in Insight) Constant() (any, bool) {
	if in.Asks || len(in.Values) != 1 {
		return nil, false
	}
	return in.Values[0], true
}

// Elements is the insight into the elements of a list. of takes a list of the language apart.
func (in Insight) Elements(of func(list any) (elems iter.Seq[any], ok bool)) Insight {
	elem := Insight{Differs: in.Differs, Asks: in.Asks, Rounds: in.Rounds}
	switch {
	case in.Elem != nil:
		return elem.Or(*in.Elem)
	case !in.Known:
		return elem
	}
	var values []any
	for _, list := range in.Values {
		elems, ok := of(list)
		if !ok {
			return elem
		}
		for v := range elems {
			if values = with(values, v); len(values) > maxValues {
				return elem
			}
		}
	}
	return elem.Of(values...)
}

// Round is the bit of Rounds for the loop within depth others. Loops deeper than there are bits
// share the last one, which is never taken off.
func Round(depth int) uint64 { return 1 << min(depth, 63) }

// Outside is the insight into a loop within depth others, whose body is in.
func (in Insight) Outside(depth int) Insight {
	if depth < 63 {
		in.Rounds &^= Round(depth)
	}
	return in
}

// ErrUnknown ends the trial of a node: one of its operands is not known.
var ErrUnknown = errors.New("keyexpr: not known at start")

// Trials evaluates nodes at start. All trials of one text have the budget of one request together:
// a program that starts has many texts, and what is not tried is not known.
type Trials struct{ st *State }

// maxTrials bounds the trials of one node, which are as many as there are combinations of what its
// operands may be.
const maxTrials = 64

// trialSteps is what a trial is charged beside what the node costs, as it is compiled for it.
const trialSteps = 50

// A Guess takes operands for one of the values that they may come to, and for another one in the
// next trial. Each trial must ask in the same order, as far as the answers are the same.
type Guess struct {
	Depth int // how many loops are around the node: those within go round
	picks []pick
	at    int
}

type pick struct{ i, of int }

// Trial compiles a node for a guess. A node is one that is known to fail if it has no values.
type Trial func(g *Guess) (value func(st *State) (any, error), cost int, err error)

// Pick returns the value for an operand that has some.
func (g *Guess) Pick(values []any) any {
	if g.at == len(g.picks) {
		g.picks = append(g.picks, pick{of: len(values)})
	}
	v := values[g.picks[g.at].i]
	g.at++
	return v
}

// next goes on to the next combination: the last operand that has another value takes it.
func (g *Guess) next() bool {
	for i := g.at - 1; i >= 0; i-- {
		if p := &g.picks[i]; p.i+1 < p.of {
			p.i++
			g.picks, g.at = g.picks[:i+1], 0
			return true
		}
	}
	return false
}

// Outcomes returns what a node comes to, if that is known. depth is the number of loops around it.
// Trials that fail come to nothing, as a request that fails has no key. One that is out of budget,
// or panics, says nothing about a request.
func (t *Trials) Outcomes(depth int, try Trial) (values []any, known bool) {
	defer func() {
		if recover() != nil {
			spent := t.state().steps
			t.st = nil
			_ = t.state().Step(spent)
			values, known = nil, false
		}
	}()
	g := &Guess{Depth: depth}
	for range maxTrials {
		f, cost, err := try(g)
		if err != nil {
			return nil, false
		}
		st := t.state()
		if err := st.Step(trialSteps + cost); err != nil {
			return nil, false
		}
		switch v, err := f(st); {
		case err == nil:
			values = with(values, v)
		case errors.Is(err, ErrUnknown), errors.Is(err, errSteps), errors.Is(err, errBytes):
			return nil, false
		}
		if len(values) > maxValues {
			return nil, false
		}
		if !g.next() {
			return values, true
		}
	}
	return nil, false
}

// state is made when it is first needed, and is not pooled: a trial leaves things behind.
func (t *Trials) state() *State {
	if t.st == nil {
		t.st = &State{Ctx: context.Background()}
	}
	return t.st
}

// SameText reports whether all values of a node are spelt alike in a key. Those without a text,
// such as nil, make no key.
func (t *Trials) SameText(in Insight, spell func(st *State, v any) (string, error)) bool {
	if !in.Known {
		return false
	}
	first, found := "", false
	for _, v := range in.Values {
		s, err := spell(t.state(), v)
		switch {
		case errors.Is(err, errSteps), errors.Is(err, errBytes), err == nil && found && s != first:
			return false
		case err == nil:
			first, found = s, true
		}
	}
	return true
}
