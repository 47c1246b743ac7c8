package keyexpr

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// fuzzRequest is what the templates are about.
type fuzzRequest struct {
	A, B, C string
	N       int64
	U       uint64
	Yes     bool
	Opt     *string
	M       map[string]string
	Any     any
	Tags    []string
	Lines   []stockLine
}

func (r *fuzzRequest) fact(root string) (any, error) {
	switch root {
	case "header":
		return lookupOf(map[string]string{"A": r.A}), nil
	case "body":
		return map[string]any{"a": r.B, "n": float64(r.N), "list": []any{r.C, r.B}}, nil
	}
	return r, nil
}

// templates writes templates, and says what they come to:
//
//	template = { literal hole } [ literal ]
//	hole     = value | key | choice of holes | list
//	value    = fact | literal | function of a value | choice of values
type templates struct {
	*rand.Rand
	pieces []string
	list   bool
	elem   bool // a loop is around
}

// node is an expression: its text, and the values that it puts into a key, for an element of a loop as well. No values stand
// for nil and for what is empty.
type node struct {
	src string
	of  func(r *fuzzRequest, e stockLine) []string
}

func (g *templates) request() *fuzzRequest {
	piece := func() string { return g.pieces[g.IntN(len(g.pieces))] }
	r := &fuzzRequest{A: piece(), B: piece(), C: piece(), N: g.Int64N(40) - 20, U: 1<<64 - 1 - g.Uint64N(3), Yes: g.IntN(2) == 0, M: map[string]string{"k": piece()}, Any: piece()}
	if g.IntN(2) == 0 {
		r.Opt = new(piece())
	}
	for range 1 + g.IntN(3) {
		r.Tags, r.Lines = append(r.Tags, piece()), append(r.Lines, stockLine{piece(), piece()})
	}
	return r
}

func pick[T any](g *templates, list ...T) T { return list[g.IntN(len(list))] }

// template returns a text and the vectors of values that its keys are made of, one for each key.
func (g *templates) template() (text string, vectors func(*fuzzRequest) [][]string) {
	var b strings.Builder
	var holes []func(*fuzzRequest) [][]string // each of one value, or of one for each element
	for range 1 + g.IntN(3) {
		b.WriteString(pick(g, ":", "/", ",", "-", "x", "7", "→", "é", ";", "::", ", ", "{x}", "~", "a:b", "0", "'"))
		src, of := g.hole()
		b.WriteString("#{" + src + "}")
		holes = append(holes, of)
	}
	b.WriteString(pick(g, "", "", ":", "/x", "-", "7", "→"))
	return b.String(), func(r *fuzzRequest) [][]string {
		all := [][]string{nil}
		for _, of := range holes {
			var next [][]string
			for _, before := range all {
				for _, v := range of(r) {
					next = append(next, slices.Concat(before, v))
				}
			}
			all = next
		}
		return all
	}
}

func (g *templates) hole() (src string, of func(*fuzzRequest) [][]string) {
	if g.list || g.IntN(3) > 0 {
		n := g.parts(2)
		if strings.HasPrefix(n.src, `"`) { // which is literal text, and no value
			n.of = func(*fuzzRequest, stockLine) []string { return nil }
		}
		return n.src, func(r *fuzzRequest) [][]string { return [][]string{n.of(r, stockLine{})} }
	}
	g.list = true
	switch g.IntN(4) {
	case 0:
		a, b := g.parts(2), g.parts(2)
		return "[" + a.src + ", " + b.src + "]", func(r *fuzzRequest) [][]string { return [][]string{a.of(r, stockLine{}), b.of(r, stockLine{})} }
	case 1:
		return "req.Tags", func(r *fuzzRequest) (all [][]string) {
			for _, tag := range r.Tags {
				all = append(all, []string{tag})
			}
			return all
		}
	}
	g.elem = true
	n, list, kept := g.parts(2), "req.Lines", func(stockLine) bool { return true }
	if g.IntN(2) == 0 {
		list, kept = "filter(req.Lines, .SKU != 'x')", func(l stockLine) bool { return l.SKU != "x" }
	}
	g.elem = false
	return "map(" + list + ", " + n.src + ")", func(r *fuzzRequest) (all [][]string) {
		for _, l := range r.Lines {
			if kept(l) {
				all = append(all, n.of(r, l))
			}
		}
		return all
	}
}

// parts is a value, several as one, or a choice between them.
func (g *templates) parts(depth int) node {
	switch g.IntN(4) {
	case 0:
		list := []node{g.value(depth), g.value(depth)}
		if g.IntN(3) == 0 {
			list = append(list, g.value(depth))
		}
		srcs := make([]string, len(list))
		for i, n := range list {
			srcs[i] = n.src
		}
		return node{"key(" + strings.Join(srcs, ", ") + ")", func(r *fuzzRequest, e stockLine) (all []string) {
			for _, n := range list {
				all = append(all, n.of(r, e)...)
			}
			return all
		}}
	case 1:
		if depth > 0 {
			return g.choice(g.parts(depth-1), g.parts(depth-1))
		}
	}
	return g.value(depth)
}

