package interceptor_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

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

// BenchmarkFunc measures the same guard around the same work without gRPC: what it takes less than BenchmarkUnary/guarded is
// what the interceptor adds.
func BenchmarkFunc(b *testing.B) {
	g := newGuard(b, memlock.New(), guard.Key("order:#{req.ResponseStatus.Message}"))
	handled := 0
	fn, err := guard.Func(g, func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		handled++
		return nil, nil
	})
	if err != nil {
		b.Fatal(err)
	}
	req := echo("42")
	calls := 0
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fn(b.Context(), req); err != nil {
			b.Fatal(err)
		}
		calls++
	}
	if handled != calls {
		b.Errorf("handled %d of %d calls", handled, calls)
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

// transport is a stream of a transport that has nothing to do.
type transport struct{ grpc.ServerTransportStream }

func (transport) WriteStatus(*status.Status) error { return nil }

// BenchmarkStreamMessage measures what a guarded stream adds to one message received and one sent.
func BenchmarkStreamMessage(b *testing.B) {
	i, err := interceptor.StreamServer(interceptor.Method(duplexCall, newGuard(b, memlock.New(), guard.Key("k"), guard.OneKey())))
	if err != nil {
		b.Fatal(err)
	}
	m := message("a")
	err = i(nil, silent{ctx: grpc.NewContextWithServerTransportStream(b.Context(), transport{})}, &grpc.StreamServerInfo{FullMethod: duplexCall}, func(_ any, s grpc.ServerStream) error {
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

// BenchmarkStream measures a message each way over a real connection, without a guard and with one.
func BenchmarkStream(b *testing.B) {
	echo := &service{duplex: func(s duplexServer) error {
		for {
			if _, err := s.Recv(); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if err := s.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
				return err
			}
		}
	}}
	guarded := streaming(b, duplexCall, newGuard(b, memlock.New(), guard.Key("k"), guard.OneKey()))
	for name, client := range map[string]testpb.TestServiceClient{"plain": serve(b, echo), "guarded": serve(b, echo, guarded)} {
		b.Run(name, func(b *testing.B) {
			stream, err := client.FullDuplexCall(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			m := message("a")
			b.ReportAllocs()
			for b.Loop() {
				if err := stream.Send(m); err != nil {
					b.Fatal(err)
				}
				if _, err := stream.Recv(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
