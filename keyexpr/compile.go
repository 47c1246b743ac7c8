package keyexpr

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
)

// maxNodes bounds the size of one expression.
const maxNodes = 200

// expression is a compiled hole or condition. Either path or program is set.
type expression struct {
	src     string
	path    *path
	put     func(dst []byte, v reflect.Value, delim rune) ([]byte, error) // appends what is at the end of path
	program *vm.Program
	needs   []int         // the roots that program reads
	typ     reflect.Type  // static type, nil if not known at start
	elem    *reflect.Type // static element type of a list, which may be nil; nil if this is no list
	nothing bool          // the literal nil
}

// compilation turns one text into expressions.
type compilation struct {
	text  string // the whole template or condition
	src   string // the expression at work
	off   int    // where src begins in text
	cond  bool   // a condition, not a key
	roots Roots
	hosts map[string]*hostFunc
	used  []usedRoot
	conf  *conf.Config
}

func newCompilation(text string, roots Roots, cond bool, opts []Option) (*compilation, error) {
	var cfg config
	for _, o := range opts {
		o.apply(&cfg)
	}
	c := &compilation{text: text, roots: roots, cond: cond, hosts: hostFuncs(cond)}
	return c, nil
}

// use returns the index of a root in used, and puts it there.
func (c *compilation) use(name string) int {
	i := slices.IndexFunc(c.used, func(r usedRoot) bool { return r.name == name })
	if i >= 0 {
		return i
	}
	c.used = append(c.used, usedRoot{name, c.roots[name]})
	return len(c.used) - 1
}

// compile compiles the expression src, found at off in the text.
func (c *compilation) compile(src string, off int) (x *expression, err error) {
	c.src, c.off = src, off
	defer func() {
		if r := recover(); r != nil {
			x, err = nil, errAt(c.text, off, "the expression engine gives up: %v", r)
		}
	}()
	c.conf = c.newConf()
	tree, err := c.parse()
	if err != nil {
		return nil, err
	}
	if err := c.check(tree); err != nil {
		return nil, err
	}
	x = &expression{src: src}
	c.setType(x, tree.Node.Nature())
	if p, ok := c.pathOf(tree.Node); ok {
		x.path, x.put = p, appender(x.typ)
		return x, nil
	}
	c.rewrite(tree, x)
	x.program, err = compiler.Compile(tree, c.conf)
	if err != nil {
		return nil, errAt(c.text, off, "the expression engine gives up: %v", err)
	}
	return x, nil
}

func (c *compilation) setType(x *expression, n *nature.Nature) {
	x.nothing = n.Nil
	if n.IsUnknown(&c.conf.NtCache) {
		return
	}
	x.typ = n.Type
	if x.typ == nil || !isList(x.typ) {
		return
	}
	elem := n.Elem(&c.conf.NtCache)
	var t reflect.Type
	if !elem.IsUnknown(&c.conf.NtCache) {
		t = elem.Type
	}
	x.elem = &t
}

// newConf describes the roots and functions to the engine.
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
	for _, f := range engineFuncs() {
		cfg.Functions[f.Name] = f
	}
	return cfg
}

// lookupNature describes a map of strings with these names and, unless it is closed, any other.
func lookupNature(names []string, closed bool) nature.Nature {
	n := nature.NatureOf(map[string]any{})
	n.TypeData = &nature.TypeData{Fields: map[string]nature.Nature{}}
	n.Strict = closed
	text := nature.FromType(reflect.TypeFor[string]())
	for _, name := range names {
		n.Fields[name] = text
	}
	if !closed {
		n.DefaultMapValue = &text
	}
	return n
}

func (r Root) nature(cache *nature.Cache) nature.Nature {
	if r.lookup {
		return lookupNature(r.names, r.closed)
	}
	return cache.FromType(r.typ)
}

func (c *compilation) parse() (*parser.Tree, error) {
	tree, err := parser.ParseWithConfig(c.src, c.conf)
	if err != nil {
		return nil, c.engineError(err)
	}
	v := ruleVisitor{c: c}
	ast.Walk(&tree.Node, &v)
	if v.err != nil {
		return nil, v.err
	}
	return tree, nil
}

