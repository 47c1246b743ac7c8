package keyexpr

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Template is a parsed key template. It is immutable and safe for concurrent use. Its program has the results of all
// work that can be done at start, in the form in which they are used.
type Template struct{ program run.Program }

// Parse parses text and type-checks it against roots. Its error is an *Error. Parts are compiled in their order, with a glance
// at what follows. The error about one key for all requests comes last: a mistake in a hole is worth more to its author.
func Parse(text string, roots Roots, opts ...Option) (*Template, error) {
	parts, err := scan(text)
	if err != nil {
		return nil, err
	}
	cfg := newConfig(opts)
	c, err := newCompilation(text, roots, false, cfg)
	if err != nil {
		return nil, err
	}
	c.oneKey = cfg.oneKey
	t := &Template{program: run.Program{Text: text}}
	for i, p := range parts {
		if !p.hole {
			if err = c.checkAlike(p, i == 0); err == nil {
				addLiteral(&t.program, p.text)
			}
		} else {
			err = c.addHole(&t.program, p, follows(parts[i+1:]))
		}
		if err != nil {
			return nil, err
		}
	}
	if len(t.program.Parts) == 0 && t.program.Items == nil {
		return nil, errAt(text, 0, "makes an empty key")
	}
	t.program.Roots, t.program.Raw, t.program.Fields = c.used, c.raw, sorted(c.fields)
	if !c.reads && !cfg.oneKey {
		return nil, lookAlike(text, parts, roots)
	}
	t.program.Finish()
	if err := c.checkPercent(&t.program); err != nil {
		return nil, err
	}
	return t, nil
}

// Compile makes a template of a key in another language than this one's. It is for package spel:
// nobody else can have a compiler. An error of it is returned as it is. The compiler gets what
// is needed of the configuration and nothing of this package's types, so that a language can be
// added without touching the files of the other. The two share roots, functions, budgets, and
// the program that runs.
func Compile(text string, roots Roots, opts []Option, compile run.Compiler) (*Template, error) {
	cfg := newConfig(opts)
	setup := &run.Setup{Roots: map[string]run.Root{}, Functions: map[string]*run.Function{}, OneKey: cfg.oneKey}
	for name, root := range roots {
		setup.Roots[name] = root.of
	}
	// Names are not compared with those of our functions, as templates do: another language has its own,
	// and #lower(…) of Java is whatever the Java program has registered.
	for _, f := range cfg.funcs {
		fn, err := run.NewFunction(f.name, f.fn)
		if err != nil {
			return nil, errAt(text, 0, "%v", err)
		}
		setup.Functions[f.name] = fn
	}
	p, err := compile(setup)
	if err != nil {
		return nil, err
	}
	p.Text = text
	p.Finish()
	return &Template{program: *p}, nil
}

// addLiteral joins a literal to one in front of it, but not across a list.
func addLiteral(p *run.Program, text string) {
	if n := len(p.Parts); n > 0 && p.Parts[n-1].Literal() && (p.Items == nil || p.At != n) {
		p.Parts[n-1].Text += text
	} else if text != "" {
		p.Parts = append(p.Parts, run.Part{Text: text})
	}
}

// addHole compiles a hole. A text that is written out is literal text. A hole of a list type makes several keys: with two, the
// keys would be all pairs.
func (c *compilation) addHole(p *run.Program, h part, follow []rune) error {
	tree, err := c.parse(h.text, h.off)
	if err != nil {
		return err
	}
	if s, ok := tree.Node.(*ast.StringNode); ok {
		if err := c.checkQuoted(s); err != nil {
			return err
		}
		addLiteral(p, s.Value)
		return nil
	}
	part, items, err := c.compileHole(tree, follow)
	switch {
	case err != nil:
		return err
	case items == nil:
		p.Parts = append(p.Parts, part)
		return nil
	case p.Items != nil:
		return errAt(c.text, h.off, "a second list: a template makes a key of each element of one")
	}
	p.At, p.Items = len(p.Parts), items
	return nil
}

// checkPercent refuses a % beside a value: behind it, it would look like an escape, and before it like the digest of a long
// key, whose mark must not be in a literal either.
func (c *compilation) checkPercent(p *run.Program) error {
	parts := p.All()
	for i, part := range parts {
		before, after := i > 0 && parts[i-1].Escape != nil, i+1 < len(parts)
		at := max(strings.Index(c.text, run.DigestMark), strings.Index(c.text, "%"), 0)
		switch {
		case !part.Literal():
		case strings.Contains(part.Text, run.DigestMark):
			return errAt(c.text, at, "%s marks the digest of a long key, and can't be in a literal", run.DigestMark)
		case before && strings.HasPrefix(part.Text, "%"), after && strings.HasSuffix(part.Text, "%"):
			return errAt(c.text, at, "a %% beside a hole would look like an escape, or like the digest of a long key: put another literal between them")
		}
	}
	return nil
}

