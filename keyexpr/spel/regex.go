package spel

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Patterns. Java's and Go's are close enough to be taken for each other, and far enough apart to
// make two keys of one text. So a pattern is read by a grammar of its own, which has what means
// the same in both, and written out again in Go's words. All else is refused. It takes the text
// between the quotes and gives two programs of Go. Whatever the grammar does not name is an
// error, even where both dialects agree on it, since the corpus holds what is let through and
// nothing holds the rest.

// pattern is a regular expression of Java in Go's words. What the two do not have in common is
// refused. It is compiled twice, as the whole of a text and for its parts, since split looks for
// parts. RE2 has no backtracking, and so no pattern of Java's that needs it can be carried over:
// back references, look-around and possessive repetition are refused. In return a text can't
// make a match take more than its length times the size of the program.
type pattern struct {
	all  *regexp.Regexp // the whole text
	part *regexp.Regexp // what matches in it
	size int            // of its program
}

// They are those of templates.
const (
	maxProgram = 500
	maxSubject = 64 << 10
	maxPieces  = 4096
)

// translate reads a pattern of Java:
//
//	pattern  = branch { "|" branch }
//	branch   = { "^" | piece } [ "$" ]                     $ only at the end, where it asks for nothing more
//	piece    = atom [ ( "*" | "+" | "?" | "{" n [ "," [ n ] ] "}" ) [ "?" ] ]
//	atom     = char | "." | class | escape | "(" [ "?:" ] pattern ")"
//	class    = "[" [ "^" ] { char [ "-" char ] | escape } "]"
//	escape   = "\" ( "d" | "D" | "w" | "W" | "s" | "S" | "t" | "n" | "r" | punctuation )
//
// A group is only for repeating: what it has found is asked for by nobody.
func translate(java string) (*pattern, error) {
	t := &translator{in: java}
	if err := t.run(); err != nil {
		return nil, err
	}
	text := t.out.String()
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the pattern is not understood: %w", err)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > maxProgram {
		return nil, errors.New("the pattern is too large")
	}
	p := &pattern{size: len(prog.Inst) + 4}
	if p.part, err = regexp.Compile(text); err != nil {
		return nil, err
	}
	p.all, err = regexp.Compile(`\A(?:` + text + `)\z`)
	return p, err
}

// It writes Go's pattern as it reads Java's, one atom at a time, and knows no more of the
// structure than whether something can be repeated.
type translator struct {
	in    string
	at    int
	depth int
	atoms bool // something stands before that can be repeated
	out   strings.Builder
}

// lineEnds are what . leaves out in Java. In Go it is the newline alone. A text with one of
// these is rare in an id, and would match in Go alone.
const (
	anyButLineEnds = `[^\n\r\x{85}\x{2028}\x{2029}]`
	space          = `\t\n\x0B\f\r `
)

func (t *translator) run() error {
	for t.at < len(t.in) {
		if err := t.next(); err != nil {
			return err
		}
	}
	if t.depth > 0 {
		return errors.New("a bracket of the pattern is not closed")
	}
	return nil
}

