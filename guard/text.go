package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// String returns s as the text of a tag: "order:#{req.OrderID}; wait=2s; kind=fair". Zero fields are left out. A value
// that could be misread stands in quotes.
func (s Spec) String() string {
	var b strings.Builder
	given := s.given()
	if given&fieldKey != 0 && plainKey(s.Key) {
		b.WriteString(s.Key)
		given &^= fieldKey
	}
	for _, a := range attributes {
		if given&a.field == 0 {
			continue
		}
		if b.WriteString("; "); a.style == flag {
			b.WriteString(a.name)
		} else {
			b.WriteString(a.name + "=" + a.text(&s))
		}
	}
	return b.String()
}

// specsText returns the texts of specs with bars between them, as ParseSpecs has them.
func specsText(specs []Spec) string {
	texts := make([]string, len(specs))
	for i, s := range specs {
		s.zeros = 0 // as in Guard.Spec
		texts[i] = s.String()
	}
	return strings.Join(texts, " | ")
}

// plainKey reports whether key can stand at the beginning of a tag as it is.
func plainKey(key string) bool {
	s, err := parseTag(key + next)
	return err == nil && s == Spec{Key: key, Switchable: true}
}

// next is an attribute that must survive behind any value: an open quote or bracket would swallow it.
const next = "; switchable"

// text is the value of a in s, in quotes if it would be read back as another one.
func (a attr) text(s *Spec) string {
	text := a.format(s)
	if a.fault(s) != "" { // it can't be read back anyway
		return text
	}
	back, err := parseTag("; " + a.name + "=" + text + next)
	if err != nil || a.format(&back) != text || strings.ContainsAny(text, "\n|") || a.field == fieldLevels && commentIn(text) >= 0 {
		return strconv.Quote(text)
	}
	return text
}

// MarshalText returns the text form of s, which is that of String, or an error if s has a value without a text.
func (s Spec) MarshalText() ([]byte, error) {
	if err := s.printable(); err != nil {
		return nil, err
	}
	return []byte(s.String()), nil
}

// UnmarshalText sets all of s from its text form, which is that of a tag. The error for a text that is none says at which
// byte, and where it can guess, what was meant.
func (s *Spec) UnmarshalText(text []byte) error {
	parsed, err := parseTag(string(text))
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	*s = parsed
	return nil
}

// MarshalJSON returns s as an object of its attributes: {"key":"order:#{req.OrderID}","wait":"2s","limit":3}. Zero fields
// are left out.
func (s Spec) MarshalJSON() ([]byte, error) {
	if err := s.printable(); err != nil {
		return nil, err
	}
	given := s.given()
	b := []byte{'{'}
	for _, a := range attributes {
		if given&a.field == 0 {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		value := a.format(&s)
		if a.style != number && a.style != flag || strings.HasPrefix(value, "#{") {
			quoted, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			value = string(quoted)
		}
		b = append(append(strconv.AppendQuote(b, a.name), ':'), value...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON sets all of s from an object of attributes, or from a string with its text form. Durations are strings
// such as "2s".
func (s *Spec) UnmarshalJSON(data []byte) error {
	r := newJSONReader(data)
	spec, err := r.spec(parseTag)
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	*s = spec
	return nil
}

// printable reports the first value of s that has no text.
func (s *Spec) printable() error {
	for _, a := range attributes {
		if fault := a.fault(s); fault != "" {
			return s.errorf("%s", fault)
		}
	}
	return nil
}

// jsonReader reads Specs from JSON, token by token, so that a name given twice does not go unseen.
type jsonReader struct {
	data []byte
	*json.Decoder
}

func newJSONReader(data []byte) *jsonReader {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return &jsonReader{data, d}
}

// next reads a token. Its error says where in the text.
func (r *jsonReader) next() (json.Token, error) {
	token, err := r.Token()
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, r.at(syntax.Offset, err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, r.at(int64(len(r.data)), errors.New("unexpected end of JSON"))
	}
	return token, err
}

// at adds the place to err, counted as editors do.
func (r *jsonReader) at(offset int64, err error) error {
	line, column := position(string(r.data), int(offset))
	return fmt.Errorf("%w (line %d, column %d)", err, line, column)
}

// position returns the line and the column of a byte, both from 1.
func position(text string, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	return 1 + strings.Count(before, "\n"), len(before) - strings.LastIndex(before, "\n")
}

// end reports what follows the value.
func (r *jsonReader) end() error {
	if _, err := r.Token(); !errors.Is(err, io.EOF) {
		return r.at(r.InputOffset(), errors.New("text behind the end of the JSON value"))
	}
	return nil
}

// spec reads one Spec, whose text form parse reads.
func (r *jsonReader) spec(parse func(text string) (Spec, error)) (s Spec, err error) {
	token, err := r.next()
	if err != nil {
		return s, err
	}
	offset := r.InputOffset()
	if text, ok := token.(string); ok {
		if s, err = parse(text); err != nil {
			err = r.at(offset, err)
		}
		return s, err
	}
	if token != json.Delim('{') {
		return s, r.at(offset, errors.New("want an object of attributes, or a text like that of a tag"))
	}
	err = r.members(func(name string) error { return r.attribute(&s, name) })
	s.imply()
	return s, err
}

// members reads the members of an object behind its brace; read takes the value of each.
func (r *jsonReader) members(read func(name string) error) error {
	seen := make(map[string]bool)
	for r.More() {
		token, err := r.next()
		if err != nil {
			return err
		}
		name, _ := token.(string) // the decoder lets nothing else pass
		if seen[name] {
			return r.at(r.InputOffset(), fmt.Errorf("%q is given twice", name))
		}
		seen[name] = true
		if err := read(name); err != nil {
			return err
		}
	}
	_, err := r.next() // the closing brace
	return err
}

// attribute reads the value of the attribute called name.
func (r *jsonReader) attribute(s *Spec, name string) error {
	a, err := findAttribute(name)
	if err != nil {
		return r.at(r.InputOffset(), err)
	}
	token, err := r.next()
	if err != nil {
		return err
	}
	text, err := a.jsonText(token)
	if err == nil {
		err = a.set(s, text)
	}
	if err != nil {
		return r.at(r.InputOffset(), fmt.Errorf("%s: %w", name, err))
	}
	return nil
}

// jsonText is the text of a value of a.
func (a attr) jsonText(token json.Token) (string, error) {
	switch v := token.(type) {
	case string:
		if a.style != flag && v != "" {
			return v, nil
		}
	case json.Number:
		if a.style == number {
			return v.String(), nil
		}
		return "", fmt.Errorf("a number without a unit or quotes: %s", v)
	case bool:
		if a.style == flag && v {
			return "true", nil
		}
	}
	if a.style == flag {
		return "", errors.New("want true, or leave it out")
	}
	return "", errors.New("want a text in quotes")
}
