package insight

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// try is a trial of a sum of operands, each of which may come to several numbers.
func try(operands ...Insight) Trial {
	return func(g *Guess) (func(*run.State) (any, error), int, error) {
		sum := 0
		for _, o := range operands {
			v, err := g.Pick(o)
			if err != nil {
				return nil, 0, err
			}
			sum += v.(int)
		}
		return func(*run.State) (any, error) { return sum, nil }, 1, nil
	}
}

// choose is an operand that comes to a where a test holds, and else to b.
func choose(test int, a, b any) Insight {
	holds := worldsOf(test)
	return fact.Comes([]Value{{a, holds}, {b, ^holds}}, all)
}

var fact = Insight{Differs: true, Asks: true}

func TestOutcomesAreThoseOfAllCombinations(t *testing.T) {
	half := fact.Comes([]Value{{1, worldsOf(0)}}, worldsOf(0)) // and else anything
	fails := fact.Comes([]Value{{1, worldsOf(0)}}, all)        // and else nothing
	for _, tt := range []struct {
		operands []Insight
		want     Insight
	}{
		{nil, fact.Of(0)},
		{[]Insight{fact.Of(1)}, fact.Of(1)},
		{[]Insight{fact.Of(1, 2), fact.Of(10, 20)}, fact.Of(11, 21, 12, 22)},
		{[]Insight{fact.Of(1, 2), fact.Of(2, 1)}, fact.Of(3, 2, 4)},
		{[]Insight{fact.Of(0, 1), fact.Of(0, 2), fact.Of(0, 4)}, fact.Of(0, 4, 2, 6, 1, 5, 3, 7)},
		{[]Insight{fact.Of(0, 1), fact.Of(0, 2), fact.Of(0, 4), fact.Of(0, 8)}, fact}, // more than are worth to know
		{[]Insight{fact}, fact},
		{[]Insight{fact.Of(1), fact}, fact},
		// Tests come out the same way twice.
		{[]Insight{choose(0, 1, 2), choose(0, 2, 1)}, fact.Of(3)},
		{[]Insight{choose(0, 1, 2), choose(0, 10, 20)}, choose(0, 11, 22)},
		{[]Insight{choose(0, 1, 2), choose(1, 2, 1)}, fact.Comes([]Value{
			{3, worldsOf(0)&worldsOf(1) | ^worldsOf(0)&^worldsOf(1)}, {2, worldsOf(0) &^ worldsOf(1)}, {4, worldsOf(1) &^ worldsOf(0)}}, all)},
		{[]Insight{half, fact.Of(1)}, fact.Comes([]Value{{2, worldsOf(0)}}, worldsOf(0))},
		{[]Insight{half, choose(0, 1, 7)}, fact.Comes([]Value{{2, worldsOf(0)}}, worldsOf(0))},
		{[]Insight{half, fact.Comes([]Value{{7, ^worldsOf(0)}}, ^worldsOf(0))}, fact},
	} {
		if got := new(Trials).Outcomes(fact, 0, try(tt.operands...)); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Outcomes of %+v = %+v, want %+v", tt.operands, got, tt.want)
		}
	}
	for _, g := range []*Guess{{worlds: worldsOf(0)}, {worlds: ^worldsOf(0)}} {
		g.picks = []pick{{1, 2}}
		if _, err := g.Pick(fails); errors.Is(err, ErrFails) != (g.worlds == ^worldsOf(0)) {
			t.Errorf("Pick in %b = %v", g.worlds, err)
		}
	}
}

// A branch that is not taken is not asked for.
func TestAGuessAsksForWhatItNeeds(t *testing.T) {
	got := new(Trials).Outcomes(fact, 0, func(g *Guess) (func(*run.State) (any, error), int, error) {
		v, err := g.Pick(choose(0, true, false))
		if v == true {
			v, err = g.Pick(fact.Of("a", "b"))
		}
		return func(*run.State) (any, error) { return v, nil }, 1, err
	})
	if want := fact.Comes([]Value{{"a", worldsOf(0)}, {"b", worldsOf(0)}, {false, ^worldsOf(0)}}, all); !reflect.DeepEqual(got, want) {
		t.Errorf("Outcomes = %+v, want %+v", got, want)
	}
}

func TestTrialsThatSayNothing(t *testing.T) {
	fails := func(err error) Trial {
		return func(*Guess) (func(*run.State) (any, error), int, error) {
			return func(*run.State) (any, error) { return nil, err }, 1, nil
		}
	}
	for _, tt := range []struct {
		name  string
		try   Trial
		known bool
	}{
		{"a failure of the request", fails(run.ErrEmpty), true},
		{"too many steps", fails(run.ErrSteps), false},
		{"too much text", fails(run.ErrBytes), false},
		{"what is not known", fails(ErrUnknown), false},
		{"no code", func(*Guess) (func(*run.State) (any, error), int, error) { return nil, 0, errors.New("no code") }, false},
		{"a panic", func(*Guess) (func(*run.State) (any, error), int, error) { panic("boom") }, false},
		{"a cost above the budget", func(*Guess) (func(*run.State) (any, error), int, error) { return nil, run.MaxSteps, nil }, false},
	} {
		if got := new(Trials).Outcomes(fact, 0, tt.try); got.IsKnown() != tt.known || len(got.Values) > 0 {
			t.Errorf("%s: Outcomes = %+v, want it to be known: %v", tt.name, got, tt.known)
		}
	}
}

