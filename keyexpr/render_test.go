package keyexpr

import (
	"encoding/json"
	"errors"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestEscape(t *testing.T) {
	for _, tt := range []struct {
		value string
		delim rune
		want  string
	}{
		{"plain-id_42.x~!@$&*()", ':', "plain-id_42.x~!@$&*()"},
		{"a:b", ':', "a%3Ab"},
		{"a:b", '/', "a:b"},
		{"a:b", 0, "a:b"},
		{"100%", ':', "100%25"},
		{"%3A", ':', "%253A"},
		{"{a}", ':', "%7Ba%7D"},
		{"a b\tc\r\n", ':', "a%20b%09c%0D%0A"},
		{"\x00\x7f", ':', "%00%7F"},
		{"é→", ':', "é→"},
		{"é→", '→', "é%E2%86%92"},
		{"\xff\xe2\x86", ':', "%FF%E2%86"},
		{"\ufffd", ':', "\ufffd"},
		{"a\u00a0b\u2028c\u0085", ':', "a%C2%A0b%E2%80%A8c%C2%85"},
	} {
		if got := string(appendEscaped(nil, tt.value, tt.delim)); got != tt.want {
			t.Errorf("appendEscaped(%q, %q) = %q, want %q", tt.value, tt.delim, got, tt.want)
		}
	}
}

type pointerText struct{ s string }

func (p *pointerText) MarshalText() ([]byte, error) {
	if p.s == "" {
		return nil, errors.New("secret")
	}
	return []byte(p.s), nil
}

type (
	named  uint16
	buried struct{ S string }
	id32   [4]byte
	hidden string
)

func (hidden) String() string { return "***" }

func TestAppendValue(t *testing.T) {
	s := "x"
	p := &s
	for _, tt := range []struct {
		value any
		want  string
	}{
		{"x", "x"},
		{tenant("x"), "x"},
		{hidden("x"), "x"}, // a name that hides itself would be one key for all
		{&s, "x"},
		{&p, "x"},
		{true, "true"},
		{int8(-3), "-3"},
		{named(7), "7"},
		{uint64(1<<64 - 1), "18446744073709551615"},
		{level(2), "level-2"},
		{time.Minute, "1m0s"},
		{[]byte{0, 255}, "00ff"},
		{id32{1}, "01000000"},
		{uuid{}, "00000000-0000-0000-0000-000000000000"},
		{netip.MustParseAddr("10.0.0.1"), "10.0.0.1"},
		{big.NewInt(7), "7"},
		{*big.NewInt(7), "7"},
		{&pointerText{"x"}, "x"},
		{pointerText{"x"}, "x"},
		{json.Number("18446744073709551616"), "18446744073709551616"},
		{rawText("{a b}"), "{a b}"},
	} {
		got, err := appendValue(nil, tt.value, ':')
		if err != nil || string(got) != tt.want {
			t.Errorf("appendValue(%#v) = %q, %v, want %q", tt.value, got, err, tt.want)
		}
	}
}

func TestAppendValueRefuses(t *testing.T) {
	var (
		noString *string
		noUUID   *uuid
		noText   *pointerText
		noBytes  []byte
	)
	for _, tt := range []struct {
		value  any
		reason string
	}{
		{nil, "is nil"},
		{noString, "is nil"},
		{noUUID, "is nil"},
		{noText, "is nil"},
		{noBytes, "is empty"},
		{"", "is empty"},
		{tenant(""), "is empty"},
		{netip.Addr{}, "is empty"},
		{rawText(""), "is empty"},
		{1.5, "is a float"},
		{float32(1), "is a float"},
		{json.Number("1.0"), "many spellings"},
		{json.Number("1e3"), "many spellings"},
		{json.Number("-0"), "many spellings"},
		{time.Time{}, "fmtTime"},
		{&time.Time{}, "fmtTime"},
		{buried{"x"}, "is a struct"},
		{&buried{"x"}, "is a struct"},
		{map[string]int{}, "is a map"},
		{[]string{"x"}, "is a list"},
		{func() {}, "is a function"},
		{make(chan int), "no key material"},
		{1i, "no key material"},
		{pointerText{}, "does not marshal"},
	} {
		got, err := appendValue(nil, tt.value, ':')
		if _, ok := errors.AsType[*valueError](err); !ok || len(got) > 0 || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("appendValue(%#v) = %q, %v, want %q", tt.value, got, err, tt.reason)
		}
	}
}

func TestBodyNumbers(t *testing.T) {
	dec := json.NewDecoder(strings.NewReader(`{"i": 42, "big": 18446744073709551615, "f": 1.0, "e": 4e1}`))
	dec.UseNumber()
	var body any
	if err := dec.Decode(&body); err != nil {
		t.Fatal(err)
	}
	facts := func(string) (any, error) { return body, nil }
	for text, want := range map[string]string{"#{body.i}": "42", "#{body.big}": "18446744073709551615", "#{body.i + 1}": "43", "#{body.big > body.i}": "true"} {
		if keys, err := mustParse(t, text).Expand(t.Context(), facts); err != nil || keys[0] != want {
			t.Errorf("Expand(%q) = %q, %v, want %q", text, keys, err, want)
		}
	}
	for _, text := range []string{"#{body.f}", "#{body.e}"} {
		if keys, err := mustParse(t, text).Expand(t.Context(), facts); !errors.Is(err, ErrValue) {
			t.Errorf("Expand(%q) = %q, %v, want ErrValue", text, keys, err)
		}
	}
}
