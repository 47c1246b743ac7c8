package spel

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Properties and indexes. Spring reads #order.id through a getter or a field, case aside; in Go it is
// a field in any of its spellings, or a getter of a message. They become a path as long as a path
// will do, and a closure from there on.

// pathCode compiles a path to values of Java type t. A path that ends in nil is null, which each
// user of the value judges for itself: ?: takes it, + refuses it.
func (c *compiler) pathCode(p *run.Path, name string, t typ) *code {
	return &code{typ: t, path: p, name: name, cost: 1, value: func(st *run.State) (any, error) {
		v, err := p.Follow(&st.Source, st.Elems)
		if err != nil {
			return nil, err
		}
		return valueOf(st, v, t)
	}}
}

// variable is #name: a parameter, or what Var says. Spring takes an unknown variable for null, and +
// makes "null" of that: one lock for all, from a typing mistake. Here it is an error at start.
func (c *compiler) variable(n *node) *code {
	switch n.text {
	case "root":
		c.fail(n, "%s", c.rootHint())
	case "result":
		c.fail(n, "there is no #result before the call")
	}
	steps, ok := c.java.variable(n.text)
	switch {
	case ok:
	case len(c.elems) > 0:
		c.fail(n, "unknown parameter #%s: a property of the element is %s, without #", n.text, n.text)
	default:
		c.fail(n, "unknown parameter #%s%s; Params lists the parameters of the method, and Var says what others stand for", n.text, suggest.Ending(n.text, c.known()))
	}
	if _, ok := c.setup.Roots[steps[0]]; !ok {
		c.fail(n, "#%s stands for %s, and there is no such fact%s; Params and Var say what it stands for", n.text, steps[0], suggest.Ending(steps[0], slices.Collect(maps.Keys(c.setup.Roots))))
	}
	root := c.setup.Roots[steps[0]]
	path := &run.Path{Root: c.use(steps[0])}
	x := c.pathCode(path, steps[0], typeOf(root.Type))
	x.typ.t = root.Type
	for _, name := range steps[1:] {
		x = c.property(n, x, name)
	}
	c.field(x)
	return x
}

// field records a field that is read, for Fields.
func (c *compiler) field(x *code) {
	if x.name != "" && !slices.Contains(c.fields, x.name) {
		c.fields = append(c.fields, x.name)
	}
}

// isLookup reports whether x is a root such as header, of which each name is one that is looked up.
func (c *compiler) isLookup(x *code) bool {
	return x.path != nil && !x.path.Elem && len(x.path.Steps) == 0 && c.used[x.path.Root].Lookup
}

// extend goes on with a path by a step, if a nil on the way means the same to both: Spring leaves a
// step out behind ?., and then goes on; a path ends there.
func (c *compiler) extend(base *code, steps []run.Step, name string, t typ) (*code, bool) {
	if base.path == nil {
		return nil, false
	}
	for _, s := range base.path.Steps {
		if s.Optional && !steps[0].Optional {
			return nil, false
		}
	}
	p := &run.Path{Root: base.path.Root, Elem: base.path.Elem, Up: base.path.Up, Steps: append(slices.Clone(base.path.Steps), steps...)}
	full := base.name
	if full != "" && name != "" {
		full += "." + name
	}
	if i := slices.Index(c.fields, base.name); i >= 0 && name != "" && base.name != "" {
		c.fields = slices.Delete(c.fields, i, i+1)
	}
	x := c.pathCode(p, full, t)
	if base.name != "" {
		c.field(x)
	}
	return x, true
}

// follow goes steps from base: by a path if it can, and else from the value. after refuses null before
// a getter is called: a nil message has getters that answer in Go, and throws in Java.
func (c *compiler) follow(n *node, base *code, steps []run.Step, name string, t typ) *code {
	if steps[0].Method == "" {
		if x, ok := c.extend(base, steps, name, t); ok {
			return x
		}
	}
	return c.after(n, base, t, func(st *run.State, v any) (any, error) {
		var of reflect.Value
		switch v := v.(type) {
		case object:
			if of = v.of; of.CanAddr() {
				of = of.Addr()
			}
		case mapping:
			of = v.of
		default:
			return nil, run.Faulty("asks what is no object for %s", name)
		}
		x, err := run.Walk(of, steps)
		if err != nil {
			return nil, err
		}
		return valueOf(st, x, t)
	})
}

