package keyexpr

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrValue is matched by every error of Expand and Eval that is the fault of a request's values: nil or empty where a
// key needs something, a type that is no key material, an expression that failed. Their texts name the hole, never its
// value.
var ErrValue = errors.New("keyexpr: unusable value")

// Error is a fault in a template or condition, found at start.
type Error struct {
	Text   string // the whole text
	Offset int    // where in Text the fault begins, in bytes; at most len(Text)
	Reason string // what is wrong and, where it can be guessed, what was meant
}

// Error returns one line: the reason and the offset.
func (e *Error) Error() string {
	return fmt.Sprintf("keyexpr: %s (at offset %d of %q)", e.Reason, e.Offset, abridge(e.Text))
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

// abridge shortens a text that is too long for one line of a log.
func abridge(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// valueError is a fault of a value. Its text may go to logs: it never holds the value.
type valueError struct{ reason string }

func (e *valueError) Error() string { return e.reason }

func faulty(format string, args ...any) error {
	return &valueError{reason: fmt.Sprintf(format, args...)}
}

var (
	errNil   = faulty("is nil; if it may be, write what stands for it: ?? \"none\"")
	errEmpty = faulty("is empty")
)

// factError is an error of Facts, kept apart from those of the engine.
type factError struct {
	root string
	err  error
}

func (e *factError) Error() string { return fmt.Sprintf("root %s: %v", e.root, e.err) }
func (e *factError) Unwrap() error { return e.err }

// blame turns the error of an expression into the one that Expand and Eval return. The engine's own messages are left
// out, as they may quote values.
func blame(src string, err error) error {
	src = abridge(strings.TrimSpace(src))
	if fact, ok := errors.AsType[*factError](err); ok {
		return fmt.Errorf("keyexpr: %s: %w", src, fact)
	}
	if call, ok := errors.AsType[*callError](err); ok {
		return fmt.Errorf("keyexpr: %s: %w", src, call)
	}
	if value, ok := errors.AsType[*valueError](err); ok {
		return fmt.Errorf("%w: %s %s", ErrValue, src, value.reason)
	}
	return fmt.Errorf("%w: %s fails for this request", ErrValue, src)
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

// nearest returns the name that was probably meant by name, and "" if none is near.
func nearest(name string, names []string) string {
	best, bestDistance := "", len(name)/3+2
	for _, candidate := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance counts the insertions, deletions, substitutions and swaps of neighbours that turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// didYouMean is the end of a message about an unknown name.
func didYouMean(name string, names []string) string {
	if near := nearest(name, names); near != "" {
		return ", did you mean " + near + "?"
	}
	return ""
}
