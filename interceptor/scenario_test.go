package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/internal/scenario"
	"github.com/latchkey-go/latchkey/lock"
)

// TestScenarios plays the one table with a unary and a streaming method. Interceptors are called as a server would, without
// the sockets that a bubble can't wait for.
func TestScenarios(t *testing.T) {
	t.Run("unary", func(t *testing.T) {
		scenario.Run(t, scenario.Driver{Fact: "req.ResponseStatus.Message", Mount: mountUnary(), Fallback: mountUnary(interceptor.Fallback(fall))})
	})
	t.Run("stream", func(t *testing.T) {
		scenario.Run(t, scenario.Driver{Fact: "md.id", Mount: mountStream})
	})
}

// fall is a fallback that wants to know why it runs.
func fall(_ context.Context, r *testpb.SimpleRequest, refused error) (*testpb.SimpleResponse, error) {
	if e, ok := errors.AsType[*guard.Error](refused); !ok || r.GetResponseStatus().GetMessage() != "7" {
		return nil, fmt.Errorf("fallback for %v: %v", r, e)
	}
	return &testpb.SimpleResponse{Username: "fallback"}, nil
}

func mountUnary(opts ...interceptor.Option) scenario.Mount {
	return func(t *testing.T, l lock.Locker, guardOpts []guard.Option, work scenario.Work) scenario.Call {
		i, err := interceptor.UnaryServer(interceptor.Method(unaryCall, scenarioGuard(t, l, guardOpts), opts...))
		if err != nil {
			t.Fatal(err)
		}
		handler := func(ctx context.Context, _ any) (any, error) {
			return &testpb.SimpleResponse{Username: "done"}, work(ctx)
		}
		return func(ctx context.Context, id string) scenario.Class {
			res, err := i(ctx, echo(id), &grpc.UnaryServerInfo{FullMethod: unaryCall}, handler)
			if err != nil {
				return classOf(err)
			}
			switch r, _ := res.(*testpb.SimpleResponse); r.GetUsername() {
			case "":
				return scenario.Skipped
			case "fallback":
				return scenario.Fell
			}
			return scenario.Done
		}
	}
}

func mountStream(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
	i, err := interceptor.StreamServer(interceptor.Method(duplexCall, scenarioGuard(t, l, opts)))
	if err != nil {
		t.Fatal(err)
	}
	handler := func(_ any, s grpc.ServerStream) error { return work(s.Context()) }
	return func(ctx context.Context, id string) scenario.Class {
		s := &silentStream{ctx: metadata.NewIncomingContext(ctx, metadata.Pairs("id", id))}
		if err := i(nil, s, &grpc.StreamServerInfo{FullMethod: duplexCall, IsClientStream: true, IsServerStream: true}, handler); err != nil {
			return classOf(err)
		}
		if len(s.header.Get("latchkey-outcome")) > 0 {
			return scenario.Skipped
		}
		return scenario.Done
	}
}

// silentStream is a stream on which nobody says anything.
type silentStream struct {
	grpc.ServerStream
	ctx    context.Context
	header metadata.MD
}

func (s *silentStream) Context() context.Context { return s.ctx }

func (s *silentStream) SetHeader(md metadata.MD) error {
	s.header = metadata.Join(s.header, md)
	return nil
}

func scenarioGuard(t *testing.T, l lock.Locker, opts []guard.Option) *guard.Guard {
	t.Helper()
	g, err := guard.New(l, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// classOf says what a client makes of a status, and knows the handler's own errors, which pass untouched.
func classOf(err error) scenario.Class {
	s, ok := status.FromError(err)
	if !ok {
		return scenario.Of(err)
	}
	var reason string
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			reason = info.GetReason()
		}
	}
	class, ok := map[coded]scenario.Class{
		{codes.InvalidArgument, "LOCK_KEY"}: scenario.BadKey,
		{codes.Aborted, "LOCK_BUSY"}:        scenario.Busy,
		{codes.Unavailable, "LOCK_OUTAGE"}:  scenario.Unavailable,
		{codes.Internal, "LOCK_MISUSE"}:     scenario.Broken,
		{codes.Internal, "LOCK_FAULT"}:      scenario.Broken,
		{codes.Internal, "LOCK_LOST"}:       scenario.Lost,
		{codes.Aborted, "LOCK_REPLACED"}:    scenario.Replaced,
		{codes.DeadlineExceeded, ""}:        scenario.Late,
		{codes.Canceled, ""}:                scenario.Gone,
	}[coded{s.Code(), reason}]
	if !ok {
		return scenario.Unknown
	}
	return class
}

// coded is a code with the reason in its details.
type coded struct {
	code   codes.Code
	reason string
}
