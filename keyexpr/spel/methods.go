package spel

import (
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Methods. SpringEL finds them by reflection, on any object, with conversions of arguments. Here
// there are tables of those whose results are known, and getters. Everything else is refused,
// with the way to a function of the user's. It takes a node of kindCall and gives code. The
// tables are by name and number of arguments, as no method that is listed has two overloads of
// the same number that would differ here.

// method is a method of Java whose result is known to be the same here. A method that is not
// listed is refused, although many others would be easy: those that are here were compared with
// Java by the corpus. ReflectiveMethodResolver finds overloads by the types of arguments and
// converts them if it must. substring('1') works in Spring by that. A table has one row a method
// and number of arguments, and takes what fits without a conversion; concat is the exception, as
// people write it with an id.
type method struct {
	args []jkind // of the arguments; anyK takes all that has a text
	out  jkind
	call func(st *run.State, on any, args []any) (any, error)
}

// signature is how a table lists a method. Nine stands for all that no table has.
func signature(name string, arguments int) string {
	return name + "/" + strconv.Itoa(min(arguments, 9))
}

// values evaluates arguments and holds them to what the method takes.
func (m method) values(st *run.State, name string, args []*code) ([]any, error) {
	values := make([]any, len(args))
	for i, a := range args {
		var err error
		if values[i], err = a.value(st); err != nil {
			return nil, err
		}
		_, isInt := integer(values[i])
		_, isText := values[i].(string)
		switch want := m.args[i]; {
		case values[i] == nil && want != anyK:
			return nil, run.Faulty("gives null to %s", name)
		case want == intK && !isInt, want == textK && !isText && !takesChar(name, a.typ):
			return nil, run.Faulty("gives to %s what it does not take", name)
		}
	}
	return values, nil
}

// takesChar reports whether a char may stand for the text that a method of plain Java takes.
func takesChar(name string, t typ) bool {
	return t.k == charK && (name == "indexOf" || name == "lastIndexOf")
}

// textMethods are those of String, by name and number of arguments. They work on UTF-16 where
// positions and lengths are concerned, as Java counts: "😀".length() is 2.
var textMethods = map[string]method{
	"length/0":           {nil, intK, func(st *run.State, on any, _ []any) (any, error) { u, err := units(st, on); return int32(len(u)), err }},
	"isEmpty/0":          {nil, boolK, func(_ *run.State, on any, _ []any) (any, error) { return on == "", nil }},
	"isBlank/0":          {nil, boolK, onText(func(s string) any { return strings.TrimFunc(s, isWhitespace) == "" })},
	"charAt/1":           {[]jkind{intK}, charK, charAt},
	"substring/1":        {[]jkind{intK}, textK, substring},
	"substring/2":        {[]jkind{intK, intK}, textK, substring},
	"indexOf/1":          {[]jkind{textK}, intK, indexOf(strings.Index)},
	"lastIndexOf/1":      {[]jkind{textK}, intK, indexOf(strings.LastIndex)},
	"contains/1":         {[]jkind{textK}, boolK, onTexts(func(s, t string) any { return strings.Contains(s, t) })},
	"startsWith/1":       {[]jkind{textK}, boolK, onTexts(func(s, t string) any { return strings.HasPrefix(s, t) })},
	"endsWith/1":         {[]jkind{textK}, boolK, onTexts(func(s, t string) any { return strings.HasSuffix(s, t) })},
	"equalsIgnoreCase/1": {[]jkind{textK}, boolK, equalsIgnoreCase},
	"concat/1":           {[]jkind{anyK}, textK, func(st *run.State, on any, args []any) (any, error) { return concat(st, on, args[0], false) }},
	"replace/2":          {[]jkind{textK, textK}, textK, replace},
	"toLowerCase/0":      {nil, textK, mapped(lower)},
	"toUpperCase/0":      {nil, textK, mapped(upper)},
	"trim/0":             {nil, textK, onText(func(s string) any { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) })},
	"strip/0":            {nil, textK, onText(func(s string) any { return strings.TrimFunc(s, isWhitespace) })},
	"stripLeading/0":     {nil, textK, onText(func(s string) any { return strings.TrimLeftFunc(s, isWhitespace) })},
	"stripTrailing/0":    {nil, textK, onText(func(s string) any { return strings.TrimRightFunc(s, isWhitespace) })},
	"intern/0":           {nil, textK, onText(func(s string) any { return s })},
}

