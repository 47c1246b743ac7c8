package keyexpr

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/big"
	"reflect"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Whole numbers are ids, and ids must not change on their way into a key: a result is exact, or an error of the request.

// quotient is the type of the results of mod and div.
func (c *compilation) quotient(x *ast.CallNode, args []typ) typ {
	by, fixed := constant(x.Arguments[1])
	n, _ := by.(int)
	switch {
	case fixed && n == 0:
		c.fail(x.Arguments[1], "nothing can be divided by 0")
	case fixed && n < 1 && calls(x, "mod"):
		c.fail(x.Arguments[1], "mod divides by 1 or more")
	}
	for _, a := range args {
		if sortOf(a.t) != "number" || a.t.Kind() > reflect.Int64 { // what is unsigned may come to more than an int holds
			return typ{}
		}
	}
	return typ{t: intType}
}

func (c *compilation) shards(x *ast.CallNode, args []typ) typ {
	c.wantKey(x.Arguments[0], args[0])
	by, fixed := constant(x.Arguments[1])
	if n, _ := by.(int); fixed && n < 1 {
		c.fail(x.Arguments[1], "there are no shards: write how many, as in shard(x, 16)")
	}
	return typ{t: intType}
}

// shard spreads the text of a value over the numbers from 0 to n-1, the same way in every process and release: the first
// eight bytes of its SHA-256, as a number in network order, are divided by n.
func shard(st *run.State, args []any) (any, error) {
	n, err := run.Integer(basic(args[1]))
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, run.Faulty("has no shards")
	}
	s, err := spelt(st, args[0])
	if err == nil && s == "" {
		err = run.ErrEmpty
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(s))
	return int(binary.BigEndian.Uint64(sum[:]) % uint64(n)), nil
}

// integerOf returns a whole number of any size that fits 64 bits, and a float if it holds one exactly.
func integerOf(x any) (*big.Int, error) {
	switch x := basic(x).(type) {
	case int:
		return big.NewInt(int64(x)), nil
	case uint64:
		return new(big.Int).SetUint64(x), nil
	case float64:
		if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			return nil, run.Faulty("has a float that is no whole number")
		}
		return big.NewInt(int64(x)), nil
	default:
		return nil, run.Faulty("has a value of type %T where a whole number is wanted", x)
	}
}

// division is exact, and never wraps around.
func division(of func(z, a, b *big.Int) *big.Int, positive bool) run.Call {
	return func(st *run.State, args []any) (any, error) {
		if err := st.Spend(256); err != nil { // for the numbers in between
			return nil, err
		}
		a, err := integerOf(args[0])
		if err != nil {
			return nil, err
		}
		b, err := integerOf(args[1])
		if err != nil {
			return nil, err
		}
		if b.Sign() == 0 || positive && b.Sign() < 0 {
			return nil, run.Faulty("divides by what is not positive")
		}
		switch n := of(new(big.Int), a, b); {
		case n.IsInt64():
			return int(n.Int64()), nil
		case n.IsUint64():
			return n.Uint64(), nil
		}
		return nil, run.Faulty("calculates more than an int can hold")
	}
}

// raw is a text that goes into the key as it is.
func raw(st *run.State, args []any) (any, error) {
	s, err := spelt(st, args[0])
	return run.Raw(s), err
}

// key joins values that are escaped by themselves.
func key(st *run.State, args []any) (any, error) {
	parts := make(run.Composite, len(args))
	for i, x := range args {
		s, err := spelt(st, x)
		if err != nil {
			return nil, err
		}
		parts[i] = s
	}
	return parts, nil
}
