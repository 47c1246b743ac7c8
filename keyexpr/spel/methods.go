package spel

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Methods. SpringEL finds them by reflection, on any object, with conversions of arguments. Here
// there are tables of those whose results are known, and getters. Everything else is refused, with
// the way to a function of the user's.

// method is a method of Java whose result is known to be the same here.
type method struct {
	args []jkind // of the arguments; anyK takes all that has a text
	out  jkind
	call func(st *run.State, on any, args []any) (any, error)
}

// signature is how a table lists a method.
func signature(name string, arguments int) string { return name + "/" + strconv.Itoa(arguments) }

// values evaluates arguments and holds them to the types that the method takes.
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
		case want == intK && !isInt, want == textK && !isText:
			return nil, run.Faulty("gives to %s what it does not take", name)
		}
	}
	return values, nil
}

// textMethods are those of String. Positions and lengths count UTF-16, as Java does.
var textMethods = map[string]method{
	"length/0":      {nil, intK, onText(func(s string) (any, error) { return int32(length(s)), nil })},
	"isEmpty/0":     {nil, boolK, onText(func(s string) (any, error) { return s == "", nil })},
	"isBlank/0":     {nil, boolK, onText(func(s string) (any, error) { return strings.TrimFunc(s, isWhitespace) == "", nil })},
	"substring/1":   {[]jkind{intK}, textK, substring},
	"substring/2":   {[]jkind{intK, intK}, textK, substring},
	"contains/1":    {[]jkind{textK}, boolK, onTexts(strings.Contains)},
	"startsWith/1":  {[]jkind{textK}, boolK, onTexts(strings.HasPrefix)},
	"endsWith/1":    {[]jkind{textK}, boolK, onTexts(strings.HasSuffix)},
	"concat/1":      {[]jkind{anyK}, textK, func(st *run.State, on any, args []any) (any, error) { return concat(st, on, args[0], false) }},
	"toLowerCase/0": {nil, textK, onText(toLower)},
	"toUpperCase/0": {nil, textK, onText(toUpper)},
	"trim/0":        {nil, textK, onText(func(s string) (any, error) { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }), nil })},
	"strip/0":       {nil, textK, onText(func(s string) (any, error) { return strings.TrimFunc(s, isWhitespace), nil })},
}

// onText charges for the text read and for the text made.
func onText(f func(s string) (any, error)) func(*run.State, any, []any) (any, error) {
	return func(st *run.State, on any, _ []any) (any, error) {
		s, err := spell(st, on)
		if err == nil {
			err = st.Spend(2 * len(s))
		}
		if err != nil {
			return nil, err
		}
		return f(s)
	}
}

func onTexts(f func(s, t string) bool) func(*run.State, any, []any) (any, error) {
	return func(st *run.State, on any, args []any) (any, error) {
		s, err := spell(st, on)
		if err != nil {
			return nil, err
		}
		t, err := spell(st, args[0])
		return f(s, t), err
	}
}

func substring(st *run.State, on any, args []any) (any, error) {
	from, _ := integer(args[0])
	if len(args) > 1 {
		to, _ := integer(args[1])
		return piece(st, on, from, to)
	}
	s, err := spell(st, on)
	if err != nil {
		return nil, err
	}
	return piece(st, s, from, int64(length(s)))
}

// listMethods are those of List that do not change it. An element may be null, which only what reads
// it refuses.
var listMethods = map[string]method{
	"size/0":     {nil, intK, func(_ *run.State, on any, _ []any) (any, error) { return int32(on.(list).len()), nil }},
	"isEmpty/0":  {nil, boolK, func(_ *run.State, on any, _ []any) (any, error) { return on.(list).len() == 0, nil }},
	"contains/1": {[]jkind{anyK}, boolK, func(st *run.State, on any, args []any) (any, error) { return on.(list).contains(st, args[0]) }},
	"get/1":      {[]jkind{intK}, anyK, func(st *run.State, on any, args []any) (any, error) { return on.(list).get(st, args[0]) }},
}

