package keyexpr

import (
	"cmp"
	"math/bits"
	"reflect"

	"github.com/expr-lang/expr/vm/runtime"
)

func add(st *state, args []any) (any, error) {
	a, b := basic(args[0]), basic(args[1])
	if s, ok := a.(string); ok {
		t, err := text(b)
		if err != nil {
			return nil, err
		}
		return s + t, st.spend(len(s) + len(t))
	}
	if _, ok := b.(string); ok {
		return nil, faulty("adds text to what is no text: use string(x)")
	}
	return arithmetic(sum, runtime.Add)(st, args)
}

// arithmetic does what exact does for whole numbers, and leaves floats, times and durations to the engine.
func arithmetic(exact func(a, b int64) (int64, bool), other func(a, b any) any) callFunc {
	return func(_ *state, args []any) (any, error) {
		a, b := basic(args[0]), basic(args[1])
		if !whole(a) || !whole(b) {
			return other(a, b), nil
		}
		x, err := integer(a)
		if err != nil {
			return nil, err
		}
		y, err := integer(b)
		if err != nil {
			return nil, err
		}
		z, ok := exact(x, y)
		if !ok || int64(int(z)) != z {
			return nil, faulty("calculates more than an int can hold")
		}
		return int(z), nil
	}
}

func whole(x any) bool {
	v := reflect.ValueOf(x)
	return v.IsValid() && v.Type() != durationType && (v.CanInt() || v.CanUint())
}

func sum(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

func minus(a, b int64) (int64, bool) {
	c := a - b
	return c, (c < a) == (b > 0)
}

func times(a, b int64) (int64, bool) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	if (a < 0) != (b < 0) {
		return -int64(low), high == 0 && low <= 1<<63
	}
	return int64(low), high == 0 && low < 1<<63
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// remainder is % with the sign of the dividend, as in Go and Java, also for large unsigned numbers.
func remainder(_ *state, args []any) (any, error) {
	a, b := reflect.ValueOf(basic(args[0])), reflect.ValueOf(basic(args[1]))
	if a.IsValid() && a.CanUint() && b.IsValid() {
		n, err := integer(args[1])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, faulty("divides by zero")
		}
		return int(a.Uint() % magnitude(n)), nil
	}
	x, err := integer(args[0])
	if err != nil {
		return nil, err
	}
	y, err := integer(args[1])
	if err != nil {
		return nil, err
	}
	if y == 0 {
		return nil, faulty("divides by zero")
	}
	if y == -1 {
		return 0, nil
	}
	return int(x % y), nil
}

// comparison is an operator that compares whole numbers of all types and sizes as numbers, and leaves the rest to the engine.
type comparison struct {
	holds  func(order int) bool
	engine func(a, b any) bool
}

func comparisons() map[string]comparison {
	return map[string]comparison{
		"==": {func(o int) bool { return o == 0 }, runtime.Equal},
		"!=": {func(o int) bool { return o != 0 }, func(a, b any) bool { return !runtime.Equal(a, b) }},
		"<":  {func(o int) bool { return o < 0 }, runtime.Less},
		"<=": {func(o int) bool { return o <= 0 }, runtime.LessOrEqual},
		">":  {func(o int) bool { return o > 0 }, runtime.More},
		">=": {func(o int) bool { return o >= 0 }, runtime.MoreOrEqual},
	}
}

func (c comparison) call(_ *state, args []any) (any, error) {
	a, b := basic(args[0]), basic(args[1])
	if !whole(a) || !whole(b) {
		return c.engine(a, b), nil
	}
	return c.holds(order(reflect.ValueOf(a), reflect.ValueOf(b))), nil
}

func negative(v reflect.Value) bool { return v.CanInt() && v.Int() < 0 }

// size returns a whole number as the bits of an uint64.
func size(v reflect.Value) uint64 {
	if v.CanInt() {
		return uint64(v.Int())
	}
	return v.Uint()
}

// order compares two whole numbers as cmp.Compare would if there were a type for them.
func order(a, b reflect.Value) int {
	switch {
	case negative(a) && !negative(b):
		return -1
	case negative(b) && !negative(a):
		return 1
	}
	return cmp.Compare(size(a), size(b)) // two's complement keeps the order of two negative numbers
}
