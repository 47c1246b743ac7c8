package keyexpr

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Decode makes a value of the root out of JSON, for tools that explain a template to people: what
// [Facts] would give for a request that looks like that. A root with a type is decoded as
// encoding/json does it. One of Names or AnyName takes an object of texts, numbers and booleans,
// whose names are found in any case if they are not there exactly, as those of headers are. A root
// of no known type takes any value; its whole numbers are whole numbers.
func (r Root) Decode(text []byte) (any, error) {
	if !r.of.Lookup {
		v := reflect.New(cmp.Or(r.of.Type, anyType))
		err := decode(text, v.Interface())
		return v.Elem().Interface(), err
	}
	var members map[string]any
	if err := decode(text, &members); err != nil {
		return nil, err
	}
	return Lookup(func(name string) (string, bool, error) {
		if v, ok := members[name]; ok {
			return scalar(name, v)
		}
		for other, v := range members {
			if strings.EqualFold(name, other) {
				return scalar(name, v)
			}
		}
		return "", false, nil
	}), nil
}

// scalar is v as the text that a request would have in its place.
func scalar(name string, v any) (string, bool, error) {
	switch v := v.(type) {
	case nil:
		return "", false, nil
	case string, bool, json.Number:
		return fmt.Sprint(v), true, nil
	}
	return "", false, fmt.Errorf("%w: %s is not a text, a number or a boolean", ErrValue, name)
}

// decode reads one value, with numbers as they are written.
func decode(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("there is more behind the JSON value, at byte %d", d.InputOffset())
	}
	return nil
}
