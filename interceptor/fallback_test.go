package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/lock"
)

type fallback = func(context.Context, *testpb.SimpleRequest, error) (*testpb.SimpleResponse, error)

// A fallback answers instead of the handler, and knows why; its errors are treated as the handler's are.
func TestFallback(t *testing.T) {
	cached := func(_ context.Context, r *testpb.SimpleRequest, refused error) (*testpb.SimpleResponse, error) {
		return &testpb.SimpleResponse{Username: fmt.Sprint(r.GetResponseStatus().GetMessage(), errors.Is(refused, guard.ErrBusy))}, nil
	}
	for _, tt := range []struct {
		name     string
		l        lock.Locker
		opts     []guard.Option
		fallback fallback
		want     string
		fail     failure
	}{
		{"not needed", newLocker(), nil, cached, "handler", failure{}},
		{"busy", failing(lock.ErrBusy), nil, cached, "42true", failure{}},
		{"outage", failing(errors.New("down")), nil, cached, "42false", failure{}},
		{"busy only", failing(errors.New("down")), []guard.Option{guard.Outage(guard.Fail)}, cached, "", failure{codes.Unavailable, "LOCK_OUTAGE", "1s"}},
		{"no policy for a refusal", failing(lock.ErrRefused), nil, cached, "", failure{codes.Internal, "LOCK_FAULT", ""}},
		{"gives up", failing(lock.ErrBusy), nil, func(_ context.Context, _ *testpb.SimpleRequest, refused error) (*testpb.SimpleResponse, error) {
			return nil, fmt.Errorf("no cache: %w", refused)
		}, "", failure{codes.Aborted, "LOCK_BUSY", "1s"}},
		{"fails", failing(lock.ErrBusy), nil, func(context.Context, *testpb.SimpleRequest, error) (*testpb.SimpleResponse, error) {
			return nil, status.Error(codes.NotFound, "no cache")
		}, "", failure{code: codes.NotFound}},
	} {
		g := newGuard(t, tt.l, append(tt.opts, guard.Key("order:#{req.ResponseStatus.Message}"))...)
		client := serve(t, &service{unary: answering("handler")}, unary(t, unaryCall, g, interceptor.Fallback(tt.fallback)))
		var header metadata.MD
		res, err := client.UnaryCall(t.Context(), echo("42"), grpc.Header(&header))
		if res.GetUsername() != tt.want || err == nil != (tt.fail == failure{}) || err != nil && failureOf(err) != tt.fail {
			t.Errorf("%s: %v, %v, want %q or %v", tt.name, res, err, tt.want, tt.fail)
		}
		if len(header.Get("latchkey-outcome")) > 0 {
			t.Errorf("%s: says that it was skipped", tt.name)
		}
	}
}

// Nobody knows of a method without a descriptor that it streams, until it is called. A Fallback can't answer it then, and says so.
func TestFallbackOfAnUnknownStream(t *testing.T) {
	const method = "/unknown.Service/Stream"
	i, err := interceptor.New(interceptor.Method(method, newGuard(t, failing(lock.ErrBusy), ofMessage()),
		interceptor.Request[*testpb.StreamingOutputCallRequest](),
		interceptor.Fallback(func(context.Context, *testpb.StreamingOutputCallRequest, error) (*testpb.SimpleResponse, error) {
			return nil, nil
		})))
	if err != nil {
		t.Fatal(err)
	}
	s := scripted{ctx: t.Context(), recv: func() error { return nil }}
	err = i.Stream()(nil, s, &grpc.StreamServerInfo{FullMethod: method}, func(any, grpc.ServerStream) error {
		t.Error("the handler ran")
		return nil
	})
	if got, want := failureOf(err), (failure{codes.Internal, "LOCK_MISUSE", ""}); got != want {
		t.Errorf("= %v, want %v", err, want)
	}
}

func TestFallbackMistakes(t *testing.T) {
	g := newGuard(t, newLocker(), guard.Key("k"), guard.OneKey())
	ok := interceptor.Fallback(func(context.Context, *testpb.SimpleRequest, error) (*testpb.SimpleResponse, error) { return nil, nil })
	for _, tt := range []struct {
		rule interceptor.Rule
		want string
	}{
		{interceptor.Method(unaryCall, g, interceptor.Fallback[*testpb.SimpleRequest, *testpb.SimpleResponse](nil)), "Fallback without a function"},
		{interceptor.Method(unaryCall, g, ok, ok), "given twice"},
		{interceptor.Method(duplexCall, g, ok), "unary"},
		{interceptor.Method(unaryCall, g, interceptor.Fallback(func(context.Context, *testpb.Empty, error) (*testpb.SimpleResponse, error) { return nil, nil })),
			"SimpleRequest"},
		{interceptor.Method(unaryCall, g, interceptor.Fallback(func(context.Context, *testpb.SimpleRequest, error) (*testpb.Empty, error) { return nil, nil })),
			"SimpleResponse"},
		{interceptor.Method(unaryCall, newGuard(t, newLocker(), guard.Key("k"), guard.OneKey(), guard.Busy(guard.Skip), guard.Outage(guard.Fail)), ok), "never runs"},
		{interceptor.Method(unaryCall, newGuard(t, newLocker(), guard.Key("k"), guard.OneKey(), guard.Busy(guard.RunFallback))), "fallback"},
		{interceptor.Method(unaryCall, newGuard(t, newLocker(), guard.Key("k"), guard.OneKey(), guard.Fallback(
			func(context.Context, *testpb.SimpleRequest, error) (*testpb.SimpleResponse, error) { return nil, nil }))), "Fallback"},
	} {
		if _, err := interceptor.New(tt.rule); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v does not say %s", err, tt.want)
		}
	}
}
