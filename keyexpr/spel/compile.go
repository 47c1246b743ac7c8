package spel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
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
	seen     run.Insight       // what the operands compiled so far say
	insights map[*node]insight // of what is compiled
	trials   run.Trials
	tests    []*node        // that halve the worlds
	key      []run.Insight  // its parts, as they are spelt
	vain     *keyexpr.Error // where the first part begins that reads something
	guess    *run.Guess     // of the trial under way
	texts    map[*node]bool // whether each is a text for sure
	elems    []typ          // of the selections and projections around
	rounds   []run.Insight  // of the same
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
	c.seen = run.Insight{}
	x := c.compileNode(n)
	in := c.insightInto(n, x)
	c.insights[n], c.seen = insight{in, x.typ, neverNull(x)}, around.Beside(in)
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

// ternary keeps a type only if both branches have it. Java would promote a number to the type of
// the other in its own language, which changes the text for a char alone; Spring leaves each
// value as it is. A list of the types that both branches may have is not kept. What depends on
// them asks the value. Ternary evaluates one branch, so that a division by zero in the other one
// is no error. In Java, JLS 15.25 gives `cond ? 'a' : 1` the type char and `cond ? 'a' : n` the
// type int, by whether the number is a constant that fits. One of them writes a, the other 97.
// That is too fine a point to hang a lock on.
func (c *compiler) ternary(n *node) *code {
	cond := c.compile(n.args[0])
	if c.guess != nil && cond.fixed == true {
		return c.compile(n.args[1])
	} else if c.guess != nil && cond.fixed == false {
		return c.compile(n.args[2])
	}
	yes, no := c.compile(n.args[1]), c.compile(n.args[2])
	c.wantBool(n.args[0], cond)
	t := join(yes.typ, no.typ)
	if c.plain && yes.typ.k != no.typ.k && (yes.typ.k == charK || no.typ.k == charK) {
		c.fail(n, "a char and a number make a char in Java, or do not: write both as texts")
	}
	if short := func(a, b *code) bool { return a.typ.k == smallK && b.fixed != nil && b.typ.k == intK }; c.plain && (short(yes, no) || short(no, yes)) {
		c.fail(n, "a short and a number that is written out make a short in Java, or do not: write both as texts")
	}
	wider := func(x any) any { return x }
	if c.plain {
		t, wider = widened(yes.typ, no.typ, t)
	}
	return &code{typ: t, cost: cond.cost + yes.cost + no.cost, value: func(st *run.State) (any, error) {
		holds, err := test(st, cond)
		if err != nil {
			return nil, err
		}
		x := no
		if holds {
			x = yes
		}
		v, err := x.value(st)
		return wider(v), err
	}}
}

// widened is the type of a choice between two numbers in plain Java, and what it makes of either: by
// JLS 15.25.2, an int beside a long is a long, whichever of the two is chosen. Beside what may be
// either, it may be either as well. joined is the type in SpringEL, which leaves values alone.
func widened(a, b, joined typ) (t typ, wider func(any) any) {
	has := func(k jkind) bool { return a.k == k || b.k == k }
	unknown := has(anyK) && (a.number() || b.number())
	switch {
	case !unknown && (!a.number() || !b.number() || a.k == b.k):
		return joined, func(x any) any { return x }
	case has(longK) && !unknown:
		t.k = longK
	case has(wholeK) || unknown:
		t.k = wholeK
	default:
		t.k = intK
	}
	k := t.k
	if unknown {
		t = joined
	}
	return t, func(x any) any {
		i, ok := integer(x)
		switch {
		case !ok:
			return x
		case k == longK:
			return i
		case k == wholeK:
			return whole(i)
		}
		return int32(i)
	}
}

// join is the type of what is one or the other, as far as it is known at start. Whatever is not
// known to be the same in both is not known at all, and each value decides for itself. What is
// refused stays refused, since either branch may be taken. null takes any type, as it is spelt
// by nobody: whoever reads the value meets it and refuses it there. A pointer on either side
// means that null may come, which the quick way through a path does not ask about.
func join(a, b typ) typ {
	switch {
	case a.k == nullK:
		return b
	case b.k == nullK:
		return a
	case a.k == refusedK:
		return a
	case b.k == refusedK:
		return b
	case a.k == listK && b.k == listK:
		elem := join(*a.elem, *b.elem)
		return typ{k: listK, elem: &elem, array: a.array && b.array}
	case a.k == b.k && (a.k < listK || a.t == b.t && a.t != nil):
		a.pointer = a.pointer || b.pointer
		return a
	}
	return typ{}
}

// elvis is a ?: b, which takes b for null and for an empty text. Spring takes an empty String
// for null here, and no other empty value. Elvis.getValueInternal asks for null or an empty
// String since Spring 3; Groovy, whence it came, asks for truth, where 0 and an empty list are
// false as well. A count of zero is a value here. An enum is never an empty String, and a String
// may be: for a named type both answers are possible, and an empty one is refused.
func (c *compiler) elvis(n *node) *code {
	x := c.compile(n.args[0])
	if c.guess != nil && x.fixed != nil && x.fixed != "" {
		return x
	}
	y := c.compile(n.args[1])
	return &code{typ: join(x.typ, y.typ), cost: x.cost + y.cost + 1, value: func(st *run.State) (any, error) {
		v, err := x.value(st)
		if err != nil {
			return nil, err
		}
		// An enum without a value is null in Java, for which ?: stands in, and a String may be
		// empty, for which it does as well; but an enum of Go whose zero value is "" may also
		// stand for a constant of its own.
		if name, ok := v.(named); ok && name.text == "" {
			return nil, run.Faulty("is empty, which ?: tells from null if it is an enum: make it a string")
		}
		if v == nil || v == "" {
			return y.value(st)
		}
		return v, nil
	}}
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
