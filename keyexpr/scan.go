package keyexpr

import (
	"strings"
	"unicode/utf8"
)

// maxText bounds the length of a template or condition, and with it how deep brackets can nest. A key is shorter.
const maxText = 4096

// part is a piece of a template: literal text, or the source of a hole.
type part struct {
	hole bool
	text string // what the literal says, or the expression between #{ and }
	off  int    // where text begins in the template, in bytes
}

// scan cuts a template into parts. Literals are never empty, and two holes always have a literal between them.
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

type scanner struct {
	text  string
	at    int
	parts []part
	lit   strings.Builder // the literal at work
	litAt int             // where it begins
}

func (s *scanner) flush() {
	if s.lit.Len() > 0 {
		s.parts = append(s.parts, part{text: s.lit.String(), off: s.litAt})
		s.lit.Reset()
	}
}

// next reads a byte of a literal, or hashes and what they introduce.
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

// checkText refuses what neither a template nor a condition may be.
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

// loneHole reports whether s begins with {#name, which somebody meant to be a hole.
func loneHole(s string) bool {
	if !strings.HasPrefix(s, "{#") {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s[2:])
	return isLetter(r)
}

// holeEnd returns the offset of the brace that closes the one at open. Brackets in strings and comments do not count.
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

// skipQuoted returns the length of the string or comment that s begins with, 1 if it begins with neither, and -1 if its
// end is missing.
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

// skipRaw is skipQuoted for a string in backquotes, in which two backquotes stand for one.
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

func quotedName(s string) string {
	if s[0] == '/' {
		return "the comment"
	}
	return "the string"
}
