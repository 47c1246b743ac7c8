package keyexpr

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Paths are most of what is in keys: req.OrderID, header["X-Tenant"], req.Lines[0].SKU. A path is resolved when the program
// starts, into a root and steps, and package run follows it. Whether a name is a field, an entry or a method is decided by
// type: an entry that a request fills in can't take the place of a method.

// link is one step of a path as it is written.
type link struct {
	at       *ast.MemberNode
	call     bool
	src      string // what came before
	name     string // that Go has for it
	optional bool
}

// access replaces a path by one call of its accessor.
func (c *compilation) access(n *ast.Node) typ {
	base, links := c.unwind(*n)
	slices.Reverse(links)
	p, t, field, arg := c.start(base, links)
	for i := range links {
		l := &links[i]
		by, fixed := constant(l.at.Property)
		if !fixed {
			c.fail(l.at.Property, "an index and a name in brackets must be written out: %s", elsewhere)
		}
		if l.name, _ = by.(string); i > 0 || len(p.Steps) == 0 { // the name in a lookup root was the first
			var steps []run.Step
			steps, t = c.step(t, l, by)
			p.Steps = append(p.Steps, steps...)
		}
		if l.name != "" {
			field += "." + l.name
		}
	}
	if _, ok := base.(*ast.IdentifierNode); ok {
		c.fields = append(c.fields, field)
	}
	*n = c.accessor(*n, p, t, arg...)
	return t
}

// unwind takes a path apart, down to what it begins with. The last link comes first.
func (c *compilation) unwind(n ast.Node) (base ast.Node, links []link) {
	for {
		switch x := n.(type) {
		case *ast.ChainNode:
			n = x.Node
		case *ast.CallNode:
			m, ok := x.Callee.(*ast.MemberNode)
			if !ok {
				return n, links
			}
			if name, ok := m.Property.(*ast.StringNode); ok && len(x.Arguments) > 0 {
				if why := c.otherLanguages(m, name.Value); why != "" {
					c.fail(m.Property, "%s", why)
				}
				c.fail(x, onlyTelling)
			}
			links = append(links, link{at: m, call: true, src: c.source(m.Node), optional: m.Optional})
			n = m.Node
		case *ast.MemberNode:
			links = append(links, link{at: x, src: c.source(x.Node), optional: x.Optional})
			n = x.Node
		default:
			return n, links
		}
	}
}

const (
	onlyTelling  = "only methods without arguments and with a result can be called"
	onlyLookedUp = "%s is looked up by name, as in %s.name or %s[\"name\"]"
)

// start resolves the beginning of a path: a root, the element of a loop, or a value that was computed.
func (c *compilation) start(base ast.Node, links []link) (p *run.Path, t typ, root string, arg []ast.Node) {
	switch x := base.(type) {
	case *ast.IdentifierNode:
		root, ok := c.roots[x.Value]
		if !ok {
			c.unknownName(x)
		}
		p = &run.Path{Root: c.use(x.Value)}
		if root.of.Lookup {
			p.Steps = c.lookup(x, root.of, links)
			return p, typ{t: reflect.TypeFor[*string]()}, x.Value, nil // which may be nil
		}
		return p, known(root.of.Type), x.Value, nil
	case *ast.PointerNode:
		if x.Name != "" || c.elem == nil {
			c.fail(x, "#%s is not part of this language: # is the element of a loop", x.Name)
		}
		return &run.Path{Elem: true}, *c.elem, "", []ast.Node{x}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode, *ast.NilNode:
		c.fail(base, "%s has no fields", c.source(base))
	}
	if len(links) == 0 {
		c.fail(base, "%s is not part of this language: %s", c.source(base), elsewhere)
	}
	t = c.node(&base, asPart)
	return &run.Path{Elem: true}, t, "", []ast.Node{base}
}

// lookup resolves the name in a lookup root.
func (c *compilation) lookup(x *ast.IdentifierNode, root run.Root, links []link) []run.Step {
	if len(links) == 0 || links[0].call {
		c.fail(x, onlyLookedUp, x.Value, x.Value, x.Value)
	}
	name, ok := links[0].at.Property.(*ast.StringNode)
	if !ok {
		c.fail(links[0].at.Property, onlyLookedUp, x.Value, x.Value, x.Value)
	}
	if root.Closed && !slices.Contains(root.Names, name.Value) {
		c.fail(name, "unknown name %s of %s%s", name.Value, x.Value, suggest.Ending(name.Value, root.Names))
	}
	return []run.Step{{Src: x.Value, Lookup: true, By: name.Value}}
}

