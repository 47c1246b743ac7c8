package keyexpr

import (
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/parser"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// The checker is the engine's. It knows the types of Go, generics of lists, and what each
// operator takes. What it does not know is what a key is, and three things are added for that:
// types that make no key are refused, calls are limited to what only tells something, and values
// of named basic types are given their basic types where they meet others.
//
// It is strict: a name that it does not know is an error. Where a type is any, as for JSON
// without a declaration, it lets everything through, and what is wrong is an error of the
// request.

// maxNodes bounds the size of one expression. The cost of what compiles is bounded by it, and
// that of what runs by the budget of a request.
const maxNodes = 200

// compilation turns one text into programs. One compilation serves all holes of a template,
// since roots are asked for once each, whichever hole names them first. src and off change from
// hole to hole. All else is collected.
type compilation struct {
	text   string // the whole template or condition
	src    string // the expression at work
	off    int    // where src begins in text
	cond   bool   // a condition, not a key
	plain  int    // around what becomes no part of a key: + puts texts together as they are
	roots  Roots
	hosts  map[string]*hostFunc
	used   []run.Root
	conf   *conf.Config
	vars   []variable
	elems  []run.Insight            // of the loops around, the innermost last
	seen   run.Insight              // what the operands compiled so far say
	known  map[ast.Node]run.Insight // of what is compiled
	trials run.Trials
	tests  []string      // that halve the worlds
	nested int           // compilations of nodes under way
	key    []run.Insight // its parts, as they are spelt
	keys   []keys        // of the lists of a hole
	guess  *run.Guess    // of the trial under way
	raw    bool          // some value goes into the key as it is
	fields []string
}

// Functions of the user's come in before anything is parsed: a name that is taken should be
// found where it is declared.
func newCompilation(text string, roots Roots, cond bool, cfg config) (*compilation, error) {
	c := &compilation{text: text, roots: roots, cond: cond, hosts: hostFuncs(cond), known: map[ast.Node]run.Insight{}}
	for _, f := range cfg.funcs {
		if err := c.addFunc(f); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// use returns the index of a root among those that are used, and puts it there. The order in
// which roots are used becomes the order of the slots that hold their values. A path then finds
// its root by an index, and not by name.
func (c *compilation) use(name string) int {
	i := slices.IndexFunc(c.used, func(r run.Root) bool { return r.Name == name })
	if i >= 0 {
		return i
	}
	root := c.roots[name].of
	root.Name = name
	c.used = append(c.used, root)
	return len(c.used) - 1
}

// tree parses and checks the expression src, found at off in the text. Each hole gets a
// configuration of its own. The checker keeps what it has found out about types in there, in
// caches that are not made for two trees.
func (c *compilation) tree(src string, off int) (ast.Node, error) {
	c.src, c.off = src, off
	c.conf = c.newConf()
	tree, err := c.parse()
	if err != nil {
		return nil, err
	}
	if err := c.check(tree); err != nil {
		return nil, err
	}
	c.addFields(&tree.Node)
	return tree.Node, nil
}

// gaveUp turns a panic of the engine, on an expression that it does not understand, into an
// error. Some of the engine's code panics where it was never meant to be reached. A template is
// text of the program's own, but the tag or file that it stands in is not always written by
// somebody who can read a stack trace.
func (c *compilation) gaveUp(err *error) {
	if r := recover(); r != nil {
		*err = errAt(c.text, c.off, "the expression engine gives up: %v", r)
	}
}

// newConf describes the roots and functions to the engine. Strict makes the checker refuse
// fields that are not there, which it would otherwise take for nil. The engine's builtins that
// are not allowed are disabled and deleted: disabled so that one of ours may have their name,
// and deleted so that the parser takes their calls for calls.
func (c *compilation) newConf() *conf.Config {
	cfg := conf.CreateNew()
	cfg.MaxNodes = maxNodes
	cfg.Optimize = false // it builds constant ranges at start, outside of all budgets
	cfg.Strict = true
	cfg.Env = lookupNature(nil, true)
	for name, root := range c.roots {
		cfg.Env.Fields[name] = root.nature(&cfg.NtCache)
	}
	for name := range cfg.Builtins {
		if !allowed(name, c.cond) {
			cfg.Disabled[name] = true
			delete(cfg.Builtins, name)
		}
	}
	for _, h := range c.hosts {
		cfg.Functions[h.name] = h.function()
	}
	return cfg
}

// check type-checks the tree. On the way it gives operands of named basic types, which the
// engine takes for strangers, their basic types. The checker runs several times over one tree,
// as each of the rewritings needs the types and changes them. It takes the type of a call for
// given once it is set, which is why calls are made to forget theirs in between.
func (c *compilation) check(tree *parser.Tree) error {
	if err := c.resolveNames(tree); err != nil {
		return err
	}
	ast.Walk(&tree.Node, &basicVisitor{c: c})
	ast.Walk(&tree.Node, forgetCalls{})
	if err := c.typecheck(tree); err != nil {
		return c.explain(tree, err)
	}
	return c.checkCalls(&tree.Node)
}

// lookupRoot returns the root that n names, if it is one that is looked up by name. A variable
// of let can't be one: what it holds is a value.
func (c *compilation) lookupRoot(n ast.Node) (run.Root, bool) {
	id, ok := n.(*ast.IdentifierNode)
	if !ok {
		return run.Root{}, false
	}
	root, ok := c.roots[id.Value]
	return root.of, ok && root.of.Lookup
}

// Such a root is no value that could be in a key or be passed on. It can only be asked for a
// name.
func (c *compilation) isLookup(n ast.Node) bool {
	_, ok := c.lookupRoot(n)
	return ok
}

// forgetCalls makes the checker look at calls again, whose types it would take for given.
// Without it, a function whose argument has become a text would keep the type that it had for an
// unknown one.
type forgetCalls struct{}

func (forgetCalls) Visit(node *ast.Node) {
	if call, ok := (*node).(*ast.CallNode); ok {
		call.SetNature(nature.Nature{})
	}
}

// No text can spell these functions: one gives a value of a named basic type its basic type, the
// other hides its type from the checker.
const (
	basicName = "&basic"
	anyName   = "&any"
)

// basicVisitor gives operands of named basic types their basic types. Go programs have type
// Tenant string, and protobuf has named numbers. To the engine, a Tenant and a string are
// strangers: comparing them is an error at start, or false for each request where the type is
// not known. What a template means is the text.
type basicVisitor struct{ c *compilation }

// Operands are converted where they meet another value. A hole that is a value of a named type
// stays as it is, since the type may know how it is spelt.
func (v *basicVisitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.UnaryNode:
		v.convert(&n.Node)
	case *ast.BinaryNode:
		v.binary(n)
	case *ast.ConditionalNode:
		v.convert(&n.Cond)
	case *ast.PredicateNode:
		if n.Node.Nature().IsBool() {
			v.convert(&n.Node)
		}
	case *ast.SliceNode:
		for _, bound := range []*ast.Node{&n.From, &n.To} {
			if *bound != nil {
				v.convert(bound)
			}
		}
	case *ast.MemberNode:
		v.key(n)
	case *ast.BuiltinNode:
		for i := range n.Arguments {
			if i == 0 || !holds(n.Arguments[0], n.Arguments[i]) {
				v.convert(&n.Arguments[i])
			}
		}
	}
}

// binary leaves ?? alone, whose sides need not be of one type, and comparisons with nil, which
// would see a zero value. An element is not converted where the list holds just that type: in a
// []Status, "in" finds a Status.
func (v *basicVisitor) binary(n *ast.BinaryNode) {
	if n.Operator == "in" && likeHeld(n.Right, n.Left) {
		v.wrap(&n.Left, anyName)
		return
	}
	if n.Operator == "??" || n.Left.Nature().Nil || n.Right.Nature().Nil || n.Operator == "in" && holds(n.Right, n.Left) {
		return
	}
	v.convert(&n.Left)
	v.convert(&n.Right)
}

// key gives the constant key of an entry the type that the map wants. The engine looks up
// entries by reflection, for which a string is no key of a map[Status]T.
func (v *basicVisitor) key(n *ast.MemberNode) {
	var by any
	switch property := n.Property.(type) {
	case *ast.StringNode:
		by = property.Value
	case *ast.IntegerNode:
		by = property.Value
	}
	base := n.Node.Nature().Deref(&v.c.conf.NtCache)
	if by == nil || base.Kind != reflect.Map || base.TypeData != nil {
		if !holds(n.Node, n.Property) {
			v.convert(&n.Property)
		}
		return
	}
	key, want := reflect.ValueOf(by), base.Type.Key()
	if key.Type() == want || !run.SameSort(key.Type(), want) {
		return
	}
	if fitting, ok := run.Convert(key, want); ok {
		ast.Patch(&n.Property, &ast.ConstantNode{Value: fitting.Interface()})
	}
}

// It wraps the node in a call, as that is the one way to give a node another type which the
// checker does not undo.
func (v *basicVisitor) convert(node *ast.Node) {
	if n := *node; basicType(n.Type()) != n.Type() {
		v.wrap(node, basicName)
	}
}

// wrap makes a node the argument of a function that no text can call.
func (v *basicVisitor) wrap(node *ast.Node, function string) {
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: function}, Arguments: []ast.Node{*node}}
	call.SetLocation((*node).Location())
	*node = call
}

