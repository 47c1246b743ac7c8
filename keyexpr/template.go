package keyexpr

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/parser"
)

// Template is a parsed key template. It is immutable and safe for concurrent use.
type Template struct {
	text   string
	parts  []piece
	used   []usedRoot
	fields []string
	plain  bool // all holes are paths, from few roots
}

// piece is a literal or a hole with all that is known of it at start.
type piece struct {
	lit   string
	hole  *expression // nil for a literal
	delim rune        // the first of the literal behind the hole; 0 at the end of the template
}

// Parse parses text and type-checks it against roots. Its error is an *Error.
func Parse(text string, roots Roots, opts ...Option) (*Template, error) {
	parts, err := scan(text)
	if err != nil {
		return nil, err
	}
	c, err := newCompilation(text, roots, false, opts)
	if err != nil {
		return nil, err
	}
	t := &Template{text: text, parts: make([]piece, len(parts))}
	for i, p := range parts {
		if !p.hole {
			t.parts[i].lit = p.text
			continue
		}
		if t.parts[i].hole, err = c.compile(p.text, p.off); err != nil {
			return nil, err
		}
		if err := c.checkHole(t.parts[i].hole, p.off, len(parts) == 1); err != nil {
			return nil, err
		}
		if i+1 < len(parts) {
			t.parts[i].delim, _ = utf8.DecodeRuneInString(parts[i+1].text)
		}
		if t.parts[i].delim == '%' && t.parts[i].hole.typ != rawType {
			return nil, errAt(text, parts[i+1].off, "a %% behind a hole would look like an escape: put another literal between them")
		}
	}
	t.used, t.fields = c.used, c.fields
	t.plain = len(t.used) <= maxSlots && !slices.ContainsFunc(t.parts, func(p piece) bool {
		return p.hole != nil && (p.hole.path == nil || p.hole.elem != nil)
	})
	return t, nil
}

// checkHole refuses holes that can't be part of a key.
func (c *compilation) checkHole(x *expression, off int, alone bool) error {
	if x.nothing {
		return errAt(c.text, off, "nil makes no key")
	}
	if x.typ == nil {
		return nil
	}
	why := refusal(x.typ)
	if x.elem != nil && alone {
		why = ""
		if *x.elem != nil {
			why = refusal(*x.elem)
		}
		if why != "" {
			why = "is a list; each element " + why
		}
	}
	if why != "" {
		return errAt(c.text, off, "%s %s", abridge(strings.TrimSpace(x.src)), why)
	}
	return nil
}

// Check parses the syntax of text only: holes are closed and each is an expression. Its error is an *Error.
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

// checkSyntax parses one expression.
func checkSyntax(text, src string, off int, cond bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errAt(text, off, "the expression engine gives up: %v", r)
		}
	}()
	c := &compilation{text: text, src: src, off: off, cond: cond}
	c.conf = c.newConf()
	if _, err := parser.ParseWithConfig(hideOr(src), c.conf); err != nil {
		return c.engineError(err)
	}
	return nil
}

// Roots returns the names of the roots that the template uses, sorted.
func (t *Template) Roots() []string { return rootNames(t.used) }

func rootNames(used []usedRoot) []string {
	names := make([]string, len(used))
	for i, r := range used {
		names[i] = r.name
	}
	slices.Sort(names)
	return names
}

// String returns the text of the template.
func (t *Template) String() string { return t.text }
