package keyexpr

import (
	"context"
	"reflect"
)

// Condition is a parsed condition. It is immutable and safe for concurrent use.
type Condition struct {
	text   string
	expr   *expression
	used   []usedRoot
	fields []string
}

// ParseCondition parses text, an expression of type bool, and type-checks it against roots. Its error is an *Error.
func ParseCondition(text string, roots Roots, opts ...Option) (*Condition, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	c, err := newCompilation(text, roots, true, opts)
	if err != nil {
		return nil, err
	}
	x, err := c.compile(text, 0)
	if err != nil {
		return nil, err
	}
	switch {
	case x.typ == nil:
		return nil, errAt(text, 0, "a condition is true or false, and this is not known to be: compare it, as in (…) == true")
	case x.typ.Kind() != reflect.Bool:
		return nil, errAt(text, 0, "a condition is true or false, and this is of type %v", x.typ)
	}
	return &Condition{text: text, expr: x, used: c.used, fields: c.fields}, nil
}

// CheckCondition parses the syntax of a condition only. Its error is an *Error.
func CheckCondition(text string) error {
	if err := checkText(text); err != nil {
		return err
	}
	return checkSyntax(text, text, 0, true)
}

// Eval reports whether the condition holds. Its errors are those of [Template.Expand].
func (c *Condition) Eval(ctx context.Context, facts Facts) (holds bool, err error) {
	st := newState(ctx, facts, c.used)
	defer func() {
		if r := recover(); r != nil {
			if st.asking {
				panic(r)
			}
			holds, err = false, blame(c.text, errPanicked)
		}
		st.release()
	}()
	v, err := c.expr.result(st)
	if err != nil {
		return false, blame(c.text, err)
	}
	b := reflect.ValueOf(v)
	if b.Kind() != reflect.Bool {
		return false, blame(c.text, faulty("is neither true nor false"))
	}
	return b.Bool(), nil
}

// Roots returns the names of the roots that the condition uses, sorted.
func (c *Condition) Roots() []string { return rootNames(c.used) }

// String returns the text of the condition.
func (c *Condition) String() string { return c.text }
