package keyexpr

import (
	"strings"
	"unicode/utf8"
)

// maxText bounds the length of a template or condition, and with it how deep brackets can nest.
// A key is shorter. The parsers behind it recurse once for each bracket, so that the bound is
// also one of the stack. Nobody has needed a tenth of it: a template that is longer is a mistake
// of whatever has generated it.
const maxText = 4096

// part is a piece of a template: literal text, or the source of a hole. The offset is kept with
// each piece because everything that is found out later, by the engine as well, must point into
// the text that somebody wrote and not into the piece.
type part struct {
	hole bool
	text string // what the literal says, or the expression between #{ and }
	off  int    // where text begins in the template, in bytes
}

// scan cuts a template into parts. Literals are never empty, and two holes always have a literal
// between them. That two holes have a literal between them is not a matter of taste. Without
// one, ("ab", "c") and ("a", "bc") would be one key, and no escape could help, as there is
// nothing to escape for.
//
// The grammar of a template:
//
//	template = { byte | "##" … "{" | hole }      in front of a brace, two hashes stand for one
//	hole     = "#{" expression "}"               brackets and strings in it are balanced
//
// The engine parses the expressions. All that is done here is to find their ends, which the
// engine can't do: it reads to the end of its text, and takes a } that is too much for a
// mistake.
func scan(text string) ([]part, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	s := scanner{text: text}
	for s.at < len(text) {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	s.flush()
	return s.parts, checkBraces(text, s.parts)
}

// A literal is collected in a builder because it is not always a piece of the text: ##{ in the
// text is #{ in the literal.
type scanner struct {
	text  string
	at    int
	parts []part
	lit   strings.Builder // the literal at work
	litAt int             // where it begins
}

// An empty literal is none: two holes with nothing between them must be seen as what they are.
func (s *scanner) flush() {
	if s.lit.Len() > 0 {
		s.parts = append(s.parts, part{text: s.lit.String(), off: s.litAt})
		s.lit.Reset()
	}
}

// next reads a byte of a literal, or hashes and what they introduce. Only hashes in front of a
// brace mean anything, as order#7 and C## are keys that people have. A lone {#name is refused
// although it could be a literal: it is how other libraries write holes, and what somebody who
// has turned the two characters around would write. A lock that is taken for the text {#id} is
// taken for everybody.
func (s *scanner) next() error {
	hashes := countHashes(s.text[s.at:])
	if hashes == 0 {
		if loneHole(s.text[s.at:]) {
			return errAt(s.text, s.at, "{#…} is not a hole: write #{…}")
		}
		s.lit.WriteByte(s.text[s.at])
		s.at++
		return nil
	}
	end := s.at + hashes
	if end == len(s.text) || s.text[end] != '{' {
		s.lit.WriteString(s.text[s.at:end])
		s.at = end
		return nil
	}
	// In front of a brace every two hashes stand for one, so that ##{ is a literal #{ and ###{ a # and a hole.
	s.lit.WriteString(s.text[s.at : s.at+hashes/2])
	if hashes%2 == 0 {
		s.lit.WriteByte('{')
		s.at = end + 1
		return nil
	}
	return s.hole(end)
}

// hole reads the hole whose brace is at open.
func (s *scanner) hole(open int) error {
	if n := len(s.parts); s.lit.Len() == 0 && n > 0 && s.parts[n-1].hole {
		return errAt(s.text, open-1, "two holes without a literal between them: what is put in could not be told apart")
	}
	s.flush()
	end, err := holeEnd(s.text, open)
	if err != nil {
		return err
	}
	src := s.text[open+1 : end]
	if strings.TrimSpace(src) == "" {
		return errAt(s.text, open-1, "empty hole")
	}
	s.parts = append(s.parts, part{hole: true, text: src, off: open + 1})
	s.at, s.litAt = end+1, end+1
	return nil
}

// checkText refuses what neither a template nor a condition may be. Templates come from struct
// tags and from files as well as from Go. A byte that is no UTF-8 would be taken for U+FFFD by
// the engine, and for itself by everything else.
func checkText(text string) error {
	if strings.TrimSpace(text) == "" {
		return errAt(text, 0, "nothing is written here")
	}
	if len(text) > maxText {
		return errAt(text, maxText, "longer than %d bytes", maxText)
	}
	for i, r := range text {
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			return errAt(text, i, "not UTF-8")
		}
	}
	return nil
}

func countHashes(s string) int { return len(s) - len(strings.TrimLeft(s, "#")) }

// loneHole reports whether s begins with {#name, which somebody meant to be a hole. A {# with
// something else behind it is left alone: colours and CSS have it.
func loneHole(s string) bool {
	if !strings.HasPrefix(s, "{#") {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s[2:])
	return isLetter(r)
}

// holeEnd returns the offset of the brace that closes the one at open. Brackets in strings and
// comments do not count. It knows three kinds of brackets and not only braces, so that a hole
// which is closed too early is found where it was opened and not at the end of the text. Strings
// and comments are skipped as the engine skips them. Where the two did not agree, a } in a
// string could end the hole for one and not for the other.
func holeEnd(text string, open int) (int, error) {
	closer := map[byte]byte{'{': '}', '(': ')', '[': ']'}
	stack := []int{open}
	for i := open + 1; i < len(text); {
		switch c := text[i]; c {
		case '{', '(', '[':
			stack = append(stack, i)
			i++
		case '}', ')', ']':
			top := stack[len(stack)-1]
			if closer[text[top]] != c {
				return 0, errAt(text, top, "%q is closed by %q", text[top], c)
			}
			if stack = stack[:len(stack)-1]; len(stack) == 0 {
				return i, nil
			}
			i++
		case '\'', '"', '`', '/':
			n := skipQuoted(text[i:])
			if n < 0 {
				return 0, errAt(text, i, "%s is not closed", quotedName(text[i:]))
			}
			i += n
		default:
			i++
		}
	}
	if len(stack) > 1 {
		return 0, errAt(text, stack[len(stack)-1], "%q is not closed", text[stack[len(stack)-1]])
	}
	return 0, errAt(text, open-1, "the hole is not closed by }")
}

// skipQuoted returns the length of the string or comment that s begins with, 1 if it begins with
// neither, and -1 if its end is missing. A slash alone divides. What follows it is part of the
// expression, and must be looked at for brackets.
func skipQuoted(s string) int {
	switch {
	case strings.HasPrefix(s, "//"):
		return lengthTo(s, 2, "\n")
	case strings.HasPrefix(s, "/*"):
		return lengthTo(s, 2, "*/")
	case s[0] == '/':
		return 1
	case s[0] == '`':
		return skipRaw(s)
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return -1
}

// skipRaw is skipQuoted for a string in backquotes, in which two backquotes stand for one. In a
// raw string nothing is escaped, and so the backslash of a pattern does not hide its end.
func skipRaw(s string) int {
	for i := 1; i < len(s); i++ {
		if s[i] != '`' {
			continue
		}
		if i+1 == len(s) || s[i+1] != '`' {
			return i + 1
		}
		i++
	}
	return -1
}

func lengthTo(s string, from int, end string) int {
	i := strings.Index(s[from:], end)
	if i < 0 {
		return -1
	}
	return from + i + len(end)
}

// The place of the error is where it began, since where it should have ended is not known.
func quotedName(s string) string {
	if s[0] == '/' {
		return "the comment"
	}
	return "the string"
}