// constant returns a property or index that is written out.
func constant(n ast.Node) (any, bool) {
	switch x := n.(type) {
	case *ast.StringNode:
		return x.Value, true
	case *ast.IntegerNode:
		return x.Value, true
	case *ast.UnaryNode:
		if i, ok := x.Node.(*ast.IntegerNode); ok && x.Operator == "-" {
			return -i.Value, true
		}
	}
	return nil, false
}

// step resolves one link in a value of type t.
func (c *compilation) step(t typ, l *link, by any) ([]run.Step, typ) {
	s := run.Step{Src: l.src, Optional: l.optional, By: by}
	name, named := by.(string)
	switch {
	case l.call:
		return c.method(t, l, s, name)
	case t.null:
		c.fail(l.at, "nil has no fields")
	case t.elem == nil && (t.t == nil || t.t.Kind() == reflect.Interface && t.t.NumMethod() == 0):
		s.Fetch = true
		return []run.Step{s}, typ{}
	}
	if elem, list := t.elemType(); list && !named {
		s.Fetch = true
		return []run.Step{s}, elem
	}
	if t.t != nil {
		switch of := deref(t.t); {
		case of.Kind() == reflect.Map && run.SameSort(reflect.TypeOf(by), of.Key()):
			if named && hasMethod(t.t, name) {
				break
			}
			s.Fetch = true
			return []run.Step{s}, known(of.Elem())
		case of.Kind() == reflect.Struct && named, of.Kind() == reflect.Interface && named:
			return c.field(t.t, of, l, s, name)
		}
	}
	c.unknownMember(t, l, by)
	return nil, typ{}
}

// field takes a Go name for itself first, then an alias, then a getter.
func (c *compilation) field(t, of reflect.Type, l *link, s run.Step, name string) ([]run.Step, typ) {
	f, ok := reflect.StructField{}, false
	if of.Kind() == reflect.Struct {
		if f, ok = of.FieldByName(name); !ok && !hasMethod(t, name) {
			names := run.Aliases(of, name)
			if len(names) > 1 {
				c.fail(l.at.Property, "%s of %s may be %s: use the Go name", name, typeName(of), strings.Join(names, " or "))
			}
			if len(names) == 1 {
				f, ok = of.FieldByName(names[0])
			}
		}
	}
	if ok && f.IsExported() {
		l.name = f.Name
		steps := make([]run.Step, len(f.Index))
		for i, x := range f.Index {
			steps[i] = run.Step{Src: s.Src, Optional: s.Optional, Field: x}
			inner := deref(of).Field(x)
			s.Src, of = s.Src+"."+inner.Name, inner.Type
		}
		return steps, known(f.Type)
	}
	if getter, found := run.Getter(t, name); found {
		l.name = getter
		return c.method(typ{t: t}, l, s, getter)
	}
	c.unknownMember(typ{t: t}, l, name)
	return nil, typ{}
}

// method is a step that calls. With arguments, it could be made to do something.
func (c *compilation) method(t typ, l *link, s run.Step, name string) ([]run.Step, typ) {
	if t.t == nil {
		c.fail(l.at.Property, "methods need a type that is known at start")
	}
	m, receivers, ok := methodOf(t.t, name)
	if !ok {
		c.unknownMember(t, l, name)
	}
	if name == "String" && run.IsMessage(t.t) {
		c.fail(l.at.Property, "the String of a message, %v, is for people: name one of its fields", t.t)
	}
	if out := m.Type.NumOut(); m.Type.NumIn() != receivers || out < 1 || out > 2 || out == 2 && m.Type.Out(1) != errorType {
		c.fail(l.at.Property, onlyTelling)
	}
	s.Method = name
	return []run.Step{s}, known(m.Type.Out(0))
}

// methodOf finds a method of t, or of a pointer to it, and how many receivers its type has.
func methodOf(t reflect.Type, name string) (m reflect.Method, receivers int, ok bool) {
	if t.Kind() == reflect.Interface {
		m, ok = t.MethodByName(name)
		return m, 0, ok
	}
	if t.Kind() != reflect.Pointer {
		t = run.PointerTo(t)
	}
	m, ok = t.MethodByName(name)
	return m, 1, ok
}

func hasMethod(t reflect.Type, name string) bool {
	_, _, ok := methodOf(t, name)
	return ok
}

// typeName leaves the package out: the type is in the reader's own program.
func typeName(t reflect.Type) string {
	return cmp.Or(t.Name(), t.String())
}