// holds reports whether a list or map has elements or keys of just the type of n. It keeps the
// checker from converting what fits as it is. In a []Status, "in" must look for a Status.
func holds(list, n ast.Node) bool {
	switch t := list.Type(); t.Kind() {
	case reflect.Slice, reflect.Array:
		return t.Elem() == n.Type()
	case reflect.Map:
		return t.Key() == n.Type()
	}
	return false
}

// likeHeld reports whether a list or map has elements or keys of a named type, and n is what that type is made of: in a
// []Tenant, "acme" is looked for. The checker would refuse it, and among compares the two as what they are.
func likeHeld(list, n ast.Node) bool {
	t := list.Type()
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		t = t.Elem()
	case reflect.Map:
		t = t.Key()
	default:
		return false
	}
	return t != n.Type() && basicType(t) == basicType(n.Type()) && t.Kind() != reflect.Interface
}

// basicType returns the predeclared type that a named one is made of, or a pointer to it for a
// pointer. All other types it returns as they are. A duration stays one, as it is a number with
// a unit: 5 and 5*time.Second are two things.
func basicType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		if basic := basicType(t.Elem()); basic != t.Elem() {
			return run.PointerTo(basic)
		}
		return t
	}
	if t == durationType {
		return t
	}
	if basic, ok := basicTypes[t.Kind()]; ok {
		return basic
	}
	return t
}

