package keyexpr

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/internal/suggest"
)

// Look-alikes: literal text that was meant to be a hole. There is one rule for each. Nobody has them in a key, and so they are
// errors under OneKey, too.

var (
	// foreignHole matches the beginning of a hole in other languages, and the name in it.
	foreignHole = regexp.MustCompile(`(\$\{|\{\{|\{#)[ .#]*([\pL_][\pL\d_.]*)?|(?:^|[^%\pL\d])(%[sdvq])(?:$|[^\pL\d])`)
	// concatenated is a text in quotes with a + beside it.
	concatenated = regexp.MustCompile(`^\s*(?:'[^']*'|"[^"]*")\s*\+|^\s*\+\s*(?:'[^']*'|"[^"]*")`)
	// rootPath matches a text that could be a path: a name and further steps.
	rootPath = regexp.MustCompile(`([\pL_][\pL\d_]*)(?:\??\.[\pL_][\pL\d_]*(?:\(\))?|\[["']?[^\[\]"']*["']?\])+`)
	tag      = regexp.MustCompile(`\{\s*([\pL_][\pL\d_.?]*)\s*\}`)
)

// checkForeign refuses a literal that is a format, or an expression of another language.
func checkForeign(text string, p part) error {
	if concatenated.MatchString(p.text) {
		return errAt(text, p.at[0], "this looks like Java: give it to package spel, or write order:#{req.OrderID}")
	}
	m := foreignHole.FindStringSubmatchIndex(p.text)
	if m == nil {
		return nil
	}
	hole, from := "req.OrderID", max(m[2], m[6])
	found := p.text[from:max(m[3], m[7])]
	if braces := strings.Count(found, "{"); braces > 0 {
		found += "…" + strings.Repeat("}", braces)
	}
	if m[4] >= 0 {
		if hole = p.text[m[4]:m[5]]; !strings.Contains(hole, ".") {
			hole = "req." + hole
		}
	}
	return errAt(text, p.at[from], "%s is not filled in: write #{%s}", found, hole)
}

// checkAlike refuses a literal with a path in it that could be read, or a hash tag that is called like a fact.
func (c *compilation) checkAlike(lit part, begins bool) error {
	for _, m := range tag.FindAllStringSubmatchIndex(lit.text, -1) {
		if hole, ok := c.inReach(lit.text[m[2]:m[3]]); ok {
			return errAt(c.text, lit.at[m[0]], "{%s} is a hash tag, and %s could be read: write #{%s}", lit.text[m[2]:m[3]], hole, hole)
		}
	}
	at, path, root := c.unread(lit.text, begins)
	if path == "" {
		return nil
	}
	hint, rest := "", path[len(root):]
	if strings.HasSuffix(lit.text[:at], "#") {
		hint = "; a key in Java's language goes through package spel"
	}
	return errAt(c.text, lit.at[at], `%s is not filled in: write #{%s}%s; the text itself is written %s#{"%s"}%s`, path, path, hint, root, rest[:1], rest[1:])
}

// checkQuoted is checkAlike for a text in quotes in the place of a value.
func (c *compilation) checkQuoted(s *ast.StringNode) *Error {
	if _, path, root := c.unread(s.Value, false); path != "" {
		rest := path[len(root):]
		return errAt(c.text, c.place(s), `%s is not filled in, as it is in quotes: write #{%s}; the text itself is written %s#{"%s"}%s`, path, path, root, rest[:1], rest[1:])
	}
	return nil
}

// unread finds the first path in a text that could be read. A word that goes on in front of the root is another word, and behind
// :// is a host. The beginning of a template may be the name of a guard, order.settle:…, and counts only where the root is known
// to have the name.
func (c *compilation) unread(s string, begins bool) (at int, path, root string) {
	for _, m := range rootPath.FindAllStringSubmatchIndex(s, -1) {
		before, _ := utf8.DecodeLastRuneInString(s[:m[0]])
		if unicode.In(before, unicode.L, unicode.M, unicode.N) || strings.ContainsRune(".-_", before) || strings.HasSuffix(s[:m[0]], "://") {
			continue
		}
		path, root = s[m[0]:m[1]], s[m[2]:m[3]]
		if (c.known(root) || !begins || m[0] > 0) && c.readable(path) {
			return m[0], path, root
		}
	}
	return 0, "", ""
}

// known reports whether the names of a root are known.
func (c *compilation) known(root string) bool {
	of := c.roots[root].of
	return of.Type != nil || of.Closed
}

// readable reports whether a path could stand in a hole.
func (c *compilation) readable(path string) bool {
	was := *c
	defer func() { *c = was }()
	tree, err := c.parse(path, 0)
	if err == nil {
		_, err = c.resolve(tree, asPart)
	}
	return err == nil
}

// inReach returns the path of a root, or of something in one.
func (c *compilation) inReach(name string) (path string, ok bool) {
	root, _, _ := strings.Cut(name, ".")
	if _, ok := c.roots[root]; ok {
		return name, true
	}
	for _, root = range slices.Sorted(maps.Keys(c.roots)) {
		if c.known(root) && c.readable(root+"."+name) {
			return root + "." + name, true
		}
	}
	return "", false
}

// lookAlike is the error of a template that names no fact.
func lookAlike(text string, parts []part, roots Roots) error {
	const rule = "all requests would share one key, as nothing of the request is read"
	const meant = "OneKey (one-key in a tag) says that it is meant"
	for _, p := range parts {
		if at := strings.IndexByte(p.text, '{'); !p.hole && at >= 0 && strings.Contains(p.text, "}") {
			return errAt(text, p.at[at], "%s: {…} is a hash tag, and no hole: write #{…}; %s", rule, meant)
		}
		if p.hole {
			return errAt(text, p.off, "%s: write something like #{req.OrderID}, from %s; %s", rule, suggest.List(slices.Collect(maps.Keys(roots))), meant)
		}
	}
	return errAt(text, 0, "%s: write something like order:#{req.OrderID}; %s", rule, meant)
}
