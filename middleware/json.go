package middleware

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// readJSON reads data, which must be one JSON value and nothing else: null, bool, string, []any and map[string]any as
// encoding/json makes them, and numbers as number says. It takes a third of the time of a json.Decoder, which would have to
// be told to keep the digits of numbers, and whose result would have to be walked once more.
func readJSON(data []byte) (any, error) {
	if !json.Valid(data) {
		if len(bytes.TrimSpace(data)) == 0 {
			return nil, errEmptyBody
		}
		return nil, json.Unmarshal(data, new(any)) // which says why
	}
	r := jsonReader{text: string(data)}
	v, err := r.value()
	return v, cmp.Or(err, r.wrong)
}

// repeats reports whether an object within data, which is valid JSON, has a name twice.
func repeats(data []byte) bool {
	r := jsonReader{text: string(data), exact: true}
	_, err := r.value()
	return err != nil
}

// jsonReader reads a text that is known to be valid, from left to right. Only a name that is refused makes it stop.
type jsonReader struct {
	text  string
	pos   int
	exact bool  // names that differ in case are two names
	wrong error // of the first number that is none here
}

// next skips blanks and returns the byte behind them.
func (r *jsonReader) next() byte {
	for ; ; r.pos++ {
		switch c := r.text[r.pos]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
}

func (r *jsonReader) value() (any, error) {
	switch r.next() {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		return r.str(), nil
	case 't':
		r.pos += len("true")
		return true, nil
	case 'f':
		r.pos += len("false")
		return false, nil
	case 'n':
		r.pos += len("null")
		return nil, nil
	}
	start := r.pos
	for r.pos < len(r.text) && strings.IndexByte("+-.0123456789Ee", r.text[r.pos]) >= 0 {
		r.pos++
	}
	n, err := number(r.text[start:r.pos])
	r.wrong = cmp.Or(r.wrong, err)
	return n, nil
}

// more reports whether another element follows, and steps to it or behind the end of the array or object.
func (r *jsonReader) more(end byte) bool {
	c := r.next()
	if c == ',' {
		r.pos++
		c = r.next()
	}
	if c == end {
		r.pos++
	}
	return c != end
}

func (r *jsonReader) array() (any, error) {
	elements := []any{}
	for r.pos++; r.more(']'); {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		elements = append(elements, v)
	}
	return elements, nil
}

// object refuses names that encoding/json would store in one field of a struct, the same name included: the key must not be taken
// from the one and the handler work on the other. Of two values of one name, encoding/json keeps the last, but puts two objects together,
// and takes null for nothing at all, unless the field is a pointer.
func (r *jsonReader) object() (any, error) {
	members := make(map[string]any)
	seen := twins{exact: r.exact}
	for r.pos++; r.more('}'); {
		name := r.str()
		if seen.add(name) {
			return nil, errTwins
		}
		r.next()
		r.pos++ // the colon
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		members[name] = v
	}
	return members, nil
}

// str reads a string.
func (r *jsonReader) str() string {
	start, plain := r.pos, true
	for r.pos++; r.text[r.pos] != '"'; r.pos++ {
		switch c := r.text[r.pos]; {
		case c == '\\':
			plain = false
			r.pos++
		case c >= utf8.RuneSelf:
			plain = false // and perhaps no UTF-8
		}
	}
	r.pos++
	if plain {
		return r.text[start+1 : r.pos-1]
	}
	var s string
	_ = json.Unmarshal([]byte(r.text[start:r.pos]), &s) // which is valid
	return s
}

// twins are the names of an object, for finding one that is there twice, or two that differ only in case.
type twins struct {
	exact bool // only the former
	few   [8]string
	n     int
	many  map[string]bool // the folded names, once there are many
}

// add reports whether name is there already.
func (t *twins) add(name string) bool {
	if t.many != nil {
		return t.addMany(name)
	}
	for _, other := range t.few[:t.n] {
		if name == other || !t.exact && strings.EqualFold(name, other) {
			return true
		}
	}
	if t.n < len(t.few) {
		t.few[t.n] = name
		t.n++
		return false
	}
	t.many = make(map[string]bool)
	for _, other := range t.few {
		t.addMany(other)
	}
	return t.addMany(name)
}

func (t *twins) addMany(name string) bool {
	if !t.exact {
		name = folded(name)
	}
	known := t.many[name]
	t.many[name] = true
	return known
}

// folded returns the same text for all that strings.EqualFold takes for equal.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, name)
}

// number makes 7 an int64 and 7.0 a float64, which no key takes, because a handler may read both as the same. Digits
// beyond int64 stay text.
func number(text string) (any, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	if strings.ContainsAny(text, ".eE") {
		return strconv.ParseFloat(text, 64)
	}
	return json.Number(text), nil
}
