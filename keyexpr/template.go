package keyexpr

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Template is a parsed key template. It is immutable and safe for concurrent use. Whatever could
// be found out at start is in its program, in the form in which it is used: a path knows the
// indexes of its fields, a value what it is escaped for, a list what one round of it costs.
type Template struct{ program run.Program }

// Parse parses text and type-checks it against roots. Its error is an *Error. Parts are compiled
// in their order, with a glance at what follows, and each hole is its own expression. Only then
// is known whether anything was read. That is why the error about one key comes last: a mistake
// in a hole is worth more to its author.
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
	t := &Template{program: run.Program{Text: text}}
	var asks []part // the first hole that reads something
	for i, p := range parts {
		if !p.hole {
			err = c.literal(&t.program, p)
		} else {
			err = c.hole(&t.program, p, follows(parts[i+1:]))
		}
		if err != nil {
			return nil, err
		}
		if len(asks) == 0 && len(c.used) > 0 {
			asks = append(asks, p)
		}
	}
	// Holes may come to nothing at start, as #{"" + ""} does. The empty key is one that all guards have
	// in common, which OneKey does not ask for.
	if len(t.program.Parts)+len(t.program.Items) == 0 {
		return nil, errAt(text, 0, "makes an empty key")
	}
	t.program.Roots, t.program.Raw, t.program.Fields = c.used, c.raw, c.fields
	if run.OneKey(c.key) && !cfg.oneKey {
		return nil, lookAlike(text, parts, roots, asks)
	}
	t.program.Finish()
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

// follows returns what the literal behind a hole begins with. A literal is never empty. So one
// rune is enough to know what a value must not have in it.
func follows(rest []part) []rune {
	if len(rest) == 0 {
		return nil
	}
	r, _ := utf8.DecodeRuneInString(rest[0].text)
	return []rune{r}
}

// literal joins what scanning has cut: a hash tag, or the mark of a digest, may lie across two
// pieces. A piece in front of it may come from a hole, as #{"a" + req.ID + ":"} ends in a
// literal. It must be one literal for Match, and for the rules about % as well.
func (c *compilation) literal(p *run.Program, lit part) error {
	if err := c.checkTag(lit); err != nil {
		return err
	}
	if err := c.checkUnread(lit); err != nil {
		return err
	}
	addPart(p, run.Part{Text: lit.text})
	return c.checkDigest(p.Parts[len(p.Parts)-1:])
}

// hole compiles a hole into values of the key, or into the items that make one each. A hole of a
// list type makes several keys. There can be one such hole: with two, the keys would be all
// pairs, of which a request with a thousand lines and a thousand tags makes a million.
func (c *compilation) hole(p *run.Program, h part, follow []rune) (err error) {
	defer c.gaveUp(&err)
	node, err := c.tree(h.text, h.off)
	if err != nil {
		return err
	}
	if err := c.checkTexts(node); err != nil {
		return err
	}
	if _, ok := c.elemOf(node); ok {
		// The list is found by its static type. One of any makes a value that is refused for each request,
		// as a key must not become several because a client has sent an array.
		if len(p.Items) > 0 {
			return errAt(c.text, h.off, "a second list: a template makes a key of each element of one")
		}
		p.At = len(p.Parts)
		if p.Items, err = c.sources(node, follow); err != nil {
			return err
		}
		if len(p.Items) == 0 {
			return errAt(c.text, h.off, "an empty list makes no key")
		}
		c.key = append(c.key, setOf(c.keys)...)
		for _, it := range p.Items {
			if err := cmp.Or(c.checkDigest(it.Item), c.checkPercent(p.Parts, follow, it.Item)); err != nil {
				return err
			}
		}
		return nil
	}
	parts, err := c.partsOf(node, follow, run.Before)
	if err != nil {
		return err
	}
	if err := c.checkPercent(p.Parts, follow, parts); err != nil {
		return err
	}
	for _, part := range parts {
		addPart(p, part)
	}
	return c.checkDigest(p.Parts)
}

