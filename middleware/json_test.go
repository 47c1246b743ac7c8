package middleware

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// decoded is what readJSON has to give, by a json.Decoder.
func decoded(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	return typed(v), nil
}

func typed(v any) any {
	switch v := v.(type) {
	case json.Number:
		n, err := number(v)
		if err != nil {
			return err
		}
		return n
	case []any:
		for i := range v {
			v[i] = typed(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = typed(v[name])
		}
	}
	return v
}

// outOfRange reports whether a number somewhere in v is one that no float64 can be.
func outOfRange(v any) bool {
	switch v := v.(type) {
	case error:
		return true
	case []any:
		return slices.ContainsFunc(v, outOfRange)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), outOfRange)
	}
	return false
}

// FuzzReadJSON holds that bodies are read as encoding/json reads them.
func FuzzReadJSON(f *testing.F) {
	for _, text := range []string{
		`{"id": 42, "amount": 1}`, ` [1, -2.5, 1e3, 92233720368547758070, 1e999] `, `{"a":{"b":[[],{}]},"c":null,"d":true,"e":false}`,
		`"\u00e9\ud800 é\n\""`, "\"\xff\"", `{}`, `[]`, `0`, `{"a":1,"a":2}`, `{"id":1,"ID":2}`, `{"k":1,"\u212a":2}`, `{"a":1} x`, ``, `{"a"`, "\ufeff{}", "01", "1.",
		`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"H":0}`, `{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"i":1}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readJSON(data, names{})
		want, wantErr := decoded(data)
		switch {
		case errors.Is(err, errTwins):
			if wantErr != nil {
				t.Errorf("%q has twins, and %v", data, wantErr)
			}
		case outOfRange(want):
			if err == nil {
				t.Errorf("%q has a number out of range", data)
			}
		case (err == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want):
			t.Errorf("readJSON(%q) = %#v, %v, want %#v, %v", data, got, err, want, wantErr)
		}
	})
}

// TestTwins has names that one field of a struct would take both, and names that are only alike.
func TestTwins(t *testing.T) {
	many := `"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,`
	for _, members := range []string{"", many} {
		for _, tt := range []struct {
			names string
			twins bool
		}{
			{`"id":1,"ID":2`, true}, {`"Id":1,"x":0,"iD":2`, true}, {`"k":1,"\u212a":2`, true}, {`"s":1,"ſ":2`, true}, {`"É":1,"é":2`, true},
			{`"id":1,"id":2`, true}, {`"id":1,"id":null`, true}, {`"id":{},"i\u0064":{}`, true},
			{`"id":1,"i_d":2`, false}, {`"x":[{"id":1},{"id":2}]`, false}, {`"ı":1,"I":2`, false}, {`"x":{"id":1},"ID":2`, false}, {`"x":[{"id":1,"ID":2}]`, true},
		} {
			if members == many {
				tt.names = strings.ReplaceAll(tt.names, `"I"`, `"J"`) // there is an i already
			}
			_, err := readJSON([]byte("{"+members+tt.names+"}"), names{})
			if errors.Is(err, errTwins) != tt.twins {
				t.Errorf("{%s%s}: %v, want twins %v", members, tt.names, err, tt.twins)
			}
		}
	}
}
