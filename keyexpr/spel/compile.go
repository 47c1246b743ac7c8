package spel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
	"github.com/latchkey-go/latchkey/keyexpr/spel/internal/insight"
)

// Types are those of Java, in which a text and an enum, an int and a long, a list and an array
// differ in what operators do with them. A node whose type is not known, as with JSON, decides
// for each value, by the same rules.
//
// What Java does is not guessed at. Each rule here was found in Spring's sources or in the
// language's own documents, and is held by the corpus, which has been run in Java. Where the two
// can't be made to agree, the expression is refused with a sentence that says what to write.
//
// A refusal at start comes from a type, and costs nobody a request: the program does not come
// up, and the sentence names the place. A refusal for the request is for what only its values
// show. There is no third way, such as a key that is probably right.

// compiler makes closures of the nodes of one expression. It compiles nodes into closures over
// values of Java, which know their types: an int and a long differ in overflow and in equals,
// and Go's own types do not say which one a fact is there.
type compiler struct {
	*java
	setup    *run.Setup
	whole    string // the text for errors
	used     []run.Root
	fields   []string
	seen     insight.Insight // what the operands compiled so far say
	insights map[*node]known // of what is compiled
	trials   insight.Trials
	tests    []*node           // that halve the worlds
	key      []insight.Insight // its parts, as they are spelt
	vain     *keyexpr.Error    // where the first part begins that reads something
	guess    *insight.Guess    // of the trial under way
	texts    map[*node]bool    // whether each is a text for sure
	elems    []typ             // of the selections and projections around
	rounds   []insight.Insight // of the same
}

// code is a compiled node. A path is kept as one for as long as it goes, so that a key of paths
// is as quick as a template's.
type code struct {
	typ   typ
	path  *run.Path // if it is one
	name  string    // of the path, for Fields
	cost  int
	value func(st *run.State) (any, error)
	fixed any // what a constant is
}

// It leaves by a panic that parse and compile catch, as the parser does.
func (c *compiler) fail(n *node, format string, args ...any) { failAt(c.whole, n.off, format, args...) }

// compile makes a closure of a node, and finds out its type in Java. Names that stand for the
// annotated method come first: #root.method.name is no path through facts. It notes what each
// node reads, as templates do, so that an expression which makes one key for all is found. What is
// seen is kept apart for each node, since an operand that is never looked at must not count for the
// whole. It is put back together here, so that no operator has to think of it.
func (c *compiler) compile(n *node) *code {
	if c.guess != nil {
		return c.guessed(n)
	}
	around := c.seen
	c.seen = insight.Insight{}
	x := c.compileNode(n)
	in := c.insightInto(n, x)
	c.insights[n], c.seen = known{in, x.typ, neverNull(x)}, around.Beside(in)
	return x
}

// Names that stand for the annotated method come first: #root.method.name is no path through
// facts.
func (c *compiler) compileNode(n *node) *code {
	if text, ok := c.metadata(n); ok {
		return constant(text, typ{k: textK})
	}
	switch n.kind {
	case kindText:
		return constant(n.text, typ{k: textK})
	case kindChar:
		return constant(char([]rune(n.text)[0]), typ{k: charK})
	case kindNumber:
		return number(n.text)
	case kindWord:
		switch n.text {
		case "null":
			return constant(nil, typ{k: nullK})
		default:
			return constant(n.text == "true", typ{k: boolK})
		}
	case kindVar:
		return c.variable(n)
	case kindThis:
		return c.pathCode(&run.Path{Elem: true}, "", c.elems[len(c.elems)-1])
	case kindName:
		if len(c.elems) == 0 {
			c.fail(n, "%s is a property of the root object, which is not known here: write #%s for a parameter", n.text, n.text)
		}
		return c.property(n, c.pathCode(&run.Path{Elem: true}, "", c.elems[len(c.elems)-1]), n.text)
	case kindProp:
		return c.property(n, c.compile(n.args[0]), n.text)
	case kindCall:
		return c.call(n)
	case kindIndex:
		return c.index(n)
	case kindUnary:
		return c.unary(n)
	case kindTernary:
		return c.ternary(n)
	case kindElvis:
		return c.elvis(n)
	case kindList:
		return c.list(n)
	case kindSelect, kindProject:
		return c.overElements(n)
	case kindString:
		return c.stringOf(n)
	}
	return c.operator(n)
}

// A constant costs a step like any other node. What is only made of constants is known to be a
// key for all. The closure is made once at start. Its type is the one that the literal has in
// Java, since {1}.contains(1L) is decided by it.
func constant(v any, t typ) *code {
	return &code{typ: t, cost: 1, fixed: v, value: func(*run.State) (any, error) { return v, nil }}
}

// The digits were checked when they were read, with their size.
func number(text string) *code {
	if digits, long := strings.CutSuffix(text, "L"); long {
		n, _ := strconv.ParseInt(digits, 10, 64)
		return constant(n, typ{k: longK})
	}
	n, _ := strconv.ParseInt(text, 10, 32)
	return constant(int32(n), typ{k: intK})
}

