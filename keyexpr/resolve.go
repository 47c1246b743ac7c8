package keyexpr

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// A hole, and a condition, is an expression of expr-lang. This part of its grammar passes, from the loosest operator to
// the tightest:
//
//	choice     = or [ "?" choice ":" choice ]
//	or, and    = operands of "or" "||", "and" "&&"
//	comparison = "==" "!=" "<" "<=" ">" ">=" "in" "matches" "contains" "startsWith" "endsWith", "not" in front of a word
//	default    = operand "??" operand
//	unary      = "!" "not", and "-" in front of a number that is written out
//	postfix    = primary { "." name | "?." name | "[" choice "]" | "(" ")" | "|" function }
//	primary    = root | literal | list | function "(" arguments ")" | "#" in a loop | "(" choice ")"
//
// One recursive pass over the engine's tree knows the types of Go. It replaces each path by one call of an accessor, and each
// function by one of ours, so that the engine's checker and machine meet nothing but texts, numbers, booleans, lists and nil.
// The pass lists the nodes that it knows and refuses all others.

// maxNodes bounds the size of one expression.
const maxNodes = 200

// compilation turns one text into programs. One compilation serves all holes of a template, since each root is read
// once, whichever hole names it first.
type compilation struct {
	text   string // the whole template or condition
	cond   bool   // a condition, not a key
	roots  Roots
	funcs  map[string]*run.Function // of the user's
	used   []run.Root
	reads  bool // a root is named, or a function takes a context
	raw    bool // some value goes into the key as it is
	oneKey bool
	varies bool // a function is called that may say something else each time

	fields []string

	hole // the expression at work
}

// hole describes one expression.
type hole struct {
	src       string
	off       int // where src begins in the text
	conf      *conf.Config
	root      ast.Node
	elem      *typ // of the list that a loop goes over
	composite bool // a key(…) is in it
	raws      bool // a raw(…) is in it
	paths     map[ast.Node]path
	done      map[ast.Node]resolved
}

// path is a path whose value may go through a function, and needs no machine.
type path struct {
	path *run.Path
	t    reflect.Type
	via  func(string) string
}

// typ is the type of a node, as far as it is known at start.
type typ struct {
	t    reflect.Type // nil if it is not known
	elem *typ         // of a list that the expression makes
	null bool         // the literal nil
	// parts is how many values key(…) puts together: 0 for one value, -1 if it is now these and now those.
	parts int
}

// role says how a node is compiled.
type role bool

const (
	asPart role = false // of another value
	asHole role = true  // the value of the hole, or an element of it
)

// resolved is the result of a node. The parser puts one node into two places, in a < b < c.
type resolved struct {
	node ast.Node
	typ  typ
	src  string
}