// property reads base.name. Spring reads no entry of a map as a property.
func (c *compiler) property(n *node, base *code, name string) *code {
	if c.isLookup(base) {
		root := c.used[base.path.Root]
		if root.Closed && !slices.Contains(root.Names, name) {
			c.fail(n, "unknown name %s of %s%s", name, root.Name, suggest.Ending(name, root.Names))
		}
		x, _ := c.extend(base, []run.Step{{Src: root.Name, Lookup: true, By: name}}, name, typ{k: textK})
		return x
	}
	if k := base.typ.k; name == "class" || name == "empty" && (k == anyK || k == mapK) {
		c.fail(n, "to Java, %s is what %s() says, and no entry", name, map[string]string{"class": "getClass", "empty": "isEmpty"}[name])
	}
	switch base.typ.k {
	case objectK:
		return c.fieldOf(n, base, name)
	case anyK:
		return c.entry(n, base, name, typ{})
	case mapK:
		if base.typ.elem.k == anyK { // of JSON: an object of Java
			return c.entry(n, base, name, typ{})
		}
		c.fail(n, "%s is an entry of a map, which is written ['%s'] in Java", name, name)
	case textK, nameK, listK:
		if name == "empty" || name == "blank" && base.typ.k == textK {
			return c.invoke(n, base, "is"+strings.ToUpper(name[:1])+name[1:], nil)
		}
		if base.typ.k == listK {
			c.fail(n, "a List has no property %s: write size() for length, .![%s] for that of each element, or [0].%s", name, name, name)
		}
	}
	c.fail(n, "%s has no property %s", describe(base.typ), name)
	return nil
}

// fieldOf reads a property of a struct: a field of that name, in any of its spellings, or a getter.
// Where a name fits several fields, nobody knows which one is meant.
func (c *compiler) fieldOf(n *node, base *code, name string) *code {
	t := base.typ.t
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	fields := []string{name}
	if f, ok := t.FieldByName(name); !ok || !f.IsExported() {
		fields = run.Aliases(t, name)
	}
	if len(fields) > 1 {
		c.fail(n, "%s of %v may be %s", name, t, strings.Join(fields, " or "))
	}
	if len(fields) == 1 {
		f, _ := t.FieldByName(fields[0])
		of := typeOf(f.Type)
		if m, ok := defaulted(t, f.Name, of); ok {
			return c.getter(n, base, m, typeOf(m.Type.Out(0)))
		}
		of.message = run.IsMessage(t) && (of.pointer || base.typ.message)
		steps := make([]run.Step, len(f.Index))
		for i, x := range f.Index {
			steps[i] = run.Step{Src: c.source(n.args), Optional: n.safe, Field: x}
		}
		return c.follow(n, base, steps, f.Name, of)
	}
	for _, on := range []reflect.Type{base.typ.t, run.PointerTo(t)} {
		if getter, ok := run.Getter(on, name); ok {
			m, _ := on.MethodByName(getter)
			of := typeOf(m.Type.Out(0))
			of.message = of.pointer && run.IsMessage(t)
			return c.getter(n, base, m, of)
		}
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if f.IsExported() {
			names = append(names, f.Name)
		}
	}
	c.fail(n, "unknown property %s of %v%s", name, t, suggest.Ending(name, names))
	return nil
}

// defaulted returns the getter of an optional field of a message. A getter in Java never returns null:
// it has the default of a field that is not set, as that of Go has, and an empty message.
func defaulted(t reflect.Type, field string, of typ) (reflect.Method, bool) {
	if !run.IsMessage(t) || !of.pointer || of.k == objectK {
		return reflect.Method{}, false
	}
	return run.PointerTo(t).MethodByName("Get" + field)
}

