// Package connectguard guards the methods of Connect handlers (connectrpc.com/connect): package interceptor for servers
// that speak Connect, gRPC and gRPC-Web.
//
//	guards, err := connectguard.New(
//		connectguard.Method(bankv1connect.BankTransferProcedure, transfer),
//		connectguard.FromOptions(locker),
//	)
//	…
//	path, handler := bankv1connect.NewBankHandler(bank, connect.WithInterceptors(guards))
//
// Rules, their precedence and the roots of templates (req, md and method) are those of package interceptor; md are the headers
// of the request, decoded where their names end in -bin. Clients that share the interceptor are not guarded.
//
// The answers are those of package interceptor too: the same codes, texts and details, for what a guard in front of the
// method says and for a *guard.Error that a handler returns. A *connect.Error of the handler's own stays what it is.
//
// The lock of a stream is taken before its handler starts and held until it returns. When it is lost, or a newer call takes
// the place of this one ([guard.Replace]), the handler's context ends, and Receive and Send fail. Receive does so also while it
// waits for the client; a Send that waits goes on waiting. For that, a message that is received costs a goroutine, which
// package interceptor does without. If the key or the condition uses req, the first message is read before the lock is taken,
// and handed to the handler's first Receive.
//
// A call that is skipped ([guard.Skip]) succeeds with an empty response and the header Latchkey-Outcome: skipped. [Fallback]
// answers a unary call with something better.
package connectguard

import (
	"context"
	"errors"
	"iter"
	"reflect"

	"connectrpc.com/connect"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/internal/rules"
	"github.com/latchkey-go/latchkey/lock"
)

// Rule puts a guard in front of methods. Its zero value is refused by New.
type Rule struct{ rule rules.Rule }

// Method guards the method with this full name, such as "/bank.v1.Bank/Transfer". Generated code has a constant for it:
// bankv1connect.BankTransferProcedure.
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

// Service guards all methods of the service with this full name, such as bankv1connect.BankName. The template is checked
// against the request type of each.
func Service(name string, g *guard.Guard) Rule { return Rule{rules.Service(name, g)} }

// Match guards all registered methods whose full names match pattern, in which * stands for any text without a slash:
// "/bank.v1.*/Transfer*". The template is checked against the request type of each.
func Match(pattern string, g *guard.Guard) Rule { return Rule{rules.Match(pattern, g)} }

// Unguarded leaves the method with this full name without a guard, whatever other rules say.
func Unguarded(name string) Rule { return Rule{rules.Unguarded(name)} }

// FromOptions guards all methods that have the option (latchkey.guard.v1.guard) in their .proto file: see package guardpb.
// The options given here are for all of them, and what a .proto file says takes precedence.
func FromOptions(l lock.Locker, opts ...guard.Option) Rule {
	return Rule{rules.FromOptions(l, opts)}
}

// Option changes a Rule.
type Option interface{ apply(*rules.Rule) }

// Fallback answers a call of a unary method whose lock is busy, or whose lock service is out, instead of the handler. It gets
// the *guard.Error that says which, and runs without the lock. Its types are those of the handler:
//
//	connectguard.Method(bankv1connect.BankBalanceProcedure, g, connectguard.Fallback(
//		func(ctx context.Context, r *connect.Request[bankv1.BalanceRequest], refused error) (*connect.Response[bankv1.BalanceResponse], error) { … }))
//
// It is the policy guard.RunFallback for both, unless the guard gives another one.
func Fallback[Req, Res any](f func(context.Context, *connect.Request[Req], error) (*connect.Response[Res], error)) Option {
	o := fallback{rules.Fallback{Request: reflect.TypeFor[*Req](), Response: reflect.TypeFor[*Res]()}}
	if f != nil {
		o.Run = func(ctx context.Context, req any, refused error) (any, error) {
			r, _ := req.(*connect.Request[Req]) // as the rules have checked
			res, err := f(ctx, r, refused)
			switch {
			case err != nil:
				return nil, err
			case res == nil: // Connect would panic
				return nil, connect.NewError(connect.CodeInternal, errors.New("the fallback gave neither a response nor an error"))
			}
			return res, nil
		}
	}
	return o
}

type fallback struct{ rules.Fallback }

func (o fallback) apply(r *rules.Rule) { r.Fallback(o.Fallback) }

// Guards are the guarded methods of a server, a connect.Interceptor for all its handlers. It is immutable and safe for
// concurrent use. Printing it lists them.
type Guards struct{ methods rules.Methods }

var _ connect.Interceptor = (*Guards)(nil)

// New makes the guards of a server. Its error joins all faults of the rules, each with the name of its method, service or
// pattern and of its guard. To give no rule is a fault, and so are two rules of the same rank for one method, and a rule
// that does not apply to any method.
func New(given ...Rule) (*Guards, error) {
	all := make([]rules.Rule, len(given))
	for i, r := range given {
		all[i] = r.rule
	}
	methods, err := rules.Bind("connectguard", rules.All, all)
	if err != nil {
		return nil, err
	}
	return &Guards{methods}, nil
}

// All yields the full names of the guarded methods, sorted, and what their guards declare.
func (g *Guards) All() iter.Seq2[string, guard.Spec] {
	return func(yield func(string, guard.Spec) bool) {
		for m := range g.methods.Sorted() {
			if !yield(m.Name, m.Runner.Specs()[0]) {
				return
			}
		}
	}
}

// String lists the guarded methods, a line each: the name, the declaration as in a tag, and the rule that it comes from.
func (g *Guards) String() string { return g.methods.String() }

// WrapUnary implements connect.Interceptor.
func (g *Guards) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		if m, ok := g.methods[req.Spec().Procedure]; ok {
			return unary(ctx, m, req, next)
		}
		res, err := next(ctx, req)
		return res, Error(err)
	}
}

// WrapStreamingClient implements connect.Interceptor. Clients are not guarded.
func (g *Guards) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor.
func (g *Guards) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if m, ok := g.methods[conn.Spec().Procedure]; ok {
			return stream(ctx, m, conn, next)
		}
		return Error(next(ctx, conn))
	}
}
