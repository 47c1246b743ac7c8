package spel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// The rule of "one key for all" from both sides, as FuzzStrangers of templates holds it: with requests that have nothing in
// common. What starts gives them different keys, and what is refused would have given all of them the same.
//
// The generator leaves out what has the same answer for strangers, and is meant to have: tests of a fact against a literal,
// methods that forget by what they are given, and sums of what takes itself away again. See strangers_test.go of templates.

// strangers are n orders that have nothing in common: no fact of one is a fact of another, but for the boolean.
func strangers(n int) []keyexpr.Facts {
	list := make([]keyexpr.Facts, n)
	for i := range list {
		id := strings.Repeat(fmt.Sprintf("%c%d", 'a'+i, i), i+1)
		note := "n" + id
		order := &javaOrder{
			ID: int64(i*i*37 + 3), Name: "o" + id, Note: &note, Attrs: map[string]string{"k": "v" + id}, Urgent: i%2 == 0, Owner: &javaOwner{"l" + id},
		}
		for n := range i + 1 {
			order.Items = append(order.Items, javaItem{fmt.Sprint("s", i, "-", n), int32(10*i + n)})
			order.Tags = append(order.Tags, fmt.Sprint("g", i, "-", n))
		}
		list[i] = func(string) (any, error) { return order, nil }
	}
	return list
}

// keysOfAll counts the keys that are made of several requests, and those of them that keys are made of.
func keysOfAll(tmpl *keyexpr.Template, all []keyexpr.Facts) (counts map[string]int, made int) {
	counts = map[string]int{}
	for _, facts := range all {
		if list, err := tmpl.Expand(context.Background(), facts); err == nil {
			made++
			counts[strings.Join(list, " ")]++
		}
	}
	return counts, made
}

// FuzzJavaStrangers tries expressions that nobody thought of.
func FuzzJavaStrangers(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	all := strangers(6)
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := &keys{Rand: rand.New(rand.NewPCG(seed, 1))}
		text := g.key()
		tmpl, err := Expression(text, Params("order")).Parse(javaRoots)
		if err != nil {
			checkError(t, text, err)
			if tmpl, err := Expression(text, Params("order")).Parse(javaRoots, keyexpr.OneKey()); err == nil {
				if keys, _ := keysOfAll(tmpl, all); len(keys) > 1 {
					t.Errorf("%q is refused, and makes different keys: %v", text, keys)
				}
			}
			return
		}
		if keys, made := keysOfAll(tmpl, all); made > 1 && len(keys) == 1 {
			t.Errorf("%q starts, and makes one key of %d strangers: %v", text, made, keys)
		}
	})
}

// keys writes what people write, right and wrong:
//
//	key    = text | list | "order-" { "#{" text "}" }
//	text   = fact | literal | text + text | method of a text | test ? text : text | text ?: text | element of a list
//	number = rising | what takes the facts out of one
//	rising = a number that is larger for each further stranger, so that no sum of two is the same for all
//	test   = fact | literal | what is the same for all
type keys struct {
	*rand.Rand
	literals int
}

func (g *keys) pick(list ...string) string { return list[g.IntN(len(list))] }

// literal is another text each time, so that two branches of a test are the same only on purpose.
func (g *keys) literal() string {
	g.literals++
	return fmt.Sprintf("'x%d'", g.literals)
}

func (g *keys) key() string {
	switch g.IntN(6) {
	case 0:
		return g.list(2)
	case 1:
		return "order-#{" + g.text(2) + "}#{" + g.text(2) + "}"
	}
	return g.text(3)
}

func (g *keys) fact() string {
	return g.pick("#order.name", "#order.getName()", "#p0.name", "#order.note", "#order.attrs['k']", "#order.owner.login", "#order.owner?.login", "#order.tags[0]", "T(String).valueOf(#order.id)", "(''+#order.id)")
}