var basicTypes = func() map[reflect.Kind]reflect.Type {
	types := map[reflect.Kind]reflect.Type{}
	for _, v := range []any{false, "", 0, int8(0), int16(0), int32(0), int64(0), uint(0), uint8(0), uint16(0), uint32(0), uint64(0), uintptr(0), float32(0), 0.0} {
		t := reflect.TypeOf(v)
		types[t.Kind()] = t
	}
	return types
}()

// checkHole refuses what can't be a value in a key. A type that can't be in a key is refused
// when the program starts, and not for the first request that comes by, which may be the one
// that matters.
func (c *compilation) checkHole(n ast.Node) error {
	if n.Nature().Nil {
		return c.at(n, "nil makes no key")
	}
	if t := c.typeOf(n); t != nil {
		if why := run.Refusal(t); why != "" {
			return errAt(c.text, c.off, "%s %s", run.Abridge(strings.TrimSpace(c.src)), why)
		}
	}
	return nil
}

// typeOf returns the static type of a node, and nil if it is not known at start. nil has a
// nature and no type. What is read from it is as unknown as what is read from any.
func (c *compilation) typeOf(n ast.Node) reflect.Type {
	if n.Nature().IsUnknown(&c.conf.NtCache) || n.Nature().Nil {
		return nil
	}
	return n.Nature().Type
}

// elemOf returns the static type of the elements of a list, nil if it is not known, and whether
// n is a list. A list behind a pointer is a list: protobuf and JSON make both, and a template
// should not have to know.
func (c *compilation) elemOf(n ast.Node) (elem reflect.Type, ok bool) {
	t := c.typeOf(n)
	for t != nil && t.Kind() == reflect.Pointer && run.IsList(t.Elem()) {
		t = t.Elem()
	}
	if t == nil || !run.IsList(t) {
		return nil, false
	}
	if e := n.Nature().Elem(&c.conf.NtCache); !e.IsUnknown(&c.conf.NtCache) {
		elem = e.Type
	}
	return elem, true
}
