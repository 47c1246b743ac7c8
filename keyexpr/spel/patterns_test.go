package spel

import (
	"context"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// String.split(regex), which is split(regex, 0): the examples of its documentation, and what people split keys by.
func TestSplit(t *testing.T) {
	for _, tt := range []struct{ text, by, want string }{ // pieces with bars between them
		{"boo:and:foo", ":", "boo|and|foo"},
		{"boo:and:foo", "o", "b||:and:f"},
		{"a,b", ",", "a|b"},
		{",a,b", ",", "|a|b"},
		{"a,,b", ",", "a||b"},
		{"a,b,", ",", "a|b"},
		{"a,b,,,", ",", "a|b"},
		{"abc", ",", "abc"},
		{"a1b22c", "[0-9]", "a|b||c"},
		{"a1b22c", "[0-9]+", "a|b|c"},
		{"a, b ,c", `\s*,\s*`, "a|b|c"},
		{"a.b", `\.`, "a|b"},
		{"a|b", `\|`, "a!b"},
		{"a😀b", "😀", "a|b"},
		{"a\r\nb\nc", `\r?\n`, "a|b|c"},
		{"éaé", "a", "é|é"},
		{"aXbxc", "[xX]", "a|b|c"},
		{"a--b", "--?", "a|b"},
		{"2026-11-22", "-", "2026|11|22"},
	} {
		p, err := translate(tt.by)
		if err != nil {
			t.Errorf("translate(%q): %v", tt.by, err)
			continue
		}
		st := run.NewState(context.Background(), nil, nil)
		got, err := p.split(st, tt.text)
		st.Release()
		if err != nil {
			t.Errorf("%q split by %q: %v", tt.text, tt.by, err)
			continue
		}
		var pieces []string
		for _, piece := range got.(list).made {
			pieces = append(pieces, piece.(string))
		}
		if joined := strings.Join(pieces, "|"); joined != strings.ReplaceAll(tt.want, "!", "|") {
			t.Errorf("%q split by %q is %q, want %q", tt.text, tt.by, joined, tt.want)
		}
	}
}

// Patterns in Go's words. Each row is a place where the same text would mean something else there.
func TestPatternsInGosWords(t *testing.T) {
	for _, tt := range []struct{ java, want string }{
		{".", `[^\n\r\x{85}\x{2028}\x{2029}]`},
		{`\s`, `[\t\n\x0B\f\r ]`},
		{`\S`, `[^\t\n\x0B\f\r ]`},
		{`[\s,]`, `[\t\n\x0B\f\r ,]`},
		{"a$", `a\z`},
		{"a$|b$", `a\z|b\z`},
		{"^a", "^a"},
		{"(a)", "(?:a)"}, // nobody asks what a group has found
		{"(?:a)", "(?:a)"},
		{"[a^]", `[a\x{5e}]`},
		{"[^^]", `[^\x{5e}]`},
		{"[a-]", `[a\-]`},
		{"[-a]", `[\-a]`},
		{"[a~ ]", `[a\x{7e}\x{20}]`},
		{`\-`, "-"},
		{`\/`, "/"},
		{"é", "é"},
		{"a{2,}?", "a{2,}?"},
		{"}", `\}`},
		{"]", `\]`},
	} {
		p := &translator{in: tt.java}
		if err := p.run(); err != nil || p.out.String() != tt.want {
			t.Errorf("%q is %q, %v, want %q", tt.java, p.out.String(), err, tt.want)
		}
	}
}

// What is refused of patterns, each with its sentence.
func TestPatternsThatAreRefused(t *testing.T) {
	for _, tt := range []struct{ java, want string }{
		{"(", "a bracket of the pattern is not closed"},
		{"a)", "a bracket of the pattern is not opened"},
		{"[", "a class of the pattern is not closed"},
		{"[a", "a class of the pattern is not closed"},
		{"[]a]", "a class of the pattern is empty"},
		{"[^]a]", "a class of the pattern is empty"},
		{"[[a]]", "a class within a class is Java's alone: write one class"},
		{"[a&&b]", "&& in a class is Java's alone: write the characters that are left"},
		{"*a", "a pattern repeats what is not there"},
		{"a|*", "a pattern repeats what is not there"},
		{"(+a)", "a pattern repeats what is not there"},
		{"a*+", "a possessive repetition, such as a++, is not the same in Go: write one +"},
		{"a?+", "a possessive repetition, such as a++, is not the same in Go: write one +"},
		{"a{2}+", "a possessive repetition, such as a++, is not the same in Go: write one +"},
		{"a{,2}", "{…} of a pattern is {n}, {n,} or {n,m}"},
		{"a{x}", "{…} of a pattern is {n}, {n,} or {n,m}"},
		{"(?i)a", "(?…) of a pattern is not the same in Go: leave it out"},
		{"(?!a)", "(?…) of a pattern is not the same in Go: leave it out"},
		{"(?<=a)", "(?…) of a pattern is not the same in Go: leave it out"},
		{"(?>a)", "(?…) of a pattern is not the same in Go: leave it out"},
		{"$a", "$ within a pattern asks for the end of a line in Java: leave it out"},
		{"(a$|b)", "$ within a pattern asks for the end of a line in Java: leave it out"},
		{`\`, "a pattern ends in a backslash"},
		{`\b`, `\b of a pattern is not the same in Go: write what it stands for`},
		{`\1`, `\1 of a pattern is not the same in Go: write what it stands for`},
		{`\R`, `\R of a pattern is not the same in Go: write what it stands for`},
		{`\u0041`, `\u of a pattern is not the same in Go: write what it stands for`},
		{`[\S]`, `\S of a pattern is not the same in Go: write what it stands for`},
		{`[a-\w]`, "a range of the pattern ends in neither a letter nor a digit"},
	} {
		if _, err := translate(tt.java); err == nil || err.Error() != tt.want {
			t.Errorf("translate(%q) = %v, want %q", tt.java, err, tt.want)
		}
	}
}