// Check parses the syntax of text only: holes are closed and each is an expression. Its error is
// an *Error. It knows no roots, so that names, types and "reads nothing" are left to Parse. It
// is for text that is written far from where it is used, in a tag or a file, and should be found
// faulty there.
func Check(text string) error {
	parts, err := scan(text)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if p.hole {
			if err := checkSyntax(text, p.text, p.off, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkSyntax parses one expression. It has no roots, so that whatever is there may be meant.
func checkSyntax(text, src string, off int, cond bool) (err error) {
	c := &compilation{text: text, cond: cond}
	tree, err := c.parse(src, off)
	if err != nil {
		return err
	}
	defer caught(&err)
	ast.Find(tree.Node, func(n ast.Node) bool {
		if x, ok := n.(*ast.BinaryNode); ok && x.Operator == "matches" {
			c.pattern(x.Right)
		}
		return false
	})
	return nil
}

// Expand returns the keys of the template: one, or for a template with a hole of list type one an element, sorted and
// distinct. ctx is for users' own functions. An error matches ErrValue if the request is to blame, and the error of
// facts or of a user's function otherwise. Facts are read in the order in which the template needs them, so that a body
// is not read for a request that lacks a header in front of it.
//
// The list takes no memory in the heap if the caller does not pass it on.
func (t *Template) Expand(ctx context.Context, facts Facts) ([]string, error) {
	// In a function as small as this, which is inlined, the list is on the stack of the caller.
	return t.program.Expand(ctx, make([]string, 0, 1), facts, nil)
}

// AppendKeys is Expand with memory of the caller's: it appends to keys. The one allocation that
// is left is the key itself, since a text of Go can't be changed.
func (t *Template) AppendKeys(ctx context.Context, keys []string, facts Facts) ([]string, error) {
	return t.program.Expand(ctx, keys, facts, nil)
}

// AppendKeysOf is AppendKeys for a template with one root at most, which has the value that request points to. It saves the
// memory of a Facts and of a copy of the request. Errors are those of Expand; a request that is no pointer, or points to a value of
// another type than was declared, is the caller's mistake and does not match ErrValue.
func (t *Template) AppendKeysOf(ctx context.Context, keys []string, request any) ([]string, error) {
	return t.program.Expand(ctx, keys, nil, request)
}

// Match reads a key back: it returns the values that the holes had in it, in their order, and
// those of key(a, b) one by one. ok is false for what is no key of this template, or can't be read
// back: a key that was shortened, and one with raw. It is for tools that list the locks in Redis
// and ask whose they are, and for tests: a key that can be read back to other facts than those
// that it was made of would have been another request's key.
func (t *Template) Match(key string) (values []string, ok bool) { return t.program.Match(key) }

// Roots returns the names of the roots that the template uses, sorted.
func (t *Template) Roots() []string { return rootNames(t.program.Roots) }

// Fields returns the fields that the template reads of each root, in Go's spelling and sorted, such as req.OrderID and
// header.Tenant.
func (t *Template) Fields() []string { return slices.Clone(t.program.Fields) }

// String returns the text of the template.
func (t *Template) String() string { return t.program.Text }

// Shape shows the form of the keys, with the type of each value: order:<string>:<int64>. A list template has the shape
// of one of its keys. Types are spelt as they are in Go, but for named ones that are spelt by what they are made of: a
// <string> says more about a key than a <Tenant>.
func (t *Template) Shape() string {
	var b strings.Builder
	for _, p := range t.program.All() {
		if p.Literal() {
			b.WriteString(p.Text)
			continue
		}
		b.WriteString("<" + shapeOf(p.Type) + ">")
		for range p.Values - 1 {
			b.WriteString(":<" + shapeOf(p.Type) + ">")
		}
	}
	return b.String()
}

// shapeOf shows what spells itself as its type, since its text has a form of its own: <uuid.UUID> says more than <[16]uint8>.
func shapeOf(t reflect.Type) string {
	if t == nil {
		return "any"
	}
	t = deref(t)
	if run.Spells(run.PointerTo(t)) && t.Kind() != reflect.String || t == durationType {
		return t.String()
	}
	if k := t.Kind(); k != reflect.Slice && k != reflect.Array && k != reflect.Struct && k != reflect.Interface {
		return k.String()
	}
	return t.String()
}

// rootNames are for people. A path finds its root by the order in which roots were first used.
func rootNames(used []run.Root) []string {
	names := make([]string, len(used))
	for i, r := range used {
		names[i] = r.Name
	}
	return sorted(names)
}

// sorted has each name once.
func sorted(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
