package keyexpr

import (
	"cmp"
	"math"
	"math/bits"
	"reflect"
	"strconv"

	"github.com/expr-lang/expr/vm/runtime"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Whole numbers are ids, and ids must not change on their way into a key. The engine calculates
// with ints of the machine: uint64 above the largest int64 become negative, sums wrap around,
// and a division is one of floats, which forgets the last digits of a number above 2^53. Here a
// result is exact, or it is an error of the request.

// add is + where it puts texts together as they are, or adds. A number beside a text is refused
// here, where the checker could not see it.
func add(st *run.State, a, b any) (any, error) {
	a, b = basic(a), basic(b)
	if s, ok := a.(string); ok {
		t, err := text(b)
		if err == nil {
			err = st.Spend(len(s) + len(t))
		}
		if err != nil {
			return nil, err
		}
		return s + t, nil
	}
	if _, ok := b.(string); ok {
		return nil, run.Faulty("adds text to what is no text: use string(x)")
	}
	return addNumbers(a, b)
}

var errZero = run.Faulty("divides by zero")

var addNumbers = arithmetic(sum, runtime.Add)

// arithmetic does what exact does for whole numbers, and leaves floats, times and durations to
// the engine. The engine wraps around without a word. A key of a number that has wrapped around
// is the key of another request.
func arithmetic(exact func(a, b int64) (int64, bool), other func(a, b any) any) func(a, b any) (any, error) {
	return func(a, b any) (any, error) {
		a, b = basic(a), basic(b)
		// Whole numbers of all types come out as an int. The type of a result must not depend on which of
		// them a request happens to have, since JSON makes an int64 or an uint64 of one field.
		if !whole(a) || !whole(b) {
			if a == nil || b == nil {
				return nil, run.Faulty("calculates with nil")
			}
			return engines(other, a, b)
		}
		x, y, err := integers(a, b)
		if err != nil {
			return nil, err
		}
		z, ok := exact(x, y)
		if !ok || int64(int(z)) != z {
			return nil, run.Faulty("calculates more than an int can hold")
		}
		return int(z), nil
	}
}

// integers are both operands as int64. One that is too large for that is refused before the other
// is looked at, as no operator here could make use of it.
func integers(a, b any) (x, y int64, err error) {
	if x, err = run.Integer(a); err == nil {
		y, err = run.Integer(b)
	}
	return x, y, err
}

func whole(x any) bool {
	v := reflect.ValueOf(x)
	return v.IsValid() && v.Type() != durationType && (v.CanInt() || v.CanUint())
}

// An overflow shows in the direction of the result.
func sum(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

// b may be the smallest number, whose negation is itself; so this is not a + -b.
func minus(a, b int64) (int64, bool) {
	c := a - b
	return c, (c < a) == (b > 0)
}

// times multiplies magnitudes, as an overflow of int64 leaves no trace in its result. The
// smallest int64 has no positive counterpart, so that its magnitude needs all bits of a uint64.
func times(a, b int64) (int64, bool) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	if (a < 0) != (b < 0) {
		return -int64(low), high == 0 && low <= 1<<63
	}
	return int64(low), high == 0 && low < 1<<63
}

// Negating as an uint64 is defined for all of them.
func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// remainder is % with the sign of the dividend, as in Go and Java, also for large unsigned
// numbers. A uint64 is divided as one, as an id that is spread by % 16 may have its highest bit
// set; the engine makes a negative number of it.
func remainder(l, r any) (any, error) {
	// A divisor above the largest int64 is refused. It would leave nearly all ids as they are, and
	// nobody spreads locks over that many shards.
	a, b := reflect.ValueOf(basic(l)), reflect.ValueOf(basic(r))
	if a.IsValid() && a.CanUint() && b.IsValid() {
		n, err := run.Integer(r)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, errZero
		}
		return int(a.Uint() % magnitude(n)), nil
	}
	x, y, err := integers(l, r)
	switch {
	case err != nil:
		return nil, err
	case y == 0:
		return nil, errZero
	}
	return int(x % y), nil
}

