package spel

import (
	"reflect"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// comparable refuses equals between types for which its result is not known to be that of Java.
func (c *compiler) comparable(n *node, a, b typ) {
	for _, pair := range [][2]typ{{a, b}, {b, a}} {
		x, y := pair[0], pair[1]
		switch {
		case x.k == nullK || y.k == nullK:
		case (x.k == wholeK || x.k == smallK) && y.number() && (x.k != y.k || x.k == wholeK && x.t != y.t):
			c.fail(n, "an Integer never equals a Long in Java, and %v may be either: declare it int32 or int64, or compare with ==", x.t)
		case x.k == nameK && y.k == textK:
			c.fail(n, "%v may be an enum in Java, which never equals a text: write .name() for an enum, or .toString() for both", x.t)
		case x.k == listK || x.k == mapK || x.k == objectK || x.k == bytesK:
			c.fail(n, "%s can't be compared here: compare its parts", describe(x))
		case x.k == refusedK:
			c.fail(n, "%s", x.why)
		}
	}
}

// equals is Object.equals, for which 42 and 42L differ.
func (c *compiler) equals(n *node, base, arg *code) *code {
	c.comparable(n, base.typ, arg.typ)
	return c.after(n, base, typ{k: boolK}, func(st *run.State, v any) (any, error) {
		a, err := arg.value(st)
		if err != nil {
			return nil, err
		}
		return equals(st, v, a)
	})
}

func equals(st *run.State, a, b any) (bool, error) {
	x, ok := integer(a)
	y, ok2 := integer(b)
	if !ok || !ok2 {
		return same(st, a, b)
	}
	if reflect.TypeOf(a) == reflect.TypeOf(b) {
		return x == y, nil
	}
	_, wide := a.(whole)
	_, wide2 := b.(whole)
	if x == y && (wide || wide2) {
		return false, run.Faulty("compares numbers that are equal only if both are int, or both long, in Java")
	}
	return false, nil
}

func find(st *run.State, l list, x any) (int, error) {
	if err := st.Step(2 * l.len()); err != nil {
		return 0, err
	}
	for i := range l.len() {
		e, err := l.at(i)
		if err != nil {
			return 0, err
		}
		if same, err := equals(st, e, x); same || err != nil {
			return i, err
		}
	}
	return -1, nil
}

// hashCode is known of texts, numbers and booleans.
func (c *compiler) hashCode(n *node, base *code) *code {
	switch base.typ.k {
	case textK, intK, longK, boolK, anyK:
	default:
		c.fail(n, "hashCode of %s is not known here: take it of a text or of a number that is int32 or int64", describe(base.typ))
	}
	return c.after(n, base, typ{k: intK}, func(st *run.State, v any) (any, error) {
		switch v := v.(type) {
		case string:
			u, err := units(st, v)
			var h int32
			for _, c := range u {
				h = 31*h + int32(c)
			}
			return h, err
		case int32:
			return v, nil
		case int64:
			return int32(v ^ int64(uint64(v)>>32)), nil
		case bool:
			if v {
				return int32(1231), nil
			}
			return int32(1237), nil
		}
		return nil, run.Faulty("has a value whose hashCode is not known here")
	})
}
