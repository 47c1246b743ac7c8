package keyexpr

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Condition is a parsed condition. It is immutable and safe for concurrent use. It has no parts and nothing to escape: all of
// it is one program.
type Condition struct {
	text   string
	prog   *vm.Program
	used   []run.Root
	fields []string

	holds, constant bool // for all requests
}

// ParseCondition parses text, an expression of type bool, and type-checks it against roots. Its error is an *Error. The rules
// about keys don't hold: nothing of a condition is escaped, numbers that are not whole and now() may be used, and one that is
// the same for all requests is the author's own affair, and [Condition.Constant]'s. Its budget is that of a key, as it runs
// for each request, too.
func ParseCondition(text string, roots Roots, opts ...Option) (*Condition, error) {
	if err := checkCondition(text); err != nil {
		return nil, err
	}
	c, err := newCompilation(text, roots, true, newConfig(opts))
	if err != nil {
		return nil, err
	}
	tree, err := c.parse(text, 0)
	if err != nil {
		return nil, err
	}
	if err := c.test(tree); err != nil {
		return nil, err
	}
	prog, err := c.program(tree)
	if err != nil {
		return nil, err
	}
	x := &Condition{text: text, prog: prog, used: c.used, fields: sorted(c.fields)}
	if !c.reads && !c.varies {
		x.holds, err = x.Eval(context.Background(), nil)
		x.constant = err == nil
	}
	return x, nil
}

// test resolves a tree that must be true or false.
func (c *compilation) test(tree *parser.Tree) error {
	t, err := c.resolve(tree, asPart)
	switch {
	case err != nil:
		return err
	case t.t == nil && t.elem == nil && !t.null, t.t != nil && t.t.Kind() == reflect.Pointer && t.t.Elem().Kind() == reflect.Bool:
		return errAt(c.text, 0, "a condition is true or false, and this is not known to be: compare it, as in (…) == true")
	case t.t == nil || t.t.Kind() != reflect.Bool:
		return errAt(c.text, 0, "a condition is true or false, and this is of type %v", pointee(t.goType()))
	}
	return nil
}

// checkCondition refuses a text that is no condition, whatever the roots are.
func checkCondition(text string) error {
	if err := checkText(text); err != nil {
		return err
	}
	if at := strings.Index(text, "#{"); at >= 0 {
		return errAt(text, at, "a condition has no holes: write the expression without #{ and }")
	}
	return nil
}

// CheckCondition parses the syntax of a condition only. Its error is an *Error. It is Check for
// conditions, and as much.
func CheckCondition(text string) error {
	if err := checkCondition(text); err != nil {
		return err
	}
	return checkSyntax(text, text, 0, true)
}

// Constant reports whether the condition names no fact, and so is the same for all requests, and what it comes to then.
func (c *Condition) Constant() (holds, ok bool) { return c.holds, c.constant }

// Eval reports whether the condition holds. Its errors are those of [Template.Expand]. A panic of a method is turned into an
// error, as that method was called by a text and not by the program. A panic of facts goes on: it is the program's own.
func (c *Condition) Eval(ctx context.Context, facts Facts) (bool, error) {
	st := run.NewState(ctx, facts, c.used)
	defer st.Release()
	v, err := st.Run(c.prog)
	if err != nil {
		return false, run.Blame(c.text, err)
	}
	holds, ok := basic(v).(bool)
	if !ok {
		return false, run.Blame(c.text, run.ErrEvaluated)
	}
	return holds, nil
}

// Roots returns the names of the roots that the condition uses, sorted.
func (c *Condition) Roots() []string { return rootNames(c.used) }

// Fields returns the fields that the condition reads of each root, in Go's spelling and sorted.
func (c *Condition) Fields() []string { return slices.Clone(c.fields) }

// String returns the text of the condition.
func (c *Condition) String() string { return c.text }
