package keyexpr

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// From a tree that was resolved to what runs. The environment of a program is the state of a request, which each function
// gets as its first argument. A function has one type of result for the engine's checker, so that each call is one of a
// function of its own, under a name that no text can spell.

// env is the environment as a node.
func env(at ast.Node) ast.Node {
	id := &ast.IdentifierNode{Value: "$env"}
	id.SetLocation(at.Location())
	return id
}

// host is a call of f. The checker knows nothing of its result.
func (c *compilation) host(at ast.Node, f run.Call, args ...ast.Node) ast.Node {
	name := fmt.Sprintf("&%d", len(c.conf.Functions))
	c.conf.Functions[name] = &builtin.Function{
		Name:     name,
		Validate: func([]reflect.Type) (reflect.Type, error) { return anyType, nil },
		Func:     f.Func,
	}
	callee := &ast.IdentifierNode{Value: name}
	callee.SetLocation(at.Location())
	call := &ast.CallNode{Callee: callee, Arguments: append([]ast.Node{env(at)}, args...)}
	call.SetLocation(at.Location())
	return call
}

// accessor is a call that follows p, from its root or from base. It charges for what it reads.
func (c *compilation) accessor(at ast.Node, p *run.Path, t typ, base ...ast.Node) ast.Node {
	call := c.host(at, func(st *run.State, args []any) (v any, err error) {
		var at reflect.Value
		if p.Elem {
			at, err = run.Walk(run.Tame(reflect.ValueOf(args[0])), p.Steps)
		} else {
			at, err = p.Follow(&st.Source, nil)
		}
		if err != nil {
			return nil, err
		}
		return read(st, at)
	}, base...)
	if !p.Elem {
		c.paths[call] = path{p, t.t, nil}
	}
	return call
}

// read is a value as the machine gets it. A pointer is left to what spells it.
func read(st *run.State, v reflect.Value) (any, error) {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() || run.Indirect(v).Kind() == reflect.Struct && run.Nothing(run.Indirect(v)) {
		return nil, nil
	}
	if text := run.Indirect(v); text.Kind() == reflect.String {
		if err := st.Spend(text.Len()); err != nil {
			return nil, err
		}
	}
	return st.Plain(v)
}

// program compiles a tree that was resolved.
func (c *compilation) program(tree *parser.Tree) (p *vm.Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errAt(c.text, c.off, "can't be compiled: %v", r)
		}
	}()
	if _, err = checker.Check(tree, c.conf); err == nil {
		p, err = compiler.Compile(tree, c.conf)
	}
	if fault, ok := errors.AsType[*file.Error](err); ok {
		err = errAt(c.text, c.off+byteOffset(c.src, fault.From), "%s", fault.Message)
	}
	return p, err
}

// resolve is the pass over the tree of a hole.
func (c *compilation) resolve(tree *parser.Tree, as role) (t typ, err error) {
	defer caught(&err)
	c.root = tree.Node
	return c.node(&tree.Node, as), nil
}

// compileHole compiles a hole into a value of the key, or into the items that make one key each.
func (c *compilation) compileHole(tree *parser.Tree, follow []rune) (part run.Part, items *run.Items, err error) {
	t, err := c.resolve(tree, asHole)
	if err != nil {
		return part, nil, err
	}
	if t.null {
		return part, nil, errAt(c.text, c.off, "nil makes no key")
	}
	of, list := t.elemType()
	if !list {
		of = t
	}
	switch {
	case c.composite && c.raws:
		return part, nil, errAt(c.text, c.off, "raw(…) beside key(…) can't be told apart: write two templates")
	case c.composite && of.parts < 0 && slices.Contains(follow, ':'):
		return part, nil, errAt(c.text, c.off+len(c.src)+1, "a choice between key(…) and other values ends at a colon, as its parts do: put another literal between them")
	case c.composite:
		follow = append(follow, ':')
	}
	if why := refusal(of); why != "" {
		each := ""
		if list {
			each = "is a list; each element "
		}
		return part, nil, errAt(c.text, c.off, "%s %s%s", run.Abridge(strings.TrimSpace(c.src)), each, why)
	}
	part = run.Part{Src: strings.TrimSpace(c.src), Type: of.t, Escape: run.Before(follow), Values: of.parts}
	if of.t == rawType {
		part.Escape = nil
	}
	if list {
		items, err = c.items(tree, part)
		return part, items, err
	}
	return part, nil, c.value(tree, &part)
}

// value makes part one value: at the end of a path, if it is one, else what a program comes to.
func (c *compilation) value(tree *parser.Tree, part *run.Part) error {
	if p, ok := c.paths[tree.Node]; ok {
		leaf := run.LeafAt(p.path, p.t)
		if leaf == run.LeafLookup {
			part.Type = stringType
		}
		if p.via == nil || leaf == run.LeafString || leaf == run.LeafLookup {
			part.Path, part.Leaf, part.Via = p.path, leaf, p.via
			return nil
		}
	}
	prog, err := c.program(tree)
	part.Append = func(st *run.State, key []byte, e *run.Escape) ([]byte, error) {
		v, err := st.Run(prog)
		if err != nil {
			return key, err
		}
		return st.Value(key, v, e)
	}
	return err
}

// items are the keys of a list.
func (c *compilation) items(tree *parser.Tree, part run.Part) (*run.Items, error) {
	part.Path = &run.Path{Elem: true}
	prog, err := c.program(tree)
	return &run.Items{Src: part.Src, Item: part, List: func(st *run.State) (reflect.Value, error) {
		v, err := st.Run(prog)
		return reflect.ValueOf(v), err
	}}, err
}

// refusal says why a value can't be in a key, if that is known at start.
func refusal(t typ) string {
	if t.elem != nil {
		return "is a list in a list: a list makes keys only as a hole of its own"
	}
	if t.t == nil {
		return ""
	}
	if t.t.Kind() == reflect.Interface && t.t.NumMethod() > 0 && !run.Spells(t.t) {
		for m := range t.t.Methods() {
			if m.PkgPath != "" {
				return fmt.Sprintf("is a oneof, %v: name one of its fields", t.t)
			}
		}
	}
	return run.Refusal(t.t)
}

// follows returns what the literal behind a hole begins with.
func follows(rest []part) []rune {
	if len(rest) == 0 {
		return nil
	}
	r, _ := utf8.DecodeRuneInString(rest[0].text)
	return []rune{r}
}
