package keyexpr

import (
	"strings"
	"unicode/utf8"
)

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenText
	tokenNumber
	tokenName
	tokenSign
)

type spelToken struct {
	kind tokenKind
	text string
	off  int
}

// signs are the operators and brackets, longest first.
var signs = strings.Fields("?.?[ ?.^[ ?.$[ ?.![ .?[ .^[ .$[ .![ ?.[ ?. ?: == != <= >= && || ++ -- ( ) [ ] { } . , : ? + - * / % ^ < > ! = # @ &")

func (p *spelParser) lex(src string, off int) (tokens []spelToken) {
	for i := 0; i < len(src); {
		c, size := utf8.DecodeRuneInString(src[i:])
		switch {
		case c <= ' ':
			i += size
		case c == '\'' || c == '"':
			text, n := p.lexText(src[i:], off+i)
			tokens = append(tokens, spelToken{tokenText, text, off + i})
			i += n
		case strings.HasPrefix(src[i:], "${"):
			p.fail(off+i, "${…} is filled in by Spring: write the value")
		case c >= '0' && c <= '9':
			n := spanOf(src[i:], func(r rune) bool { return r >= '0' && r <= '9' || isLetter(r) && r != '_' })
			tokens = append(tokens, spelToken{tokenNumber, src[i : i+n], off + i})
			i += n
		case isLetter(c) || c == '$':
			n := spanOf(src[i:], func(r rune) bool { return isLetter(r) || r == '$' || r >= '0' && r <= '9' })
			tokens = append(tokens, spelToken{tokenName, src[i : i+n], off + i})
			i += n
		default:
			sign := signOf(src[i:])
			if sign == "" {
				p.fail(off+i, "unexpected %q", c)
			}
			tokens = append(tokens, spelToken{tokenSign, sign, off + i})
			i += len(sign)
		}
	}
	return append(tokens, spelToken{tokenEnd, "the end", off + len(src)})
}

func spanOf(s string, in func(rune) bool) int {
	if n := strings.IndexFunc(s, func(r rune) bool { return !in(r) }); n >= 0 {
		return n
	}
	return len(s)
}

func signOf(s string) string {
	for _, sign := range signs {
		if strings.HasPrefix(s, sign) {
			return sign
		}
	}
	return ""
}

// lexText reads a string in which a quote is doubled, or escaped in plain Java.
func (p *spelParser) lexText(s string, off int) (text string, n int) {
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