// mapMethods are those of Map. keySet and values are left out for their order.
var mapMethods = map[string]method{
	"size/0":    {nil, intK, func(_ *run.State, on any, _ []any) (any, error) { return int32(on.(mapping).of.Len()), nil }},
	"isEmpty/0": {nil, boolK, func(_ *run.State, on any, _ []any) (any, error) { return on.(mapping).of.Len() == 0, nil }},
	"get/1": {[]jkind{textK}, anyK, func(st *run.State, on any, args []any) (any, error) {
		x, _, err := on.(mapping).get(st, args[0])
		return x, err
	}},
	"containsKey/1": {[]jkind{textK}, boolK, func(st *run.State, on any, args []any) (any, error) {
		_, there, err := on.(mapping).get(st, args[0])
		return there, err
	}},
}

// call compiles a function of the user's, or a method.
func (c *compiler) call(n *node) *code {
	if n.args[0] == nil {
		return c.function(n)
	}
	base := c.compile(n.args[0])
	if base.typ.k == refusedK {
		c.fail(n.args[0], "this %s", base.typ.why)
	}
	args := make([]*code, len(n.args)-1)
	for i, a := range n.args[1:] {
		args[i] = c.compile(a)
	}
	x := c.invoke(n, base, n.text, args)
	for i := 0; n.safe && i < len(args); i++ { // which Spring evaluates before it looks for null
		x = binary(x.typ, x, args[i], func(_ *run.State, v, _ any) (any, error) { return v, nil })
	}
	return x
}

// function calls what guard.TemplateFunc, or keyexpr.Func, has given a name. It takes the place of a
// method that was registered in Spring's context, is the user's to keep equal to it, and gets values
// of Go. It is never one of templates.
func (c *compiler) function(n *node) *code {
	f, ok := c.setup.Functions[n.text]
	if !ok {
		ending := suggest.Ending(n.text, slices.Collect(maps.Keys(c.setup.Functions)))
		c.fail(n, "unknown function %s%s; guard.TemplateFunc gives one", n.text, ending)
	}
	c.reads = c.reads || f.Contextual()
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

// invoke compiles a call of a method of Java: one that all objects have, one of the type that the
// value is known to have, or a getter. It is never one of the type in Go, which may do something else.
func (c *compiler) invoke(n *node, base *code, name string, args []*code) *code {
	switch {
	case name == "equals" && len(args) == 1:
		return c.equals(n, base, args[0])
	case name == "hashCode" && len(args) == 0:
		return c.hashCode(n, base)
	case name == "toString" && len(args) == 0,
		name == "name" && len(args) == 0 && (base.typ.k == enumK || base.typ.k == nameK):
		return c.toString(n, base)
	}
	switch base.typ.k {
	case textK, nameK: // an enum has none of these methods, so that in Java it is a String
		return c.tabled(n, base, name, args, textMethods)
	case listK:
		return c.tabled(n, base, name, args, listMethods)
	case mapK:
		return c.tabled(n, base, name, args, mapMethods)
	case anyK:
		if _, ok := accessor(name); !ok || len(args) > 0 || textMethods[name+"/0"].call != nil || listMethods[name+"/0"].call != nil {
			return c.tabled(n, base, name, args, textMethods, listMethods, mapMethods)
		}
		fallthrough
	case objectK:
		if prop, ok := accessor(name); ok && len(args) == 0 {
			x := c.property(&node{off: n.off, args: n.args, safe: n.safe}, base, prop)
			if strings.HasPrefix(name, "is") && prop != name && x.typ.k != boolK && x.typ.k != anyK {
				c.fail(n, "%s() is of type boolean in Java, and %v is not", name, x.typ.t)
			}
			return x
		}
	}
	c.unknown(n, base.typ, name, nil)
	return nil
}

// unknown refuses a method that is in no table.
func (c *compiler) unknown(n *node, t typ, name string, table map[string]method) {
	// Sorted, so that of two that are as near the same one is shown.
	key, d := suggest.Nearest(signature(name, len(n.args)-1), slices.Sorted(maps.Keys(table)))
	if near, _, _ := strings.Cut(key, "/"); near != name && near != "" && d < 2 {
		c.fail(n, "there is no method %s, did you mean %s?", name, near)
	}
	args := strings.TrimSuffix(strings.Repeat("_, ", len(n.args)-1), ", ")
	c.fail(n, "the method %s(%s) of %s is not read here: give the guard a function with TemplateFunc, and write #%s(…), or make the key with KeyFunc", name, args, describe(t), name)
}

// toString is String.valueOf, but for null, on which Java throws.
func (c *compiler) toString(n *node, base *code) *code {
	if why := spellable(base.typ, false); why != "" {
		c.fail(n, "this %s", why)
	}
	return c.after(n, base, typ{k: textK}, func(st *run.State, v any) (any, error) { return spell(st, v) })
}

// hashCode is written down in Java's documentation for texts and numbers. That of an enum or an object
// is another one in each process.
func (c *compiler) hashCode(n *node, base *code) *code {
	if !slices.Contains([]jkind{textK, intK, longK, anyK}, base.typ.k) {
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
		}
		return nil, run.Faulty("has a value whose hashCode is not known here")
	})
}

