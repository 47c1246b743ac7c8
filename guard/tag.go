package guard

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/latchkey-go/latchkey/internal/suggest"
)

// tagName is the key of struct tags: `guard:"order:#{req.OrderID}; wait=2s"`.
const tagName = "guard"

// lookupTag returns the guard tag of f. A tag that package reflect can't read, or has another name by a slip, is an error, as
// it would silently leave something unguarded.
func lookupTag(f reflect.StructField) (tag string, ok bool, err error) {
	if err := checkTags(string(f.Tag)); err != nil {
		return "", false, err
	}
	tag, ok = f.Tag.Lookup(tagName)
	return tag, ok, nil
}

// tagPair matches a pair as package reflect reads it.
var tagPair = regexp.MustCompile(`(?s)^ *([^\x00-\x20":\x7f]+):("(?:[^"\\]|\\.)*")`)

// checkTags reports a guard tag that package reflect overlooks: behind a comma, which it takes for a part of the name, behind
// a mistake, behind another one, with a string that is none, or under a name that is nearly the right one.
func checkTags(tags string) error {
	given := false
	for rest := tags; ; {
		pair := tagPair.FindStringSubmatch(rest)
		if pair == nil && !strings.Contains(strings.ToLower(rest), tagName) {
			return nil
		}
		if pair == nil || pair[1] != tagName && slices.Contains(words(pair[1]), tagName) {
			return fmt.Errorf("malformed struct tag %q, want guard:\"...\" behind a blank", tags)
		}
		switch name, value := pair[1], pair[2]; {
		case name == tagName && given:
			return fmt.Errorf("two guard tags in %q: write one, with semicolons between its parts", tags)
		case name != tagName && nearTag(strings.ToLower(name)):
			return fmt.Errorf("tag %s:\"...\" is nobody's: write guard:\"...\"", name)
		case name == tagName && !isString(value):
			return fmt.Errorf("guard tag %s is no string of Go: a backslash is written as two", value)
		default:
			given = given || name == tagName
		}
		rest = rest[len(pair[0]):]
	}
}

// words returns the words of a tag's name. They are separated by characters that nobody means as a part of a name, such
// as a comma or an invisible one.
func words(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./", r)
	})
}

// nearTag reports whether name, in small letters, is a slip for the name of our tags. A guardian is somebody else's.
func nearTag(name string) bool {
	return strings.HasPrefix(name, tagName) && !strings.HasPrefix(name, tagName+"ian") || suggest.Distance(name, tagName) <= 1
}

// isString reports whether text is a string of Go. Package reflect takes a tag with another one for none.
func isString(text string) bool {
	_, err := strconv.Unquote(text)
	return err == nil
}

