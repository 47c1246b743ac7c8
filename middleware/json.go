package middleware

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

var (
	errTwins = &bodyError{http.StatusBadRequest, "body", "The body has an object with one name twice, or with two names that differ only in case."}
	errSpelt = fmt.Errorf("%w: a name of the body is spelt in other letters", errAmbiguous)
)

// decode reads data, which must be one JSON value and nothing else, as a T.
func decode[T any](data []byte, _ names) (any, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one JSON value")
	}
	_, err := newJSON(data, nil).value() // which a handler that reads it as another type may see in another way
	return v, err
}

// readJSON reads data, which must be one JSON value and nothing else: null, bool, string, []any and map[string]any as
// encoding/json makes them, and numbers as number says. An error in the place of a value says why there is none.
func readJSON(data []byte, all names) (any, error) {
	if !json.Valid(data) { // which also bounds how deep it is
		return nil, json.Unmarshal(data, new(any)) // says why
	}
	return newJSON(data, all).value()
}

// names are those that a template may use, by what strings.EqualFold takes for the same.
type names map[string][]string

var name = regexp.MustCompile("[\\pL_][\\pL\\pN_]*|\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`")

// add adds all that could be a name in text: its words, and what stands in quotes. One too many does no harm.
func (n names) add(text string) {
	for _, word := range name.FindAllString(text, -1) {
		if s, err := strconv.Unquote(word); err == nil {
			word = s
		}
		word = strings.Trim(word, "'")
		n[folded(word)] = append(n[folded(word)], word)
	}
}

// jsonReader reads a text that is known to be valid.
type jsonReader struct {
	*json.Decoder
	all names // nil where nobody wants the value
}

func newJSON(data []byte, all names) *jsonReader {
	r := &jsonReader{json.NewDecoder(bytes.NewReader(data)), all}
	r.UseNumber()
	return r
}

func (r *jsonReader) value() (any, error) {
	token, err := r.Token()
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return r.object()
		}
		elements := []any{}
		for r.More() {
			v, err := r.value()
			if err != nil {
				return nil, err
			}
			elements = append(elements, v)
		}
		_, err = r.Token()
		return elements, err
	case json.Number:
		if r.all != nil {
			return number(t)
		}
	}
	return token, err
}

// object refuses names that encoding/json would store in one field of a struct, the same name included: the key must
// not be taken from the one and the handler work on the other. encoding/json keeps the last of two values of one name,
// but puts two objects together, and takes null for nothing at all, unless the field is a pointer. It would also find a
// name that the template uses and that is there in other letters only: such a name is an error in the place of a value.
func (r *jsonReader) object() (any, error) {
	members, seen := make(map[string]any), make(map[string]bool)
	for r.More() {
		token, _ := r.Token()
		name, _ := token.(string)
		if seen[folded(name)] {
			return nil, errTwins
		}
		seen[folded(name)] = true
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		members[name] = v
	}
	for fold := range seen {
		for _, name := range r.all[fold] {
			if _, ok := members[name]; !ok {
				members[name] = errSpelt
			}
		}
	}
	_, err := r.Token()
	return members, err
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
func number(text json.Number) (any, error) {
	if i, err := text.Int64(); err == nil {
		return i, nil
	}
	if strings.ContainsAny(text.String(), ".eE") {
		return text.Float64()
	}
	return text, nil
}
