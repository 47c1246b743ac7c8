package interceptor_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// BenchmarkUnary measures the interceptor alone, with memlock and a handler that does nothing.
func BenchmarkUnary(b *testing.B) {
	g := newGuard(b, memlock.New(), guard.Key("order:#{req.ResponseStatus.Message}"))
	i, err := interceptor.UnaryServer(interceptor.Method(unaryCall, g))
	if err != nil {
		b.Fatal(err)
	}
	for name, method := range map[string]string{"plain": testpb.TestService_EmptyCall_FullMethodName, "guarded": unaryCall} {
		b.Run(name, func(b *testing.B) {
			handled := 0
			info := &grpc.UnaryServerInfo{FullMethod: method}
			req := any(echo("42"))
			next := func(context.Context, any) (any, error) { handled++; return nil, nil }
			calls := 0
			b.ReportAllocs()
			for b.Loop() {
				if _, err := i(b.Context(), req, info, next); err != nil {
					b.Fatal(err)
				}
				calls++
			}
			if handled != calls {
				b.Errorf("handled %d of %d calls", handled, calls)
			}
		})
	}
}

// silent is a stream that receives at once.
type silent struct {
	grpc.ServerStream
	ctx context.Context
}

func (s silent) Context() context.Context { return s.ctx }
func (s silent) RecvMsg(any) error        { return nil }
func (s silent) SendMsg(any) error        { return nil }

// BenchmarkStreamMessage measures what a guarded stream adds to one message received and one sent.
func BenchmarkStreamMessage(b *testing.B) {
	i, err := interceptor.StreamServer(interceptor.Method(duplexCall, newGuard(b, memlock.New(), guard.Key("k"), guard.OneKey())))
	if err != nil {
		b.Fatal(err)
	}
	m := message("a")
	err = i(nil, silent{ctx: b.Context()}, &grpc.StreamServerInfo{FullMethod: duplexCall}, func(_ any, s grpc.ServerStream) error {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.RecvMsg(m); err != nil {
				return err
			}
			if err := s.SendMsg(m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCall measures whole calls over a real connection, without a guard and with one.
func BenchmarkCall(b *testing.B) {
	plain := serve(b, &service{unary: answering("")})
	guarded := serve(b, &service{unary: answering("")},
		unary(b, unaryCall, newGuard(b, memlock.New(), guard.Key("order:#{req.ResponseStatus.Message}"))))
	for name, client := range map[string]testpb.TestServiceClient{"plain": plain, "guarded": guarded} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.UnaryCall(b.Context(), echo("42")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