// parseTag reads the text of a Spec:
//
//	spec      = [template] {";" attribute}
//	attribute = name "=" value | flag
//	value     = text up to a semicolon, or a quoted string of Go
//
// A semicolon in a hole of the template, or in the quotes and brackets of a template, condition or expression, belongs to it.
func parseTag(tag string) (Spec, error) {
	t := tagParser{text: tag, stops: ";"}
	template, bare := t.literal()
	if key := strings.TrimSpace(template); key != "" {
		t.spec.Key, t.set = key, fieldKey
	}
	if err := t.lostAttribute(bare, template, 0); err != nil {
		return Spec{}, err
	}
	if err := t.firstAttribute(); err != nil {
		return Spec{}, err
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

// tagParser reads a text from left to right.
type tagParser struct {
	text  string
	stops string // what ends an attribute
	guard string // in a text about many
	pos   int
	spec  Spec
	set   fields
}

func (t *tagParser) errorf(offset int, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if t.guard != "" {
		line, column := position(t.text, offset)
		return fmt.Errorf("guard %q: %s (line %d, column %d)", t.guard, what, line, column)
	}
	return fmt.Errorf("tag %q: %s (at offset %d)", t.text, what, offset)
}

// lostAttribute reports an attribute that became a part of the value before it, which is source at offset. A name with a slip is an attribute, too.
func (t *tagParser) lostAttribute(text, source string, offset int) error {
	switch lost, found := findStray(text, source, true); {
	case !found:
		return nil
	case lost.write == "":
		return t.errorf(offset+lost.at, "%s is no attribute, and would be a part of the text before it", strings.TrimSuffix(lost.name, "="))
	default:
		return t.errorf(offset+lost.at, "attributes follow a semicolon, not %s: write ; %s", lost.separator, lost.write)
	}
}

// firstAttribute reports an attribute that stands where the template should: "key=order:7" would be one itself.
func (t *tagParser) firstAttribute() error {
	name, value, ok := strings.Cut(t.spec.Key, "=")
	switch name = strings.TrimSpace(name); {
	case !ok || !slices.Contains(attributeNames, name):
		return nil
	case name == "key":
		return t.errorf(0, "the template stands first, without its name: write %s", strings.TrimSpace(value))
	}
	return t.errorf(0, "the template stands first, and attributes follow a semicolon: write ; %s=%s", name, strings.TrimSpace(value))
}

// attribute reads "name=value" up to a semicolon or the end.
func (t *tagParser) attribute() error {
	t.space()
	start := t.pos
	if t.stopped() {
		return t.errorf(start, "nothing between semicolons or behind the last one")
	}
	end := start + strings.IndexAny(t.text[start:]+";", "="+t.stops)
	name := strings.TrimSpace(t.text[start:end])
	a, err := findAttribute(name)
	switch {
	case err != nil:
		return t.errorf(start, "%v", err)
	case t.set&a.field != 0:
		return t.errorf(start, "attribute %s is given twice", name)
	}
	t.set |= a.field
	hasValue := end < len(t.text) && t.text[end] == '='
	if a.style == flag && hasValue {
		return t.errorf(start, "attribute %s has no value, write it alone", name)
	}
	if a.style == flag {
		t.pos = end
		return a.parse(&t.spec, "true")
	}
	t.pos = min(end+1, len(t.text))
	t.space()
	at := t.pos
	value := strings.TrimSpace(t.value(a.style))
	if !hasValue || value == "" {
		return t.errorf(start, "attribute %s has no value, write %s=...", name, name)
	}
	if a.field&(fieldName|fieldLevels) != 0 && !isString(value) {
		if err := t.lostAttribute(bareText(value), value, at); err != nil {
			return err
		}
	}
	if i := commentIn(value); a.field&(fieldKey|fieldLevels) != 0 && strings.Contains(t.stops, "\n") && i >= 0 {
		return t.errorf(at+i, "a comment would be a part of the key: it stands on a line of its own, and a key with a # like this in quotes")
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
	return a.set(&t.spec, text)
}

func (t *tagParser) space() {
	for t.pos < len(t.text) && strings.IndexByte(" \t\r", t.text[t.pos]) >= 0 {
		t.pos++
	}
}

// stopped reports whether an attribute ends here. The operator || of a condition ends none.
func (t *tagParser) stopped() bool {
	if t.pos == len(t.text) {
		return true
	}
	if c := t.text[t.pos]; c != '|' || strings.IndexByte(t.stops, '|') < 0 {
		return strings.IndexByte(t.stops, c) >= 0
	}
	return !strings.HasPrefix(t.text[t.pos:], "||") && (t.pos == 0 || t.text[t.pos-1] != '|')
}

// value reads the value of an attribute, up to where it ends.
func (t *tagParser) value(s style) string {
	start := t.pos
	if s == code || strings.HasPrefix(t.text[start:], "#{") {
		t.expression(0)
		return t.text[start:t.pos]
	}
	if start < len(t.text) && t.text[start] == '"' {
		t.quoted('"')
	}
	for !t.stopped() {
		t.pos++
	}
	return t.text[start:t.pos]
}

// literal reads a template up to a semicolon outside of its holes. bare is the same with dots for the holes.
func (t *tagParser) literal() (template, bare string) {
	var b strings.Builder
	from := t.pos
	for t.pos < len(t.text) && t.text[t.pos] != ';' {
		switch rest := t.text[t.pos:]; {
		case strings.HasPrefix(rest, "##{"):
			b.WriteString("...")
			t.pos += len("##{")
		case strings.HasPrefix(rest, "#{"):
			start := t.pos
			t.pos += len("#{")
			t.expression('}')
			b.WriteString(strings.Repeat(".", t.pos-start))
		default:
			b.WriteByte(rest[0])
			t.pos++
		}
	}
	return t.text[from:t.pos], b.String()
}

// expression reads up to end, or for 0 to the end of the attribute, where it is neither quoted nor in brackets. An
// expression without an end takes all of the text, and is then for package keyexpr to complain about.
func (t *tagParser) expression(end byte) {
	depth := 0
	for t.pos < len(t.text) {
		c := t.text[t.pos]
		switch {
		case depth == 0 && (c == end || end == 0 && t.stopped()):
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
	for t.pos++; t.pos < len(t.text); t.pos++ {
		switch c := t.text[t.pos]; {
		case c == quote:
			t.pos++
			return
		case c == '\\' && quote != '`':
			t.pos++
		}
	}
	t.pos = len(t.text) // a backslash at the very end steps over it
}
