package spel

import (
	"reflect"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Properties and indexes. Spring reads #order.id through a getter or a field, case aside; in Go
// it is a field in any of its spellings, or a getter of a message. What a map is asked for as
// #map.key Spring does not find, and so it is refused rather than found. It takes nodes of
// variables, properties and indexes, and gives a path as long as a path will do, and a closure
// from there on.

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

// use returns the index of a root. The order of use is the order of slots, as for templates.
func (c *compiler) use(name string) int {
	if i := slices.IndexFunc(c.used, func(r run.Root) bool { return r.Name == name }); i >= 0 {
		return i
	}
	root := c.setup.Roots[name]
	root.Name = name
	c.used = append(c.used, root)
	return len(c.used) - 1
}

// variable is #name: a parameter, or what Var says. Spring takes an unknown variable for null
// without a word, and + makes "null" of that: one lock for all, from a typing mistake. Here it
// is an error at start. VariableReference answers TypedValue.NULL to a name that nobody has set.
// 'order:' + #ordre.id then throws, by luck, as null has no id; 'order:' + #ordre writes
// order:null for every request. #result is set by Spring's cache after the method has run, which
// is too late for a lock.
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
		c.fail(n, "#%s stands for %s, and there is no such fact%s; Params and Var say what it stands for", n.text, steps[0], suggest.Ending(steps[0], c.roots()))
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

// field notes what is read, for Fields.
func (c *compiler) field(x *code) {
	if x.name != "" && !slices.Contains(c.fields, x.name) {
		c.fields = append(c.fields, x.name)
	}
}

// Headers and path values have no properties of their own: each name is one that is looked up.
func (c *compiler) isLookup(x *code) bool {
	return x.path != nil && !x.path.Elem && len(x.path.Steps) == 0 && c.used[x.path.Root].Lookup
}

// extend goes on with a path by a step, if a nil on the way means the same to both: Spring
// leaves a step out behind ?., and then goes on; a path ends there. A path through a struct, a
// map or JSON stays one path. It ends where an expression has to be evaluated. A path is what
// the runner follows without a closure for each step, and it is what makes a key of paths as
// quick as a template's. The condition is about ?. alone. Anything else that a step may meet
// ends the whole key in both.
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

// property reads base.name. A property of a List that Spring reads through isEmpty is empty;
// length is one of arrays alone. StandardEvaluationContext has a ReflectivePropertyAccessor and
// nothing for maps; MapAccessor is in spring-context and has to be added. A key that read
// entries as properties would work in Go, and throw for each request in Java.
func (c *compiler) property(n *node, base *code, name string) *code {
	if c.isLookup(base) {
		root := c.used[base.path.Root]
		if root.Closed && !slices.Contains(root.Names, name) {
			c.fail(n, "unknown name %s of %s%s", name, root.Name, suggest.Ending(name, root.Names))
		}
		x, _ := c.extend(base, []run.Step{{Src: root.Name, Lookup: true, By: name}}, name, typ{k: textK})
		return x
	}
	switch base.typ.k {
	case objectK:
		return c.fieldOf(n, base, name)
	case anyK:
		return c.entryOf(n, base, name)
	case mapK:
		if base.typ.elem.k == anyK { // of JSON: an object of Java
			return c.entryOf(n, base, name)
		}
		c.fail(n, "%s is an entry of a map, which is written ['%s'] in Java", name, name)
	case textK, nameK, listK:
		if name == "empty" || name == "blank" && base.typ.k == textK {
			return c.invoke(n, base, "is"+strings.ToUpper(name[:1])+name[1:], nil)
		}
		if name == "length" && base.typ.array {
			size := base.typ
			size.array = false
			list := *base
			list.typ = size
			return c.invoke(n, &list, "size", nil)
		}
		if name == "length" && base.typ.k == listK {
			c.fail(n, "length is a property of arrays, and this may be a List: write size()")
		}
	}
	if base.typ.k == listK && !base.typ.array {
		c.fail(n, "a list has no property %s: write .![%s] for that of each element, or [0].%s", name, name, name)
	}
	c.fail(n, "%s has no property %s", describe(base.typ), name)
	return nil
}

// fieldOf reads a property of a struct: a field of that name, in any of its spellings, or a
// getter. A field and its JSON name may be two properties in Java. Where a name fits several
// fields, nobody knows which one is meant. Spring reads the getter if there is one, and a public
// field else, by the exact name. Go's fields begin with a capital and often have another name in
// JSON, so that any spelling is taken. Two fields for one spelling are refused at start rather
// than chosen from: the wrong one is another key.
func (c *compiler) fieldOf(n *node, base *code, name string) *code {
	t := base.typ.t
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	step := run.Step{Src: c.source(n.args), Optional: n.safe}
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
			return c.getter(n, base, m.Name, typeOf(m.Type.Out(0)))
		}
		of.message = run.IsMessage(t) && (of.pointer || base.typ.message)
		steps := make([]run.Step, len(f.Index))
		for i, x := range f.Index {
			steps[i] = step
			steps[i].Field = x
		}
		if x, ok := c.extend(base, steps, f.Name, of); ok {
			return x
		}
		p := &run.Path{Elem: true, Steps: steps}
		return c.after(n, base, of, func(st *run.State, v any) (any, error) {
			o, ok := v.(object)
			if !ok {
				return nil, run.Faulty("asks what is no object for %s", name)
			}
			e, err := p.Follow(nil, []reflect.Value{o.of})
			if err != nil {
				return nil, err
			}
			return valueOf(st, e, of)
		})
	}
	for _, on := range []reflect.Type{base.typ.t, run.PointerTo(t)} {
		if getter, ok := run.Getter(on, name); ok {
			m, _ := on.MethodByName(getter)
			of := typeOf(m.Type.Out(0))
			of.message = of.pointer && run.IsMessage(t)
			return c.getter(n, base, getter, of)
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

// getter calls a method of Go. A message in Go is read by its getters as one in Java is. A nil
// message has getters that answer with zero values in Go, and throws in Java. after refuses null
// before the getter is called.
func (c *compiler) getter(n *node, base *code, method string, t typ) *code {
	return c.after(n, base, t, func(st *run.State, v any) (any, error) {
		o, ok := v.(object)
		if !ok {
			return nil, run.Faulty("asks what is no object for %s", method)
		}
		of := o.of
		if of.CanAddr() {
			of = of.Addr()
		}
		x, err := run.Walk(of, []run.Step{{Src: "what has " + method + "()", Method: method}})
		if err != nil {
			return nil, err
		}
		return valueOf(st, x, t)
	})
}

// entryOf reads a property of a value whose type is not known at start, such as JSON: null if it
// is not there. JSON of no declared type is an object to the Java program, which has a class for
// it: a name that is not there is null. It can't be checked at start, as nothing says which
// names there are. A typing mistake is null for each request then, and null is refused in a key
// unless ?: takes it. That is the reason to declare a type.
func (c *compiler) entryOf(n *node, base *code, name string) *code {
	step := run.Step{Src: c.source(n.args), Optional: n.safe, Fetch: true, By: name, Strict: true}
	if x, ok := c.extend(base, []run.Step{step}, name, typ{}); ok {
		return x
	}
	return c.after(n, base, typ{}, func(st *run.State, v any) (any, error) {
		switch v := v.(type) {
		case mapping:
			x, _, err := v.get(st, name)
			return x, err
		case object:
			e, err := run.Entry(v.of, name)
			if err != nil {
				return nil, err
			}
			return valueOf(st, e, typ{})
		}
		return nil, run.Faulty("asks what is no object for %s", name)
	})
}

// source writes the object of a node, for messages. Messages name what was null, as somebody
// would say it.
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

// index is list[i], text[i] or map['key']. #map[key] without quotes takes key for a text, as
// Spring does, unless it stands within a projection where key is a property of the element.
// Indexer also reads a property of an object by a text, #order['id'], and a character of a text
// by a number. Both are let through. The second is a String of one character in Spring, and not
// a char, so that + and == take it for a text.
func (c *compiler) index(n *node) *code {
	base := c.rootArgs(n)
	if base != nil {
		return base
	}
	base = c.compile(n.args[0])
	by := n.args[1]
	key, constant := "", by.kind == kindText || by.kind == kindName
	if constant {
		key = by.text
	}
	switch {
	case constant && by.kind == kindName && base.typ.k != mapK && base.typ.k != anyK && !c.isLookup(base):
		return c.indexBy(n, base, c.compile(by)) // a property of the element around
	case constant && c.isLookup(base), constant && base.typ.k == anyK:
		return c.property(n, base, key)
	case constant && base.typ.k == objectK && by.kind == kindText:
		return c.property(n, base, key)
	case constant && base.typ.k == mapK:
		step := run.Step{Src: c.source(n.args), Optional: n.safe, Fetch: true, By: key, Strict: true}
		if x, ok := c.extend(base, []run.Step{step}, key, *base.typ.elem); ok {
			return x
		}
		return c.after(n, base, *base.typ.elem, func(st *run.State, v any) (any, error) {
			x, _, err := v.(mapping).get(st, key)
			return x, err
		})
	}
	return c.indexBy(n, base, c.compile(by))
}

// rootArgs is #root.args[i]. #root.args[0] is #p0 by another name, and is taken as such for
// types as well. CacheExpressionRootObject.getArgs is the array of arguments, and #p0 the first
// of them by MethodBasedEvaluationContext.
func (c *compiler) rootArgs(n *node) *code {
	if dotted(n.args[0]) == "root.args" && n.args[1].kind == kindNumber && c.cacheRoot {
		return c.variable(&node{kind: kindVar, off: n.off, text: "p" + n.args[1].text})
	}
	return nil
}

// indexBy indexes by what is computed. What has been made, such as the list of a projection, is
// indexed in the same way as a fact. Indexer converts the index to int for a list and to the key
// type for a map. '0' for 0 is refused for the first, and a number for a text for the second:
// Spring would convert both, and nobody who writes it knows that it does.
func (c *compiler) indexBy(n *node, base, by *code) *code {
	t := typ{}
	switch base.typ.k {
	case listK, mapK:
		t = *base.typ.elem
	case textK:
		t = typ{k: textK}
	case bytesK:
		t = typ{k: smallK}
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
			x, _, err := entry(st, m, key)
			return x, err
		}
		if l, ok := v.(list); ok {
			return l.get(st, key)
		}
		i, ok := integer(key)
		if s, isText := v.(string); isText && ok {
			u, err := units(st, s)
			if err != nil {
				return nil, err
			}
			return piece(u, i, i+1)
		}
		return nil, run.Faulty("asks what is no list and no map for an element")
	})
	x.cost += by.cost
	return x
}
