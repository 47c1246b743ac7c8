package guard

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// ParseSpecs reads overrides of a program's declarations, for its start: Specs of guards, by name. A field that is not
// given stays as it is declared; a zero that is written out, as in wait=0, is given. The text is JSON,
//
//	{"order.pay": {"wait": "5s", "busy": "skip"}, "report": "limit=3"}
//
// or, as in an environment variable, attributes behind each name. A bar or a new line separates the guards, and a line
// that starts with # is a comment:
//
//	order.pay: wait=5s; busy=skip | report: limit=3
//
// The key of a guard is an attribute here: key=order:#{req.OrderID}. A value with a bar, and a name with a colon, stand in
// quotes. The error says which guard it is about, and the line and column.
func ParseSpecs(text string) (map[string]Spec, error) {
	specs, parse := make(map[string]Spec), parseSpecsText
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		parse = parseSpecsJSON
	}
	if err := parse(text, specs); err != nil {
		return nil, fmt.Errorf("guard: specs: %w", err)
	}
	return specs, nil
}

func parseSpecsJSON(text string, specs map[string]Spec) error {
	r := newJSONReader([]byte(text))
	if _, err := r.next(); err != nil { // the brace
		return err
	}
	err := r.members(func(name string) error {
		s, err := r.overriding()
		if err == nil {
			err = s.checkOverride()
		}
		if err != nil {
			return fmt.Errorf("guard %q: %w", name, err)
		}
		specs[name] = s
		return nil
	})
	if err != nil {
		return err
	}
	return r.end()
}

// overriding reads a Spec that is an object, or a string of attributes.
func (r *jsonReader) overriding() (Spec, error) {
	return r.spec(func(text string) (Spec, error) {
		t := tagParser{text: text, stops: ";"}
		err := t.attributes()
		return t.spec, err
	})
}

// parseSpecsText reads
//
//	specs = [entry] {("|" | newline) [entry]}
//	entry = name ":" attribute {";" attribute}
func parseSpecsText(text string, specs map[string]Spec) error {
	t := tagParser{text: text, stops: ";|\n"}
	for {
		if t.separators(); t.pos == len(text) {
			return nil
		}
		start := t.pos
		if err := t.entryName(); err != nil {
			return err
		}
		if _, ok := specs[t.guard]; ok {
			return t.errorf(start, "is given twice")
		}
		if err := t.attributes(); err != nil {
			return err
		}
		if err := t.spec.checkOverride(); err != nil {
			return t.errorf(start, "%v", err)
		}
		specs[t.guard] = t.spec
	}
}

// separators skips what may stand between entries: bars, blank lines and comments.
func (t *tagParser) separators() {
	for newLine := true; t.pos < len(t.text); t.pos++ {
		switch c := t.text[t.pos]; {
		case c == '#' && newLine:
			t.pos = min(t.pos+strings.IndexByte(t.text[t.pos:]+"\n", '\n'), len(t.text)-1)
		case strings.IndexByte(" \t\r\n|", c) < 0:
			return
		case c == '\n' || c == '|':
			newLine = c == '\n'
		}
	}
}

// entryName reads the name of a guard and the colon behind it, and begins its Spec.
func (t *tagParser) entryName() error {
	start := t.pos
	t.spec, t.set, t.guard = Spec{}, 0, ""
	if t.text[start] == '"' {
		t.quoted('"')
	}
	for t.pos < len(t.text) && strings.IndexByte(":;|\n", t.text[t.pos]) < 0 {
		t.pos++
	}
	name := strings.TrimSpace(t.text[start:t.pos])
	if quoted, err := strconv.Unquote(name); err == nil && name[0] == '"' {
		name = quoted
	}
	if t.guard = name; name == "" || t.pos == len(t.text) || t.text[t.pos] != ':' {
		line, column := position(t.text, start)
		return fmt.Errorf("%q: want the name of a guard and a colon, as in order.pay: wait=5s (line %d, column %d)", name, line, column)
	}
	t.pos++
	return nil
}

// attributes reads attributes up to a stop that is no semicolon.
func (t *tagParser) attributes() error {
	for {
		if err := t.attribute(); err != nil {
			return err
		}
		if t.pos == len(t.text) || t.text[t.pos] != ';' {
			t.spec.imply()
			return nil
		}
		t.pos++
	}
}

// commentIn returns where a template that is not in quotes has what looks like a comment, outside of its holes, and -1 without one.
func commentIn(template string) int {
	if isString(template) {
		return -1
	}
	_, bare := (&tagParser{text: template}).literal()
	if at := comment.FindStringIndex(bare); at != nil {
		return at[0] + 1
	}
	return -1
}

var comment = regexp.MustCompile(`[ \t]#(?:[ \t]|$)`)

// checkOverride reports what makes s no good for overriding a declaration.
func (s Spec) checkOverride() error {
	given := s.given()
	switch {
	case given&fieldName != 0:
		return errors.New("name can't be overridden: it says which guard is meant")
	case given&fieldArgs != 0:
		return errors.New("args can't be overridden: the function has its arguments")
	case given == 0:
		return errors.New("no attributes")
	}
	return errors.Join(append(s.faults(), s.checkTemplates()...)...)
}
