package keyexpr

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The rule of "nothing silent" is that a template reads a fact. These tests hold it from both sides, with requests that have
// nothing in common: what starts gives them different keys, and what is refused would have given all of them the same.
//
// The generator leaves out what has the same answer for strangers, and is meant to have:
//
//   - tests of a fact against a literal or another fact (req.Tenant == 'acme', req.Seq > 5, 1 in [1, req.Seq]). They have
//     two answers for all requests of the world, and which of them a request gets is what the author wants to know;
//   - functions that forget by what they are given: shard and % by a small number, div by a large one, min and max with a
//     literal, replace and trim of a literal by a fact;
//   - methods and functions of the user's own, which may say what they like: req.Kind() is "pay" for all;
//   - sums of what takes itself away again (req.Seq + 1 - req.Seq, req.Urgent or not req.Urgent). There is no algebra beyond
//     equal operands, and operands that leave nothing of the other; and what such a text or number comes to is not
//     known, so that ?? and or() behind it count as read.

// strangers are n requests that have nothing in common: no fact of one is a fact of another, but for the boolean. The first
// has empty lists.
func strangers(n int) []Facts {
	list := make([]Facts, n)
	for i := range list {
		id := strings.Repeat(fmt.Sprintf("%c%d", 'a'+i, i), i+1)
		coupon := "c" + id
		req := &payRequest{
			OrderID: id, Tenant: tenant("t" + id), Coupon: &coupon, Seq: int64(i*i*37 - 40), Shard: uint64(1<<60 + i*17), Urgent: i%2 == 0,
			Level: level(i), Ref: uuid{byte(i), byte(7 * i)}, Digest: []byte(id), Salt: [4]byte{byte(i)},
			Labels: map[string]string{"zone": "z" + id}, Counts: map[string]int{"n": i * 5}, Customer: &customer{Name: "n" + id}, Any: "any" + id,
		}
		for n := range i {
			req.Lines = append(req.Lines, line{fmt.Sprint("s", i, "-", n), 10*i + n})
			req.Tags = append(req.Tags, fmt.Sprint("g", i, "-", n))
		}
		list[i] = func(root string) (any, error) {
			switch root {
			case "req":
				return req, nil
			case "path", "header":
				return Lookup(func(name string) (string, bool, error) { return root + name + id, true, nil }), nil
			case "body":
				return map[string]any{"id": "b" + id, "qty": i * 3}, nil
			}
			return "M" + id, nil // method
		}
	}
	return list
}

// keysOf counts the keys that a template makes of several requests, and those of them that it makes keys of. shared says that
// all of these have a key in common, and wait for each other.
func keysOf(tmpl *Template, all []Facts) (keys map[string]int, made int, shared bool) {
	keys = map[string]int{}
	each := map[string]int{}
	for _, facts := range all {
		list, err := tmpl.Expand(context.Background(), facts)
		if err != nil {
			continue
		}
		made++
		keys[strings.Join(list, " ")]++
		for _, key := range list {
			each[key]++
		}
	}
	return keys, made, made == 0 || slices.Contains(slices.Collect(maps.Values(each)), made)
}

// checkOneKey holds that what is refused for reading nothing was refused with reason.
func checkOneKey(t *testing.T, text string, tmpl *Template, all []Facts) {
	t.Helper()
	if keys, _, shared := keysOf(tmpl, all); !shared {
		t.Errorf("%q is refused, and makes different keys: %v", text, keys)
	}
}

// FuzzStrangers tries templates that nobody thought of. Random bytes are for FuzzParse: they hit upon a literal to compare with
// sooner or later.
func FuzzStrangers(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	roots, all := testRoots(), strangers(6)
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := &templates{Rand: rand.New(rand.NewPCG(seed, 1))}
		text := g.template()
		tmpl, err := Parse(text, roots)
		if err != nil {
			checkError(t, text, err)
			if tmpl, err := Parse(text, roots, OneKey()); err == nil {
				checkOneKey(t, text, tmpl, all)
			}
			return
		}
		if keys, made, _ := keysOf(tmpl, all); made > 1 && len(keys) == 1 {
			t.Errorf("%q starts, and makes one key of %d strangers: %v", text, made, keys)
		}
	})
}