// accessor returns the property that a method without arguments reads: that of getId, isUrgent, and,
// as of a record, id. Methods of Object are no properties.
func accessor(name string) (property string, ok bool) {
	switch name {
	case "getClass", "hashCode", "notify", "wait", "clone", "ordinal", "values", "keySet", "entrySet": // the last three are of a Map
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

// tabled compiles a method of a table, or of several if the value has to decide. Each argument is held
// to its type twice: here by the type that is known, and by values for the request. An int of Go passes
// where Java wants an int: if it is a long there, Java has no such method, and makes no key.
func (c *compiler) tabled(n *node, base *code, name string, args []*code, tables ...map[string]method) *code {
	key := signature(name, len(args))
	var out typ
	found := false
	for _, table := range tables {
		m, ok := table[key]
		if ok && len(tables) == 1 {
			c.takes(n, base.typ, m, args)
			if out.k = m.out; m.out == anyK {
				out = *base.typ.elem
			}
		}
		found = found || ok
	}
	if !found {
		c.unknown(n, base.typ, name, tables[0])
	}
	x := c.after(n, base, out, func(st *run.State, v any) (any, error) {
		var m method
		switch x := v.(type) {
		case string:
			m = textMethods[key]
		case named: // and no enum, as it has this method
			m, v = textMethods[key], x.text
		case list:
			m = listMethods[key]
		case mapping: // of JSON, it may be an object with an accessor of that name
			prop, _ := accessor(name)
			if _, there, _ := x.get(st, prop); !there || x.elem.k != anyK {
				m = mapMethods[key]
			}
		}
		if m.call == nil {
			return nil, run.Faulty("has a value without the method %s", name)
		}
		values, err := m.values(st, name, args)
		if err != nil {
			return nil, err
		}
		return m.call(st, v, values)
	})
	for _, a := range args {
		x.cost += a.cost
	}
	return x
}

// takes refuses arguments of types that a method does not take.
func (c *compiler) takes(n *node, on typ, m method, args []*code) {
	for i, want := range m.args {
		got := args[i].typ
		if n.text == "contains" && on.k == listK {
			c.comparable(n, *on.elem, got, true)
		}
		if n.text == "concat" && got.k != textK && got.k != anyK {
			if why := spellable(got, true); why != "" || c.plain {
				c.fail(n.args[i+1], "concat takes a text, and not %s", describe(got))
			}
		}
		if got.k != want && got.k != anyK && want != anyK && (want != intK || got.k != wholeK && got.k != smallK) {
			c.fail(n.args[i+1], "%s takes %s here, and not %s", n.text, describe(typ{k: want}), describe(got))
		}
	}
}
