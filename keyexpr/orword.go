package keyexpr

import "strings"

// orName is what the function or is called for the engine, to which the word is always an operator. It has as many runes,
// so that offsets stay the same.
const orName = "o\u0155"

// hideOr renames calls of the function or in an expression: those where an operand may begin.
func hideOr(src string) string {
	if !strings.Contains(src, "or") {
		return src
	}
	var b strings.Builder
	operand := false // the last token ends an operand
	for i := 0; i < len(src); {
		n := 1
		switch c := src[i]; {
		case c == '\'' || c == '"' || c == '`':
			n, operand = max(skipQuoted(src[i:]), 1), true
		case c == '/' && skipQuoted(src[i:]) != 1:
			n = max(skipQuoted(src[i:]), 1)
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case wordAt(src[i:]) > 0:
			n = wordAt(src[i:])
			word := src[i : i+n]
			call := strings.HasPrefix(strings.TrimLeft(src[i+n:], " \t\r\n"), "(")
			if word == "or" && !operand && call {
				b.WriteString(orName)
				i, operand = i+n, true
				continue
			}
			operand = isName(word) || word == "true" || word == "false" || word == "nil" || word[0] <= '9'
		default:
			operand = c == ')' || c == ']' || c == '}' || c == '#'
		}
		b.WriteString(src[i : i+n])
		i += n
	}
	return b.String()
}

// wordAt returns the length of the name or number that s begins with.
func wordAt(s string) int {
	return spanOf(s, func(r rune) bool { return isLetter(r) || r == '$' || r >= '0' && r <= '9' })
}

// showOr gives the function its name back, in messages.
func showOr(s string) string { return strings.ReplaceAll(s, orName, "or") }
