package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func before(r rune) *Escape {
	if r == 0 {
		return Before(nil)
	}
	return Before([]rune{r})
}

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
		if got := string(before(tt.delim).Append(nil, tt.value)); got != tt.want {
			t.Errorf("Append(%q) before %q = %q, want %q", tt.value, tt.delim, got, tt.want)
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

type tenant string

// level is a number with a name, as protoc and stringer make them.
type level int

func (l level) String() string { return fmt.Sprintf("level-%d", int(l)) }

// uuid is what the usual packages have.
type uuid [16]byte

func (u uuid) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:])
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
		{Raw("{a b}"), "{a b}"},
	} {
		got, err := (&State{}).Value(nil, tt.value, before(':'))
		if err != nil || string(got) != tt.want {
			t.Errorf("Value(%#v) = %q, %v, want %q", tt.value, got, err, tt.want)
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
		{Raw(""), "is empty"},
		{1.5, "is a float"},
		{float32(0.5), "is a float"},
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
		got, err := (&State{}).Value(nil, tt.value, before(':'))
		if _, ok := errors.AsType[*Fault](err); !ok || len(got) > 0 || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("Value(%#v) = %q, %v, want %q", tt.value, got, err, tt.reason)
		}
	}
}
