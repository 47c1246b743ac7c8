package keyexpr

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// call resolves a call of a function of ours, or of the user's.
func (c *compilation) call(n *ast.Node, x *ast.CallNode, as role) typ {
	name := x.Callee.(*ast.IdentifierNode).Value
	if f, ok := c.funcs[name]; ok {
		return c.user(n, x, f)
	}
	f, ok := functions()[name]
	if !ok {
		c.unknownFunction(x, name)
	}
	if f.cond && !c.cond {
		c.fail(x, "%s is not allowed here: a key with the time in it is never the same twice; conditions may use it", name)
	}
	if got := len(x.Arguments); got < f.least || got > f.most {
		want := fmt.Sprint(f.least)
		if f.most > f.least {
			want += " or more"
		}
		c.fail(x, "%s has %d arguments, and should have %s", name, got, want)
	}
	if (name == "key" || name == "raw") && as != asHole {
		c.fail(x, "%s(…) is the whole of a hole, a choice in it, or an element of a list: it can't be a part of something else", name)
	}
	args := make([]typ, len(x.Arguments))
	for i := range x.Arguments {
		role := asPart
		if (name == "coalesce" || name == "required" && i == 0) && as == asHole {
			role = as
		}
		args[i] = c.node(&x.Arguments[i], role)
		if f.arg != nil {
			f.arg(c, x.Arguments[i], args[i])
		}
	}
	t := f.out(c, x, args)
	switch name {
	case "coalesce":
		*n = c.coalesce(x)
		return t
	case "now":
		c.varies = true
	case "key":
		c.composite = true
	case "raw":
		c.raw, c.raws = true, true
	}
	call := c.host(x, f.call, x.Arguments...)
	if via, ok := map[string]func(string) string{"lower": lower, "upper": upper, "raw": nil}[name]; ok {
		if p, ok := c.paths[x.Arguments[0]]; ok && p.via == nil {
			c.paths[call] = path{p.path, p.t, via}
		}
	}
	*n = call
	return t
}

// coalesce is the engine's ??, which asks for the next value only if need be.
func (c *compilation) coalesce(x *ast.CallNode) ast.Node {
	filled := func(_ *run.State, args []any) (any, error) {
		if isEmpty(args[0]) {
			return nil, nil
		}
		return args[0], nil
	}
	last := len(x.Arguments) - 1
	out := c.host(x, filled, x.Arguments[last])
	for i := last - 1; i >= 0; i-- {
		next := &ast.BinaryNode{Operator: "??", Left: c.host(x, filled, x.Arguments[i]), Right: out}
		next.SetLocation(x.Location())
		out = next
	}
	return out
}

// user resolves a call of the user's own function.
func (c *compilation) user(n *ast.Node, x *ast.CallNode, f *run.Function) typ {
	c.reads, c.varies = c.reads || f.Contextual(), true
	args := make([]reflect.Type, len(x.Arguments))
	for i := range x.Arguments {
		args[i] = c.node(&x.Arguments[i], asPart).goType()
	}
	t, err := f.Check(args)
	if err != nil {
		c.fail(x, "%v", err)
	}
	*n = c.host(x, func(st *run.State, args []any) (any, error) {
		v, err := f.Call(st, args)
		if err != nil {
			return nil, err
		}
		return read(st, reflect.ValueOf(v))
	}, x.Arguments...)
	return known(t)
}

// loop resolves map, filter, any and all. The list is charged for all of its rounds before the first.
func (c *compilation) loop(x *ast.BuiltinNode, as role) typ {
	if !slices.Contains([]string{"map", "filter", "any", "all"}, x.Name) || len(x.Arguments) != 2 {
		c.unknownFunction(x, x.Name)
	}
	body, ok := x.Arguments[1].(*ast.PredicateNode)
	if !ok {
		c.fail(x, "%s takes a list and what is done with each element, as in map(req.Lines, .SKU)", x.Name)
	}
	if c.elem != nil {
		c.fail(x, "a loop in a loop takes the product of both lists: %s", elsewhere)
	}
	list := c.node(&x.Arguments[0], asPart)
	c.wantList(x.Arguments[0], list)
	elem, _ := list.elemType()
	x.Arguments[0] = c.host(x.Arguments[0], func(st *run.State, args []any) (any, error) {
		v, err := listOf(st, args[0])
		if err != nil {
			return nil, err
		}
		return v.Interface(), nil
	}, x.Arguments[0])
	c.elem = &elem
	defer func() { c.elem = nil }()
	if x.Name == "map" {
		t := c.node(&body.Node, as)
		return typ{elem: &t}
	}
	c.truth(&body.Node)
	if x.Name == "filter" {
		return typ{elem: &elem}
	}
	return typ{t: boolType}
}

// addFunc makes a user's function known. A name of ours can't be taken over: lower(x) is the same in all programs.
func (c *compilation) addFunc(f userFunc) error {
	_, taken := functions()[f.name]
	_, isRoot := c.roots[f.name]
	_, isBuiltin := builtin.Index[f.name]
	_, twice := c.funcs[f.name]
	switch {
	case taken || isRoot || isBuiltin || twice:
		return errAt(c.text, 0, "function %s: there is something of that name already", f.name)
	case !isName(f.name):
		return errAt(c.text, 0, "a function can't be called %q", f.name)
	}
	fn, err := run.NewFunction(f.name, f.fn)
	if err != nil {
		return errAt(c.text, 0, "%v", err)
	}
	c.funcs[f.name] = fn
	return nil
}

// functionNames lists the functions that can be called.
func (c *compilation) functionNames() []string {
	names := []string{"map", "filter", "any", "all"}
	for name, f := range functions() {
		if !f.cond || c.cond {
			names = append(names, name)
		}
	}
	return append(names, slices.Collect(maps.Keys(c.funcs))...)
}

// unknownFunction looks first for what was meant by it in another language, or in the engine's.
func (c *compilation) unknownFunction(x ast.Node, name string) {
	if _, ok := c.roots[name]; ok {
		c.fail(x, "%s is not a function", name)
	}
	if write := otherNames[foldName(name)]; write != "" {
		c.fail(x, "%s is not part of this language: write %s", name, write)
	}
	if _, ok := builtin.Index[name]; ok {
		c.fail(x, "%s is not part of this language: %s", name, elsewhere)
	}
	for _, root := range slices.Sorted(maps.Keys(c.roots)) {
		if t := c.roots[root].of.Type; t != nil && slices.Contains(methodNames(t), name) {
			c.fail(x, "unknown function %s: write %s.%s()", name, root, name)
		}
	}
	c.fail(x, "unknown function %s%s", name, suggest.Ending(name, c.functionNames()))
}