func newCompilation(text string, roots Roots, cond bool, cfg config) (*compilation, error) {
	c := &compilation{text: text, roots: roots, cond: cond, funcs: map[string]*run.Function{}}
	for _, f := range cfg.funcs {
		if err := c.addFunc(f); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// failure leaves the pass with an error. Only caught recovers it.
type failure struct{ err *Error }

func (c *compilation) fail(n ast.Node, format string, args ...any) {
	panic(failure{errAt(c.text, c.place(n), format, args...)})
}

func caught(err *error) {
	switch f := recover().(type) {
	case nil:
	case failure:
		*err = f.err
	default:
		panic(f)
	}
}

// place returns where a node begins in the text. That of an operator is the operator itself.
func (c *compilation) place(n ast.Node) int { return c.off + byteOffset(c.src, n.Location().From) }

// parse makes a tree of the expression src, found at off in the text. All functions are ours, so that the engine's are
// disabled; it takes calls with a loop in them for its own all the same.
func (c *compilation) parse(src string, off int) (_ *parser.Tree, err error) {
	c.hole = hole{src: src, off: off, paths: map[ast.Node]path{}, done: map[ast.Node]resolved{}}
	c.conf = conf.New(struct{}{})
	c.conf.MaxNodes, c.conf.Optimize = maxNodes, false
	for name := range c.conf.Builtins {
		c.conf.Disabled[name] = true
	}
	clear(c.conf.Builtins)
	defer func() {
		if r := recover(); r != nil {
			err = errAt(c.text, off, "can't be read: %v", r)
		}
	}()
	tree, err := parser.ParseWithConfig(src, c.conf)
	if err != nil {
		return nil, c.syntaxError(err)
	}
	return tree, nil
}

// syntaxError puts the engine's words behind our place, unless the source has what belongs to another language.
func (c *compilation) syntaxError(err error) error {
	if at, why := foreign(c.src); why != "" {
		return errAt(c.text, c.off+at, "%s", why)
	}
	if fault, ok := errors.AsType[*file.Error](err); ok {
		return errAt(c.text, c.off+byteOffset(c.src, fault.From), "not an expression: %s", fault.Message)
	}
	return errAt(c.text, c.off, "not an expression: %v", err)
}

// node resolves what is in a node, puts in its place what the engine gets, and returns its type.
func (c *compilation) node(n *ast.Node, as role) typ {
	was := *n
	if r, ok := c.done[was]; ok {
		*n = r.node
		return r.typ
	}
	src := was.String()
	t := c.fresh(n, as)
	r := resolved{*n, t, src}
	c.done[was], c.done[*n] = r, r
	return t
}

func (c *compilation) fresh(n *ast.Node, as role) typ {
	switch x := (*n).(type) {
	case *ast.NilNode:
		return typ{null: true}
	case *ast.IntegerNode:
		return typ{t: intType}
	case *ast.FloatNode:
		if !c.cond {
			c.fail(x, "numbers that are not whole have many spellings: only conditions have them")
		}
		return typ{t: floatType}
	case *ast.BoolNode:
		return typ{t: boolType}
	case *ast.StringNode:
		c.checkText(x, as)
		return typ{t: stringType}
	case *ast.IdentifierNode, *ast.MemberNode, *ast.PointerNode, *ast.ChainNode:
		return c.access(n)
	case *ast.CallNode:
		if _, ok := x.Callee.(*ast.IdentifierNode); !ok {
			return c.access(n)
		}
		return c.call(n, x, as)
	case *ast.BuiltinNode:
		return c.loop(x, as)
	case *ast.UnaryNode:
		return c.unary(x)
	case *ast.BinaryNode:
		return c.binary(n, x, as)
	case *ast.ConditionalNode:
		return c.choice(x, as)
	case *ast.ArrayNode:
		return c.list(x, as)
	}
	c.fail(*n, "%s is not part of this language: %s", c.source(*n), elsewhere)
	return typ{}
}

// elsewhere ends the sentence about a part of the language that keys don't have.
const elsewhere = "write a guard.KeyFunc, or a function of your own with guard.TemplateFunc"

func (c *compilation) unary(x *ast.UnaryNode) typ {
	if x.Operator == "!" || x.Operator == "not" {
		c.truth(&x.Node)
		return typ{t: boolType}
	}
	switch x.Node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		if x.Operator == "-" {
			return c.node(&x.Node, asPart)
		}
	}
	c.fail(x, "nothing is calculated here: %s", elsewhere)
	return typ{}
}

// choice gives both branches what the whole is for. The engine reads a ?: b as a choice whose test and first branch are one.
func (c *compilation) choice(x *ast.ConditionalNode, as role) typ {
	if !x.Ternary {
		c.fail(x, "if is not part of this language: write a ? b : c")
	}
	if x.Cond == x.Exp1 {
		c.fail(x, "?: is for true and false here: write coalesce(a, b), or a ?? b")
	}
	c.truth(&x.Cond)
	return same(c.node(&x.Exp1, as), c.node(&x.Exp2, as))
}

// list is one that is written out. The elements of one that makes keys must each read something.
func (c *compilation) list(x *ast.ArrayNode, as role) typ {
	elem := typ{}
	if len(x.Nodes) == 0 && as == asHole {
		c.fail(x, "an empty list makes no key")
	}
	for i := range x.Nodes {
		before := c.reads
		c.reads = false
		t := c.node(&x.Nodes[i], as)
		if as == asHole && !c.reads && !c.oneKey {
			c.fail(x.Nodes[i], "this element names no fact, and is one key for all requests; OneKey (one-key in a tag) says that it is meant")
		}
		if c.reads = c.reads || before; i == 0 {
			elem = t
		}
		elem = same(elem, t)
	}
	return typ{elem: &elem}
}

// same is the type of a value that is one of two.
func same(a, b typ) typ {
	switch {
	case a.null:
		return b
	case b.null:
		return a
	case a.parts != b.parts:
		return typ{parts: -1}
	case a.t != nil && a.t == b.t:
		return a
	case a.t != nil && b.t != nil && pointee(a.t).Kind() == reflect.String && pointee(b.t).Kind() == reflect.String:
		return typ{t: reflect.TypeFor[*string]()}
	}
	d, isList := a.elemType()
	if e, both := b.elemType(); isList && both {
		e = same(d, e)
		return typ{elem: &e}
	}
	return typ{parts: a.parts}
}

// elemType returns the type of the elements, if values of type t are lists or may be.
func (t typ) elemType() (elem typ, list bool) {
	if t.elem != nil {
		return *t.elem, true
	}
	l := deref(t.t)
	if l == nil || !run.IsList(l) {
		return typ{}, false
	}
	return known(l.Elem()), true
}

// known is the type of a value whose static type is t. Nothing is known of an any.
func known(t reflect.Type) typ {
	if t == nil || t.Kind() == reflect.Interface && t.NumMethod() == 0 {
		return typ{}
	}
	return typ{t: t}
}

// goType is t as functions of the user's are checked with it.
func (t typ) goType() reflect.Type {
	switch {
	case t.elem != nil:
		return reflect.TypeFor[[]any]()
	case t.t == nil:
		return anyType
	}
	return t.t
}

// sortOf names what values of type t are to a comparison; "" if that is found out for each.
func sortOf(t reflect.Type) string {
	if t == nil || t == durationType || t == numberType {
		return ""
	}
	switch k := t.Kind(); {
	case k == reflect.String:
		return "text"
	case k == reflect.Bool:
		return "bool"
	case k == reflect.Array && t.Elem().Kind() == reflect.Uint8:
		return "bytes"
	case k >= reflect.Int && k <= reflect.Float64:
		return "number"
	}
	return ""
}

// deref follows all pointers.
func deref(t reflect.Type) reflect.Type {
	for depth := 0; depth < maxDepth && t != nil && t.Kind() == reflect.Pointer; depth++ { // a type can point to itself
		t = t.Elem()
	}
	return t
}

// pointee is the type by which an argument is checked: requests have pointers where a value may be missing.
func pointee(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// source returns the text of a node, for messages.
func (c *compilation) source(n ast.Node) string {
	s := c.done[n].src
	if s == "" {
		s = n.String()
	}
	s = strings.ReplaceAll(run.Abridge(s), "\n", " ")
	return strings.NewReplacer("#.", ".").Replace(s)
}

// use returns the index of a root among those that are used, and puts it there.
func (c *compilation) use(name string) int {
	c.reads = true
	if i := slices.IndexFunc(c.used, func(r run.Root) bool { return r.Name == name }); i >= 0 {
		return i
	}
	root := c.roots[name].of
	root.Name = name
	c.used = append(c.used, root)
	return len(c.used) - 1
}
