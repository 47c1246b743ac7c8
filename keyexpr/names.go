package keyexpr

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Unknown names get a sentence: the nearest name, the name's meaning elsewhere, or the names that there
// are.

// otherNames has the names that functions of other languages have, and the text to write here.
var otherNames = func() map[string]string {
	names := map[string]string{}
	for write, of := range map[string]string{
		"lower(x)":                       "tolower tolowercase lowercase",
		"upper(x)":                       "toupper touppercase uppercase",
		"trim(x)":                        "trimspace strip",
		"len(x)":                         "length size",
		"hash(x)":                        "md5 sha1 sha256 digest checksum tojson tobase64",
		`coalesce(x, "none")`:            "default ifnull or elvis",
		"string(x)":                      "str tostring itoa",
		`a startsWith "x"`:               "hasprefix startswith",
		`a endsWith "x"`:                 "hassuffix endswith",
		`a contains "x", or "x" in list`: "contains includes indexof",
		"text outside of holes":          "sprintf format concat",
		`fmtTime(x, "2006-01-02")`:       "formattime date",
		"key(a, b), or a list as a hole of its own, or hash(list)": "join",
		"first(filter(list, …))":                                   "find",
		"len(filter(list, …))":                                     "count",
		"not any(list, …)":                                         "none",
	} {
		for name := range strings.FieldsSeq(of) {
			names[name] = write
		}
	}
	return names
}()

var (
	java   = regexp.MustCompile(`#[\pL_][\pL_\d]*`)
	assign = regexp.MustCompile(`[^=!<>]=(?:[^=]|$)`)
	orCall = regexp.MustCompile(`(?:^|[(\[,|?:]|\b(?:and|or|not)\b|&&|\|\|)\s*or\s*\(`)
)

// foreign finds a part of another language in a source that is no expression.
func foreign(src string) (at int, why string) {
	if m := orCall.FindStringIndex(src); m != nil {
		return m[1] - len("or("), "or is for true and false: the first of several that is not empty is coalesce(a, b)"
	}
	if m := assign.FindStringIndex(src); m != nil {
		return m[0] + 1, "nothing is assigned here, and == compares"
	}
	if m := java.FindStringIndex(src); m != nil {
		return m[0], "names have no # here: write " + src[m[0]+1:m[1]] + "; a key in Java's language goes through package spel"
	}
	return 0, ""
}

func foldName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// unknownName shows the roots, as there are only a few.
func (c *compilation) unknownName(x *ast.IdentifierNode) {
	if c.elem != nil && c.elem.t != nil && slices.Contains(fieldNames(pointee(c.elem.t)), x.Value) {
		c.fail(x, "unknown name %s: write .%s for that of the element", x.Value, x.Value)
	}
	if path, ok := c.inReach(x.Value); ok {
		c.fail(x, "unknown name %s: write %s", x.Value, path)
	}
	if slices.Contains(c.functionNames(), x.Value) {
		c.fail(x, "%s is a function: call it", x.Value)
	}
	c.fail(x, "unknown name %s%s", x.Value, suggest.Ending(x.Value, slices.Collect(maps.Keys(c.roots))))
}

// unknownMember is about a name that a value does not have.
func (c *compilation) unknownMember(t typ, l *link, by any) {
	at := l.at.Property
	name, named := by.(string)
	of := deref(t.t)
	if named && (l.call || of == nil || of.Kind() != reflect.Struct) {
		if why := c.otherLanguages(l.at, name); why != "" {
			c.fail(at, "%s", why)
		}
	}
	_, list := t.elemType()
	switch {
	case !named || of == nil && !list:
		c.fail(at, "%s has no elements", l.src)
	case list:
		c.fail(at, "%s is a list: write map(%s, .%s), or %s[0].%s for one element", l.src, l.src, name, l.src, name)
	case l.call && !hasMethod(t.t, name):
		c.fail(at, "unknown method %s of %s%s", name, typeName(of), suggest.Ending(name, methodNames(t.t)))
	case !l.call && hasMethod(t.t, name):
		c.fail(at, "%s of %s is a method: write %s.%s()", name, typeName(of), l.src, name)
	case of.Kind() == reflect.Struct:
		if f, ok := of.FieldByName(name); ok && !f.IsExported() {
			c.fail(at, "field %s of %s is not exported: nothing outside of its package can read it", name, typeName(of))
		}
		c.fail(at, "unknown field %s of %s%s", name, typeName(of), suggest.Ending(name, fieldNames(of)))
	case of.Kind() == reflect.Interface:
		c.fail(at, "%s is an interface, %v: what is in it is not known at start; a getter of a message can be read", l.src, of)
	case of.Kind() == reflect.Map:
		c.fail(at, "%v has no text for a key", of)
	}
	c.fail(at, "%s has no fields: it is of type %v", l.src, of)
}

// otherLanguages is about a method of texts and lists elsewhere, which is a function or an operator here.
func (c *compilation) otherLanguages(m *ast.MemberNode, name string) string {
	of := c.source(m.Node)
	if slices.Contains(c.functionNames(), name) {
		return fmt.Sprintf("%s is a function, no method: write %s(%s)", name, name, of)
	}
	if write := otherNames[foldName(name)]; write != "" {
		return fmt.Sprintf("%s has no %s: write %s", of, name, write)
	}
	return ""
}

// methodNames include those that a key could not call, as the name is the question.
func methodNames(t reflect.Type) (names []string) {
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		t = run.PointerTo(t)
	}
	for m := range t.Methods() {
		names = append(names, m.Name)
	}
	return names
}

func fieldNames(t reflect.Type) (names []string) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		if f.IsExported() && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// isName reports whether the engine reads s as the name of a function.
func isName(s string) bool {
	tree, err := parser.Parse(s + "()")
	if err != nil || s[0] == '$' {
		return false
	}
	call, ok := tree.Node.(*ast.CallNode)
	return ok && calls(call, s)
}
