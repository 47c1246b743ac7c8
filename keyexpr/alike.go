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

// Look-alikes: literal text that was meant to be a hole. There is one rule for each. Nobody has them in a key, and so they are
// errors under OneKey, too.

var (
	// foreignHole is what other languages begin their holes with, at the place of a literal.
	foreignHole = regexp.MustCompile(`\$\{|\{\{|\{#[\pL_]|(?:^|[^%\pL\d])%[sdvq](?:$|[^\pL\d])`)
	fieldName   = regexp.MustCompile(`^[${.# ]*((?:[\pL_][\pL\d_]*\.)*[\pL_][\pL\d_]*)`)
	// concatenated is a text in quotes with a + beside it.
	concatenated = regexp.MustCompile(`^\s*(?:'[^']*'|"[^"]*")\s*\+|^\s*\+\s*(?:'[^']*'|"[^"]*")`)
	// rootPath is what would read something in a hole: the name of a root and further steps.
	rootPath  = regexp.MustCompile(`([\pL_][\pL\d_]*)(?:\??\.([\pL_][\pL\d_]*)(?:\(\))?|\[["']?([^\[\]"']*)["']?\])(?:\??\.[\pL_][\pL\d_]*(?:\(\))?|\[["']?[^\[\]"']*["']?\])*`)
	tag       = regexp.MustCompile(`\{\s*([\pL_][\pL\d_.?]*)\s*\}`)
	java      = regexp.MustCompile(`#[\pL_][\pL_\d]*`)
	colonName = regexp.MustCompile(`[/:]:\pL`)
	orCall    = regexp.MustCompile(`(?:^|[(\[,|?:]|\b(?:and|or|not)\b|&&|\|\|)\s*or\s*\(`)
)

const likeJava = "this looks like Java: give it to package spel, or write order:#{req.OrderID}"

// checkForeign refuses literals that are formats, or expressions of another language.
func checkForeign(text string, parts []part) error {
	for _, p := range parts {
		if p.hole {
			continue
		}
		if m := foreignHole.FindStringIndex(p.text); m != nil {
			found := strings.TrimLeftFunc(p.text[m[0]:], func(r rune) bool { return !strings.ContainsRune("${%", r) })
			hole, what := "#{req.OrderID}", found[:min(2, len(found))]
			if f := fieldName.FindStringSubmatch(found); f != nil && strings.Contains(f[1], ".") {
				hole = "#{" + f[1] + "}"
			} else if f != nil && found[0] != '%' {
				hole = "#{req." + f[1] + "}"
			}
			return errAt(text, place(text, p, len(p.text)-len(p.text[m[0]:])+strings.Index(p.text[m[0]:], found)), "%s is no hole, and not filled in: write %s", what, hole)
		}
		if concatenated.MatchString(p.text) {
			return errAt(text, p.off, "%s", likeJava)
		}
	}
	return nil
}

// checkAlike refuses a literal with a path in it that could be read, or a hash tag that is called like a fact. A word that
// goes on in front of the root is another word, and behind :// is a host. The beginning of a template may be the name of a
// guard, order.settle:…, and counts only where the root is known to have the name.
func (c *compilation) checkAlike(lit part) error {
	for _, m := range tag.FindAllStringSubmatchIndex(lit.text, -1) {
		if hole, ok := c.inReach(lit.text[m[2]:m[3]]); ok {
			return errAt(c.text, place(c.text, lit, m[0]), "{%s} is a hash tag, and %s could be read: write #{%s}", lit.text[m[2]:m[3]], hole, hole)
		}
	}
	at, path, root := c.unread(lit.text, lit.off == 0)
	if path == "" {
		return nil
	}
	hint := ""
	if strings.HasSuffix(lit.text[:at], "#") {
		hint = "; a key in Java's language goes through package spel"
	}
	rest := path[len(root):]
	return errAt(c.text, place(c.text, lit, at), `%s is not filled in: write #{%s}%s; the text itself is written %s#{"%s"}%s`,
		path, path, hint, root, rest[:1], rest[1:])
}

