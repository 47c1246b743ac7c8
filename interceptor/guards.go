package interceptor

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/internal/rules"
)

// Guards are the guarded methods of a server, unary and streaming. It is immutable and safe for concurrent use. Printing it
// lists them.
type Guards struct{ methods rules.Methods }

// New makes the guards of a server. Its error joins all faults of the rules, each with the name of its method, service or
// pattern and of its guard. To give no rule is a fault, and so are two rules of the same rank for one method, and a rule
// that does not apply to any method.
//
//	guards, err := interceptor.New(
//		interceptor.Method(bankpb.Bank_Transfer_FullMethodName, transfer),
//		interceptor.Service("bank.v1.Vault", vault),
//	)
//	…
//	server := grpc.NewServer(guards.ServerOptions()...)
func New(rules ...Rule) (*Guards, error) {
	methods, err := bind(rules, both)
	if err != nil {
		return nil, err
	}
	return &Guards{methods}, nil
}

// ServerOptions chain both interceptors. To place others around them, chain Unary and Stream yourself: both, as each leaves
// the methods of the other without a guard.
func (g *Guards) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(g.Unary()), grpc.ChainStreamInterceptor(g.Stream())}
}

// Unary is the interceptor for unary methods.
func (g *Guards) Unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if m, ok := g.methods[info.FullMethod]; ok {
			return unary(ctx, m, req, next)
		}
		res, err := next(ctx, req)
		return res, Status(err)
	}
}

// Stream is the interceptor for streaming methods.
func (g *Guards) Stream() grpc.StreamServerInterceptor {
	return func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if m, ok := g.methods[info.FullMethod]; ok {
			return stream(m, srv, s, next)
		}
		return Status(next(srv, s))
	}
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

// UnaryServer is the interceptor for unary methods of New, for rules that are about no others.
func UnaryServer(rules ...Rule) (grpc.UnaryServerInterceptor, error) {
	methods, err := bind(rules, onlyUnary)
	if err != nil {
		return nil, err
	}
	return (&Guards{methods}).Unary(), nil
}

// StreamServer is the interceptor for streaming methods of New, for rules that are about no others.
func StreamServer(rules ...Rule) (grpc.StreamServerInterceptor, error) {
	methods, err := bind(rules, onlyStreaming)
	if err != nil {
		return nil, err
	}
	return (&Guards{methods}).Stream(), nil
}

const (
	both          = rules.All
	onlyUnary     = rules.Unary
	onlyStreaming = rules.Streaming
)

func bind(given []Rule, kinds rules.Kinds) (rules.Methods, error) {
	all := make([]rules.Rule, len(given))
	for i, r := range given {
		all[i] = r.rule
	}
	return rules.Bind("interceptor", kinds, all)
}
