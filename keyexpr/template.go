package keyexpr

import (
	"context"
	"errors"
	"fmt"
)

// ErrValue is matched by every error of Expand and Eval that is the fault of a request's values: nil or empty where a
// key needs something, a type that is no key material, an expression that failed. Their texts name the hole, never its
// value.
var ErrValue = errors.New("keyexpr: unusable value")

// Error is a fault in a template or condition, found at start.
type Error struct {
	Text   string // the whole text
	Offset int    // where in Text the fault begins, in bytes
	Reason string // what is wrong, and where it can be guessed what was meant
}

// Error returns one line: the reason and the offset.
func (e *Error) Error() string { return fmt.Sprintf("keyexpr: %s (at offset %d)", e.Reason, e.Offset) }

// Template is a parsed key template. It is immutable and safe for concurrent use.
type Template struct{ text string }

// Parse parses text and type-checks it against roots. Its error is an *Error.
func Parse(text string, roots Roots, opts ...Option) (*Template, error) {
	return nil, &Error{Text: text, Reason: "not written yet"}
}

// Check parses the syntax of text only: holes are closed and each is an expression. Its error is an *Error.
func Check(text string) error { return nil }

// Expand returns the keys that the template stands for: one, or for a template of list type one an element, sorted and
// distinct.
func (t *Template) Expand(ctx context.Context, facts Facts) ([]string, error) { return nil, ErrValue }

// Roots returns the names of the roots that the template uses, sorted.
func (t *Template) Roots() []string { return nil }

// String returns the text of the template.
func (t *Template) String() string { return t.text }

// Condition is a parsed condition. It is immutable and safe for concurrent use.
type Condition struct{ text string }

// ParseCondition parses text, an expression of type bool, and type-checks it against roots. Its error is an *Error.
func ParseCondition(text string, roots Roots, opts ...Option) (*Condition, error) {
	return nil, &Error{Text: text, Reason: "not written yet"}
}

// CheckCondition parses the syntax of a condition only. Its error is an *Error.
func CheckCondition(text string) error { return nil }

// Eval reports whether the condition holds.
func (c *Condition) Eval(ctx context.Context, facts Facts) (bool, error) { return false, ErrValue }

// Roots returns the names of the roots that the condition uses, sorted.
func (c *Condition) Roots() []string { return nil }

// String returns the text of the condition.
func (c *Condition) String() string { return c.text }
