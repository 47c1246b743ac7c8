package keyexpr

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

// maxText bounds the length of a template or condition, and with it how deep brackets can nest. The parsers behind it recurse
// once for each bracket, so that the bound is also one of the stack. A template that is longer is a mistake of whatever has
// generated it.
const maxText = 4096

// part is a piece of a template: literal text, or the source of a hole.
type part struct {
	hole bool
	text string // what the literal says, or the expression between #{ and }
	off  int    // where a hole begins in the template, in bytes
	at   []int  // where each byte of a literal stands in the template: ##{ there is #{ here
}

// scan cuts a template into parts. Literals are never empty, and two holes always have a literal between them: without one,
// ("ab", "c") and ("a", "bc") would be one key, and no escape could help, as there is nothing to escape for.
//
// The grammar of a template:
//
//	template = { byte | "##" … "{" | hole }      in front of a brace, two hashes stand for one
//	hole     = "#{" expression "}"               brackets and strings in it are balanced
//
// Only hashes in front of a brace mean anything, as order#7 and C## are keys that people have.
func scan(text string) ([]part, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	s := scanner{text: text}
	for at := 0; at < len(text); {
		hashes := len(text[at:]) - len(strings.TrimLeft(text[at:], "#"))
		end := at + hashes
		if end == len(text) || text[end] != '{' {
			end = max(end, at+1)
			for ; at < end; at++ {
				s.keep(at)
			}
			continue
		}
		for range hashes / 2 {
			s.keep(at)
			at += 2
		}
		if at = end; hashes%2 == 0 {
			s.keep(end)
			at++
			continue
		}
		var err error
		if at, err = s.hole(end); err != nil {
			return nil, err
		}
	}
	s.flush()
	if err := checkLiterals(text, s.parts); err != nil {
		return nil, err
	}
	return s.parts, nil
}

// scanner collects parts, and the literal at work.
type scanner struct {
	text  string
	parts []part
	lit   []byte
	at    []int
}

func (s *scanner) keep(at int) { s.lit, s.at = append(s.lit, s.text[at]), append(s.at, at) }

func (s *scanner) flush() {
	if len(s.lit) > 0 {
		s.parts = append(s.parts, part{text: string(s.lit), at: s.at})
		s.lit, s.at = nil, nil
	}
}

// hole reads the hole whose brace is at open, and returns where it ends.
func (s *scanner) hole(open int) (int, error) {
	if n := len(s.parts); len(s.lit) == 0 && n > 0 && s.parts[n-1].hole {
		return 0, errAt(s.text, open-1, "two holes without a literal between them: what is put in could not be told apart")
	}
	s.flush()
	end, err := holeEnd(s.text, open)
	if err != nil {
		return 0, err
	}
	src := s.text[open+1 : end]
	if strings.TrimSpace(src) == "" {
		return 0, errAt(s.text, open-1, "empty hole")
	}
	s.parts = append(s.parts, part{hole: true, text: src, off: open + 1})
	return end + 1, nil
}

// holeEnd returns the offset of the brace that closes the one at open. The engine's lexer says what is a string or a comment, in
// which brackets do not count. It knows three kinds of brackets and not only braces, so that a hole which is closed too early is
// found where it was opened and not at the end of the text.
func holeEnd(text string, open int) (int, error) {
	closer := map[string]string{"{": "}", "(": ")", "[": "]"}
	rest := text[open+1:]
	tokens, stack := lexer.New(), []int{open}
	for tokens.Reset(file.NewSource(rest)); ; {
		token, err := tokens.Next()
		fault, _ := errors.AsType[*file.Error](err)
		top := stack[len(stack)-1]
		switch {
		case fault != nil && !strings.Contains(rest[byteOffset(rest, fault.From):], "}"):
			return 0, errAt(text, open-1, "the hole is not closed by }: %s", fault.Message)
		case fault != nil:
			return 0, errAt(text, open+1+byteOffset(rest, fault.From), "not an expression: %s", fault.Message)
		case errors.Is(err, io.EOF) || token.Kind == lexer.EOF:
			if len(stack) > 1 {
				return 0, errAt(text, top, "%q is not closed", text[top])
			}
			return 0, errAt(text, open-1, "the hole is not closed by }")
		case token.Kind != lexer.Bracket:
			continue
		}
		at := open + 1 + byteOffset(rest, token.From)
		if closer[token.Value] != "" {
			stack = append(stack, at)
			continue
		}
		if closer[text[top:top+1]] != token.Value {
			return 0, errAt(text, top, "%q is closed by %q", text[top], token.Value[0])
		}
		if stack = stack[:len(stack)-1]; len(stack) == 0 {
			return at, nil
		}
	}
}

// checkText refuses a text that neither a template nor a condition may be. A byte that is no UTF-8 would be taken for
// U+FFFD by the engine, and for itself by everything else.
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

// checkLiterals refuses text that no key has: invisible characters, the beginning of a hole in other languages, and
// braces that do not pair. Pairs are counted over all literals together, as a hash tag may have holes in it.
func checkLiterals(text string, parts []part) error {
	if strings.TrimLeftFunc(text, unicode.IsSpace) != text {
		return errAt(text, 0, "begins with a blank, which would be in the key: remove it")
	}
	if rest := strings.TrimRightFunc(text, unicode.IsSpace); rest != text {
		return errAt(text, len(rest), "ends with a blank or a line end, which would be in the key: remove it")
	}
	var open []int
	for _, p := range parts {
		if p.hole {
			continue
		}
		for i, r := range p.text {
			if err := checkSeen(text, p.at[i], r); err != nil {
				return err
			}
		}
		if err := checkForeign(text, p); err != nil {
			return err
		}
		for i := range len(p.text) {
			switch {
			case p.text[i] == '{':
				open = append(open, p.at[i])
			case p.text[i] == '}' && len(open) == 0:
				return errAt(text, p.at[i], "a } without a {: a hole is written #{…}, and ends at its }")
			case p.text[i] == '}':
				open = open[:len(open)-1]
			}
		}
	}
	if len(open) > 0 {
		return errAt(text, slices.Max(open), "a { without a }: a hole is written #{…}, and a hash tag {…}")
	}
	return nil
}

// checkSeen refuses a rune that shows nothing, or the same as a blank. They come from a file or a variable whose last line end was
// read as well, or from a page that a text was copied from. Joiners of scripts and emoji are among them, as a text looks nearly
// the same with them and without.
func checkSeen(text string, at int, r rune) error {
	switch {
	case unicode.IsControl(r):
		return errAt(text, at, "a line end or another control character would be in the key")
	case r != ' ' && unicode.IsSpace(r):
		return errAt(text, at, "%U looks like a blank and is another character: write a blank, or #{%s} if it is meant", r, strconv.QuoteToASCII(string(r)))
	case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return errAt(text, at, "%U can't be seen, and would be in the key: remove it, or write #{%s} if it is meant", r, strconv.QuoteToASCII(string(r)))
	}
	return nil
}