// listMethods are those of List. An element may be null, and is one of Java's values then, which
// only what reads it refuses. They are those that do not change the list, and whose result does
// not depend on which List it is. An element is found by equals, so that the types of both sides
// are looked at in tabled.
var listMethods = map[string]method{
	"size/0":    {nil, intK, func(_ *run.State, on any, _ []any) (any, error) { return int32(on.(list).len()), nil }},
	"isEmpty/0": {nil, boolK, func(_ *run.State, on any, _ []any) (any, error) { return on.(list).len() == 0, nil }},
	"contains/1": {[]jkind{anyK}, boolK, func(st *run.State, on any, args []any) (any, error) {
		i, err := find(st, on.(list), args[0])
		return i >= 0, err
	}},
	"indexOf/1": {[]jkind{anyK}, intK, func(st *run.State, on any, args []any) (any, error) {
		i, err := find(st, on.(list), args[0])
		return int32(i), err
	}},
	"get/1": {[]jkind{intK}, anyK, func(st *run.State, on any, args []any) (any, error) {
		return on.(list).get(st, args[0])
	}},
}

// mapMethods are those of Map. Maps of other keys than texts were refused by type. keySet and
// values are left out for their order, and put and remove for what they do.
var mapMethods = map[string]method{
	"size/0":    {nil, intK, func(_ *run.State, on any, _ []any) (any, error) { return int32(on.(mapping).of.Len()), nil }},
	"isEmpty/0": {nil, boolK, func(_ *run.State, on any, _ []any) (any, error) { return on.(mapping).of.Len() == 0, nil }},
	"get/1": {[]jkind{textK}, anyK, func(st *run.State, on any, args []any) (any, error) {
		x, _, err := entry(st, on, args[0])
		return x, err
	}},
	"containsKey/1": {[]jkind{textK}, boolK, func(st *run.State, on any, args []any) (any, error) {
		_, there, err := entry(st, on, args[0])
		return there, err
	}},
	"getOrDefault/2": {[]jkind{textK, anyK}, anyK, func(st *run.State, on any, args []any) (any, error) {
		x, there, err := entry(st, on, args[0])
		if !there && err == nil {
			x = args[1]
		}
		return x, err
	}},
}

// A number is no key of a map of texts, in Java as well as here: get(1) finds nothing there, and
// is a mistake. Map.get takes any object in Java, and answers null to an Integer on a map of
// Strings. ?: then takes the default for all requests.
func entry(st *run.State, on, key any) (any, bool, error) {
	s, ok := key.(string)
	if !ok {
		return nil, false, run.Faulty("asks a map by what is no text")
	}
	return on.(mapping).get(st, s)
}

// call compiles a function of the user's, or a method. formatted is an expression in disguise,
// and is compiled as the sum that it stands for.
func (c *compiler) call(n *node) *code {
	if n.args[0] == nil {
		return c.function(n)
	}
	if n.text == "formatted" && n.args[0].kind == kindText && !c.plain {
		return c.compile((&parser{whole: c.whole}).format(n.args[0], n.args[1:]))
	}
	base := c.compile(n.args[0])
	if base.typ.k == refusedK {
		c.fail(n.args[0], "this %s", base.typ.why)
	}
	args := make([]*code, len(n.args)-1)
	for i, a := range n.args[1:] {
		args[i] = c.compile(a)
	}
	return c.invoke(n, base, n.text, args)
}