// check type-checks the tree. On the way it gives operands of named basic types, which the engine takes for strangers,
// their basic types.
func (c *compilation) check(tree *parser.Tree) error {
	// The first round finds out types, as far as they can be.
	_, _ = checker.Check(tree, c.conf)
	ast.Walk(&tree.Node, &basicVisitor{c: c})
	ast.Walk(&tree.Node, forgetCalls{})
	if _, err := checker.Check(tree, c.conf); err != nil {
		return c.explain(tree, err)
	}
	return c.checkCalls(&tree.Node)
}

// engineError converts an error of the engine, whose offset counts runes of src.
func (c *compilation) engineError(err error) error {
	fault, ok := errors.AsType[*file.Error](err)
	if !ok {
		return errAt(c.text, c.off, "%v", err)
	}
	return errAt(c.text, c.off+byteOffset(c.src, fault.From), "%s", fault.Message)
}

// at is an error at a node of the tree.
func (c *compilation) at(n ast.Node, format string, args ...any) error {
	return errAt(c.text, c.off+byteOffset(c.src, n.Location().From), format, args...)
}

// explain finds a better message than the engine's for an unknown name.
func (c *compilation) explain(tree *parser.Tree, err error) error {
	fault, ok := errors.AsType[*file.Error](err)
	if !ok {
		return c.engineError(err)
	}
	v := unknownVisitor{c: c, at: fault.Location}
	ast.Walk(&tree.Node, &v)
	if v.err != nil {
		return v.err
	}
	return c.engineError(err)
}

// unknownVisitor explains the unknown name at a place.
type unknownVisitor struct {
	c   *compilation
	at  file.Location
	err error
}

func (v *unknownVisitor) Visit(node *ast.Node) {
	if (*node).Location() != v.at || v.err != nil {
		return
	}
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		v.err = v.c.unknownName(n)
	case *ast.MemberNode:
		v.err = v.c.unknownMember(n)
	}
}

func (c *compilation) unknownName(n *ast.IdentifierNode) error {
	if _, ok := c.conf.Env.Fields[n.Value]; ok {
		return nil
	}
	if _, ok := c.conf.Functions[n.Value]; ok {
		return nil
	}
	names := slices.Sorted(maps.Keys(c.roots))
	reason := fmt.Sprintf("unknown name %s", n.Value)
	if near := didYouMean(n.Value, append(slices.Clone(names), c.functionNames()...)); near != "" {
		return c.at(n, "%s%s", reason, near)
	}
	return c.at(n, "%s: there is %s", reason, listNames(names))
}

func (c *compilation) unknownMember(n *ast.MemberNode) error {
	name, ok := n.Property.(*ast.StringNode)
	if !ok {
		return nil
	}
	if root, ok := c.lookupRoot(n.Node); ok {
		if !root.closed || slices.Contains(root.names, name.Value) {
			return nil
		}
		return c.at(n, "unknown name %s of %s%s", name.Value, c.source(n.Node), didYouMeanOr(name.Value, root.names))
	}
	base := n.Node.Nature().Deref(&c.conf.NtCache)
	if base.Kind != reflect.Struct {
		return nil
	}
	if _, ok := base.FieldByName(&c.conf.NtCache, name.Value); ok {
		return nil
	}
	sort := "field"
	names := slices.Sorted(maps.Keys(nature.StructFields(&c.conf.NtCache, base.Type)))
	if n.Method {
		sort, names = "method", methodNames(n.Node.Type())
	}
	return c.at(n, "unknown %s %s of %s%s", sort, name.Value, typeName(base.Type), didYouMeanOr(name.Value, names))
}

// didYouMeanOr lists the names there are where none is near.
func didYouMeanOr(name string, names []string) string {
	if near := didYouMean(name, names); near != "" {
		return near
	}
	return ": there is " + listNames(names)
}

func listNames(names []string) string {
	const most = 12
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}

func methodNames(t reflect.Type) (names []string) {
	for m := range t.Methods() {
		names = append(names, m.Name)
	}
	return names
}

func typeName(t reflect.Type) string {
	if t.Name() != "" {
		return t.Name()
	}
	return t.String()
}

// functionNames lists what can be called, for suggestions.
func (c *compilation) functionNames() (names []string) {
	for _, f := range builtin.Builtins {
		if allowed(f.Name, c.cond) {
			names = append(names, f.Name)
		}
	}
	for name := range c.hosts {
		if isLetter(rune(name[0])) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
