package interop

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var (
	randomSeed  = flag.Uint64("seed", 1, "seed of the random expressions; 0 takes the time")
	randomCount = flag.Int("random", 4000, "how many random expressions")
)

// TestRandomExpressions compares both sides on expressions that nobody thought of.
func TestRandomExpressions(t *testing.T) {
	p := startPeer(t)
	seed := *randomSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	g := &generator{rand.New(rand.NewPCG(seed, 2))}
	seen := map[string]bool{}
	var subjects []subject
	for len(subjects) < *randomCount {
		text := g.key()
		if seen[text] {
			continue
		}
		seen[text] = true
		s := subjectOf("spring", text)
		switch g.IntN(6) {
		case 0:
			s = subjectOf("lock4j", text)
		case 1:
			s = subjectOf("klock", text, g.any(1))
		}
		s.orders = append(s.orders, g.order(), g.order())
		subjects = append(subjects, s)
	}
	t.Logf("seed %d", seed)
	compare(t, subjects, askAll(t, p, subjects), *randomCount)
}

// generator writes expressions. They are of a kind where they stand, most of the time: else all would be refused.
type generator struct{ *rand.Rand }

func (g *generator) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g *generator) key() string {
	switch g.IntN(8) {
	case 0:
		return g.list(2)
	case 1:
		return g.any(3)
	case 2:
		return g.pick("o-", "") + "#{" + g.text(2) + "}" + g.pick("-x", "")
	}
	return g.pick("'k:' + ", "'k:' + ", "") + g.operand(g.any(3))
}

// order is a request that nobody thought of.
func (g *generator) order() *Order {
	word := func() string {
		var b strings.Builder
		for range g.IntN(8) {
			b.WriteString(g.pick("a", "A", "b", "ab", " ", ",", ";", "7", "é", "ß", "Ω", "ς", "😀", "\u00a0", "\u2028", "\n", "'", "{", "%", "-", "\x00", "ﬁ"))
		}
		return b.String()
	}
	words := func() (list []string) {
		for range g.IntN(4) {
			list = append(list, word())
		}
		return list
	}
	o := &Order{
		ID: int64(g.Uint64()) >> g.IntN(64), Seq: int32(g.Uint32()) >> g.IntN(32), Level: int16(g.Uint32()) >> g.IntN(16), Name: word(), ISBN: word(),
		Status: Status(g.pick("NEW", "PAID", "SHIPPED")), Tags: words(), Attrs: map[string]string{"k": word(), "zone": word()}, Urgent: g.IntN(2) == 0, Ref: UUID{byte(g.Uint32())},
	}
	if g.IntN(2) == 0 {
		note := word()
		o.Note, o.Owner = &note, &Owner{Login: word()}
	}
	for range g.IntN(3) {
		o.Items = append(o.Items, Item{SKU: word(), Qty: int32(g.Uint32()) >> g.IntN(32)})
		o.IDs = append(o.IDs, int64(g.Uint64())>>g.IntN(64))
	}
	return o
}

// operand puts brackets around what is more than a word.
func (g *generator) operand(s string) string {
	if strings.ContainsAny(s, " ") && g.IntN(5) > 0 {
		return "(" + s + ")"
	}
	return s
}

func (g *generator) any(depth int) string {
	switch g.IntN(6) {
	case 0, 1:
		return g.text(depth)
	case 2, 3:
		return g.number(depth)
	case 4:
		return g.test(depth)
	}
	return g.list(depth)
}

func (g *generator) text(depth int) string {
	if depth <= 0 {
		return g.pick("#order.name", "#order.note", "#order.empty", "#order.isbn", "'a'", "''", "'É b'", "#order.attrs['k']", "#order.attrs['zone']", "#order.attrs['nope']",
			"#order.tags[0]", "#order.tags[1]", "#order.items[0].sku", "#order.owner.login", "#order.owner?.login", "#order.status.name()", "#order.ref.toString()", "#p0.name")
	}
	s := g.operand(g.text(depth - 1))
	switch g.IntN(12) {
	case 0:
		return s + " + " + g.operand(g.any(depth-1))
	case 1:
		return g.operand(g.any(depth-1)) + " + " + s
	case 2:
		return s + g.pick(".", ".", "?.") + g.pick("trim()", "toUpperCase()", "toLowerCase()", "strip()", "toString()")
	case 3:
		return s + ".substring(" + g.number(depth-2) + g.pick("", ", "+g.number(depth-2)) + ")"
	case 4:
		return s + g.pick(".concat(", "?.concat(") + g.text(depth-2) + ")"
	case 5:
		return s + " ?: " + g.operand(g.any(depth-1))
	case 6:
		return g.operand(g.test(depth-1)) + " ? " + g.operand(g.any(depth-1)) + " : " + g.operand(g.any(depth-1))
	case 7:
		return s + ".concat(" + g.any(depth-1) + ")"
	case 8:
		return g.list(depth-1) + "[" + g.number(depth-2) + "]"
	case 9:
		return g.operand(g.number(depth-1)) + ".toString()"
	case 10:
		return s + g.pick("[0]", "[1]", "["+g.number(depth-2)+"]")
	}
	return s
}

