// Package safe shows texts of strangers on a terminal. The name of a lock can hold whatever a request held: commands for the
// terminal, bytes that are no UTF-8, ten thousand letters.
package safe

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s if a terminal shows just that, and otherwise a string literal of Go. So does what looks like such a literal, is
// empty, or begins or ends with a space: the two can't be confused.
func Text(s string) string {
	if s == "" || s[0] == '"' || s[0] == ' ' || s[len(s)-1] == ' ' || !printable(s) {
		return strconv.Quote(s)
	}
	return s
}

// printable leaves out what has no width or changes the direction of the text, as U+202E does.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// Cut is Text of no more than n characters. A longer text ends with an ellipsis and the number of its bytes.
func Cut(s string, n int) string {
	if len(s) <= n { // the most cases
		if t := Text(s); utf8.RuneCountInString(t) <= n {
			return t
		}
	}
	t := Text(s[:min(len(s), 4*n)]) // as much as can matter
	tail := "…(" + strconv.Itoa(len(s)) + " bytes)"
	keep := max(1, n-utf8.RuneCountInString(tail))
	if utf8.RuneCountInString(t) <= n && len(s) <= 4*n {
		return t
	}
	for i := range t {
		if keep--; keep < 0 {
			t = t[:i]
			break
		}
	}
	return t + tail
}

// Lines is a message for people that may have texts of strangers in it. Its line breaks stay.
func Lines(s string) string {
	var b strings.Builder
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, r := range line {
			if r == utf8.RuneError || !unicode.IsPrint(r) && r != '\t' {
				q := strconv.QuoteRuneToASCII(r)
				b.WriteString(q[1 : len(q)-1])
				continue
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// String is a text in JSON. Bytes that are no UTF-8 can't be in JSON, and would all look alike.
type String string

// MarshalJSON makes a string, or an object {"base64": …} of what is no UTF-8.
func (s String) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(s)) {
		return json.Marshal(string(s))
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString([]byte(s)), "quoted": strconv.Quote(string(s))})
}