// choice is one of two, by a test or by what is there.
func (g *templates) choice(a, b node) node {
	src, test := g.test()
	switch g.IntN(3) {
	case 0:
		return node{"coalesce(" + a.src + ", " + b.src + ")", func(r *fuzzRequest, e stockLine) []string {
			if v := a.of(r, e); len(v) > 0 && v[0] != "" {
				return v
			}
			return b.of(r, e)
		}}
	case 1:
		return node{"required(" + a.src + ")", a.of}
	}
	return node{"(" + src + " ? " + a.src + " : " + b.src + ")", func(r *fuzzRequest, e stockLine) []string {
		if test(r, e) {
			return a.of(r, e)
		}
		return b.of(r, e)
	}}
}

func (g *templates) test() (src string, of func(*fuzzRequest, stockLine) bool) {
	x, y := g.fact(), g.fact()
	is := func(op string, f func(a, b string) bool) (string, func(*fuzzRequest, stockLine) bool) {
		return x.src + " " + op + " " + y.src, func(r *fuzzRequest, e stockLine) bool { return f(one(x, r, e), one(y, r, e)) }
	}
	switch g.IntN(8) {
	case 0:
		return "req.Yes", func(r *fuzzRequest, _ stockLine) bool { return r.Yes }
	case 1:
		return "not req.Yes", func(r *fuzzRequest, _ stockLine) bool { return !r.Yes }
	case 2:
		return is("==", func(a, b string) bool { return a == b })
	case 3:
		return is("<", func(a, b string) bool { return a < b })
	case 4:
		return is("contains", strings.Contains)
	case 5:
		return is("startsWith", strings.HasPrefix)
	case 6:
		return "req.N > 0 and req.U >= 5", func(r *fuzzRequest, _ stockLine) bool { return r.N > 0 }
	}
	return x.src + " in req.Tags", func(r *fuzzRequest, e stockLine) bool { return slices.Contains(r.Tags, one(x, r, e)) }
}

// one is the text of a fact that is always there.
func one(n node, r *fuzzRequest, e stockLine) string { return n.of(r, e)[0] }

func (g *templates) fact() node {
	of := func(src string, f func(r *fuzzRequest, e stockLine) string) node {
		return node{src, func(r *fuzzRequest, e stockLine) []string { return []string{f(r, e)} }}
	}
	list := []node{
		of("req.A", func(r *fuzzRequest, _ stockLine) string { return r.A }),
		of("req.B", func(r *fuzzRequest, _ stockLine) string { return r.B }),
		of("req.C", func(r *fuzzRequest, _ stockLine) string { return r.C }),
		of("header.A", func(r *fuzzRequest, _ stockLine) string { return r.A }),
		of("body.a", func(r *fuzzRequest, _ stockLine) string { return r.B }),
		of("body.list[0]", func(r *fuzzRequest, _ stockLine) string { return r.C }),
		of("req.M.k", func(r *fuzzRequest, _ stockLine) string { return r.M["k"] }),
		of("req.Any", func(r *fuzzRequest, _ stockLine) string { return r.Any.(string) }),
		of("req.Lines[-1].SKU", func(r *fuzzRequest, _ stockLine) string { return r.Lines[len(r.Lines)-1].SKU }),
		of("first(req.Tags)", func(r *fuzzRequest, _ stockLine) string { return r.Tags[0] }),
	}
	if g.elem {
		list = append(list, of(".SKU", func(_ *fuzzRequest, e stockLine) string { return e.SKU }), of("#.Warehouse", func(_ *fuzzRequest, e stockLine) string { return e.Warehouse }))
	}
	return pick(g, list...)
}

// value is one value.
func (g *templates) value(depth int) node {
	if depth > 0 && g.IntN(3) == 0 {
		return g.choice(g.value(depth-1), g.value(depth-1))
	}
	x := g.fact()
	mapped := func(format string, f func(string) string) node {
		return node{fmt.Sprintf(format, x.src), func(r *fuzzRequest, e stockLine) []string { return []string{f(one(x, r, e))} }}
	}
	number := func(src string, f func(r *fuzzRequest) any) node {
		return node{src, func(r *fuzzRequest, _ stockLine) []string { return []string{fmt.Sprint(f(r))} }}
	}
	text := pick(g, "x", ":", "a:b", "%", "7", "c")
	switch g.IntN(14) {
	case 0:
		return mapped("lower(%s)", lower)
	case 1:
		return mapped("upper(%s)", upper)
	case 2:
		return mapped("trim(%s)", strings.TrimSpace)
	case 3:
		return mapped("string(%s)", func(s string) string { return s })
	case 4:
		return mapped("hash(%s)", func(s string) string { return "hash of " + s })
	case 5:
		return number("req.N", func(r *fuzzRequest) any { return r.N })
	case 6:
		return number("body.n", func(r *fuzzRequest) any { return r.N })
	case 7:
		return number("req.U", func(r *fuzzRequest) any { return r.U })
	case 8:
		return number("mod(req.N, 7)", func(r *fuzzRequest) any { return (r.N%7 + 7) % 7 })
	case 9:
		return number("div(req.U, 2)", func(r *fuzzRequest) any { return r.U / 2 })
	case 10:
		return node{fmt.Sprintf("%q", text), func(*fuzzRequest, stockLine) []string { return []string{text} }}
	case 11:
		return node{"(req.Opt ?? " + fmt.Sprintf("%q", text) + ")", func(r *fuzzRequest, _ stockLine) []string {
			if r.Opt == nil {
				return []string{text}
			}
			return []string{*r.Opt}
		}}
	case 12:
		return number("len(req.Tags)", func(r *fuzzRequest) any { return len(r.Tags) })
	}
	return x
}