// One budget is for all trials, panics included.
func TestTrialsEnd(t *testing.T) {
	for _, endless := range []Trial{try(), func(*Guess) (func(*run.State) (any, error), int, error) {
		return func(*run.State) (any, error) { panic("boom") }, 1, nil
	}} {
		var trials Trials
		for range run.MaxSteps / trialSteps {
			trials.Outcomes(fact, 0, endless)
		}
		if trials.Outcomes(fact, 0, try()).IsKnown() {
			t.Error("trials go on without an end")
		}
	}
}

func TestInsights(t *testing.T) {
	round := Insight{Differs: true, Asks: true, Rounds: Round(0)}
	ab := round.Of("a", "b", "a")
	if !ab.Differs || ab.Rounds != Round(0) || !ab.IsKnown() || len(ab.Values) != 2 {
		t.Errorf("Of two = %+v", ab)
	}
	if one := round.Of("a", "a"); one.Differs || one.Rounds != 0 || !one.Asks || !one.Only("a") {
		t.Errorf("Of one = %+v, which still differs", one)
	}
	if _, ok := round.Of("a").Constant(); ok {
		t.Error("what asks for a fact is a constant")
	}
	if v, ok := Always("a").Constant(); !ok || v != "a" {
		t.Errorf("Constant = %v, %v", v, ok)
	}
	if or := round.Or(Always("a"), round); or.Known != 0 || !or.Differs {
		t.Errorf("one of a literal and a fact is known: %+v", or)
	}
	if or := round.Or(Always("a"), Always("b"), Always("a")); !reflect.DeepEqual(or, ab) {
		t.Errorf("Or = %+v, want %+v", or, ab)
	}
	var digits []Insight
	for i := range maxValues + 1 {
		digits = append(digits, Always(i))
	}
	if or := round.Or(digits...); or.Known != 0 {
		t.Errorf("one of many is known: %+v", or)
	}
	in := Insight{Rounds: Round(0) | Round(1)}
	if got := in.Outside(1).Rounds; got != Round(0) {
		t.Errorf("Outside = %b", got)
	}
	if deep := (Insight{Rounds: Round(200)}); deep.Outside(200).Rounds == 0 {
		t.Error("a loop deeper than there are bits is taken for left")
	}
	if in := fact.Test(-1, true); in.Values[0].In != all || in.Values[1].In != all {
		t.Errorf("a test more than there are worlds for is told from others: %+v", in)
	}
}

func TestElementsOfLists(t *testing.T) {
	elements := func(list any) (iter.Seq[any], bool) { l, ok := list.([]any); return slices.Values(l), ok }
	var long []any
	for i := range 2 * maxValues {
		long = append(long, i)
	}
	list := fact
	list.Elem = new(fact.Of("x"))
	for _, tt := range []struct{ list, want Insight }{
		{fact, fact},
		{Always([]any{"a", "b"}), Insight{}.Of("a", "b")},
		{choose(0, []any{"a"}, []any{"b"}), choose(0, "a", "b")},
		{choose(0, []any{"a"}, []any{}), fact.Comes([]Value{{"a", worldsOf(0)}}, all)},
		{Always(long), Insight{}},
		{Always("no list"), Insight{}},
		{list, fact.Of("x")},
	} {
		if got := tt.list.Elements(elements); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Elements of %+v = %+v, want %+v", tt.list, got, tt.want)
		}
	}
}

func TestOneKey(t *testing.T) {
	a, b, none := Always("a"), fact.Of("a", "b"), fact.Of()
	for _, tt := range []struct {
		name  string
		parts []Insight
		want  bool
	}{
		{"nothing", nil, true},
		{"literals", []Insight{a, a}, true},
		{"a fact", []Insight{a, fact}, false},
		{"one of two", []Insight{b}, false},
		{"no key", []Insight{none}, true},
		{"no key, whatever the fact is", []Insight{fact, none}, true},
		{"an unknown literal", []Insight{{}, a}, true},
		{"a test", []Insight{choose(0, "a", "b")}, false},
		{"a test that leaves one", []Insight{choose(0, "a", "b"), fact.Comes([]Value{{"x", worldsOf(0)}}, all)}, true},
		{"a fact in a world without a key", []Insight{fact.Comes([]Value{{"x", worldsOf(0)}}, worldsOf(0)), fact.Comes([]Value{{"x", worldsOf(0)}}, all)}, true},
		{"a fact in a world with one", []Insight{fact.Comes([]Value{{"x", worldsOf(0)}}, worldsOf(0)), fact.Comes([]Value{{"x", ^worldsOf(0)}}, all)}, false},
		{"two tests that make one text of each other's", []Insight{choose(0, "a", "ab"), choose(0, "bc", "c")}, false},
	} {
		if got := OneKey(tt.parts); got != tt.want {
			t.Errorf("%s: OneKey = %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A text that can't be spelt makes no key, and one that is too long for the trials is not known.
func TestSpelling(t *testing.T) {
	spell := func(_ *run.State, v any) (string, error) {
		if err, ok := v.(error); ok {
			return "", err
		}
		return fmt.Sprint(v), nil
	}
	for _, tt := range []struct{ in, want Insight }{
		{fact, fact},
		{fact.Of(7, "7"), fact.Of("7")},
		{fact.Of(7, run.ErrEmpty), fact.Of("7")},
		{choose(0, 7, run.ErrNil), fact.Comes([]Value{{"7", worldsOf(0)}}, all)},
		{fact.Of(7, run.ErrBytes), fact},
	} {
		if got := new(Trials).Spelt(tt.in, spell); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Spelt(%+v) = %+v, want %+v", tt.in, got, tt.want)
		}
	}
}