func (g *generator) number(depth int) string {
	if depth <= 0 {
		return g.pick("#order.id", "#order.seq", "#order.level", "0", "1", "2", "7", "42L", "2147483647", "#order.ids[0]", "#order.items[0].qty", "#order.tags.size()")
	}
	x, y := g.operand(g.number(depth-1)), g.operand(g.number(depth-1))
	switch g.IntN(8) {
	case 0, 1:
		return x + g.pick(" + ", " - ", " * ", " / ", " % ", " mod ") + y
	case 2:
		return "-" + x
	case 3:
		return g.operand(g.text(depth-1)) + g.pick(".length()", ".hashCode()", "?.length()")
	case 4:
		return g.list(depth-1) + ".size()"
	case 5:
		return x + ".hashCode()"
	case 6:
		return g.operand(g.test(depth-1)) + " ? " + x + " : " + y
	}
	return x
}

func (g *generator) test(depth int) string {
	if depth <= 0 {
		return g.pick("#order.urgent", "true", "false", "#order.name.isEmpty()", "#order.note == null", "#order.owner != null")
	}
	switch g.IntN(10) {
	case 0:
		return g.operand(g.test(depth-1)) + g.pick(" and ", " or ", " && ", " || ") + g.operand(g.test(depth-1))
	case 1:
		return g.pick("!", "not ") + g.operand(g.test(depth-1))
	case 2:
		return g.operand(g.number(depth-1)) + g.pick(" == ", " != ", " < ", " > ", " <= ", " >= ", " eq ", " lt ") + g.operand(g.number(depth-1))
	case 3:
		return g.operand(g.text(depth-1)) + g.pick(" == ", " != ", " < ", " > ", " ne ") + g.operand(g.text(depth-1))
	case 4:
		return g.operand(g.any(depth-1)) + g.pick(" == ", " != ") + g.operand(g.any(depth-1))
	case 5:
		return g.operand(g.any(depth-1)) + ".equals(" + g.any(depth-1) + ")"
	case 6:
		return g.operand(g.text(depth-1)) + g.pick(".contains(", ".startsWith(", ".endsWith(", ".equals(") + g.text(depth-1) + ")"
	case 7:
		return g.list(depth-1) + ".contains(" + g.any(depth-1) + ")"
	case 8:
		return g.pick("#order.attrs", "#order?.attrs") + ".containsKey(" + g.text(depth-2) + ")"
	}
	return g.operand(g.text(depth-1)) + g.pick(".isEmpty()", ".isBlank()", ".empty")
}

func (g *generator) list(depth int) string {
	if depth <= 0 {
		return g.pick("#order.tags", "#order.ids", "#order.items.![sku]", "{1, 2}", "{'a'}")
	}
	switch g.IntN(6) {
	case 0:
		return "{" + g.any(depth-1) + ", " + g.any(depth-1) + "}"
	case 1, 2:
		return g.list(depth-1) + g.pick(".![", ".![", "?.![") + g.pick("#this != null", "#this == 'red'", "#this.equals('red')", "true", "#this != #order.name", "#this", "#this + 'x'", "'x' + #this", "#this == null ? 'n' : #this", "toString()", "#this.toString()", "#order.id", "{#this}") + "]"
	case 3:
		return g.pick("#order.items.![qty]", "#order.items.![sku + qty]", "#order.tags.![#this.length()]", "#order.ids.![#this + 1]", "#order.tags.![#this.toUpperCase()]", "#order.items.![qty > 1 ? sku : 'few']")
	}
	return g.list(depth - 1)
}
