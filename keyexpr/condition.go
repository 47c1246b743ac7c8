package keyexpr

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Condition is a parsed condition. It is immutable and safe for concurrent use.
type Condition struct {
	text   string
	test   func(*run.State) (bool, error)
	used   []run.Root
	fields []string
}

// ParseCondition parses text, an expression of type bool, and type-checks it against roots. Its error is an *Error.
func ParseCondition(text string, roots Roots, opts ...Option) (_ *Condition, err error) {
	if err := checkCondition(text); err != nil {
		return nil, err
	}
	c, err := newCompilation(text, roots, true, newConfig(opts))
	if err != nil {
		return nil, err
	}
	defer c.gaveUp(&err)
	node, err := c.tree(text, 0)
	if err != nil {
		return nil, err
	}
	switch t := c.typeOf(node); {
	case t == nil:
		return nil, errAt(text, 0, "a condition is true or false, and this is not known to be: compare it, as in (…) == true")
	case t.Kind() != reflect.Bool:
		return nil, errAt(text, 0, "a condition is true or false, and this is of type %v", t)
	}
	x, err := c.compile(node)
	if err != nil {
		return nil, err
	}
	return &Condition{text: text, test: x.asTest(), used: c.used, fields: c.fields}, nil
}

// checkCondition refuses what is no condition whatever the roots are.
func checkCondition(text string) error {
	if err := checkText(text); err != nil {
		return err
	}
	if at := strings.Index(text, "#{"); at >= 0 {
		return errAt(text, at, "a condition has no holes: write the expression without #{ and }")
	}
	return nil
}

// CheckCondition parses the syntax of a condition only. Its error is an *Error.
func CheckCondition(text string) error {
	if err := checkCondition(text); err != nil {
		return err
	}
	return checkSyntax(text, text, 0, true)
}

// Eval reports whether the condition holds. Its errors are those of [Template.Expand].
func (c *Condition) Eval(ctx context.Context, facts Facts) (holds bool, err error) {
	st := run.NewState(ctx, facts, c.used)
	defer func() {
		if r := recover(); r != nil {
			if st.Asking {
				panic(r)
			}
			holds, err = false, run.Blame(c.text, run.Recovered(r))
		}
		st.Release()
	}()
	holds, err = c.test(st)
	if err != nil {
		return false, run.Blame(c.text, err)
	}
	return holds, nil
}

// Roots returns the names of the roots that the condition uses, sorted.
func (c *Condition) Roots() []string { return rootNames(c.used) }

// Fields returns what the condition reads of each root, in Go's spelling and sorted.
func (c *Condition) Fields() []string { return slices.Clone(c.fields) }

// String returns the text of the condition.
func (c *Condition) String() string { return c.text }