// addPart joins a literal to one in front of it, but not across a list: what stands behind the
// elements is a literal of its own, as they are put in between.
func addPart(p *run.Program, part run.Part) {
	if n := len(p.Parts); part.Literal() && n > 0 && p.Parts[n-1].Literal() && p.At != n {
		p.Parts[n-1].Text += part.Text
		return
	}
	p.Parts = append(p.Parts, part)
}

// checkPercent refuses a % next to a value: behind it, it would look like an escape, and before
// it like a digest. Whoever reads a key finds escapes by their %, and a digest by its %~. These
// are the two rules that keep both from appearing by accident, at the two ends of a value.
func (c *compilation) checkPercent(before []run.Part, follow []rune, hole []run.Part) error {
	if n := len(hole); n > 0 && (hole[n-1].Escape != nil || hole[n-1].Join != nil) && slices.Contains(follow, '%') {
		return errAt(c.text, c.off+len(c.src)+1, "a %% behind a hole would look like an escape: put another literal between them")
	}
	if n := len(before); n > 0 && before[n-1].Literal() && strings.HasSuffix(before[n-1].Text, "%") && len(hole) > 0 && !hole[0].Literal() {
		return errAt(c.text, c.off-2, "a %% in front of a hole could look like the digest of a long key: put another literal between them")
	}
	return nil
}