func negative(v reflect.Value) bool { return v.CanInt() && v.Int() < 0 }

// size returns a whole number as the bits of an uint64. Which of the two it is has been settled
// by the caller, who has looked at the signs.
func size(v reflect.Value) uint64 {
	if v.CanInt() {
		return uint64(v.Int())
	}
	return v.Uint()
}

// order compares two whole numbers as cmp.Compare would if there were a type for them. There is
// no type that holds both, so that signs are looked at first.
func order(a, b reflect.Value) int {
	switch {
	case negative(a) && !negative(b):
		return -1
	case negative(b) && !negative(a):
		return 1
	}
	return cmp.Compare(size(a), size(b)) // two's complement keeps the order of two negative numbers
}

// compareNumbers is order for what may be a float as well. The engine compares whole numbers as
// ints, to which the largest uint64 is -1.
func compareNumbers(a, b any) int {
	switch {
	case whole(a) && whole(b):
		return order(reflect.ValueOf(a), reflect.ValueOf(b))
	case runtime.Less(a, b):
		return -1
	case runtime.Less(b, a):
		return 1
	}
	return 0
}

// modulo takes numbers above int64 as they are: a shard of a uint64 must not become negative, as
// it does in the engine. It is never negative, as shards are numbered from zero. % keeps the
// sign, as Java's and Go's do.
func modulo(_ *run.State, args []any) (any, error) {
	n, err := run.Integer(args[1])
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, run.Faulty("divides by what is not positive")
	}
	v := run.Indirect(reflect.ValueOf(args[0]))
	if v.IsValid() && v.CanUint() {
		return int(v.Uint() % uint64(n)), nil
	}
	a, err := run.Integer(args[0])
	if a %= n; a < 0 { // a%n + n, for all numbers, would not fit where n is large
		a += n
	}
	return int(a), err
}

// divide has one result that int64 can't hold, the smallest number by -1. It rounds towards
// zero, as Go and Java do, and is exact where the engine's / goes through a float and loses the
// last digits of an id.
func divide(_ *run.State, args []any) (any, error) {
	a, b := run.Indirect(reflect.ValueOf(args[0])), run.Indirect(reflect.ValueOf(args[1]))
	// A negative divisor goes the other way, where a dividend above the largest int64 is refused: the
	// quotient would need a sign and 64 bits.
	if a.IsValid() && a.CanUint() && b.IsValid() && (b.CanInt() || b.CanUint()) && !negative(b) {
		if size(b) == 0 {
			return nil, errZero
		}
		n, err := run.Integer(a.Uint() / size(b))
		return int(n), err
	}
	x, y, err := integers(args[0], args[1])
	switch {
	case err != nil:
		return nil, err
	case y == 0:
		return nil, errZero
	case y == -1 && x == -x && x != 0:
		return nil, run.Faulty("calculates more than an int can hold")
	}
	return int(x / y), nil
}

// weigh charges a value that the engine is going to go through, with all that lies in it. It is
// for equal and for the functions of conditions, which go through a value by themselves.
func weigh(st *run.State, x any) error { return weighValue(st, reflect.ValueOf(x), 0) }

