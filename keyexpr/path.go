package keyexpr

import (
	"reflect"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker/nature"
)

// path is an expression that only follows fields, entries and elements from a root. It needs no engine.
type path struct {
	root  int // index into the used roots
	steps []step
}

// step goes from a value to one of its parts. Exactly one of its ways is set.
type step struct {
	src      string // what came before, for messages
	optional bool   // nil here makes the whole path nil: ?.
	field    int    // of a struct of a known type, if key and fetch are unset
	key      string // of a Lookup
	lookup   bool
	fetch    bool // an entry or element, or anything of a value whose type is not known at start
	by       any  // what to fetch: a string or an int
}

// pathOf returns the path that node is, if it is one.
func (c *compilation) pathOf(node ast.Node) (*path, bool) {
	if chain, ok := node.(*ast.ChainNode); ok {
		node = chain.Node
	}
	switch n := node.(type) {
	case *ast.IdentifierNode:
		if _, ok := c.roots[n.Value]; !ok {
			return nil, false
		}
		return &path{root: c.use(n.Value)}, true
	case *ast.MemberNode:
		p, ok := c.pathOf(n.Node)
		if !ok {
			return nil, false
		}
		steps, ok := c.stepsOf(n)
		if !ok {
			return nil, false
		}
		p.steps = append(p.steps, steps...)
		return p, true
	}
	return nil, false
}

func (c *compilation) stepsOf(n *ast.MemberNode) ([]step, bool) {
	s := step{src: c.source(n.Node), optional: n.Optional}
	switch property := n.Property.(type) {
	case *ast.StringNode:
		s.by = property.Value
	case *ast.IntegerNode:
		s.by = property.Value
	case *ast.ConstantNode:
		s.by = property.Value
	default:
		return nil, false
	}
	if c.isLookup(n.Node) {
		name, ok := s.by.(string)
		s.lookup, s.key = true, name
		return []step{s}, ok
	}
	base := n.Node.Nature().Deref(&c.conf.NtCache)
	if base.Kind != reflect.Struct {
		s.fetch = true
		return []step{s}, c.fetchable(n.Node.Nature(), s.by)
	}
	name, ok := s.by.(string)
	if !ok {
		return nil, false
	}
	index, ok := base.FieldIndex(&c.conf.NtCache, name)
	if !ok {
		return nil, false
	}
	steps := make([]step, len(index))
	for i, x := range index {
		steps[i] = step{src: s.src, optional: s.optional, field: x}
	}
	return steps, true
}

// fetchable reports whether entry does with a value of nature n what the engine would do.
func (c *compilation) fetchable(n *nature.Nature, by any) bool {
	if _, method := n.MethodByName(&c.conf.NtCache, textKey(by)); method {
		return false
	}
	switch n.Deref(&c.conf.NtCache).Kind {
	case reflect.Map, reflect.Slice, reflect.Array:
		return true
	}
	return n.IsUnknown(&c.conf.NtCache)
}

func textKey(by any) string {
	s, _ := by.(string)
	return s
}

// follow returns the value at the end of the path; an invalid one stands for nil.
func (p *path) follow(from *source) (reflect.Value, error) {
	root, err := from.value(p.root)
	if err != nil {
		return reflect.Value{}, err
	}
	v := reflect.ValueOf(root)
	for i := range p.steps {
		s := &p.steps[i]
		if v = indirect(v); !v.IsValid() {
			if s.optional {
				return v, nil
			}
			return v, faulty("can't go on: %s is nil", s.src)
		}
		switch {
		case s.lookup:
			v = lookUp(v.Interface().(Lookup), s.key)
		case s.fetch:
			v, err = entryOf(v, s.by)
		default:
			v = v.Field(s.field)
		}
		if err != nil {
			return reflect.Value{}, err
		}
	}
	return v, nil
}

// indirect follows pointers and interfaces to the value, which is invalid if one of them is nil.
func indirect(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// lookUp returns an invalid value for a name that is not there.
func lookUp(f Lookup, name string) reflect.Value {
	s, ok := f(name)
	if !ok {
		return reflect.Value{}
	}
	return reflect.ValueOf(s)
}

// source returns the text of a node for messages, without what the engine adds.
func (c *compilation) source(n ast.Node) string {
	return strings.ReplaceAll(abridge(showOr(n.String())), "\n", " ")
}
