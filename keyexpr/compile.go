package keyexpr

import (
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
)

// maxNodes bounds the size of one expression.
const maxNodes = 200

// expression is a compiled hole or condition. One of path, eval and program is set.
type expression struct {
	src     string
	path    *path
	leaf    leaf                            // of what is at the end of path
	text    func(st *state) (string, error) // what eval does, for strings
	eval    evalFunc
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

	fields []string
}

func newCompilation(text string, roots Roots, cond bool, opts []Option) (*compilation, error) {
	var cfg config
	for _, o := range opts {
		o.apply(&cfg)
	}
	c := &compilation{text: text, roots: roots, cond: cond, hosts: hostFuncs(cond)}
	for _, f := range cfg.funcs {
		if err := c.addFunc(f); err != nil {
			return nil, err
		}
	}
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
	c.addFields(&tree.Node)
	x = &expression{src: src}
	c.setType(x, tree.Node.Nature())
	if p, ok := c.pathOf(tree.Node); ok {
		x.path, x.leaf = p, leafOf(x.typ)
		return x, nil
	}
	if eval, ok := c.direct(tree.Node); ok {
		x.eval = eval
		x.text, _ = c.directText(tree.Node)
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
	tree, err := parser.ParseWithConfig(hideOr(c.src), c.conf)
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
	if err := c.resolveNames(tree); err != nil {
		return err
	}
	ast.Walk(&tree.Node, &basicVisitor{c: c})
	ast.Walk(&tree.Node, forgetCalls{})
	if _, err := checker.Check(tree, c.conf); err != nil {
		return c.explain(tree, err)
	}
	return c.checkCalls(&tree.Node)
}
