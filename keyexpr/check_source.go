package keyexpr

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/parser"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Types of source code. A root may also be of a type that was parsed and not compiled (internal/gotype), for tools that
// check the templates of a program which does not run. All of this package only looks at types, and so does the engine,
// but for one place: for the body of a loop it makes a type of function, which package reflect can't do with such a type.
// There the tree is changed for as long as it is checked, in a way that changes no type.

// typecheck lets the engine check the tree.
func (c *compilation) typecheck(tree *parser.Tree) error {
	if !c.uncompiled() {
		_, err := checker.Check(tree, c.conf)
		return err
	}
	b := bodies{c: c, wrapped: map[*ast.PredicateNode]bool{}}
	defer b.unwrap()
	for {
		done, err := b.try(tree)
		if done {
			return err
		}
		ast.Walk(&tree.Node, forgetCalls{})
	}
}

// uncompiled reports whether types of source code are among those that are known.
func (c *compilation) uncompiled() bool {
	for _, root := range c.roots {
		if run.Uncompiled(root.of.Type) {
			return true
		}
	}
	for _, h := range c.hosts {
		if h.user != nil && h.user.Uncompiled() {
			return true
		}
	}
	return false
}

// bodies are those of the loops of a tree whose types the engine stumbles over.
type bodies struct {
	c       *compilation
	wrapped map[*ast.PredicateNode]bool
	undo    []func()
}

// try lets the engine check the tree. Where it stumbles, it has found out the type of the body by then.
func (b *bodies) try(tree *parser.Tree) (done bool, err error) {
	defer func() {
		stumbled := recover()
		if stumbled == nil {
			return
		}
		known := len(b.wrapped)
		if _, ok := stumbled.(*runtime.TypeAssertionError); ok {
			ast.Walk(&tree.Node, b)
		}
		if len(b.wrapped) == known {
			panic(stumbled)
		}
	}()
	_, err = checker.Check(tree, b.c.conf)
	return true, err
}

// Visit wraps the body of a loop. In a list, the engine lets a type alone, and an element of it has that type again: to the
// checker, map(l, x) is [map(l, [x])[0][0]]. A test is true or false, whatever its type is called.
func (b *bodies) Visit(node *ast.Node) {
	loop, ok := (*node).(*ast.BuiltinNode)
	if !ok || len(loop.Arguments) < 2 {
		return
	}
	p, ok := loop.Arguments[1].(*ast.PredicateNode)
	if !ok || b.wrapped[p] || !run.Uncompiled(p.Node.Nature().Type) {
		return
	}
	body := p.Node
	b.wrapped[p] = true
	b.undo = append(b.undo, func() { p.Node = body })
	if loop.Name != "map" && loop.Name != "sum" && loop.Name != "sortBy" {
		p.Node = b.test(p)
		return
	}
	if p.Node = listWith(body); loop.Name == "sortBy" {
		return
	}
	elem := &ast.BuiltinNode{Name: "map", Arguments: loop.Arguments}
	elem.SetLocation(loop.Location())
	first := func(n ast.Node) ast.Node { return &ast.MemberNode{Node: n, Property: &ast.IntegerNode{}} }
	instead := first(first(elem))
	if loop.Name == "map" {
		instead = listWith(instead)
	}
	*node = instead
	b.undo = append(b.undo, func() {
		loop.SetNature(*instead.Nature())
		*node = loop
	})
}

func listWith(n ast.Node) ast.Node {
	list := &ast.ArrayNode{Nodes: []ast.Node{n}}
	list.SetLocation(n.Location())
	return list
}

// testName is a function that no text can spell.
const testName = "&test"

// test is the body of a loop that tests, as a call with its result. What is no test gets the engine's words.
func (b *bodies) test(p *ast.PredicateNode) ast.Node {
	b.c.conf.Functions[testName] = &builtin.Function{Name: testName, Validate: func(args []reflect.Type) (reflect.Type, error) {
		if t := args[0]; t != nil && t != anyType && t.Kind() != reflect.Bool {
			return nil, fmt.Errorf("predicate should return boolean (got %v)", t)
		}
		return boolType, nil
	}}
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: testName}, Arguments: []ast.Node{p.Node}}
	call.SetLocation(p.Location())
	return call
}

func (b *bodies) unwrap() {
	for _, undo := range slices.Backward(b.undo) {
		undo()
	}
}
