package keyexpr

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// A template that reads no fact locks one key for the whole world. The rule is that alone, and
// needs no list of mistakes: what stands here only finds the sentence that fits one. Some
// mistakes are refused by themselves, as nobody means them: ${, {{, and braces without a
// partner. So is a path that could be read and stands in a text.

// What nobody has in a key: a verb of a format with nothing beside it that could make it
// a part of a word or a number, and a text in quotes with a + towards a hole.
var (
	format      = regexp.MustCompile(`(?:^|[^%\pL\d])(%[sdvq])(?:$|[^\pL\d])`)
	quotedFirst = regexp.MustCompile(`^\s*(?:'[^']*'|"[^"]*")\s*\+`)
	quotedLater = regexp.MustCompile(`^\s*\+\s*(?:'[^']*'|"[^"]*")`)
)

// checkForeign refuses literals that are formats, or expressions of another language with holes put into them. They start
// beside a hole that reads something, and are refused under OneKey, too, as braces without a partner are.
func checkForeign(text string, parts []part) error {
	for i, p := range parts {
		if p.hole {
			continue
		}
		if at := format.FindStringSubmatchIndex(p.text); at != nil {
			return errAt(text, place(text, p, at[2]), "%s is not filled in: write #{req.OrderID}", p.text[at[2]:at[3]])
		}
		if i == 0 && quotedFirst.MatchString(p.text) || i > 0 && quotedLater.MatchString(p.text) {
			return errAt(text, p.off, "%s", likeJava)
		}
	}
	return nil
}

const likeJava = "this looks like Java: give it to package spel, or write order:#{req.OrderID}"

// rootPath matches what would read something if it were in a hole: the name of a root, a first step, and further ones.
var rootPath = func() *regexp.Regexp {
	const step = `\??\.[\pL_][\pL\d_]*(?:\(\))?|\[(?:\d+|'[^']*'|"[^"]*")\]`
	return regexp.MustCompile(`([\pL_][\pL\d_]*)(` + step + `)(?:` + step + `)*`)
}()

// unread is a path that stands in a text. hole is what should stand there.
type unread struct {
	at                     int // in the text
	path, root, rest, hole string
}

// findUnread finds the first path in a text that could be read. Whatever stands around it, its
// author meant a hole: of the many ways to write one elsewhere, #[x], $x and <x> are only a few. A
// word that goes on in front of the root is another word, as in my-req.ID or com.acme.req.ID, and
// behind :// is a host. What a template begins with may be the name of a guard, order.settle:…, and
// counts only where the type of the root says that it is a path.
func (c *compilation) findUnread(s string, begins bool) (unread, bool) {
	for _, m := range rootPath.FindAllStringSubmatchIndex(s, -1) {
		before, _ := utf8.DecodeLastRuneInString(s[:m[0]])
		if unicode.In(before, unicode.L, unicode.M, unicode.N) || strings.ContainsRune(".-_", before) || strings.HasSuffix(s[:m[0]], "://") {
			continue
		}
		name := s[m[2]:m[3]]
		root, ok := c.roots[name]
		if begins && m[0] == 0 && root.of.Type == nil && !root.of.Closed {
			continue
		}
		if ok && root.mayHave(strings.Trim(s[m[4]:m[5]], `?.()[]'"`)) {
			return unread{at: m[0], path: s[m[0]:m[1]], root: name, rest: s[m[4]:m[1]], hole: meant(s, m[0], m[1])}, true
		}
	}
	return unread{}, false
}

