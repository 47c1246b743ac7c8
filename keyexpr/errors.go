package keyexpr

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// ErrValue is matched by every error of Expand and Eval that is the fault of a request's values: nil or empty where a
// key needs something, a type that is no key material, an expression that failed. Their texts name the hole, never its
// value, except that of a panic, which is for the log: it says what the panic was given, and where it happened.
var ErrValue = run.ErrValue

// Error is a fault in a template or condition, found at start.
type Error struct {
	Text   string // the whole text
	Offset int    // where in Text the fault begins, in bytes; at most len(Text)
	Reason string // what is wrong and, where it can be guessed, what was meant
}

// Error returns one line: the reason and the offset.
func (e *Error) Error() string {
	return fmt.Sprintf("keyexpr: %s (at offset %d of %q)", e.Reason, e.Offset, run.Abridge(e.Text))
}

// Detail returns the error over several lines, for people: the reason, the line of the text that is at fault, and a caret
// under the place.
func (e *Error) Detail() string {
	start := strings.LastIndexByte(e.Text[:e.Offset], '\n') + 1
	line, _, _ := strings.Cut(e.Text[start:], "\n")
	var pad strings.Builder
	for _, r := range e.Text[start:e.Offset] {
		if r != '\t' {
			r = ' '
		}
		pad.WriteRune(r)
	}
	return fmt.Sprintf("keyexpr: %s\n    %s\n    %s^", e.Reason, line, pad.String())
}

// errAt keeps the promises of Error: one line, and an offset within the text.
func errAt(text string, off int, format string, args ...any) *Error {
	reason := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	return &Error{Text: text, Offset: min(max(off, 0), len(text)), Reason: reason}
}

// byteOffset converts an offset in runes, as the engine counts, into one in bytes.
func byteOffset(s string, runes int) int {
	for i := range s {
		if runes--; runes < 0 {
			return i
		}
	}
	return len(s)
}

func isLetter(r rune) bool { return r == '_' || unicode.IsLetter(r) }