// checkDigest refuses literals that could make a short key look like one with a digest. The rule
// is on the literals of a template since nothing else can make the mark: in a value, two hex
// digits follow each %. Without it, somebody who can choose an id of 512 bytes could aim at the
// key of another request.
func (c *compilation) checkDigest(parts []run.Part) error {
	for i, p := range parts {
		if strings.Contains(p.Text, run.DigestMark) {
			return errAt(c.text, max(strings.Index(c.text, run.DigestMark), 0), "%s marks the digest of a long key, and can't be in a literal", run.DigestMark)
		}
		if p.Literal() && strings.HasSuffix(p.Text, "%") && i+1 < len(parts) && !parts[i+1].Literal() {
			return errAt(c.text, c.off, "a %% in front of a value could look like the digest of a long key: put another text between them")
		}
		if p.Join != nil {
			if err := c.checkDigest(append(slices.Clone(p.Join.Item), run.Part{Text: p.Text})); err != nil {
				return err
			}
			if strings.HasSuffix(p.Text, "%") {
				return errAt(c.text, c.off, "a %% in front of a value could look like the digest of a long key: put another text between them")
			}
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

// Expand returns the keys that the template stands for: one, or for a template with a hole of
// list type one an element, sorted and distinct. ctx is for users' own functions. An error
// matches ErrValue if the request is to blame, and the error of facts or of a user's function
// otherwise. Facts are asked for in the order in which the template needs them, so that a body
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
// those of a join one by one. ok is false for what is no key of this template, or can't be read
// back: a key that was shortened, and one with raw. It is for tools that list the locks in Redis
// and ask whose they are, and for tests: a key that can be read back to other facts than those
// that it was made of would have been another request's key.
func (t *Template) Match(key string) (values []string, ok bool) { return t.program.Match(key) }

// Roots returns the names of the roots that the template uses, sorted.
func (t *Template) Roots() []string { return rootNames(t.program.Roots) }

// Fields returns what the template reads of each root, in Go's spelling and sorted, such as
// req.OrderID and header.Tenant.
func (t *Template) Fields() []string { return slices.Clone(t.program.Fields) }

// String returns the text of the template.
func (t *Template) String() string { return t.program.Text }

// Shape shows what the keys look like, with the type of each value: order:<string>:<int64>. A
// list template has the shape of one of its keys. Types are spelt as they are in Go, but for
// named ones that are spelt by what they are made of: a <string> says more about a key than a
// <Tenant>.
func (t *Template) Shape() string {
	var b strings.Builder
	p := &t.program
	if len(p.Items) == 0 {
		writeShape(&b, p.Parts)
		return b.String()
	}
	writeShape(&b, p.Parts[:p.At])
	writeShape(&b, p.Items[0].Item)
	writeShape(&b, p.Parts[p.At:])
	return b.String()
}

// items compiles a list whose elements are values of their own. The same function serves the
// list of a join and the list that makes keys: what differs is what follows each of their
// values. in is what is known of each of them, and c.key has its parts at the end.
func (c *compilation) items(list, body ast.Node, follow []rune, escape func([]rune) *run.Escape) (it *run.Items, in run.Insight, err error) {
	x, err := c.compile(list)
	if err != nil {
		return nil, in, err
	}
	it = &run.Items{Src: strings.TrimSpace(c.src), List: x.asList()}
	if body == nil {
		it.Item, err = c.elements(list, escape(follow))
		in = c.spelt(c.element(list))
		c.key = append(c.key, in)
		return it, in, err
	}
	in, err = c.inLoop(list, func() error {
		it.Item, err = c.partsOf(body, follow, escape)
		return err
	})
	return it, in, err
}

// elements are the parts that an element of a list is made of: itself. The type of the elements
// is checked once, at start. Where it is not known, each element is.
func (c *compilation) elements(list ast.Node, e *run.Escape) ([]run.Part, error) {
	t, ok := c.elemOf(list)
	if ok && t != nil {
		if why := run.Refusal(t); why != "" {
			return nil, errAt(c.text, c.off, "%s is a list; each element %s", c.source(list), why)
		}
	}
	return []run.Part{{Src: strings.TrimSpace(c.src), Type: t, Path: &run.Path{Elem: true}, Leaf: run.LeafOf(t), Escape: e}}, nil
}

// sources takes apart a list that makes a key of each element. Keys are sorted and distinct
// anyhow. Functions that change only the order of the elements, or leave out equal ones, make no
// difference to a set of keys and are left out. So the elements behind them are still taken
// apart, and escaped as those of the bare list: sort(map(…)) and map(…) make the same keys.
func (c *compilation) sources(n ast.Node, follow []rune) ([]run.Items, error) {
	switch n := n.(type) {
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok && name.Value == "uniq" {
			return c.sources(n.Arguments[0], follow)
		}
		if c.isRaw(n) {
			return c.rawItems(n.Arguments[0])
		}
	// A list that is written out becomes single values, each with its own escapes. As a list of any it
	// would be rendered by the types of its elements, for each request anew.
	case *ast.ArrayNode:
		var all []run.Items
		for _, e := range n.Nodes {
			before := len(c.key)
			parts, err := c.partsOf(e, follow, run.Before)
			if err != nil {
				return nil, err
			}
			differ := slices.ContainsFunc(c.key[before:], func(in run.Insight) bool { return in.Differs })
			c.keys, c.key = append(c.keys, keys{slices.Clone(c.key[before:]), differ, !differ}), c.key[:before]
			all = append(all, run.Items{Src: strings.TrimSpace(c.src), Item: parts})
		}
		return all, nil
	case *ast.BuiltinNode:
		switch {
		case n.Name == "concat":
			var all []run.Items
			for _, l := range n.Arguments {
				items, err := c.sources(l, follow)
				if err != nil {
					return nil, err
				}
				all = append(all, items...)
			}
			return all, nil
		case n.Name == "reverse", n.Name == "sort" && len(n.Arguments) == 1:
			return c.sources(n.Arguments[0], follow)
		case n.Name == "map":
			body := n.Arguments[1].(*ast.PredicateNode).Node
			return c.eachKey(n.Arguments[0], body, follow, run.Before)
		}
	}
	return c.eachKey(n, nil, follow, run.Before)
}

// rawItems are the elements of a list that is not escaped, all through.
func (c *compilation) rawItems(list ast.Node) ([]run.Items, error) {
	c.raw = true
	c.plain++
	defer func() { c.plain-- }()
	return c.eachKey(list, nil, nil, asItIs)
}
