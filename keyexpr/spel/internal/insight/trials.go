package insight

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// A node is tried with what its operands may come to, one combination after the other.

// ErrUnknown ends a trial: one of the operands is not known, or not in these worlds.
var ErrUnknown = errors.New("keyexpr: not known at start")

// ErrFails is how an operand ends that makes no key in these worlds. It may not be needed there.
var ErrFails = run.Faulty("fails for each request")

// errNowhere ends a trial that asks for values which come together in no world.
var errNowhere = errors.New("keyexpr: in no world")

// Trials evaluates nodes at start. All trials of one text have the budget of one request together:
// a program that starts has many texts, and what is not tried is not known.
type Trials struct{ st *run.State }

// maxTrials bounds the trials of one node, which are as many as there are combinations of what its
// operands may be.
const maxTrials = 64

// trialSteps is what a trial is charged beside what the node costs, as it is compiled for it.
const trialSteps = 50

// A Guess takes operands for one of the values that they may come to, and for another one in the
// next trial. Each trial must ask in the same order, as far as the answers are the same.
type Guess struct {
	Depth  int // how many loops are around the node: those within go round
	worlds Worlds
	picks  []pick
	at     int
}

type pick struct{ i, of int }

// Trial compiles a node for a guess.
type Trial func(g *Guess) (value func(st *run.State) (any, error), cost int, err error)

// Pick returns a value for an operand, in a world in which all that was picked come together.
// ErrUnknown says that the operand may be anything there, and ErrFails that it can't be evaluated.
func (g *Guess) Pick(operand Insight) (any, error) {
	options := operand.options()
	if g.at == len(g.picks) {
		g.picks = append(g.picks, pick{of: len(options)})
	}
	v := options[g.picks[g.at].i]
	g.at++
	if g.worlds &= v.In; g.worlds == 0 {
		return nil, errNowhere
	}
	if err, ok := v.Is.(error); ok {
		return nil, err
	}
	return v.Is, nil
}

// options are the values of an operand, and errors for the worlds in which it has none.
func (in Insight) options() []Value {
	options := slices.Clip(in.Values)
	if fails := in.fails(); fails != 0 {
		options = append(options, Value{ErrFails, fails})
	}
	if in.Known != all {
		options = append(options, Value{ErrUnknown, ^in.Known})
	}
	return options
}

// next goes on to the next combination: the last operand that has another value takes it.
func (g *Guess) next() bool {
	for i := g.at - 1; i >= 0; i-- {
		if p := &g.picks[i]; p.i+1 < p.of {
			p.i++
			g.picks, g.at, g.worlds = g.picks[:i+1], 0, all
			return true
		}
	}
	return false
}

// Outcomes returns what a node comes to, with the flags of in. depth is the number of loops around
// it. Trials that fail come to nothing, as a request that fails has no key. One that is out of
// budget, or panics, says nothing about a request.
func (t *Trials) Outcomes(in Insight, depth int, try Trial) (out Insight) {
	defer func() {
		if recover() != nil {
			spent, _ := t.state().Spent()
			t.st = nil
			_ = t.state().Step(spent)
			out = in
		}
	}()
	g := &Guess{Depth: depth, worlds: all}
	var values []Value
	known := all
	for range maxTrials {
		switch v, err := t.trial(g, try); {
		case err == nil:
			values = with(values, Value{v, g.worlds})
		case errors.Is(err, ErrUnknown):
			known &^= g.worlds
		case errors.Is(err, run.ErrSteps), errors.Is(err, run.ErrBytes):
			return in
		}
		if known == 0 || len(values) > maxValues {
			return in
		}
		if !g.next() {
			return in.Comes(values, known)
		}
	}
	return in
}

func (t *Trials) trial(g *Guess, try Trial) (any, error) {
	if err := t.state().Step(trialSteps); err != nil {
		return nil, err
	}
	value, cost, err := try(g)
	switch {
	case errors.Is(err, errNowhere):
		return nil, err
	case err != nil: // as it may be the guess that does not compile
		return nil, ErrUnknown
	}
	if err := t.state().Step(cost); err != nil {
		return nil, err
	}
	return value(t.state())
}

// state is made when it is first needed, and is not pooled: a trial leaves things behind.
func (t *Trials) state() *run.State {
	if t.st == nil {
		t.st = &run.State{Ctx: context.Background()}
	}
	return t.st
}

// Spelling is how a language writes a value into a key. What it refuses makes no key.
type Spelling func(st *run.State, v any) (string, error)

// Spelt returns the insight into the text of a node, in the place of its values.
func (t *Trials) Spelt(in Insight, spell Spelling) Insight {
	var texts []Value
	for _, v := range in.Values {
		switch s, err := spell(t.state(), v.Is); {
		case err == nil:
			texts = with(texts, Value{s, v.In})
		case errors.Is(err, run.ErrSteps), errors.Is(err, run.ErrBytes):
			return in.Comes(nil, 0)
		}
	}
	return in.Comes(texts, in.Known)
}

// OneKey reports whether all requests have one key, or none, whose parts are spelt like this.
func OneKey(parts []Insight) bool {
	one, found := "", false
	for w := range 1 << MaxTests {
		key, makes, differs := keyIn(parts, 1<<w)
		switch {
		case !makes:
		case differs, found && key != one:
			return false
		default:
			one, found = key, true
		}
	}
	return true
}

// keyIn returns the key in one world, if one can be made there, and whether it still differs. A part
// that never differs may not be known, and is left out then.
func keyIn(parts []Insight, world Worlds) (key string, makes, differs bool) {
	for _, p := range parts {
		if !p.Differs && !p.IsKnown() {
			continue
		}
		texts := 0
		for _, v := range p.Values {
			if v.In&world != 0 {
				key += fmt.Sprintf("%q", v.Is)
				texts++
			}
		}
		differs = differs || p.Differs && (texts > 1 || p.Known&world == 0)
		if texts == 0 && p.Known&world != 0 {
			return "", false, false
		}
	}
	return key, true, differs
}