// templates writes what people write, right and wrong:
//
//	template = { literal [ hole ] }
//	hole     = text | number | list
//	text     = fact | literal | function of a text | text ":" text | test ? text : text | text of a list that is written out | …
//	number   = rising | - rising | what takes the facts out of one
//	rising   = a number that is larger for each further stranger, so that no sum of two is the same for all
//	test     = fact | literal | what is the same for all: equal operands, operands that leave nothing of the other
type templates struct {
	*rand.Rand
	literals int
}

func (g *templates) pick(list ...string) string { return list[g.IntN(len(list))] }

// literal is another text each time, so that two branches of a test are the same only on purpose.
func (g *templates) literal() string {
	g.literals++
	return fmt.Sprintf("'x%d'", g.literals)
}

func (g *templates) template() string {
	var b strings.Builder
	for range 1 + g.IntN(4) {
		b.WriteString(g.pick("order", "", ":", "/", "{", "}", "${req.OrderID}", "{{.OrderID}}", "{id}", "{OrderID}", ":id", "%s", "#req.OrderID", "# {req.ID}", "##", "'o:' + ", "%", "%~"))
		switch g.IntN(6) {
		case 0:
		case 1:
			b.WriteString("#{" + g.list(2) + "}")
		case 2:
			b.WriteString("#{" + g.number(2) + "}")
		default:
			b.WriteString("#{" + g.text(3) + "}")
		}
	}
	return b.String()
}

func (g *templates) fact() string {
	return g.pick("req.OrderID", "req.Tenant", "req.order_id", "path.id", "header.Tenant", "header['X-T']", "body.id", "method", "req.Labels.zone", "req.Customer?.Name",
		"req.Coupon", "req.Any", "string(req.Seq)", "string(req.Level)", "string(req.Ref)", "string(req.Digest)")
}

func (g *templates) text(depth int) string {
	if depth == 0 {
		return g.pick(g.fact(), g.fact(), g.literal())
	}
	x := func() string { return g.text(g.IntN(depth)) }
	switch g.IntN(22) {
	case 0:
		return "(" + x() + " + ':' + " + x() + ")"
	case 1:
		return g.pick("lower", "upper", "trim", "hash", "string", "toBase64", "raw", "required") + "(" + x() + ")"
	case 2:
		return "(" + g.test(depth-1) + " ? " + x() + " : " + x() + ")"
	case 3:
		same := x()
		return "(" + g.test(depth-1) + " ? " + same + " : " + same + ")"
	case 4:
		return "(" + g.first() + " ?? " + x() + ")"
	case 5:
		return "or(" + g.first() + ", " + x() + ")"
	case 6:
		return "join(" + g.pick("req.Tags", "map(req.Lines, .SKU)", "map(req.Lines, "+g.literal()+")", "["+x()+", "+x()+"]") + ", ',')"
	case 7:
		return "(let v = " + x() + "; " + g.pick("v", x(), "v + '-' + "+x(), "v == v ? v : "+x()) + ")"
	case 8:
		return "replace(" + x() + ", 'a', 'b')"
	case 9:
		return x() + g.pick("[0:0]", "[:0]", "[1:1]", "[0:]", "[:999]", "[3:2]", "[-1:0]", "[:1 - 1]", "[-2:-2]")
	case 10:
		return "[" + x() + ", " + x() + "]" + g.pick("[0]", "[1]", "[-1]")
	case 11:
		return "{a: " + x() + ", b: " + x() + "}" + g.pick(".a", ".b", "['a']")
	case 12:
		return g.pick("first", "last") + "(" + g.pick("", "reverse") + "([" + x() + ", " + x() + "]))"
	case 13:
		return "get([" + x() + ", " + x() + "], " + g.pick("0", "1", "-1") + ")"
	case 14:
		return "string(" + g.number(depth-1) + ")"
	case 15:
		same := x()
		return g.pick("replace("+same+", "+same+", "+x()+")", "or(trimPrefix("+same+", "+same+"), "+x()+")", "replace("+same+", 'b', 'b')")
	case 16:
		return g.pick("lower", "upper", "", "required") + "((" + g.test(depth-1) + " ? " + g.pick("'y'", "'Y'", "''", "nil") + " : 'y'))"
	case 17:
		made := g.pick("map(req.Lines, "+g.literal()+")", "map(req.Tags, "+x()+")", "map(req.Tags, # + 'z')")
		return g.pick(made+"[0]", "join(uniq("+made+"), ',')", "join(map("+made+", # + 'z'), ',')", "["+x()+", "+x()+"]["+g.pick("1 - 1", "req.Urgent ? 0 : 1", "req.Urgent ? 1 : 1")+"]")
	case 18:
		return g.pick("find", "findLast") + "([" + x() + ", " + x() + "], " + g.pick("true", "# == #", "1 < 2") + ")"
	}
	return g.fact()
}