// next translates one atom or operator. Whatever is not listed is an error: the two dialects
// agree on much that is not, but a pattern that is read in two ways makes two keys. A caret asks
// for the beginning in both, as no flag can be set. A dot in Java stops at five line ends, in Go
// at one. A dollar in Java also matches before a final line end, which is of no account for
// Matcher.matches, as the whole text must be taken, and of account for split, where it is
// refused to stand within.
func (t *translator) next() error {
	c := t.in[t.at]
	t.at++
	atom := true
	switch c {
	case '\\':
		s, err := t.escape(false)
		if err != nil {
			return err
		}
		t.out.WriteString(s)
	case '.':
		t.out.WriteString(anyButLineEnds)
	case '[':
		if err := t.class(); err != nil {
			return err
		}
	case '(':
		if strings.HasPrefix(t.in[t.at:], "?") && !strings.HasPrefix(t.in[t.at:], "?:") {
			return errors.New("(?…) of a pattern is not the same in Go: leave it out")
		}
		t.depth++
		t.out.WriteString("(?:")
		t.at += len(t.in[t.at:]) - len(strings.TrimPrefix(t.in[t.at:], "?:"))
		atom = false
	case ')':
		if t.depth--; t.depth < 0 {
			return errors.New("a bracket of the pattern is not opened")
		}
		t.out.WriteByte(')')
	case '|', '^':
		t.out.WriteByte(c)
		atom = false
	case '$':
		if t.at < len(t.in) && (t.in[t.at] != '|' || t.depth > 0) {
			return errors.New("$ within a pattern asks for the end of a line in Java: leave it out")
		}
		t.out.WriteString(`\z`)
		atom = false
	case '*', '+', '?', '{':
		if !t.atoms {
			return errors.New("a pattern repeats what is not there")
		}
		if err := t.repeat(c); err != nil {
			return err
		}
		atom = false
	default:
		r, size := utf8.DecodeRuneInString(t.in[t.at-1:])
		t.at += size - 1
		t.out.WriteString(regexp.QuoteMeta(string(r)))
	}
	t.atoms = atom
	return nil
}

// Go refuses more than a thousand; three digits are less.
var repeats = regexp.MustCompile(`^\{\d{1,3}(,\d{0,3})?\}`)

// A repetition that takes as much as it can, and gives nothing back, is Java's alone. A lazy one
// only decides what a group has, and is the same for a whole match. Java has no bound on {n}.
// Go's is a thousand, and the size of the program is bounded besides, as {30} within {30} within
// {30} is 27,000 copies.
func (t *translator) repeat(c byte) error {
	how := string(c)
	if c == '{' {
		if how = repeats.FindString(t.in[t.at-1:]); how == "" {
			return errors.New("{…} of a pattern is {n}, {n,} or {n,m}")
		}
		t.at += len(how) - 1
	}
	t.out.WriteString(how)
	switch {
	case strings.HasPrefix(t.in[t.at:], "+"):
		return errors.New("a possessive repetition, such as a++, is not the same in Go: write one +")
	case strings.HasPrefix(t.in[t.at:], "?"):
		t.at++
		t.out.WriteByte('?')
	}
	return nil
}

