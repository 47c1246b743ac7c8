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
		{"o: x#{a}", []part{lit(0, "o: x"), hole(6, "a")}},
		{"e\u0301漢😀#{a}", []part{lit(0, "e\u0301漢😀"), hole(12, "a")}},
		{"o:#{ \u00a0'\u200b' }", []part{lit(0, "o:"), hole(4, " \u00a0'\u200b' ")}},
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
		// What can't be seen, or looks like a blank and is another character.
		{"o:\u200b#{a}", 2, `U+200B can't be seen, and would be in the key: remove it, or write #{"\u200b"} if it is meant`},
		{"o:#{a}\u200b", 6, "U+200B can't be seen"},
		{"\ufeffo:#{a}", 0, "U+FEFF can't be seen"},
		{"o:#{a}:\u2060x", 7, "U+2060 can't be seen"},
		{"o\u00ad:#{a}", 1, "U+00AD can't be seen"},
		{"o\u202e:#{a}", 1, "U+202E can't be seen"},
		{"o##{\u200e}:#{a}", 4, "U+200E can't be seen"},
		{"می\u200cخواهم:#{a}", 4, "U+200C can't be seen"},
		{"👩\u200d💻:#{a}", 4, "U+200D can't be seen"},
		{"o\U000e0001:#{a}", 1, `U+E0001 can't be seen, and would be in the key: remove it, or write #{"\U000e0001"}`},
		{"o\u3164:#{a}", 1, "U+3164 can't be seen"},
		{"o\ufe0f:#{a}", 1, "U+FE0F can't be seen"},
		{"o:\u00a0#{a}", 2, `U+00A0 looks like a blank and is another character: write a blank, or #{"\u00a0"} if it is meant`},
		{"o:#{a}\u3000x", 6, "U+3000 looks like a blank"},
		{"o:#{a}\u2028x", 6, "U+2028 looks like a blank"},
		{"\u00a0o:#{a}", 0, "begins with a blank"},
		{"o:#{a}\u00a0", 6, "ends with a blank"},
		{"o:\n#{a}", 2, "a line end or another control character"},
		{"o:\u0085#{a}", 2, "a line end or another control character"},
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
