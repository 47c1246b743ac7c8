package run

import (
	"errors"
	"reflect"
	"slices"
	"testing"
)

// try is a trial of a sum of operands, each of which may come to several numbers.
func try(operands ...[]any) Trial {
	return func(g *Guess) (func(*State) (any, error), int, error) {
		sum := 0
		for _, values := range operands {
			sum += g.Pick(values).(int)
		}
		return func(*State) (any, error) { return sum, nil }, 1, nil
	}
}

func TestOutcomesAreThoseOfAllCombinations(t *testing.T) {
	for _, tt := range []struct {
		operands [][]any
		want     []any
	}{
		{nil, []any{0}},
		{[][]any{{1}}, []any{1}},
		{[][]any{{1, 2}}, []any{1, 2}},
		{[][]any{{1, 2}, {10, 20}}, []any{11, 21, 12, 22}},
		{[][]any{{1, 2}, {2, 1}}, []any{3, 2, 4}},
		{[][]any{{0, 1}, {0, 2}, {0, 4}}, []any{0, 4, 2, 6, 1, 5, 3, 7}},
		{[][]any{{0, 1}, {0, 2}, {0, 4}, {0, 8}}, nil}, // more than are worth to know
	} {
		got, known := new(Trials).Outcomes(0, try(tt.operands...))
		if !slices.Equal(got, tt.want) || known != (tt.want != nil) {
			t.Errorf("Outcomes(%v) = %v, %v, want %v", tt.operands, got, known, tt.want)
		}
	}
}

// A branch that is not taken is not asked for.
func TestAGuessAsksForWhatItNeeds(t *testing.T) {
	got, known := new(Trials).Outcomes(0, func(g *Guess) (func(*State) (any, error), int, error) {
		v := any("else")
		if g.Pick([]any{true, false}) == true {
			v = g.Pick([]any{"a", "b"})
		}
		return func(*State) (any, error) { return v, nil }, 1, nil
	})
	if want := []any{"a", "b", "else"}; !known || !slices.Equal(got, want) {
		t.Errorf("Outcomes = %v, %v, want %v", got, known, want)
	}
}

func TestTrialsThatSayNothing(t *testing.T) {
	fails := func(err error) Trial {
		return func(*Guess) (func(*State) (any, error), int, error) {
			return func(*State) (any, error) { return nil, err }, 1, nil
		}
	}
	for _, tt := range []struct {
		name  string
		try   Trial
		known bool
	}{
		{"a failure of the request", fails(ErrEmpty), true},
		{"too many steps", fails(errSteps), false},
		{"too much text", fails(errBytes), false},
		{"what is not known", fails(ErrUnknown), false},
		{"no code", func(*Guess) (func(*State) (any, error), int, error) { return nil, 0, errors.New("no code") }, false},
		{"a panic", func(*Guess) (func(*State) (any, error), int, error) { panic("boom") }, false},
		{"a cost above the budget", func(*Guess) (func(*State) (any, error), int, error) { return nil, MaxSteps, nil }, false},
	} {
		if values, known := new(Trials).Outcomes(0, tt.try); known != tt.known || len(values) > 0 {
			t.Errorf("%s: Outcomes = %v, %v, want nothing, %v", tt.name, values, known, tt.known)
		}
	}
}

// One budget is for all trials, panics included.
func TestTrialsEnd(t *testing.T) {
	for _, try := range []Trial{try(nil...), func(*Guess) (func(*State) (any, error), int, error) {
		return func(*State) (any, error) { panic("boom") }, 1, nil
	}} {
		var trials Trials
		for range MaxSteps / trialSteps {
			trials.Outcomes(0, try)
		}
		if _, known := trials.Outcomes(0, func(*Guess) (func(*State) (any, error), int, error) {
			return func(*State) (any, error) { return 1, nil }, 1, nil
		}); known {
			t.Error("trials go on without an end")
		}
	}
}

func TestInsights(t *testing.T) {
	fact := Insight{Differs: true, Asks: true, Rounds: Round(0)}
	ab := fact.Of("a", "b", "a")
	if want := (Insight{Differs: true, Asks: true, Rounds: Round(0), Known: true, Values: []any{"a", "b"}}); !reflect.DeepEqual(ab, want) {
		t.Errorf("Of two = %+v, want %+v", ab, want)
	}
	if one := fact.Of("a", "a"); one.Differs || one.Rounds != 0 || !one.Asks || !one.Only("a") {
		t.Errorf("Of one = %+v, which still differs", one)
	}
	if _, ok := fact.Of("a").Constant(); ok {
		t.Error("what asks for a fact is a constant")
	}
	if v, ok := Always("a").Constant(); !ok || v != "a" {
		t.Errorf("Constant = %v, %v", v, ok)
	}
	if or := fact.Or(Always("a"), fact); or.Known || !or.Differs {
		t.Errorf("one of a literal and a fact is known: %+v", or)
	}
	if or := fact.Or(Always("a"), Always("b"), Always("a")); !reflect.DeepEqual(or, ab) {
		t.Errorf("Or = %+v, want %+v", or, ab)
	}
	var digits []Insight
	for i := range maxValues + 1 {
		digits = append(digits, Always(i))
	}
	if or := fact.Or(digits...); or.Known {
		t.Errorf("one of many is known: %+v", or)
	}
	in := Insight{Rounds: Round(0) | Round(1)}
	if got := in.Outside(1).Rounds; got != Round(0) {
		t.Errorf("Outside = %b", got)
	}
	if deep := (Insight{Rounds: Round(200)}); deep.Outside(200).Rounds == 0 {
		t.Error("a loop deeper than there are bits is taken for left")
	}
}