// unary takes -x for 0 - x, which wraps around in the same way, also for the smallest number. A
// plus does nothing, and is only for numbers. OperatorNot converts its operand to Boolean and
// throws for null, so that !#flag on a missing flag is no key rather than true. OpMinus with one
// operand negates in the operand's own type; a byte and a short are promoted to int by JLS
// 15.15.4.
func (c *compiler) unary(n *node) *code {
	x := c.compile(n.args[0])
	if n.text == "!" {
		c.wantBool(n.args[0], x)
		return &code{typ: typ{k: boolK}, cost: x.cost + 1, value: func(st *run.State) (any, error) {
			b, err := test(st, x)
			return !b, err
		}}
	}
	if !x.typ.number() && x.typ.k != anyK {
		c.fail(n, "%s is not for %s", n.text, describe(x.typ))
	}
	// A plus in front promotes in Java, which no text shows.
	if n.text == "+" {
		return &code{typ: x.typ, cost: x.cost + 1, value: x.value}
	}
	return arithmetic("-", constant(int32(0), typ{k: intK}), x, c.plain)
}

// null passes where the type is not known, and fails for the request: Spring throws for it. A
// test that can never be one is refused at start. With JSON the type shows only for the request,
// and then a text "true" is refused although Spring's StringToBooleanConverter takes it: which
// texts it takes is a list of eight words that nobody who writes a key has in mind.
func (c *compiler) wantBool(n *node, x *code) {
	if x.typ.k != boolK && x.typ.k != anyK {
		c.fail(n, "%s is neither true nor false", describe(x.typ))
	}
}

// test evaluates what must be true or false. Java would throw for anything else: null is not
// false. Go's zero value for a missing boolean would be false, and would take the other branch.
// In Java a null there ends in an exception, and a request without a key is the only answer that
// both give.
func test(st *run.State, x *code) (bool, error) {
	v, err := x.value(st)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, run.Faulty("is neither true nor false")
	}
	return b, nil
}

// stringOf is String.valueOf, and an argument of a format. null is refused by spell, where Java
// writes four letters. String.valueOf(char[]) writes the characters and String.valueOf(Object)
// an address for any other array. A slice may be either, and is refused with the lists.
func (c *compiler) stringOf(n *node) *code {
	x := c.compile(n.args[0])
	if why := spellable(x.typ, false); why != "" {
		c.fail(n.args[0], "this %s", why)
	}
	if n.text == "%d" && !x.typ.number() && x.typ.k != anyK {
		c.fail(n.args[0], "%%d is for whole numbers, not for %s", describe(x.typ))
	}
	return &code{typ: typ{k: textK}, cost: x.cost + 1, value: func(st *run.State) (any, error) {
		v, err := x.value(st)
		if err != nil {
			return nil, err
		}
		if _, ok := integer(v); n.text == "%d" && !ok {
			return nil, run.Faulty("has a value for %%d that is no whole number")
		}
		s, err := spell(st, v)
		return s, err
	}}
}

// Messages name types of Java, as they are about the text of somebody who writes Java.
func describe(t typ) string {
	names := map[jkind]string{nullK: "null", textK: "a text", nameK: "a text or enum", enumK: "an enum", boolK: "true or false", smallK: "a number",
		intK: "a number", longK: "a number", wholeK: "a number", charK: "a character", listK: "a list", mapK: "a map", bytesK: "a byte array", otherK: "an id"}
	if name, ok := names[t.k]; ok {
		return name
	}
	if t.k == objectK {
		return "an object"
	}
	return "this"
}

// methodNames are those of a table, without the numbers of their arguments.
func methodNames(table map[string]method) (names []string) {
	for key := range table {
		name, _, _ := strings.Cut(key, "/")
		names = append(names, name)
	}
	slices.Sort(names) // so that of two that are as near the same one is shown
	return names
}

func withArguments(n int) string {
	switch n {
	case 0:
		return "without arguments"
	case 1:
		return "with 1 argument"
	}
	return fmt.Sprintf("with %d arguments", n)
}

// after evaluates base, and goes on with what it comes to: nothing follows null, unless ?. says
// that null does. ?. guards this step and nothing behind it. #a?.b.c fails in Spring if a is
// null, since null has no c, where a template would stop. PropertyOrFieldReference,
// MethodReference and Indexer each throw for a null target unless their own nullSafe flag is
// set. All three come through here, so that there is one sentence for it, and it names what was
// null.
func (c *compiler) after(n *node, base *code, t typ, f func(st *run.State, v any) (any, error)) *code {
	return &code{typ: t, cost: base.cost + 1, value: func(st *run.State) (any, error) {
		v, err := base.value(st)
		if err != nil {
			return nil, err
		}
		if v == nil {
			if n.safe {
				return nil, nil
			}
			return nil, run.Faulty("can't go on: %s is null", c.source(n.args))
		}
		return f(st, v)
	}}
}