// weighValue does not go into elements that hold nothing themselves: their number is their
// weight. Depth ends what goes in a circle. A struct is charged by its fields although they may
// be small, since reflection visits each.
func weighValue(st *run.State, v reflect.Value, depth int) error {
	if depth > maxDepth {
		return run.Faulty("goes too deep")
	}
	v = run.Indirect(v)
	switch v.Kind() {
	case reflect.String:
		return st.Spend(v.Len())
	case reflect.Slice, reflect.Array:
		if err := st.List(v.Len()); err != nil {
			return err
		}
		// Elements that are numbers hold nothing. To visit a million of them would cost more than what
		// comes next, which compares them as memory.
		if k := v.Type().Elem().Kind(); k < reflect.Array && k != reflect.Invalid {
			return nil // flat
		}
		for i := range v.Len() {
			if err := weighValue(st, v.Index(i), depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		if err := st.List(v.Len()); err != nil {
			return err
		}
		for it := v.MapRange(); it.Next(); {
			if err := weighValue(st, it.Key(), depth+1); err != nil {
				return err
			}
			if err := weighValue(st, it.Value(), depth+1); err != nil {
				return err
			}
		}
	// Unexported fields are weighed as well, since the engine compares by reflect.DeepEqual, which
	// reads them.
	case reflect.Struct:
		if err := st.Step(v.NumField()); err != nil {
			return err
		}
		for _, field := range v.Fields() {
			if err := weighValue(st, field, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxDepth is how deep values may lie in each other. Requests are flatter. What is deeper was
// made to be.
const maxDepth = 64

// A bool has no order, though the engine would not mind.
func number(x any) bool {
	v := reflect.ValueOf(x)
	return v.IsValid() && (v.CanInt() || v.CanUint() || v.CanFloat())
}

// total adds up numbers. It adds as + does, and so fails where + fails.
func total(list []any) (sum any, err error) {
	sum = 0
	for _, x := range list {
		if sum, err = addNumbers(sum, x); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// engines is what an operator of the engine makes of a and b. For operands that it has no meaning
// for, it panics with a text of their types. A field that a client has left out, or sent as a
// text, is no bug of the program's, and must not look like one in its log.
func engines[T any](op func(a, b any) T, a, b any) (v T, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case string:
			err = run.Faulty("has operands of types %T and %T, which don't fit", a, b)
		default:
			err = run.Recovered(r)
		}
	}()
	return op(a, b), nil
}

func byEngine[T any](op func(a, b any) T) func(a, b any) (any, error) {
	return func(a, b any) (any, error) { return engines(op, basic(a), basic(b)) }
}

// extreme is max, or min with a sign of -1, of all arguments and of what lies in those that are
// lists. It is nil if there are no numbers, as first is, so that ?? can stand behind it. The
// engine's max of the largest uint64 and 1 is 1.
func extreme(sign int) callFunc {
	return func(st *run.State, args []any) (most any, err error) {
		var all []any
		if err := flatten(st, reflect.ValueOf(args), &all, 0); err != nil {
			return nil, err
		}
		for i, x := range all {
			if x = basic(x); !number(x) {
				return nil, run.Faulty("compares what is no number")
			}
			if i == 0 || sign*compareNumbers(x, most) > 0 {
				most = x
			}
		}
		return most, nil
	}
}

// toInt takes a float only if it is a whole number that a float can hold exactly, so that two
// ids can't become one. A text must be the whole of a number: "7 " and "07x" are mistakes of a
// client, and no 7. But "07" is 7, as it is to every parser.
func toInt(st *run.State, args []any) (any, error) {
	x := basic(args[0])
	switch v := reflect.ValueOf(x); v.Kind() {
	case reflect.String:
		n, err := strconv.Atoi(v.String())
		if err != nil {
			return nil, run.Faulty("has text that is no whole number")
		}
		return n, nil
	// JSON without UseNumber makes a float of each number. Up to 2^53 each whole number has a float of
	// its own. Above, two ids have one, and one of them would take the other's lock.
	case reflect.Float32, reflect.Float64:
		f := v.Float()
		if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return nil, run.Faulty("has a float that is no whole number")
		}
		return int(f), nil
	}
	n, err := run.Integer(x)
	return int(n), err
}

// identity gives all numbers that are equal one type, so that a map of Go finds them to be, as ==
// does in a condition. JSON, protobuf and Go have three types for the 7 of one id. A duration is no
// number.
func identity(x any) any {
	v := reflect.ValueOf(x)
	switch {
	case v.IsValid() && v.CanFloat():
		f := v.Float()
		switch {
		case f != math.Trunc(f), f < math.MinInt64, f >= math.MaxUint64:
			return f
		case f < 0:
			return int64(f)
		}
		return uint64(f)
	case !whole(x):
		return x
	case v.CanInt() && v.Int() < 0:
		return v.Int()
	case v.CanInt():
		return uint64(v.Int())
	}
	return v.Uint() // which a uintptr is as well
}
