package guard

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// tagName is the key of struct tags: `guard:"order:#{req.OrderID}; wait=2s"`.
const tagName = "guard"

// lookupTag returns the guard tag of f. A tag that package reflect can't read is an error, as it would silently leave
// something unguarded.
func lookupTag(f reflect.StructField) (tag string, ok bool, err error) {
	tag, ok = f.Tag.Lookup(tagName)
	if !ok && misread(string(f.Tag)) {
		return "", false, fmt.Errorf("malformed struct tag %q, want guard:\"...\" behind a blank", f.Tag)
	}
	return tag, ok, nil
}

var tagPair = regexp.MustCompile(`^ *([^ ":]+):"(?:[^"\\]|\\.)*"`)

// misread reports whether package reflect overlooks a guard tag: behind a comma, which it takes for a part of the name, or
// behind a mistake.
func misread(tag string) bool {
	for {
		pair := tagPair.FindStringSubmatch(tag)
		if pair == nil {
			return strings.Contains(tag, tagName+":")
		}
		if strings.Trim(pair[1], ",;") == tagName {
			return true
		}
		tag = tag[len(pair[0]):]
	}
}

// parseTag reads the text of a Spec:
//
//	spec      = [template] {";" attribute}
//	attribute = name "=" value | flag
//	value     = text up to a semicolon, or a quoted string of Go
//
// A semicolon in a hole of the template, or in the quotes and brackets of a template or condition, belongs to it.
func parseTag(tag string) (Spec, error) {
	t := tagParser{tag: tag}
	if key := strings.TrimSpace(t.literal()); key != "" {
		t.spec.Key, t.set = key, fieldKey
	}
	key := t.spec.Key
	if at := lostAttribute.FindStringSubmatchIndex(key); at != nil && !strings.HasSuffix(key[:at[0]], ";") {
		return Spec{}, t.errorf(strings.Index(tag, key)+at[0], "attributes follow a semicolon, not a %s: write ; %s",
			map[byte]string{',': "comma", ' ': "blank"}[key[at[0]]], key[max(at[2], at[4]):])
	}
	for t.pos < len(tag) {
		t.pos++ // past the semicolon
		if err := t.attribute(); err != nil {
			return Spec{}, err
		}
	}
	t.spec.imply()
	return t.spec, nil
}

// lostAttribute finds an attribute that became a part of the template: order:7 wait=2s would be the key, and nobody waits.
// Behind a comma it is one in any spelling, as other tags have commas; behind a blank it must have a value.
var lostAttribute = func() *regexp.Regexp {
	names := `(?:` + strings.Join(attributeNames, "|") + `)`
	return regexp.MustCompile(`, *(` + names + ` *(?:=|$|[;,]))| (` + names + ` *=(?:[^=]|$))`)
}()

// tagParser reads a tag from left to right.
type tagParser struct {
	tag  string
	pos  int
	spec Spec
	set  fields
}

func (t *tagParser) errorf(offset int, format string, args ...any) error {
	return fmt.Errorf("tag %q: %s (at offset %d)", t.tag, fmt.Sprintf(format, args...), offset)
}

// attribute reads "name=value" up to a semicolon or the end.
func (t *tagParser) attribute() error {
	t.space()
	start := t.pos
	if t.pos == len(t.tag) || t.tag[t.pos] == ';' {
		return t.errorf(start, "nothing between semicolons or behind the last one")
	}
	end := start + strings.IndexAny(t.tag[start:]+";", "=;")
	name := strings.TrimSpace(t.tag[start:end])
	a, err := findAttribute(name)
	switch {
	case err != nil:
		return t.errorf(start, "%v", err)
	case t.set&a.field != 0:
		return t.errorf(start, "attribute %s is given twice", name)
	}
	t.set |= a.field
	hasValue := end < len(t.tag) && t.tag[end] == '='
	if a.style == flag && hasValue {
		return t.errorf(start, "attribute %s has no value, write it alone", name)
	}
	if a.style == flag {
		t.pos = end
		return a.parse(&t.spec, "true")
	}
	t.pos = min(end+1, len(t.tag))
	t.space()
	at := t.pos
	value := strings.TrimSpace(t.value(a.style))
	if !hasValue || value == "" {
		return t.errorf(start, "attribute %s has no value, write %s=...", name, name)
	}
	if err := t.parse(a, value); err != nil {
		return t.errorf(at, "%v", err)
	}
	return nil
}

// parse sets the field of a from its text, which may stand in quotes.
func (t *tagParser) parse(a attr, text string) error {
	if quoted, err := strconv.Unquote(text); err == nil && text[0] == '"' {
		text = quoted
	}
	var one Spec
	err := a.parse(&one, text)
	if err == nil {
		t.spec.merge(one, a.field)
	}
	return err
}

func (t *tagParser) space() {
	for t.pos < len(t.tag) && t.tag[t.pos] == ' ' {
		t.pos++
	}
}

// value reads the value of an attribute, up to a semicolon that does not belong to it.
func (t *tagParser) value(s style) string {
	start := t.pos
	if s == code {
		t.expression(';')
		return t.tag[start:t.pos]
	}
	if start < len(t.tag) && t.tag[start] == '"' {
		t.quoted('"')
	}
	if i := strings.IndexByte(t.tag[t.pos:], ';'); i >= 0 {
		t.pos += i
	} else {
		t.pos = len(t.tag)
	}
	return t.tag[start:t.pos]
}

// literal reads a template up to a semicolon outside of its holes.
func (t *tagParser) literal() string {
	for t.pos < len(t.tag) && t.tag[t.pos] != ';' {
		switch rest := t.tag[t.pos:]; {
		case strings.HasPrefix(rest, "##{"):
			t.pos += len("##{")
		case strings.HasPrefix(rest, "#{"):
			t.pos += len("#{")
			t.expression('}')
		default:
			t.pos++
		}
	}
	return t.tag[:t.pos]
}

// expression reads up to end, where it is neither quoted nor in brackets. An expression without an end takes all of the
// tag, and is then for package keyexpr to complain about.
func (t *tagParser) expression(end byte) {
	depth := 0
	for t.pos < len(t.tag) {
		c := t.tag[t.pos]
		switch {
		case c == end && depth == 0:
			return
		case strings.IndexByte(`'"`+"`", c) >= 0:
			t.quoted(c)
			continue
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		}
		t.pos++
	}
}

// quoted reads a string in an expression, from its opening quote to behind its closing one.
func (t *tagParser) quoted(quote byte) {
	for t.pos++; t.pos < len(t.tag); t.pos++ {
		switch c := t.tag[t.pos]; {
		case c == quote:
			t.pos++
			return
		case c == '\\' && quote != '`':
			t.pos++
		}
	}
	t.pos = len(t.tag) // a backslash at the very end steps over it
}
