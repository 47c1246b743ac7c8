package spel

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tokens of SpringEL and of the small part of Java that names of locks are written in. Spring's
// lexer is the model, with its doubled quotes and words that are operators in any case. It takes
// the text of one expression and gives tokens with their places, of which the last one is the
// end. Nothing is decided here but where a token ends, and no value is computed: a number is
// still its digits, so that an error about it can show them.

// What is a word for an operator and what is a name is not decided here, as #and is a name.
type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenText
	tokenChar // of plain Java
	tokenNumber
	tokenName
	tokenSign
)

// The text of a quoted one is what it stands for, without quotes.
type token struct {
	kind tokenKind
	text string
	off  int
}

// signs are the operators and brackets, longest first. ?.[ and the like are one sign, as Spring
// reads them: ?. in front of a bracket would be a name that is missing. Tokenizer.process tries
// two characters before one. Here the marks that only make sense together are one sign, so that
// the parser never has to look two tokens ahead. A new sign must come before its own beginnings:
// with ?. in front of ?.[ a list behind ?. would be asked for a name.
var signs = strings.Fields("?.?[ ?.^[ ?.$[ ?.![ .?[ .^[ .$[ .![ ?.[ ?. ?: == != <= >= && || ++ -- ( ) [ ] { } . , : ? + - * / % ^ < > ! = # @ &")

// lex cuts a source into tokens:
//
//	token  = text | number | name | sign
//	text   = "'" { any | "''" } "'" | '"' { any | '""' } '"'          SpringEL doubles a quote
//	       | '"' { any | "\" escape } '"'                             plain Java escapes it
//	char   = "'" ( any | "\" escape ) "'"                             plain Java only
//	number = digit { letter | digit }
//	name   = ( letter | "$" | "_" ) { letter | digit | "$" | "_" }
//
// A character that begins no token is an error and not a part of one: Java's own letters are
// more than Go's in a few scripts, and a name in one of these must not be cut in two.
//
// Placeholders such as ${app.prefix} are filled in by the Spring container before SpringEL sees
// the text. Their values are in the configuration of the other program, and so they are refused
// by name: a general complaint about a dollar would send people looking for a typing mistake.
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
			text, n := p.lexText(src[i:], off+i)
			if utf8.RuneCountInString(text) != 1 || text > "\uffff" {
				p.fail(off+i, "'…' is one character in Java: write \"…\" for a text")
			}
			add(tokenChar, text, n)
		case c == '\'' || c == '"':
			text, n := p.lexText(src[i:], off+i)
			add(tokenText, text, n)
		case strings.HasPrefix(src[i:], "${"):
			p.fail(off+i, "${…} is filled in by Spring: write the value")
		case c >= '0' && c <= '9':
			n := spanOf(src[i:], func(r rune) bool { return r >= '0' && r <= '9' || isLetter(r) })
			add(tokenNumber, src[i:i+n], n)
		case isLetter(c):
			n := spanOf(src[i:], func(r rune) bool { return isLetter(r) || r >= '0' && r <= '9' })
			add(tokenName, src[i:i+n], n)
		default:
			// A character that is neither is shown as Go quotes it: it may be invisible.
			sign := signOf(src[i:])
			if sign == "" {
				p.fail(off+i, "unexpected %q", c)
			}
			add(tokenSign, sign, len(sign))
		}
	}
	return append(tokens, token{tokenEnd, "the end", off + len(src)})
}

// The dollar is one in Java, and in names that compilers make. Tokenizer.isIdentifier takes
// letters, digits, underscore and dollar. A name that was cut short at one of these would be
// another name, and might even exist.
func isLetter(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }

// It counts bytes, as all places do.
func spanOf(s string, in func(rune) bool) int {
	if n := strings.IndexFunc(s, func(r rune) bool { return !in(r) }); n >= 0 {
		return n
	}
	return len(s)
}

// The list is in the order of lengths, so that the first that fits is the longest.
func signOf(s string) string {
	for _, sign := range signs {
		if strings.HasPrefix(s, sign) {
			return sign
		}
	}
	return ""
}

// lexText reads a string in which a quote is doubled, or escaped in plain Java. An escape that
// is not listed, such as \u0041 or \101, is refused rather than guessed at.
// Tokenizer.lexQuotedStringLiteral knows the doubled quote and no escape, so that a backslash in
// SpringEL is itself, and "a\tb" has a backslash in its key. Java's own compiler reads the same
// characters as a tab. One reading for both would give one of the two programs another key,
// hence the two grammars.
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
