package interceptor

import (
	"context"
	"reflect"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/internal/rules"
	"github.com/latchkey-go/latchkey/lock"
)

// Rule puts a guard in front of methods. Its zero value is refused by New.
type Rule struct{ rule rules.Rule }

// Method guards the method with this full name, such as "/bank.v1.Bank/Transfer". Generated code has a constant for it:
// bankpb.Bank_Transfer_FullMethodName. A guard can serve many methods, whose templates then are checked against each of
// their request types.
func Method(name string, g *guard.Guard, opts ...Option) Rule {
	r := Rule{rules.Method(name, g)}
	for i, o := range opts {
		if o == nil {
			r.rule.Fault("option %d of %d is nil", i+1, len(opts))
			continue
		}
		o.apply(&r.rule)
	}
	return r
}

// Service guards all methods of the service with this full name, such as "bank.v1.Bank" or "/bank.v1.Bank". The template
// is checked against the request type of each. Rules of single methods take precedence, and so Unguarded leaves one out.
func Service(name string, g *guard.Guard) Rule { return Rule{rules.Service(name, g)} }

// Match guards all registered methods whose full names match pattern, in which * stands for any text without a slash:
// "/bank.v1.*/Transfer*". The template is checked against the request type of each.
func Match(pattern string, g *guard.Guard) Rule { return Rule{rules.Match(pattern, g)} }

// Unguarded leaves the method with this full name without a guard, whatever other rules say.
func Unguarded(name string) Rule { return Rule{rules.Unguarded(name)} }

// FromOptions guards all methods that have the option (latchkey.guard.v1.guard) in their .proto file: see package guardpb.
// The options given here are for all of them. A .proto file takes precedence over them, and a rule in Go for a single
// method over that. In templates, fields have the names that they have in the .proto file, or those of Go.
//
//	guards, err := interceptor.New(interceptor.FromOptions(locker, guard.Wait(time.Second)))
//
// The descriptors are those that generated code registers when the program starts. A fault in any of them is one of New.
func FromOptions(l lock.Locker, opts ...guard.Option) Rule {
	return Rule{rules.FromOptions(l, opts)}
}

// Option changes a Rule.
type Option interface{ apply(*rules.Rule) }

// Request says that the handler of the method gets requests of type T, which is a pointer type: *TransferRequest. Use it
// for methods whose descriptors are not registered, as on servers with a codec of their own. Nothing else is known of
// such a method: a misspelt name, or a rule that is given to the interceptor for the other kind of method, leaves it
// without a guard, and a guard that skips is refused, as nobody can say what to answer.
func Request[T any]() Option { return request{reflect.TypeFor[T]()} }

type request struct{ reflect.Type }

func (o request) apply(r *rules.Rule) { r.Request(o.Type) }

// Fallback answers a call of a unary method whose lock is busy, or whose lock service is out, instead of the handler. It gets
// the *guard.Error that says which, and runs without the lock. Req and Res are the types of the handler:
//
//	interceptor.Method(bankpb.Bank_Balance_FullMethodName, g, interceptor.Fallback(
//		func(ctx context.Context, r *bankpb.BalanceRequest, refused error) (*bankpb.BalanceResponse, error) { … }))
//
// It is the policy guard.RunFallback for both, unless the guard gives another one.
func Fallback[Req, Res any](f func(context.Context, Req, error) (Res, error)) Option {
	o := fallback{rules.Fallback{Request: reflect.TypeFor[Req](), Response: reflect.TypeFor[Res]()}}
	if f != nil {
		o.Run = func(ctx context.Context, req any, refused error) (any, error) {
			r, _ := req.(Req) // as the rules have checked
			return f(ctx, r, refused)
		}
	}
	return o
}

type fallback struct{ rules.Fallback }

func (o fallback) apply(r *rules.Rule) { r.Fallback(o.Fallback) }
