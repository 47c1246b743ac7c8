package keyexpr

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
	hole := func(off int, src string) part { return part{hole: true, off: off, text: src} }
	lit := func(off int, s string) part { return part{off: off, text: s} }
	for _, tt := range []struct {
		text string
		want []part
	}{
		{"order", []part{lit(0, "order")}},
		{"#{a}", []part{hole(2, "a")}},
		{"o:#{a}:#{ b }!", []part{lit(0, "o:"), hole(4, "a"), lit(6, ":"), hole(9, " b "), lit(13, "!")}},
		{"a##{b}", []part{lit(0, "a#{b}")}},
		{"a###{b}", []part{lit(0, "a#"), hole(5, "b")}},
		{"####{b}", []part{lit(0, "##{b}")}},
		{"a#b##c#", []part{lit(0, "a#b##c#")}},
		{"o:{#{a}}", []part{lit(0, "o:{"), hole(5, "a"), lit(7, "}")}},
		{"{a}", []part{lit(0, "{a}")}},
		{`#{"}"}`, []part{hole(2, `"}"`)}},
		{`#{'\'}'}`, []part{hole(2, `'\'}'`)}},
		{"#{`a``}`}", []part{hole(2, "`a``}`")}},
		{"#{a /* } */}", []part{hole(2, "a /* } */")}},
		{"#{a // }\n}", []part{hole(2, "a // }\n")}},
		{"#{a / b}", []part{hole(2, "a / b")}},
		{`#{ {"a": [1, (2)]}["a"] }`, []part{hole(2, ` {"a": [1, (2)]}["a"] `)}},
		{"é#{a}", []part{lit(0, "é"), hole(4, "a")}},
	} {
		got, err := scan(tt.text)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("scan(%q) = %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
}

func TestScanErrors(t *testing.T) {
	for _, tt := range []struct {
		text   string
		offset int
		reason string
	}{
		{"", 0, "nothing is written"},
		{"  ", 0, "nothing is written"},
		{"o:#{", 2, "not closed by }"},
		{"o:#{a", 2, "not closed by }"},
		{"o:#{}", 2, "empty hole"},
		{"o:#{ \n}", 2, "empty hole"},
		{"o:{#id}", 2, "write #{…}"},
		{"#{a}#{b}", 4, "two holes"},
		{"#{(a}", 2, `'(' is closed by '}'`},
		{"#{a)}", 1, `'{' is closed by ')'`},
		{"#{f(a", 3, `'(' is not closed`},
		{"#{'a}", 2, "the string is not closed"},
		{"#{`a}", 2, "the string is not closed"},
		{"#{a /* }", 4, "the comment is not closed"},
		{"#{a // }", 4, "the comment is not closed"},
		{"a\xffb", 1, "not UTF-8"},
		{strings.Repeat("a", maxText+1), maxText, "longer than"},
	} {
		_, err := scan(tt.text)
		fault, ok := errors.AsType[*Error](err)
		if !ok {
			t.Errorf("scan(%.20q) = %v, want an *Error", tt.text, err)
			continue
		}
		if fault.Offset != tt.offset || !strings.Contains(fault.Reason, tt.reason) || fault.Text != tt.text {
			t.Errorf("scan(%.20q) = %d, %q, want %d, %q", tt.text, fault.Offset, fault.Reason, tt.offset, tt.reason)
		}
	}
}