// escape passes punctuation on, which is itself in both. Letters are refused unless they are
// known: \b and \w with flags differ, and others are only Java's. \s has one character less in
// Go, the vertical tab, and is written out. \d, \w and \s are ASCII in both, as long as
// UNICODE_CHARACTER_CLASS is not set, which takes a flag that is refused. \b is not: Java 19
// made it ASCII, and before it knew letters of all scripts.
func (t *translator) escape(class bool) (string, error) {
	if t.at == len(t.in) {
		return "", errors.New("a pattern ends in a backslash")
	}
	c := t.in[t.at]
	t.at++
	switch {
	case strings.IndexByte("dDwW", c) >= 0:
		return `\` + string(c), nil
	case strings.IndexByte("tnr", c) >= 0:
		return `\` + string(c), nil
	case c == 's' && class:
		return space, nil
	case c == 's':
		return "[" + space + "]", nil
	case c == 'S' && !class:
		return "[^" + space + "]", nil
	case c < 0x80 && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ", c) >= 0:
		return regexp.QuoteMeta(string(c)), nil
	}
	return "", fmt.Errorf(`\%c of a pattern is not the same in Go: write what it stands for`, c)
}

// class reads [...], of which only what both languages read alike is let through. A ^ that is
// not the first, a blank and a tilde are written as numbers, since Go reads some of them in
// classes as something else. Java's classes nest, intersect by && and subtract by both. Go reads
// the same characters as themselves and says nothing. [a-z&&[^aeiou]] is 21 consonants in Java;
// in Go it is a class with an ampersand in it, followed by a bracket. Of all differences between
// the dialects it is the one that no error shows.
func (t *translator) class() error {
	var b strings.Builder
	b.WriteByte('[')
	if strings.HasPrefix(t.in[t.at:], "^") {
		t.at++
		b.WriteByte('^')
	}
	for first := true; ; first = false {
		if t.at == len(t.in) {
			return errors.New("a class of the pattern is not closed")
		}
		rest := t.in[t.at:]
		c := rest[0]
		switch {
		case c == ']' && first:
			return errors.New("a class of the pattern is empty")
		case c == ']':
			t.at++
			b.WriteByte(']')
			t.out.WriteString(b.String())
			return nil
		case c == '[':
			return errors.New("a class within a class is Java's alone: write one class")
		case strings.HasPrefix(rest, "&&"):
			return errors.New("&& in a class is Java's alone: write the characters that are left")
		case c == '\\':
			t.at++
			s, err := t.escape(true)
			if err != nil {
				return err
			}
			if s == "-" {
				s = `\-`
			}
			b.WriteString(s)
		case c == '-' && !first && !strings.HasPrefix(rest, "-]"):
			t.at++
			if strings.HasPrefix(t.in[t.at:], `\`) || strings.HasPrefix(t.in[t.at:], "[") {
				return errors.New("a range of the pattern ends in neither a letter nor a digit")
			}
			b.WriteByte('-')
		case c == '-':
			t.at++
			b.WriteString(`\-`)
		case c == '^' || c == ' ' || c == '~':
			t.at++
			b.WriteString(`\x{` + fmt.Sprintf("%x", c) + "}")
		default:
			for _, r := range rest {
				b.WriteString(string(r))
				t.at += len(string(r))
				break
			}
		}
	}
}

// charge charges the matching of a text. The product is that of templates, and the reason too:
// 256 KiB by a pattern of some lines took 18 seconds.
func (p *pattern) charge(st *run.State, s string) error {
	if len(s) > maxSubject {
		return run.Faulty("matches a text of more than %d bytes", maxSubject)
	}
	return st.Step(1 + p.size*(len(s)+8)/16) // to set up for an empty text costs something, too
}

func (p *pattern) matches(st *run.State, s string) (any, error) {
	if err := p.charge(st, s); err != nil {
		return nil, err
	}
	return p.all.MatchString(s), nil
}

// split leaves out empty pieces at the end, and keeps the one piece of a text that has no match,
// even if it is empty. Java leaves out an empty text in front only where it was matched by
// nothing, which was refused. String.split(regex) is split(regex, 0), by which trailing empty
// texts are dropped. "".split(",") has one element, and ",".split(",") none: the first has no
// match, and is the text itself.
func (p *pattern) split(st *run.State, s string) (any, error) {
	if err := p.charge(st, s); err != nil {
		return nil, err
	}
	at := p.part.FindAllStringIndex(s, maxPieces)
	if len(at) == maxPieces {
		return nil, run.Faulty("splits a text into more than %d pieces", maxPieces)
	}
	if err := st.List(3 * (len(at) + 1)); err != nil {
		return nil, err
	}
	made := []any{}
	start := 0
	for _, m := range at {
		made = append(made, s[start:m[0]])
		start = m[1]
	}
	made = append(made, s[start:])
	// Only what a match has cut off can be left out: a text without one is a piece, empty or not.
	for len(at) > 0 && len(made) > 0 && made[len(made)-1] == "" {
		made = made[:len(made)-1]
	}
	return list{made: made}, nil
}

// split is String.split, which leaves out empty texts at the end. Java splits by a pattern, and
// leaves out empty texts at the end: "a,,".split(",") has one element. Go has three.
func (c *compiler) split(n *node, base *code) *code {
	if n.args[1].kind != kindText {
		c.fail(n.args[1], "what split looks for must be written out: it is a pattern")
	}
	re, err := translate(n.args[1].text)
	if err != nil {
		c.fail(n.args[1], "%v", err)
	}
	if re.part.MatchString("") {
		c.fail(n.args[1], "this pattern matches an empty text, at which Java splits in its own way")
	}
	return c.after(n, base, typ{k: listK, elem: &typ{k: textK}, array: true}, func(st *run.State, v any) (any, error) {
		s, ok := textOf(v)
		if !ok {
			return nil, run.Faulty("splits what is no text")
		}
		return re.split(st, s)
	})
}