// function calls what guard.TemplateFunc, or keyexpr.Func, has given a name. Java's own #name(…) is
// a method that was registered in the context. What takes its place is the user's function, and
// never one of templates: a typing mistake must not reach lower or hash.
// StandardEvaluationContext.registerFunction takes a static method. A Go function by the same
// name takes its place, is the user's to keep equal to the other one, and gets values of Go:
// texts, int32 for an int, int64 for a long.
func (c *compiler) function(n *node) *code {
	f, ok := c.setup.Functions[n.text]
	if !ok {
		var names []string
		for name := range c.setup.Functions {
			names = append(names, name)
		}
		ending := ""
		if len(names) > 0 {
			ending = suggest.Ending(n.text, names)
		}
		c.fail(n, "there is no function %s%s; guard.TemplateFunc gives one", n.text, ending)
	}
	c.ask()
	c.seen.Differs = f.Contextual()
	args := make([]*code, len(n.args)-1)
	types := make([]reflect.Type, len(args))
	cost := 1
	for i, a := range n.args[1:] {
		args[i] = c.compile(a)
		types[i] = goType(args[i].typ)
		cost += args[i].cost
	}
	out, err := f.Check(types)
	if err != nil {
		c.fail(n, "%v", err)
	}
	t := typeOf(out)
	return &code{typ: t, cost: cost, value: func(st *run.State) (any, error) {
		values := make([]any, len(args))
		for i, a := range args {
			v, err := a.value(st)
			if err != nil {
				return nil, err
			}
			values[i] = given(v)
		}
		v, err := f.Call(st, values)
		if err != nil {
			return nil, err
		}
		return valueOf(st, reflect.ValueOf(v), t)
	}}
}

// invoke compiles a call of a method of Java. Methods that all objects have come first, then
// those of the type. A property that is written as a method, getId(), is looked for last.
// equals, hashCode and toString are there for every object in Java, and so they are asked for
// before any table. The rest is found by the type that the value is known to have, and never by
// that of Go: a method of a Go type that happens to have Java's name may do something else.
func (c *compiler) invoke(n *node, base *code, name string, args []*code) *code {
	switch {
	case name == "equals" && len(args) == 1:
		return c.equals(n, base, args[0])
	case name == "hashCode" && len(args) == 0:
		return c.hashCode(n, base)
	case name == "toString" && len(args) == 0,
		name == "name" && len(args) == 0 && (base.typ.k == enumK || base.typ.k == nameK):
		return c.toString(n, base)
	case (name == "intValue" || name == "longValue") && len(args) == 0 && base.typ.number():
		return c.narrowed(n, base, name)
	case name == "booleanValue" && len(args) == 0 && base.typ.k == boolK:
		return base
	}
	switch base.typ.k {
	case textK, nameK:
		return c.textMethod(n, base, name, args)
	case listK:
		if base.typ.array {
			c.fail(n, "an array has no method %s: there is length, and [i]", name)
		}
		return c.tabled(n, base, name, args, listMethods)
	case mapK:
		return c.tabled(n, base, name, args, mapMethods)
	case anyK:
		return c.anyMethod(n, base, name, args)
	case objectK:
		if prop, ok := accessor(name); ok && len(args) == 0 {
			x := c.property(&node{off: n.off, args: n.args, safe: n.safe}, base, prop)
			if strings.HasPrefix(name, "is") && prop != name && x.typ.k != boolK && x.typ.k != anyK {
				c.fail(n, "%s() is of type boolean in Java, and %v is not", name, x.typ.t)
			}
			return x
		}
	}
	c.fail(n, "%s has no method %s %s here: give the guard a function with TemplateFunc, and write #%s(…)", describe(base.typ), name, withArguments(len(args)), name)
	return nil
}

// accessor returns the property that a method without arguments reads: that of getId, isUrgent,
// and, as of a record, id. Methods of Object are no properties, though they look like those of a
// record. To read a field class for getClass() would make another key than Java does.
// ReflectivePropertyAccessor turns id into getId and isId; this is the way back.
// Introspector.decapitalize leaves URL as it is, where this makes uRL of it. Fields are found in
// any spelling, so that both lead to the same one.
func accessor(name string) (property string, ok bool) {
	switch name {
	case "getClass", "hashCode", "notify", "wait", "clone", "ordinal":
		return name, false
	}
	for _, prefix := range []string{"get", "is"} {
		rest, ok := strings.CutPrefix(name, prefix)
		if r, size := utf8.DecodeRuneInString(rest); ok && unicode.IsUpper(r) {
			return string(unicode.ToLower(r)) + rest[size:], true
		}
	}
	return name, true
}