// first stands in front of what may take its place.
func (g *templates) first() string {
	return g.pick(g.fact(), g.literal(), "lower("+g.literal()+")", "(1 < 2 ? "+g.literal()+" : "+g.fact()+")", "(req.Urgent ? "+g.fact()+" : "+g.literal()+")")
}

func (g *templates) rising(depth int) string {
	if depth == 0 {
		return g.pick("req.Seq", "int(req.Seq)", "len(req.Tags)", "len(req.OrderID)", "req.Counts.n", "len(req.Lines)", "body.qty", "count(req.Tags, true)")
	}
	return g.pick("("+g.rising(depth-1)+" + "+g.rising(depth-1)+")", "("+g.rising(depth-1)+" * 3)", "("+g.rising(depth-1)+" + 7)")
}

func (g *templates) number(depth int) string {
	x := g.rising(depth)
	return g.pick(x, x, "-"+x, "("+x+" - 5)", "("+x+" - "+x+")", x+" * 0", "0 * "+x, x+" % 1", x+" % "+x, "div("+x+", 1)", "div("+x+", "+x+")", "mod("+x+", 1)", "mod("+x+", 1000003)",
		"shard("+g.text(depth)+", 1)", "shard("+g.text(depth)+", 1000003)", "len(hash("+g.text(depth)+"))", "len(["+x+", "+x+"])", "len(req.Salt)", "["+x+", 7][1]", "7",
		x+" * (1 - 1)", "("+x+" - "+x+") * "+x, "-("+x+" * 0)", "(req.Urgent ? 4 : 4)", "count(req.Tags, false)", "max(["+x+" * 0, 3])", "len(map([1, 2], # + "+x+"))", "let n = "+x+"; n - n", "[0, 1][mod("+x+", 1)]")
}

func (g *templates) test(depth int) string {
	if depth <= 0 {
		return g.pick("req.Urgent", "true", "false", "1 < 2", "'a' == 'b'")
	}
	x, n := g.text(depth-1), g.rising(depth-1)
	return "(" + g.pick("req.Urgent", g.test(0)+" and "+g.test(0), g.test(0)+" or "+g.test(0), "not (1 < 2)", x+" == "+x, x+" != "+x, n+g.pick(" < ", " <= ", " > ", " == ")+n,
		x+g.pick(" contains ", " startsWith ", " endsWith ")+g.pick(x, "''"), "hasPrefix("+x+", "+x+")", x+" matches "+g.pick("''", "'.*'"), x+" in ["+x+", "+g.literal()+"]", "any(req.Tags, false)", "all(req.Tags, true)",
		"none(req.Lines, false)",
		"req.OrderID == nil", "req.Seq != nil", "len("+x+") >= 0", "0 > len(req.Tags)", "req.Shard < 0", x+" in []", "req.Urgent in [true, false]", x+" matches '^(a|b)*'") + ")"
}

func (g *templates) list(depth int) string {
	if depth == 0 {
		return g.pick("req.Tags", "map(req.Lines, .SKU)", "map(req.Lines, "+g.literal()+")", "filter(req.Tags, true)", "filter(req.Tags, false)", "map(1..3, string(#))")
	}
	return g.pick(g.list(0), "map(req.Lines, .SKU + ':' + string(.Qty))", "map(req.Lines, "+g.literal()+" + string(#index))", "["+g.text(depth)+", "+g.text(depth)+"]", "concat("+g.list(depth-1)+", ["+g.text(depth)+"])",
		g.pick("uniq", "reverse", "sort")+"("+g.list(depth-1)+")", "take(req.Tags, 1)",
		"map("+g.list(0)+", # + 'z')", "map("+g.list(0)+", # == # ? 'a' : 'b')", "filter("+g.list(0)+", # != '')", "(req.Urgent ? "+g.list(0)+" : "+g.list(0)+")", "take("+g.list(0)+", 0)", "map(1..2, 'x' + string(# + "+g.rising(0)+"))")
}
