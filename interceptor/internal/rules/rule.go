// Package rules finds out which guard stands in front of which method, for gRPC and Connect.
package rules

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

// Rank orders the rules that match one method: the highest guards it.
type rank int

const (
	byPattern rank = iota
	byService
	byOption
	byMethod
)

// Rule puts a guard in front of methods. Its zero value is a mistake, which Bind reports.
type Rule struct {
	rank    rank
	text    string // what it is about, as given
	guard   *guard.Guard
	free    bool         // its method has no guard
	request reflect.Type // nil: the registered one
	instead *Fallback    // or nil
	options *options     // the rule stands for all methods with an option in their .proto file
	faults  []error
}

// options is the common part of the guards of methods with an option.
type options struct {
	locker lock.Locker
	opts   []guard.Option
}

// Method guards one method, by its full name.
func Method(name string, g *guard.Guard) Rule { return Rule{rank: byMethod, text: name, guard: g} }

// Service guards all methods of a service.
func Service(name string, g *guard.Guard) Rule { return Rule{rank: byService, text: name, guard: g} }

// Match guards all methods whose full names match a pattern.
func Match(pattern string, g *guard.Guard) Rule {
	return Rule{rank: byPattern, text: pattern, guard: g}
}

// Unguarded leaves one method without a guard.
func Unguarded(name string) Rule { return Rule{rank: byMethod, text: name, free: true} }

// FromOptions guards all methods that have the option (latchkey.guard.v1.guard).
func FromOptions(l lock.Locker, opts []guard.Option) Rule {
	return Rule{rank: byOption, options: &options{l, opts}}
}

// Request sets the type of the requests.
func (r *Rule) Request(t reflect.Type) {
	if r.rank != byMethod {
		r.Fault("Request is for rules of one method")
		return
	}
	r.request = t
}

// Fallback answers calls of a unary method instead of its handler.
type Fallback struct {
	Request, Response reflect.Type
	Run               func(ctx context.Context, req any, refused error) (any, error)
}

// Fallback sets what answers instead of the handler.
func (r *Rule) Fallback(f Fallback) {
	switch {
	case f.Run == nil:
		r.Fault("Fallback without a function")
	case r.instead != nil:
		r.Fault("Fallback is given twice")
	default:
		r.instead = &f
	}
}

// fits reports whether f can answer calls of m.
func (f *Fallback) fits(m *Bound) error {
	switch {
	case m.Streaming:
		return errors.New("a Fallback is for unary methods")
	case f.Request != m.Request:
		return fmt.Errorf("the Fallback takes a %v, but requests are a %v", f.Request, m.Request)
	case m.Response != nil && f.Response != reflect.TypeOf(m.Response.Zero().Interface()):
		return fmt.Errorf("the Fallback returns a %v, but responses are a %T", f.Response, m.Response.Zero().Interface())
	}
	return nil
}

// Fault notes a mistake in the declaration of r, for Bind to report.
func (r *Rule) Fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf(format, args...))
}

// String returns the subject of r: `method "/bank.v1.Bank/Transfer"`.
func (r Rule) String() string {
	switch {
	case r.options != nil:
		return "rules from options"
	case r.rank == byOption:
		return fmt.Sprintf("option of method %q", r.text)
	case r.rank == byMethod:
		return fmt.Sprintf("method %q", r.text)
	case r.rank == byService:
		return fmt.Sprintf("service %q", r.text)
	}
	return fmt.Sprintf("pattern %q", r.text)
}

// errorf makes an error that names the guard of r.
func (r Rule) errorf(format string, args ...any) error {
	if r.guard == nil {
		return fmt.Errorf(format, args...)
	}
	return fmt.Errorf("guard %q: "+format, append([]any{r.guard.Spec().Name}, args...)...)
}

// service is the full name of the service that r is about. Generated code has it without a slash.
func (r Rule) service() string { return strings.TrimPrefix(r.text, "/") }