// getter calls a method of Go.
func (c *compiler) getter(n *node, base *code, m reflect.Method, t typ) *code {
	return c.follow(n, base, []run.Step{{Src: "what has " + m.Name + "()", Method: m.Name}}, m.Name, t)
}

// entry reads what may not be there, and is null then: an entry of a map, or a property of a value whose
// type is not known at start.
func (c *compiler) entry(n *node, base *code, name string, t typ) *code {
	return c.follow(n, base, []run.Step{{Src: c.source(n.args), Optional: n.safe, Fetch: true, By: name, Strict: true, Others: spellings(name, t)}}, name, t)
}

// spellings are those that Jackson's naming strategies give a property in JSON. A map of a declared type has its entries as they are.
func spellings(name string, of typ) []string {
	if of.k != anyK || name == "" {
		return nil
	}
	snake := strings.ToLower(capital.ReplaceAllString(name, "_$0"))
	return []string{snake, strings.ToUpper(snake), strings.ReplaceAll(snake, "_", "-"), strings.ToLower(name), strings.ToUpper(name[:1]) + name[1:]}
}

var capital = regexp.MustCompile(`\p{Lu}`)

// source writes the object of a node, for messages.
func (c *compiler) source(args []*node) string {
	if len(args) == 0 || args[0] == nil {
		return "what comes before"
	}
	switch n := args[0]; n.kind {
	case kindVar:
		return "#" + n.text
	case kindProp:
		return c.source(n.args) + "." + n.text
	case kindCall:
		return c.source(n.args) + "." + n.text + "(…)"
	case kindThis, kindName:
		return "the element"
	}
	return "what comes before"
}

// index is list[i], text[i], map['key'] or object['property']. #map[key] without quotes takes key for
// a text, as Spring does, unless it stands within a projection where key is a property of the element.
func (c *compiler) index(n *node) *code {
	if dotted(n.args[0]) == "root.args" && n.args[1].kind == kindNumber && c.cacheRoot {
		return c.variable(&node{kind: kindVar, off: n.off, text: "p" + n.args[1].text})
	}
	base, by := c.compile(n.args[0]), n.args[1]
	named := by.kind == kindName && (base.typ.k == mapK || base.typ.k == anyK || c.isLookup(base))
	switch {
	case by.kind != kindText && !named:
	case base.typ.k == mapK:
		return c.entry(n, base, by.text, *base.typ.elem)
	case base.typ.k == anyK, base.typ.k == objectK, c.isLookup(base):
		return c.property(n, base, by.text)
	}
	return c.indexBy(n, base, c.compile(by))
}

// indexBy indexes by a computed value. '0' for 0 is refused for a list, and a number for a text for a map: Spring would
// convert both.
func (c *compiler) indexBy(n *node, base, by *code) *code {
	t := typ{}
	switch base.typ.k {
	case listK, bytesK, mapK:
		t = *base.typ.elem
	case textK:
		t = typ{k: textK}
	case anyK:
	case refusedK:
		c.fail(n, "this %s", base.typ.why)
	default:
		c.fail(n, "%s has no elements", describe(base.typ))
	}
	if base.typ.k == mapK && by.typ.number() || (base.typ.k == listK || base.typ.k == bytesK) && !by.typ.number() && by.typ.k != anyK {
		c.fail(n, "%s is not indexed by %s", describe(base.typ), describe(by.typ))
	}
	x := c.after(n, base, t, func(st *run.State, v any) (any, error) {
		key, err := by.value(st)
		if err != nil {
			return nil, err
		}
		if m, ok := v.(mapping); ok {
			x, _, err := m.get(st, key)
			return x, err
		}
		if l, ok := v.(list); ok {
			return l.get(st, key)
		}
		i, ok := integer(key)
		if s, isText := v.(string); isText && ok {
			return piece(st, s, i, i+1)
		}
		return nil, run.Faulty("asks what is no list and no map for an element")
	})
	x.cost += by.cost
	return x
}