func (g *keys) text(depth int) string {
	if depth == 0 {
		return g.pick(g.fact(), g.fact(), g.literal())
	}
	x := func() string { return g.text(g.IntN(depth)) }
	switch g.IntN(16) {
	case 0, 1:
		return "(" + x() + " + ':' + " + x() + ")"
	case 2:
		return x() + g.pick(".toLowerCase()", ".toUpperCase()", ".trim()", ".toString()", ".concat('-')", ".intern()", ".substring(0)", ".substring(0, 0)", ".substring(1, 1)")
	case 3:
		return "(" + g.test(depth-1) + " ? " + x() + " : " + x() + ")"
	case 4:
		same := x()
		return "(" + g.test(depth-1) + " ? " + same + " : " + same + ")"
	case 5:
		return "(" + g.pick(g.fact(), g.literal(), "''", "null", g.literal()+".trim()", "(#order.urgent ? '' : "+g.literal()+")") + " ?: " + x() + ")"
	case 6:
		same := x()
		return same + ".replace(" + g.pick(same+", "+x(), g.literal()+", "+g.literal(), "'a', 'a'") + ")"
	case 7:
		return "{" + x() + ", " + x() + "}" + g.pick("[0]", "[1]", ".get(0)", "[1 - 1]", "[#order.urgent ? 0 : 1]", ".^[true]", ".$[true]")
	case 8:
		return "('' + " + g.number(depth-1) + ")"
	case 9:
		return "(#order.items.![" + g.pick(g.literal(), "sku", "'' + qty") + "]" + g.pick("[0]", ".get(0)", ".^[false]") + " ?: " + x() + ")"
	case 10:
		return "(" + g.test(depth-1) + " ? " + g.pick("'y'", "'Y'", "''") + " : 'y')" + g.pick(".toLowerCase()", ".toLowerCase()", "")
	}
	return g.fact()
}

func (g *keys) rising(depth int) string {
	if depth == 0 {
		return g.pick("#order.id", "#order.tags.size()", "#order.name.length()", "#order.items.size()", "#order.items[0].qty")
	}
	return g.pick("("+g.rising(depth-1)+" + "+g.rising(depth-1)+")", "("+g.rising(depth-1)+" * 3)", "("+g.rising(depth-1)+" + 7)")
}

func (g *keys) number(depth int) string {
	x := g.rising(depth)
	return g.pick(x, x, "-("+x+")", "("+x+" - 5)", "("+x+" - "+x+")", x+" * 0", "0 * "+x, x+" % 1", x+" % "+x, x+" / 1", x+" / "+x, "0 / "+x, x+" * (1 - 1)", x+" % 1000003",
		"{"+x+", "+x+"}.size()", "#order.items.![1][0]", "(#order.urgent ? 4 : 4)", "{"+x+", 7}[1]", "7", "'abc'.length()", "#order.items.?[false].size()")
}

func (g *keys) test(depth int) string {
	if depth <= 0 {
		return g.pick("#order.urgent", "true", "false", "1 < 2", "'a' == 'b'", "!#order.urgent")
	}
	x, n := g.text(depth-1), g.rising(depth-1)
	return "(" + g.pick("#order.urgent", g.test(0)+" and "+g.test(0), g.test(0)+" or "+g.test(0), "!(1 < 2)", x+" == "+x, x+" != "+x, n+g.pick(" < ", " <= ", " > ", " == ")+n,
		x+g.pick(".contains(", ".startsWith(", ".endsWith(")+g.pick(x, "''")+")", x+".equals("+x+")", x+" matches '.*'", "{"+x+", "+g.literal()+"}.contains("+x+")",
		"#order.tags.?[false].isEmpty()", "#order.name == null", "#order.tags.size() >= 0", "#order.id between {#order.id, #order.id}") + ")"
}

func (g *keys) list(depth int) string {
	if depth == 0 {
		return g.pick("#order.tags", "#order.items.![sku]", "#order.items.!["+g.literal()+"]", "#order.tags.?[true]", "#order.tags.?[false]", "{1, 2, 3}.!['' + #this]")
	}
	return g.pick(g.list(0), "#order.items.![sku + ':' + qty]", "{"+g.text(depth)+", "+g.text(depth)+"}", g.list(0)+".![#this + 'z']", g.list(0)+".?[#this != '']", "(#order.urgent ? "+g.list(0)+" : "+g.list(0)+")")
}