// unread finds the first path in a text that could be read.
func (c *compilation) unread(s string, begins bool) (at int, path, root string) {
	for _, m := range rootPath.FindAllStringSubmatchIndex(s, -1) {
		before, _ := utf8.DecodeLastRuneInString(s[:m[0]])
		if unicode.In(before, unicode.L, unicode.M, unicode.N) || strings.ContainsRune(".-_", before) || strings.HasSuffix(s[:m[0]], "://") {
			continue
		}
		r, ok := c.roots[s[m[2]:m[3]]]
		name := s[max(m[4], m[6]):max(m[5], m[7])]
		if ok && r.mayHave(name) && !(begins && m[0] == 0 && r.of.Type == nil && !r.of.Closed) {
			return m[0], s[m[0]:m[1]], s[m[2]:m[3]]
		}
	}
	return 0, "", ""
}

// checkQuoted is checkAlike for a hole that is a text in quotes.
func (c *compilation) checkQuoted(s *ast.StringNode) *Error {
	if _, path, root := c.unread(s.Value, false); path != "" {
		return errAt(c.text, c.place(s), `%s is not filled in, as it is in quotes: write #{%s}; the text itself is written %s#{"%s"}%s`,
			path, path, root, path[len(root):len(root)+1], path[len(root)+1:])
	}
	return nil
}

// mayHave reports whether a root has something of that name, a number for an element, as far as is known.
func (r Root) mayHave(name string) bool {
	t := r.of.Type
	if r.of.Closed {
		return slices.Contains(r.of.Names, name)
	}
	if t == nil || hasField(t, name) {
		return true
	}
	if _, ok := t.MethodByName(name); ok {
		return true
	}
	if _, ok := run.Getter(t, name); ok {
		return true
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Map || run.IsList(t) && strings.Trim(name, "0123456789") == ""
}

// inReach reports whether a name is a root, a path from one, or a field of one.
func (c *compilation) inReach(name string) (hole string, ok bool) {
	first, _, _ := strings.Cut(name, ".")
	if _, ok := c.roots[first]; ok {
		return name, true
	}
	for _, root := range slices.Sorted(maps.Keys(c.roots)) {
		if of := c.roots[root].of; slices.Contains(of.Names, name) || hasField(of.Type, first) {
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

// foreign finds what belongs to another language in a source that is no expression.
func foreign(src string) (at int, why string) {
	if m := orCall.FindStringIndex(src); m != nil {
		return m[1] - len("or("), "or is for true and false: the first of several that is not empty is coalesce(a, b)"
	}
	for _, m := range java.FindAllStringIndex(src, -1) {
		if name := src[m[0]+1 : m[1]]; name != "index" && name != "acc" {
			return m[0], "names have no # here: write " + name + "; a key in Java's language goes through package spel"
		}
	}
	return 0, ""
}

// lookAlike is the error of a template that names no fact.
func lookAlike(text string, parts []part, roots Roots) error {
	const rule = "all requests would share one key, as nothing of the request is read"
	const meant = "OneKey (one-key in a tag) says that it is meant"
	for _, p := range parts {
		if at := strings.IndexByte(p.text, '{'); !p.hole && at >= 0 && strings.Contains(p.text, "}") {
			return errAt(text, place(text, p, at), "%s: {…} is a hash tag, and no hole: write #{…}; %s", rule, meant)
		}
		if p.hole {
			return errAt(text, p.off, "%s: write something like #{req.OrderID}, from %s; %s", rule, suggest.List(slices.Collect(maps.Keys(roots))), meant)
		}
	}
	if at := colonName.FindStringIndex(text); at != nil {
		return errAt(text, at[0]+1, "%s: :name is not filled in: write #{path.name}; %s", rule, meant)
	}
	return errAt(text, 0, "%s: write something like order:#{req.OrderID}; %s", rule, meant)
}
