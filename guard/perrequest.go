package guard

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// expression is an attribute whose value may be read from the request, by a template of one hole: limit=#{plan.slots}.
// The hole makes a text, as in a key, which then is parsed as the value of a tag would be.
type expression struct {
	attr                      // of values that are written out
	text  func(*Spec) *string // where the template stands
	makes string              // the types that it can have, as Shape shows them
	want  string              // what it should make
	value *keyexpr.Template   // fitted to the facts, of a runner

	key   *keyexpr.Template // of a level, of which this is the limit; nil of attributes
	limit int               // of a level; 0 if value makes it
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

// level is one of Spec.Levels as it is written: a number or an expression, and a template.
type level struct{ limit, key string }

// levelText matches a level whose holes have dots in them.
var levelText = regexp.MustCompile(`^\s*([1-9]\d{0,8}|\.+})\s+of\s+(.*\S)\s*$`)

// splitLevels reads
//
//	levels = level ["," level]
//	level  = limit "of" template
//	limit  = number | "#{" expression "}"
//
// with blanks around each part. A comma in a hole separates nothing, so #{","} is a comma of the template.
func splitLevels(text string) (levels []level, err error) {
	bare := bareText(text)
	for start := 0; err == nil && start <= len(text); {
		end := start + strings.IndexByte(bare[start:]+",", ',')
		part, m := text[start:end], levelText.FindStringSubmatchIndex(bare[start:end])
		if m == nil || len(levels) == 2 {
			return nil, fmt.Errorf(`bad level %q, want one or two as in "20 of all" or "#{req.X} of all", and a comma in a key as #{","}`, part)
		}
		levels = append(levels, level{part[m[2]:m[3]], part[m[4]:m[5]]})
		err = cmp.Or(keyexpr.Check(part[m[2]:m[3]]), keyexpr.Check(part[m[4]:m[5]]))
		start = end + 1
	}
	return levels, err
}

// parseExpressions fits the expressions in the Spec of r to roots, and its levels, which come last.
func (r *runner) parseExpressions(roots keyexpr.Roots, functions []keyexpr.Option) (f faults) {
	options := append(slices.Clone(functions), keyexpr.OneKey()) // or the error for a constant would be about keys
	for _, a := range attributes {
		if a.expression == nil || *a.expression.text(&r.spec) == "" {
			continue
		}
		x := *a.expression
		err := x.fit(*x.text(&r.spec), roots, options)
		f.check(err != nil, "%s: %w", a.name, err)
		r.expressions = append(r.expressions, x)
	}
	limit, _ := findAttribute("limit")
	levels, _ := splitLevels(r.spec.Levels)
	for _, l := range levels {
		var err, bad error
		x := *limit.expression
		x.name = "levels"
		if x.limit, err = strconv.Atoi(l.limit); err != nil {
			err = x.fit(l.limit, roots, options)
		}
		x.key, bad = parseOne(l.key, roots, options)
		f.check(err != nil, "levels: %w", err)
		f.check(bad != nil, "levels: %w", bad)
		r.expressions = append(r.expressions, x)
	}
	return f
}

// fit fits x to roots, with text as its template.
func (x *expression) fit(text string, roots keyexpr.Roots, options []keyexpr.Option) (err error) {
	x.value, err = keyexpr.Parse(text, roots, options...)
	_, list := parseOne(text, roots, options)
	if err == nil && (list != nil || !regexp.MustCompile(x.makes).MatchString(x.value.Shape()) || len(x.value.Fields()) == 0 && !strings.Contains(text, "(")) {
		err = &keyexpr.Error{Text: text, Offset: len("#{"), Reason: fmt.Sprintf("makes %s, and should make one %s, out of the request", x.value.Shape(), x.want)}
	}
	return err
}

// parseOne parses a template, and refuses one that makes several keys. Shape says the same of a list as of its elements, but no template has two
// lists.
func parseOne(text string, roots keyexpr.Roots, options []keyexpr.Option) (*keyexpr.Template, error) {
	one, err := keyexpr.Parse(text, roots, options...)
	_, second := keyexpr.Parse(text+`/#{["a", "b"]}`, roots, append(slices.Clip(options), keyexpr.OneKey())...)
	if err == nil && second != nil {
		err = fmt.Errorf("%q makes several keys: levels and a rate are for one", text)
	}
	return one, err
}

// evaluate gives the call, which has keys, a request of its own, with the values of the expressions for its facts.
func (c *call) evaluate(keys []string, facts keyexpr.Facts) (err error) {
	s, r := c.spec, *c.request
	for i := range c.expressions {
		x, to := &c.expressions[i], &s
		if x.key != nil {
			to = &Spec{Limit: x.limit}
		}
		if x.value != nil {
			texts, err := x.value.Expand(c.ctx, facts)
			fact, most := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(x.value.String(), "#{"), "}")), max(to.Limit, 10_000)
			if err == nil && (x.parse(to, texts[0]) != nil || x.zero(to) || x.fault(to) != "" || to.Limit > most) {
				err = fmt.Errorf("%w: %s is no %s", keyexpr.ErrValue, fact, x.want)
			}
			if err != nil {
				return unfit{fmt.Errorf("%s: %w", x.name, err), fact}
			}
		}
		if x.key != nil {
			keys, err = x.key.AppendKeys(c.ctx, keys, facts)
			if n := len(keys) - 1; err == nil && slices.Contains(keys[:n], keys[n]) {
				err = errLevels
			}
			if err != nil {
				return err
			}
			r.Levels = append(r.Levels, lock.Level{Key: keys[len(keys)-1], Limit: to.Limit})
		}
	}
	r.Limit, r.Lease = s.Limit, s.Lease
	c.request = &r
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
