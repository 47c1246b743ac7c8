package safe_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/safe"
)

func TestText(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"order:42", "order:42"},
		{"Käse:東京", "Käse:東京"},
		{`a"b`, `a"b`},
		{"a b", "a b"},
		{"", `""`},
		{" a", `" a"`},
		{"a ", `"a "`},
		{`"a"`, `"\"a\""`},
		{"a\nb", `"a\nb"`},
		{"\x1b[2J", `"\x1b[2J"`},
		{"a\u202eb", `"a\u202eb"`},
		{"a\u200bb", `"a\u200bb"`},
		{"e\u0301", "e\u0301"},
		{"a\xffb", `"a\xffb"`},
	} {
		if got := safe.Text(tt.in); got != tt.want {
			t.Errorf("Text(%q) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		n        int
	}{
		{"order:42", "order:42", 8},
		{"order:4200000000000000", "order:42…(22 bytes)", 19},
		{strings.Repeat("é", 10240), "é…(20480 bytes)", 15},
		{strings.Repeat("\n", 20), `"\n\n\n\…(20 bytes)`, 19},
	} {
		got := safe.Cut(tt.in, tt.n)
		if got != tt.want || utf8.RuneCountInString(got) > tt.n {
			t.Errorf("Cut(%q, %d) = %s, want %s", tt.in, tt.n, got, tt.want)
		}
	}
}

func TestLinesKeepsNothingThatATerminalObeys(t *testing.T) {
	const want = "a\\x1b[31m\nb\tc\\ufffd"
	if got := safe.Lines("a\x1b[31m\nb\tc\xff"); got != want {
		t.Errorf("Lines = %q, want %q", got, want)
	}
}

func TestStringKeepsAllBytes(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"order:42", `"order:42"`},
		{"\x1b", `"\u001b"`},
		{"a\xff", `{"base64":"Yf8=","quoted":"\"a\\xff\""}`},
	} {
		got, err := json.Marshal(safe.String(tt.in))
		if err != nil || string(got) != tt.want {
			t.Errorf("Marshal(%q) = %s, %v, want %s", tt.in, got, err, tt.want)
		}
	}
}
