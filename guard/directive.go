package guard

import (
	"fmt"
	"reflect"
	"strings"
)

// Directive fits the guard to a function of type t with a directive, for Func alone; see adapter.Directive for its
// name, text and args. A name of the guard's own replaces the first part of that. Without an owner, Directive only
// checks the function. fact is nil, or returns an argument.
func (a adapter) Directive(name, text, args string, t reflect.Type, owner, fact any) (*Guard, error) {
	if err := a.unmade("Check of"); err != nil {
		return nil, err
	}
	f := fitting{name: name, owner: owner, fallback: reflect.TypeOf(a.fallback)}
	if owner != nil {
		f.fallback = fallbackType(t)
	}
	err := f.direct(t, text, args)
	if err != nil {
		return nil, fmt.Errorf("guard: directive of %s: %w", name, err)
	}
	unnamed := *a.Guard
	unnamed.fact = fact
	if unnamed.spec.Name = ""; a.spec.Name != "" {
		f.tag.Name = a.spec.Name
		if _, method, ok := strings.Cut(name, "."); ok {
			f.tag.Name += "." + method
		}
	}
	r, err := unnamed.fit(f)
	if err != nil {
		return nil, err
	}
	return r.guard, nil
}

// direct applies the directive text to a function of type t.
func (f *fitting) direct(t reflect.Type, text, args string) (err error) {
	if !guardable(t) {
		return fmt.Errorf("%v does not take a context.Context first and return an error last", t)
	}
	if f.tag, err = parseTag(text); err != nil {
		return err
	}
	_, err = f.arguments(t, args)
	return err
}

// HasFallback reports whether the guard has a fallback.
func (a adapter) HasFallback() bool { return a.fallback != nil }
