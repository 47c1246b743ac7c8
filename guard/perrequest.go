package guard

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// expression is an attribute whose value may be read from the request, by a template of one hole: limit=#{plan.slots}. What the
// hole makes is a text, as in a key, which then is read as that of a value in a tag.
type expression struct {
	attr                      // of values that are written out
	text  func(*Spec) *string // where the template stands
	makes string              // the types that it can have, as Shape shows them
	want  string              // what it should make
	value *keyexpr.Template   // fitted to the facts, of a runner
}

// orExpression lets the value of a be an expression, too, whose template stands at text.
func (a attr) orExpression(text func(*Spec) *string, makes, want string) attr {
	plain := a
	a.expression = &expression{attr: plain, text: text, makes: makes, want: want}
	a.parse = func(s *Spec, value string) error {
		if !strings.Contains(value, "#{") {
			return plain.parse(s, value)
		}
		*text(s) = value
		return nil
	}
	a.format = func(s *Spec) string { return cmp.Or(*text(s), plain.format(s)) }
	a.zero = func(s *Spec) bool { return *text(s) == "" && plain.zero(s) }
	a.copy = func(to, from *Spec) { plain.copy(to, from); *text(to) = *text(from) }
	a.fault = func(s *Spec) string {
		switch value := *text(s); {
		case value == "":
			return plain.fault(s)
		case !plain.zero(s) || !strings.HasPrefix(value, "#{") || !strings.HasSuffix(value, "}"):
			return fmt.Sprintf("%s %q: give one expression, as in #{req.X}, without text around it or a value beside it", a.name, value)
		case keyexpr.Check(value) != nil:
			return fmt.Sprintf("%s: %v", a.name, keyexpr.Check(value))
		}
		return ""
	}
	return a
}

// parseExpressions fits the expressions in the Spec of r to roots. Shape says the same of a list as of its elements, but no template has
// two lists.
func (r *runner) parseExpressions(roots keyexpr.Roots, functions []keyexpr.Option) (faults []error) {
	options := append(slices.Clone(functions), keyexpr.OneKey()) // or the error for a constant would be about keys
	for _, a := range attributes {
		if a.expression == nil || *a.expression.text(&r.spec) == "" {
			continue
		}
		x, text := *a.expression, *a.expression.text(&r.spec)
		value, err := keyexpr.Parse(text, roots, options...)
		_, list := keyexpr.Parse(text+":"+text, roots, options...)
		if err == nil && (list != nil || !regexp.MustCompile(x.makes).MatchString(value.Shape()) || len(value.Fields()) == 0 && !strings.Contains(text, "(")) {
			err = &keyexpr.Error{Text: text, Offset: len("#{"), Reason: fmt.Sprintf("makes %s, and should make one %s, out of the request", value.Shape(), x.want)}
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", a.name, err))
		}
		x.value = value
		r.expressions = append(r.expressions, x)
	}
	return faults
}

// evaluate gives the call a request of its own, with what the expressions make of its facts.
func (c *call) evaluate(facts keyexpr.Facts) error {
	s := c.spec
	for _, x := range c.expressions {
		texts, err := x.value.Expand(c.ctx, facts)
		fact := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(x.value.String(), "#{"), "}"))
		if err == nil && (x.parse(&s, texts[0]) != nil || x.zero(&s) || x.fault(&s) != "" || s.Limit > max(c.spec.Limit, 10_000)) {
			err = fmt.Errorf("%w: %s is no %s", keyexpr.ErrValue, fact, x.want)
		}
		if err != nil {
			return unfit{fmt.Errorf("%s: %w", x.name, err), fact}
		}
	}
	c.request = new(s.request())
	return nil
}

// unfit is an error about a fact that does not make the value of an attribute.
type unfit struct {
	error
	fact string
}

func (u unfit) Unwrap() error { return u.error }

// Is lets the error speak for itself, where ErrKey would speak of a key.
func (u unfit) Is(target error) bool { return target == ErrKey && errors.Is(u.error, keyexpr.ErrValue) }

// Fact is for factOf.
func (u unfit) Fact() string { return u.fact }
