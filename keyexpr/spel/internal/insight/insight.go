// Package insight knows at start what expressions in Java's language come to.
package insight

import (
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

// Worlds are ways in which the tests of a text may come out, a bit for each. A test that is written
// twice comes out the same way twice, and so `req.Urgent ? "" : "a"` in one hole and the same test
// in another one leave a single key. Each of the first tests of a text halves the worlds; whatever
// comes to a value in some of them says in which.
type Worlds uint32

// MaxTests is how many tests have worlds of their own.
const MaxTests = 5

const all = ^Worlds(0)

// worldsOf returns the worlds in which a test holds.
func worldsOf(test int) (worlds Worlds) {
	for w := range 1 << MaxTests {
		worlds |= Worlds(w>>test&1) << w
	}
	return worlds
}

// Insight is what is known of one node. The empty one knows nothing.
type Insight struct {
	Differs bool     // between two requests
	Asks    bool     // for facts or functions, without which it can't be evaluated; also if it never differs
	Rounds  uint64   // differs between the rounds of these loops around it, by their depth
	Known   Worlds   // those in which it comes to one of Values, or fails
	Values  []Value  // each once
	Elem    *Insight // what each element of a list comes to; nil if that is not known
	failing Worlds   // those in which one of the operands seen makes no key
}

// Value is what a node may come to in some worlds.
type Value struct {
	Is any
	In Worlds
}

// maxValues bounds what a node may come to. What comes to more is not known.
const maxValues = 8

// Always is what comes to v for all requests.
func Always(v any) Insight { return Insight{}.Of(v) }

// Of returns the insight into a node that comes to one of values, or fails, and otherwise is as in
// is.
func (in Insight) Of(values ...any) Insight {
	var list []Value
	for _, v := range values {
		list = with(list, Value{v, all})
	}
	return in.Comes(list, all)
}

// Test is Of for a node that comes to holds where a test holds, and else to its opposite. number is
// that of the test among those that are written differently, and negative if there are too many.
func (in Insight) Test(number int, holds bool) Insight {
	if number < 0 {
		return in.Of(true, false)
	}
	worlds := worldsOf(number)
	return in.Comes([]Value{{holds, worlds}, {!holds, ^worlds}}, all)
}

// Comes is Of with worlds. With one value at most there is nothing left to differ.
func (in Insight) Comes(values []Value, known Worlds) Insight {
	in.Known, in.Values, in.Elem, in.failing = known, values, nil, 0
	switch {
	case len(values) > maxValues:
		in.Known, in.Values = 0, nil
	case known == all && len(values) < 2:
		in.Differs, in.Rounds = false, 0
	}
	return in
}

// with adds a value to those that don't have it.
func with(values []Value, v Value) []Value {
	i := slices.IndexFunc(values, func(x Value) bool { return reflect.DeepEqual(x.Is, v.Is) })
	if i < 0 {
		return append(values, v)
	}
	values[i].In |= v.In
	return values
}

// Beside adds what a further operand says to the flags.
func (in Insight) Beside(operand Insight) Insight {
	return Insight{
		Differs: in.Differs || operand.Differs, Asks: in.Asks || operand.Asks, Rounds: in.Rounds | operand.Rounds,
		failing: in.failing | operand.fails(),
	}
}

// fails returns the worlds in which it makes no key.
func (in Insight) fails() Worlds {
	fails := in.Known
	for _, v := range in.Values {
		fails &^= v.In
	}
	return fails
}

// Strict is the insight into a node that evaluates all operands seen, and fails where one does.
func (in Insight) Strict(seen Insight) Insight {
	if seen.failing == 0 {
		return in
	}
	return in.Within(^seen.failing)
}

// Or is the insight into a node that comes to what one of several others comes to. in has the
// flags of the whole.
func (in Insight) Or(others ...Insight) Insight {
	var values []Value
	known := all
	for _, o := range others {
		for _, v := range o.Values {
			if values = with(values, v); len(values) > maxValues {
				return in.Comes(values, 0)
			}
		}
		known &= o.Known
	}
	return in.Comes(values, known)
}

// OrElse returns the insight into a node of which more is known in one way than in another. The
// elements of a list are known in the other way alone.
func (in Insight) OrElse(other Insight) Insight {
	if other.IsKnown() || in.Known == 0 {
		return other
	}
	in.Elem = other.Elem
	return in
}

// Within is in for these worlds alone: in the others it makes no key.
func (in Insight) Within(worlds Worlds) Insight {
	var values []Value
	for _, v := range in.Values {
		if v.In &= worlds; v.In != 0 {
			values = append(values, v)
		}
	}
	elem := in.Elem
	in = in.Comes(values, in.Known|^worlds)
	in.Elem = elem
	return in
}

// Branches returns the worlds in which a test may be true and false.
func (in Insight) Branches() (yes, no Worlds) {
	yes, no = ^in.Known, ^in.Known
	for _, v := range in.Values {
		switch v.Is {
		case true:
			yes |= v.In
		case false:
			no |= v.In
		}
	}
	return yes, no
}

// IsKnown reports whether it comes to one of its values, or fails, in all worlds.
func (in Insight) IsKnown() bool { return in.Known == all }

// Single returns the one value that it comes to.
func (in Insight) Single() (any, bool) {
	if !in.IsKnown() || len(in.Values) != 1 {
		return nil, false
	}
	return in.Values[0].Is, true
}

// Only reports whether it is known to come to v and to nothing else.
func (in Insight) Only(v any) bool {
	single, ok := in.Single()
	return ok && reflect.DeepEqual(single, v)
}

// MayBe reports whether v is among the values that it is known to come to.
func (in Insight) MayBe(v any) bool {
	return slices.ContainsFunc(in.Values, func(x Value) bool { return reflect.DeepEqual(x.Is, v) })
}

// Constant returns what it comes to if no request is needed to find out.
func (in Insight) Constant() (any, bool) {
	if in.Asks {
		return nil, false
	}
	return in.Single()
}

// Elements is the insight into the elements of a list. of takes a list of the language apart.
func (in Insight) Elements(of func(list any) (elems iter.Seq[any], ok bool)) Insight {
	elem := Insight{Differs: in.Differs, Asks: in.Asks, Rounds: in.Rounds}
	if in.Elem != nil {
		return elem.Or(*in.Elem)
	}
	var values []Value
	for _, list := range in.Values {
		elems, ok := of(list.Is)
		if !ok {
			return elem
		}
		for v := range elems {
			if values = with(values, Value{v, list.In}); len(values) > maxValues {
				return elem
			}
		}
	}
	return elem.Comes(values, in.Known)
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
