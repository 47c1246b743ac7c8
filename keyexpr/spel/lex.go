package spel

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The first stage: the text of one expression becomes tokens with their places, of which the last
// one is the end. The model is Spring's lexer, with its doubled quotes and operators that are words.

// tokenKind does not tell operators that are words from names. The parser does, since #and is a name.
type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenText
	tokenNumber
	tokenName
	tokenSign
)

// token keeps the text that a quoted one stands for, and the digits of a number.
type token struct {
	kind tokenKind
	text string
	off  int
}

// signs are the operators and brackets. A sign comes before its own beginnings. Marks that only
// make sense together are one sign, as they are to Spring.
var signs = strings.Fields("?.?[ ?.^[ ?.$[ ?.![ .?[ .^[ .$[ .![ ?.[ ?. ?: == != <= >= && || ++ -- ( ) [ ] { } . , : ? + - * / % ^ < > ! = # @ &")

// lex cuts a source into tokens:
//
//	token  = text | number | name | sign
//	text   = "'" { any | "''" } "'" | '"' { any | '""' } '"'          SpringEL doubles a quote
//	       | '"' { any | "\" escape } '"'                             plain Java escapes it
//	number = digit { letter | digit }
//	name   = ( letter | "$" | "_" ) { letter | digit | "$" | "_" }
func (p *parser) lex(src string, off int) (tokens []token) {
	for i := 0; i < len(src); {
		c, size := utf8.DecodeRuneInString(src[i:])
		add := func(kind tokenKind, text string, n int) {
			tokens = append(tokens, token{kind, text, off + i})
			i += n
		}
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			i += size
		case c == '\'' && p.plain:
			p.fail(off+i, "characters are not read here: write \"…\" for a text, or make the key with KeyFunc")
		case c == '\'' || c == '"':
			text, n := p.lexText(src[i:], off+i)
			add(tokenText, text, n)
		case strings.HasPrefix(src[i:], "${"):
			p.fail(off+i, "${…} is filled in by Spring: write the value")
		case isDigit(c):
			n := spanOf(src[i:], isWord)
			add(tokenNumber, src[i:i+n], n)
		case isWord(c):
			n := spanOf(src[i:], isWord)
			add(tokenName, src[i:i+n], n)
		default:
			sign := slices.IndexFunc(signs, func(sign string) bool { return strings.HasPrefix(src[i:], sign) })
			if sign < 0 {
				p.fail(off+i, "unexpected %q", c)
			}
			add(tokenSign, signs[sign], len(signs[sign]))
		}
	}
	return append(tokens, token{tokenEnd, "the end", off + len(src)})
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// isWord reports whether r may be in a name, as Tokenizer.isIdentifier of Spring has it.
func isWord(r rune) bool { return r == '_' || r == '$' || isDigit(r) || unicode.IsLetter(r) }

// spanOf returns the number of bytes at the beginning of s that are in a set of characters.
func spanOf(s string, in func(rune) bool) int {
	if n := strings.IndexFunc(s, func(r rune) bool { return !in(r) }); n >= 0 {
		return n
	}
	return len(s)
}

// lexText reads a string in which a quote is doubled, or escaped in plain Java. A backslash in
// SpringEL is itself. An escape that is not listed, such as \101, is refused.
func (p *parser) lexText(s string, off int) (text string, n int) {
	quote := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && p.plain && i+1 < len(s):
			i++
			escaped := strings.IndexByte(`nt\'"`, s[i])
			if escaped < 0 {
				p.fail(off+i, "unknown escape \\%c", s[i])
			}
			b.WriteByte("\n\t\\'\""[escaped])
		case s[i] != quote:
			b.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == quote && !p.plain:
			b.WriteByte(quote)
			i++
		default:
			return b.String(), i + 1
		}
	}
	p.fail(off, "the string is not closed")
	return "", 0
}
