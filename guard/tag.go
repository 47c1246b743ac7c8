package guard

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/lock"
)

// tagName is the key of struct tags: `guard:"order:#{req.OrderID}; wait=2s"`.
const tagName = "guard"

// attributes are the names that may follow the template in a tag.
var attributes = []string{"name", "when", "kind", "wait", "lease", "max-hold", "limit", "busy", "outage", oneKey}

// oneKey is the attribute that has no value.
const oneKey = "one-key"

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

// parseTag reads "<template>; name=value; ...". It returns a Spec and which of its fields the tag gives.
func parseTag(tag string) (Spec, fields, error) {
	t := tagParser{tag: tag}
	if t.spec.Key = strings.TrimSpace(t.literal()); t.spec.Key != "" {
		t.set |= fieldKey
	}
	if at := lostAttribute.FindStringSubmatchIndex(t.spec.Key); at != nil && !strings.HasSuffix(t.spec.Key[:at[0]], ";") {
		return Spec{}, 0, t.errorf(strings.Index(tag, t.spec.Key)+at[0], "attributes follow a semicolon, not a %s: write ; %s",
			map[byte]string{',': "comma", ' ': "blank"}[t.spec.Key[at[0]]], t.spec.Key[max(at[2], at[4]):])
	}
	for t.pos < len(tag) {
		t.pos++ // past the semicolon
		if err := t.attribute(); err != nil {
			return Spec{}, 0, err
		}
	}
	if t.set&fieldLimit != 0 && t.set&fieldKind == 0 {
		t.spec.Kind, t.set = lock.Permit, t.set|fieldKind
	}
	return t.spec, t.set, nil
}

// lostAttribute finds an attribute that became a part of the template: order:7 wait=2s would be the key, and nobody waits.
// Behind a comma it is one in any spelling, as other tags have commas; behind a blank it must have a value.
var lostAttribute = func() *regexp.Regexp {
	names := `(?:` + strings.Join(attributes, "|") + `)`
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
	if !slices.Contains(attributes, name) {
		return t.errorf(start, "unknown attribute %q%s", name, suggest.Ending(name, attributes))
	}
	t.pos = min(end+1, len(t.tag))
	if name == oneKey {
		return t.flag(start, end)
	}
	t.space()
	at := t.pos
	value := strings.TrimSpace(t.value(name))
	if value == "" || end == len(t.tag) || t.tag[end] == ';' {
		return t.errorf(start, "attribute %s has no value, write %s=...", name, name)
	}
	field, err := t.spec.setAttribute(name, value)
	if err != nil {
		return t.errorf(at, "%v", err)
	}
	if t.set&field != 0 {
		return t.errorf(start, "attribute %s is given twice", name)
	}
	t.set |= field
	return nil
}

// flag reads an attribute without a value.
func (t *tagParser) flag(start, end int) error {
	if end < len(t.tag) && t.tag[end] == '=' {
		return t.errorf(start, "attribute %s has no value, write it alone", oneKey)
	}
	t.pos = end
	t.spec.OneKey = true
	if t.set&fieldOneKey != 0 {
		return t.errorf(start, "attribute %s is given twice", oneKey)
	}
	t.set |= fieldOneKey
	return nil
}

func (t *tagParser) space() {
	for t.pos < len(t.tag) && t.tag[t.pos] == ' ' {
		t.pos++
	}
}

// value reads the value of an attribute. Only a condition can have a semicolon in it.
func (t *tagParser) value(name string) string {
	start := t.pos
	if name == "when" {
		t.expression(';')
	} else if i := strings.IndexByte(t.tag[start:], ';'); i >= 0 {
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

// setAttribute sets the field that an attribute of a tag stands for.
func (s *Spec) setAttribute(name, value string) (field fields, err error) {
	switch name {
	case "name":
		s.Name, field = value, fieldName
	case "when":
		s.When, field = value, fieldWhen
	case "kind":
		s.Kind, err = parseKind(value)
		field = fieldKind
	case "wait":
		s.Wait, err = parseWait(value)
		field = fieldWait
	case "lease":
		s.Lease, err = parseDuration(value)
		field = fieldLease
	case "max-hold":
		s.MaxHold, err = parseDuration(value)
		field = fieldMaxHold
	case "limit":
		s.Limit, err = parseLimit(value)
		field = fieldLimit
	case "busy":
		err, field = s.Busy.UnmarshalText([]byte(value)), fieldBusy
	case "outage":
		err, field = s.Outage.UnmarshalText([]byte(value)), fieldOutage
	}
	return field, err
}

func parseKind(value string) (lock.Kind, error) {
	var names []string
	for k := lock.Exclusive; k <= lock.Permit; k++ {
		if k.String() == value {
			return k, nil
		}
		names = append(names, k.String())
	}
	return 0, fmt.Errorf("unknown kind %q%s", value, suggest.Ending(value, names))
}

func parseWait(value string) (time.Duration, error) {
	if value == "forever" {
		return Forever, nil
	}
	return parseDuration(value)
}

func parseDuration(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf("bad duration %q, want one like 2s or 500ms", value)
	}
	if d < 0 {
		return 0, fmt.Errorf("negative duration %q", value)
	}
	return d, nil
}

func parseLimit(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("bad limit %q, want a number of at least 1", value)
	}
	return n, nil
}
