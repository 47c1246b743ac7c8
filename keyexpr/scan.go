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
	var parts []part
	var lit strings.Builder
	litAt := 0
	flush := func() {
		if lit.Len() > 0 {
			parts = append(parts, part{text: lit.String(), off: litAt})
			lit.Reset()
		}
	}
	for i := 0; i < len(text); {
		if text[i] != '#' {
			if loneHole(text[i:]) {
				return nil, errAt(text, i, "{#…} is not a hole: write #{…}")
			}
			lit.WriteByte(text[i])
			i++
			continue
		}
		hashes := countHashes(text[i:])
		next := i + hashes
		if next == len(text) || text[next] != '{' {
			lit.WriteString(text[i:next])
			i = next
			continue
		}
		// In front of a brace every two hashes stand for one, so that ##{ is a literal #{ and ###{ a # and a hole.
		lit.WriteString(text[i : i+hashes/2])
		if hashes%2 == 0 {
			lit.WriteByte('{')
			i = next + 1
			continue
		}
		if n := len(parts); lit.Len() == 0 && n > 0 && parts[n-1].hole {
			return nil, errAt(text, i, "two holes without a literal between them: what is put in could not be told apart")
		}
		flush()
		end, err := holeEnd(text, next)
		if err != nil {
			return nil, err
		}
		src := text[next+1 : end]
		if strings.TrimSpace(src) == "" {
			return nil, errAt(text, next-1, "empty hole")
		}
		parts = append(parts, part{hole: true, text: src, off: next + 1})
		i = end + 1
		litAt = i
	}
	flush()
	return parts, nil
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
