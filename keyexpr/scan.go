package keyexpr

import (
	"strconv"
	"strings"
	"unicode"
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
	if err := checkBlanks(text, s.parts); err != nil {
		return nil, err
	}
	if err := checkForeign(text, s.parts); err != nil {
		return nil, err
	}
	return s.parts, checkBraces(text, s.parts)
}

// checkBlanks refuses what is in a literal and can't be seen: blanks at the ends of the text, line
// ends and other control characters, and what unseen lists. They come from a file or a variable
// whose last line end was read as well, or from a page that a text was copied from, and make
// another key than the service has that writes the same without it. Nothing would show that the
// two don't exclude each other. A blank within is seen, and may be meant. Texts in holes are left
// alone: they may be compared with values, which have any characters, and can be written with
// escapes that everybody sees.
func checkBlanks(text string, parts []part) error {
	for i, p := range parts {
		if p.hole {
			continue
		}
		if i == 0 && strings.TrimLeftFunc(p.text, unicode.IsSpace) != p.text {
			return errAt(text, 0, "begins with a blank, which would be in the key: remove it")
		}
		if rest := strings.TrimRightFunc(p.text, unicode.IsSpace); i == len(parts)-1 && rest != p.text {
			return errAt(text, place(text, p, len(rest)), "ends with a blank or a line end, which would be in the key: remove it")
		}
		if at := strings.IndexFunc(p.text, unicode.IsControl); at >= 0 {
			return errAt(text, place(text, p, at), "a line end or another control character would be in the key")
		}
		if at := strings.IndexFunc(p.text, unseen); at >= 0 {
			r, _ := utf8.DecodeRuneInString(p.text[at:])
			why := "can't be seen, and would be in the key: remove it, or write"
			if unicode.IsSpace(r) {
				why = "looks like a blank and is another character: write a blank, or"
			}
			return errAt(text, place(text, p, at), "%U %s #{%s} if it is meant", r, why, strconv.QuoteToASCII(string(r)))
		}
	}
	return nil
}

// unseen reports whether r shows nothing, or the same as a blank. Joiners of scripts and emoji are
// among these characters, as a text looks nearly the same with them and without.
func unseen(r rune) bool {
	return r != ' ' && unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
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
	// Found here, and not when holes are compiled: it is wrong whatever is in them, and Check finds it
	// without any roots.
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

// checkBraces refuses literals that no key has: braces that do not pair, and what other
// languages begin their holes with. They are errors under OneKey, too. That a key without facts
// is meant says nothing about a brace in it that does not close. Pairs are counted over all
// literals together, as a hash tag may have holes in it: order:{#{req.ID}}:x is two literals
// with one brace each.
func checkBraces(text string, parts []part) error {
	var open []int
	for _, p := range parts {
		if p.hole {
			continue
		}
		for i := range len(p.text) {
			at := place(text, p, i)
			switch {
			case p.text[i] == '{':
				open = append(open, at)
			case p.text[i] == '}' && len(open) == 0:
				return errAt(text, at, "a } without a {: a hole is written #{…}, and ends at its }")
			case p.text[i] == '}':
				open = open[:len(open)-1]
			}
		}
	}
	if len(open) > 0 {
		return errAt(text, open[len(open)-1], "a { without a }: a hole is written #{…}, and a hash tag {…}")
	}
	return nil
}

// place returns where the i-th byte of a literal stands in the text, in which some hashes count
// half. A literal has no table of where its bytes come from, since it is needed for errors
// alone. So the text is gone through again, as the scanner has done it.
func place(text string, p part, i int) int {
	for at, n := p.off, 0; at < len(text); {
		hashes := countHashes(text[at:])
		literal, source := max(hashes, 1), max(hashes, 1)
		each := 1
		if hashes > 0 && at+hashes < len(text) && text[at+hashes] == '{' {
			literal, source, each = hashes/2+1-hashes%2, hashes+1, 2
		}
		if i < n+literal {
			return min(at+each*(i-n), at+source-1)
		}
		n, at = n+literal, at+source
	}
	return len(text)
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