// mayHave reports whether a root has something of that name, a number for an element, as far as is
// known. Where the type is known, most texts with a dot in them are told from paths by it.
func (r Root) mayHave(name string) bool {
	t := r.of.Type
	if r.of.Closed {
		return slices.Contains(r.of.Names, name)
	}
	if t == nil {
		return true
	}
	if _, ok := t.MethodByName(name); ok || hasField(t, name) {
		return true
	}
	if _, ok := run.Getter(t, name); ok {
		return true
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Map || t.Kind() == reflect.Interface || run.IsList(t) && strings.Trim(name, "0123456789") == ""
}

// meant is the hole for the path between two places of a text: of all that is in braces around it, if that is an expression.
func meant(s string, from, to int) string {
	for _, m := range tag.FindAllStringSubmatchIndex(s, -1) {
		if inner := s[m[2]:m[3]]; m[2] <= from && to <= m[3] && checkSyntax(inner, inner, 0, false) == nil {
			return "#{" + strings.TrimSpace(inner) + "}"
		}
	}
	return "#{" + s[from:to] + "}"
}

// split returns the two halves of the path, between which an author who means the text can put something.
func (u unread) split() (before, sign, after string) {
	sign = u.rest[:len(u.rest)-len(strings.TrimLeft(u.rest, "?.["))]
	return u.root, sign, u.rest[len(sign):]
}

// checkUnread refuses a literal with a path in it that could be read. A # in front of it is how Java names a parameter.
func (c *compilation) checkUnread(lit part) error {
	u, ok := c.findUnread(lit.text, lit.off == 0)
	if !ok {
		return nil
	}
	java := ""
	if strings.HasSuffix(lit.text[:u.at], "#") {
		java = "; a key in Java's language goes through package spel"
	}
	before, sign, after := u.split()
	return errAt(c.text, place(c.text, lit, u.at), `%s is not filled in: write %s%s; the text itself is written %s#{"%s"}%s`, u.path, u.hole, java, before, sign, after)
}

// checkTexts is checkUnread for the texts that a hole may come to. Texts that are compared, or that
// a function is told, are none of them: they are about values, and not in the place of one.
func (c *compilation) checkTexts(n ast.Node) error {
	var err error
	c.eachText(n, func(text *ast.StringNode) {
		if u, ok := c.findUnread(text.Value, false); ok && err == nil {
			before, sign, after := u.split()
			err = c.at(text, `%s is not filled in, as it is in quotes: write %s; the text itself is written %q + %q`, u.path, u.hole, before, sign+after)
		}
	})
	return err
}

// eachText calls do for each text that is written out and that n may come to, or be made of.
func (c *compilation) eachText(n ast.Node, do func(*ast.StringNode)) {
	for _, of := range c.madeOf(n) {
		c.eachText(of, do)
	}
	if text, ok := n.(*ast.StringNode); ok {
		do(text)
	}
}

// madeOf returns the nodes whose texts can be in that of n. Of the arguments of a function this is the first, but for or.
func (c *compilation) madeOf(n ast.Node) []ast.Node {
	switch n := n.(type) {
	case *ast.BinaryNode:
		if n.Operator == "+" || n.Operator == "??" {
			return []ast.Node{n.Left, n.Right}
		}
	case *ast.ConditionalNode:
		return []ast.Node{n.Exp1, n.Exp2}
	case *ast.ArrayNode:
		return n.Nodes
	case *ast.VariableDeclaratorNode:
		return []ast.Node{n.Expr}
	case *ast.PredicateNode:
		return []ast.Node{n.Node}
	case *ast.BuiltinNode:
		if t := c.typeOf(n); t != nil && (t.Kind() == reflect.Bool || t.Kind() == reflect.Int) { // it asks about its arguments
			return nil
		}
		if n.Name == "concat" || n.Name == "map" {
			return n.Arguments
		}
		return n.Arguments[:min(1, len(n.Arguments))]
	case *ast.CallNode:
		name, ok := n.Callee.(*ast.IdentifierNode)
		if ok && name.Value == orName {
			return n.Arguments
		}
		if ok && !c.isUsers(name.Value) {
			return n.Arguments[:min(1, len(n.Arguments))]
		}
	}
	return nil
}

// isUsers reports whether a function is the user's own, for which a text can be a name of its own.
func (c *compilation) isUsers(name string) bool {
	h, ok := c.hosts[name]
	return ok && h.user != nil
}

// mistakes are how a value is put into a text elsewhere. The order is from what is surely one to
// what might be. It decides only which sentence is shown. A text that none of them knows is
// refused all the same, since it is refused for reading nothing.
var mistakes = []struct {
	pattern *regexp.Regexp
	reason  string
}{
	{regexp.MustCompile(`##+\{`), "##{ is a literal #{: write #{…} for a hole"},
	{regexp.MustCompile(`# +\{`), "a hole is written #{…}, without a blank"},
	{regexp.MustCompile(`'\s*\+|\+\s*'|"\s*\+|\+\s*"`), likeJava},
	{regexp.MustCompile(`#\pL`), "a hole is written #{req.OrderID}; a key in Java's language goes through package spel"},
	{regexp.MustCompile(`\{[^{}]*\}`), "{…} is a hash tag, and no hole: write #{…}"},
	{regexp.MustCompile(`%[sdvq]`), "%s is not filled in: write #{req.OrderID}"},
	{regexp.MustCompile(`[/:]:\pL`), ":name is not filled in: write #{path.name}"},
}

// lookAlike is the error of a template that reads nothing of the request. The patterns look at
// literals alone. In an expression, + and quotes are what everybody writes.
func lookAlike(text string, parts []part, roots Roots, asks []part) error {
	rule := "all requests would share one key, as nothing of the request is read"
	if len(asks) > 0 {
		rule = "all requests would share one key, as nothing that is read of the request makes a difference"
	}
	literals := []byte(text) // with blanks for holes
	for _, p := range parts {
		for i := p.off - len("#{"); p.hole && i <= p.off+len(p.text); i++ {
			literals[i] = ' '
		}
	}
	for _, m := range mistakes {
		if at := m.pattern.FindIndex(literals); at != nil {
			return errAt(text, at[0], "%s: %s; OneKey (one-key in a tag) says that it is meant", rule, m.reason)
		}
	}
	for _, p := range append(asks, parts...) {
		if p.hole {
			return errAt(text, p.off, "%s: write something like #{req.OrderID}, from %s; OneKey (one-key in a tag) says that it is meant",
				rule, suggest.List(slices.Collect(maps.Keys(roots))))
		}
	}
	return errAt(text, 0, "%s: write something like order:#{req.OrderID}; OneKey (one-key in a tag) says that it is meant", rule)
}

// A tag has no braces in it, as Redis ends it at the first closing one.
var tag = regexp.MustCompile(`\{([^{}]*)\}`)

// checkTag refuses a hash tag whose text is a fact, or a field of one: somebody meant it to be a
// hole. It looks at all names in reach, and not only at those that the template uses: order:{id}
// is written by somebody who has not found out about holes. Who really wants a tag that is
// called like a field can call it otherwise; nobody needs it.
func (c *compilation) checkTag(lit part) error {
	for _, m := range tag.FindAllStringSubmatchIndex(lit.text, -1) {
		name := strings.TrimSpace(lit.text[m[2]:m[3]])
		hole, ok := c.inReach(name)
		if ok && strings.HasSuffix(lit.text[:m[0]], "#") {
			return errAt(c.text, place(c.text, lit, m[0])-2, "##{ is a literal #{, and %s could be read: write #{%s}", hole, hole)
		}
		if ok {
			return errAt(c.text, place(c.text, lit, m[0]), "{%s} is a hash tag, and %s could be read: write #{%s}", name, hole, hole)
		}
	}
	return nil
}

// inReach reports whether a name is a root, a path from one, or a field of one. The first
// element of a path decides, as the rest of it may be misspelt: {req.OrdreID} is meant to be a
// hole, too.
func (c *compilation) inReach(name string) (hole string, ok bool) {
	first, _, _ := strings.Cut(name, ".")
	if _, ok := c.roots[first]; ok {
		return name, true
	}
	for _, root := range slices.Sorted(maps.Keys(c.roots)) {
		of := c.roots[root].of
		if slices.Contains(of.Names, name) {
			return root + "." + name, true
		}
		if first != "" && hasField(of.Type, first) {
			return root + "." + name, true
		}
	}
	return "", false
}

// hasField reports whether t is a struct, or points to one, with a field that a path can name so.
func hasField(t reflect.Type, name string) bool {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return false
	}
	f, ok := t.FieldByName(name)
	return ok && f.IsExported() || len(run.Aliases(t, name)) > 0
}