// textMethod is also for what may be an enum: an enum has none of these methods, so that in Java
// it is a String. Whoever calls one on a named string has said that it is a String. A named type
// is a String or an enum. A method that only String has settles it: with an enum the Java
// program would not compile, or throw for every request.
func (c *compiler) textMethod(n *node, base *code, name string, args []*code) *code {
	switch {
	case name == "split" && len(args) == 1:
		return c.split(n, base)
	case name == "matches" && len(args) == 1:
		return c.matching(n, base)
	case name == "formatted":
		c.fail(n, "a format must be written out")
	}
	return c.tabled(n, base, name, args, textMethods)
}

// tabled compiles a method of a table. An int of Go passes where Java wants an int. If it is a
// long there, Java has no such method, and makes no key. Each argument is held to its type
// twice: here by the type that is known, and by values for the request. A long is no index in
// Java, where the call would not compile, and SpringEL would narrow it. That is refused, since
// narrowing loses bits without an error.
func (c *compiler) tabled(n *node, base *code, name string, args []*code, table map[string]method) *code {
	m, ok := table[signature(name, len(args))]
	if !ok {
		if near, d := suggest.Nearest(name, methodNames(table)); near != name && near != "" && d < 2 {
			c.fail(n, "there is no method %s, did you mean %s?", name, near)
		}
		c.fail(n, "the method %s %s of %s is not known here: give the guard a function with TemplateFunc, and write #%s(…)", name, withArguments(len(args)), describe(base.typ), name)
	}
	cost := 1
	for i, want := range m.args {
		got := args[i].typ
		cost += args[i].cost
		fits := got.k == want || got.k == anyK || want == anyK || want == intK && (got.k == wholeK || got.k == smallK) ||
			want == textK && c.plain && takesChar(name, got)
		if want == anyK && got.k == refusedK {
			c.fail(n.args[i+1], "this %s", got.why)
		}
		if name == "concat" && got.k != textK && got.k != anyK {
			if why := spellable(got, true); why != "" || c.plain {
				c.fail(n.args[i+1], "concat takes a text, and not %s", describe(got))
			}
		}
		if (name == "contains" || name == "indexOf") && base.typ.k == listK {
			c.comparable(n, *base.typ.elem, got)
		}
		if !fits {
			c.fail(n.args[i+1], "%s takes %s here, and not %s", name, describe(typ{k: want}), describe(got))
		}
	}
	out := typ{k: m.out}
	if m.out == anyK && base.typ.elem != nil {
		out = *base.typ.elem
		if name == "getOrDefault" {
			out = join(out, args[1].typ)
		}
	}
	x := c.after(n, base, out, func(st *run.State, v any) (any, error) {
		values, err := m.values(st, name, args)
		if err != nil {
			return nil, err
		}
		// What was asked for a method of String is one, and no enum: from here on it is a text.
		if s, ok := textOf(v); ok {
			v = s
		}
		return m.call(st, v, values)
	})
	x.cost += cost
	return x
}

// anyMethod decides by the value, whose type is not known at start. The table is looked up
// twice: at start, to refuse what no value can have, and for each value. JSON of no declared
// type has a class in the Java program, and the value tells which of the three it can be. A
// number or a boolean has no table: their methods are those of invoke, and depend on whether it
// is an Integer or a Long.
func (c *compiler) anyMethod(n *node, base *code, name string, args []*code) *code {
	key := name + "/" + string(rune('0'+min(len(args), 9)))
	_, text := textMethods[key]
	_, lists := listMethods[key]
	_, maps := mapMethods[key]
	if !text && !lists && !maps {
		if prop, ok := accessor(name); ok && len(args) == 0 {
			return c.property(&node{off: n.off, args: n.args, safe: n.safe}, base, prop)
		}
		c.fail(n, "the method %s %s is not known here: give the guard a function with TemplateFunc, and write #%s(…)", name, withArguments(len(args)), name)
	}
	return c.after(n, base, typ{}, func(st *run.State, v any) (any, error) {
		m, ok := method{}, false
		switch v.(type) {
		case string:
			m, ok = textMethods[key]
		case list:
			m, ok = listMethods[key]
		case mapping:
			m, ok = mapMethods[key]
		}
		if !ok {
			return nil, run.Faulty("has a value without the method %s", name)
		}
		values, err := m.values(st, name, args)
		if err != nil {
			return nil, err
		}
		return m.call(st, v, values)
	})
}
