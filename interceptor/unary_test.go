package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/lock"
)

// answering is a handler that answers a user name.
func answering(name string) func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		return &testpb.SimpleResponse{Username: name}, nil
	}
}

func TestKeys(t *testing.T) {
	tests := []struct {
		key  string
		md   []string
		want []string // keys; none if the request is refused
	}{
		{key: "order:#{req.ResponseStatus.Message}", want: []string{"order:42"}},
		{key: "order:#{req.ResponseStatus.Code}:#{req.ResponseStatus.Message}", want: []string{"order:7:42"}},
		{key: "order:#{req.GetResponseStatus().GetMessage()}", want: []string{"order:42"}},
		{key: "#{method}:#{md.tenant}", md: []string{"tenant", "acme"}, want: []string{unaryCall + ":acme"}},
		{key: `t:#{md["x-tenant"]}`, md: []string{"X-Tenant", "acme"}, want: []string{"t:acme"}},
		{key: `t:#{md.Tenant}`, md: []string{"tenant", "acme"}, want: []string{"t:acme"}},
		{key: `t:#{md.tenant ?? "none"}`, want: []string{"t:none"}},
		{key: "t:#{md.tenant}"},
		{key: "t:#{md.tenant}", md: []string{"tenant", ""}},
		{key: "t:#{md.tenant}", md: []string{"tenant", "a", "tenant", "b"}},
		{key: `t:#{md.tenant ?? "none"}`, md: []string{"tenant", "a", "tenant", "b"}},
		{key: "t:#{md.tenant}", md: []string{"tenant", "a", "other", "b", "other", "c"}, want: []string{"t:a"}},
		{key: "file:#{req.Payload.Type}"}, // there is no Payload
		{key: "file:#{string(req.GetPayload().GetBody())}"},
	}
	for _, tt := range tests {
		l := newLocker()
		handled := false
		client := serve(t, &service{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			handled = true
			return &testpb.SimpleResponse{}, nil
		}}, unary(t, unaryCall, newGuard(t, l, guard.Key(tt.key))))
		ctx := metadata.AppendToOutgoingContext(t.Context(), tt.md...)
		_, err := client.UnaryCall(ctx, &testpb.SimpleRequest{ResponseStatus: &testpb.EchoStatus{Code: 7, Message: "42"}})
		if tt.want == nil {
			if got, want := failureOf(err), (failure{code: codes.InvalidArgument, reason: "LOCK_KEY"}); got != want || handled {
				t.Errorf("key %s, metadata %q: %v, handled %v, want %v", tt.key, tt.md, err, handled, want)
			}
			continue
		}
		close(l.keys)
		var got []string
		for k := range l.keys {
			got = append(got, k)
		}
		if err != nil || !slices.Equal(got, tt.want) || !handled {
			t.Errorf("key %s, metadata %q: keys %q, %v, handled %v, want %q", tt.key, tt.md, got, err, handled, tt.want)
		}
	}
}

func TestKeyFunc(t *testing.T) {
	l := newLocker()
	g := newGuard(t, l, guard.KeyFunc(func(r *testpb.SimpleRequest) (string, error) {
		return "order:" + r.GetResponseStatus().GetMessage(), nil
	}))
	client := serve(t, &service{unary: answering("")}, unary(t, unaryCall, g))
	if _, err := client.UnaryCall(t.Context(), echo("42")); err != nil {
		t.Fatal(err)
	}
	if key := <-l.keys; key != "order:42" {
		t.Errorf("key %q, want order:42", key)
	}
}

// No lock is taken for a call that will be refused, also where a default stands ready for what is missing.
func TestRepeatedMetadataTakesNoLock(t *testing.T) {
	for _, opts := range [][]guard.Option{
		{guard.Key("#{method}"), guard.When("md.tenant == nil")},
		{guard.Key("t:#{md.tenant ?? 'none'}")},
		{guard.Key("t:#{coalesce(md.tenant, 'none')}")},
	} {
		l := newLocker()
		client := serve(t, &service{unary: answering("")}, unary(t, unaryCall, newGuard(t, l, opts...)))
		ctx := metadata.AppendToOutgoingContext(t.Context(), "tenant", "a", "tenant", "b")
		if _, err := client.UnaryCall(ctx, echo("")); failureOf(err).code != codes.InvalidArgument || len(l.keys) > 0 {
			t.Errorf("UnaryCall = %v after %d locks, want InvalidArgument and none", err, len(l.keys))
		}
	}
}

func TestStatus(t *testing.T) {
	const words = "dial tcp 10.0.0.1"
	tests := []struct {
		name string
		err  error // of the locker
		want failure
	}{
		{"busy", &lock.BusyError{Remaining: 1500 * time.Millisecond, Here: true, Holder: "secret", Elsewhere: "secret"}, failure{codes.Aborted, "LOCK_BUSY", "1.5s"}},
		{"busy, nobody knows for how long", lock.ErrBusy, failure{codes.Aborted, "LOCK_BUSY", "1s"}},
		{"outage", errors.New(words), failure{codes.Unavailable, "LOCK_OUTAGE", "1s"}},
		{"outage by a timeout of the service", errors.Join(errors.New(words), context.DeadlineExceeded),
			failure{codes.Unavailable, "LOCK_OUTAGE", "1s"}},
		{"kind not supported", lock.ErrUnsupported, failure{codes.Internal, "LOCK_MISUSE", ""}},
	}
	for _, tt := range tests {
		handled := false
		client := serve(t, &service{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			handled = true
			return nil, nil
		}}, unary(t, unaryCall, newGuard(t, failing(tt.err), guard.Key("secret:#{req.ResponseStatus.Message}"))))
		_, err := client.UnaryCall(t.Context(), echo("42"))
		if got := failureOf(err); got != tt.want || handled {
			t.Errorf("%s: %v, handled %v, want %v", tt.name, got, handled, tt.want)
		}
		text := status.Convert(err).Proto().String()
		if !strings.Contains(text, `guard \"g\"`) || strings.Contains(text, "secret") || strings.Contains(text, "10.0.0.1") {
			t.Errorf("%s: %s, want the name of the guard and no key or cause", tt.name, text)
		}
	}
}

func TestLostIsInternal(t *testing.T) {
	for _, own := range []error{nil, status.Error(codes.NotFound, "no such order")} {
		l := newLocker()
		var cause error
		client := serve(t, &service{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			l.ForceUnlock("k")
			<-ctx.Done()
			cause = context.Cause(ctx)
			return &testpb.SimpleResponse{}, own
		}}, unary(t, unaryCall, newGuard(t, l, guard.Key("k"), guard.OneKey())))
		_, err := client.UnaryCall(t.Context(), echo(""))
		if got, want := failureOf(err), (failure{codes.Internal, "LOCK_LOST", ""}); got != want {
			t.Errorf("handler returns %v: %v, want %v", own, err, want)
		}
		if !errors.Is(cause, lock.ErrLost) {
			t.Errorf("the handler's context ended with %v, want ErrLost", cause)
		}
	}
}

// Errors of the handler pass as they are, but for those of guards within it.
func TestHandlersErrorIsUntouched(t *testing.T) {
	detailed, err := status.New(codes.Aborted, "version changed").WithDetails(echo("details"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []error{
		detailed.Err(),
		fmt.Errorf("not now: %w", detailed.Err()),
		errors.Join(detailed.Err(), &guard.Error{Guard: "g", Err: guard.ErrBusy}), // its own status comes first
		fmt.Errorf("%w: %w", status.Error(codes.NotFound, "no order"), &guard.Error{Guard: "g", Err: guard.ErrKey}),
		context.DeadlineExceeded,
		errors.New("oops"),
	} {
		var got error
		observe := grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			res, err := next(ctx, req)
			got = err
			return res, err
		})
		client := serve(t, &service{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			return nil, want
		}}, observe, unary(t, unaryCall, newGuard(t, newLocker(), guard.Key("k"), guard.OneKey())))
		_, err := client.UnaryCall(t.Context(), echo(""))
		if got != want {
			t.Errorf("handler returns %v, the interceptor %v", want, got)
		}
		s, ok := status.FromError(want)
		if !ok {
			s = status.FromContextError(want) // as gRPC does
		}
		if !proto.Equal(status.Convert(err).Proto(), s.Proto()) {
			t.Errorf("client gets %v, want %v", err, s)
		}
	}
}

func TestExclusion(t *testing.T) {
	count := 0 // the lock is all that protects it
	client := serve(t, &service{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		seen := count
		runtime.Gosched()
		count = seen + 1
		return &testpb.SimpleResponse{}, nil
	}}, unary(t, unaryCall, newGuard(t, newLocker(), guard.Key("k"), guard.OneKey(), guard.Wait(guard.Forever))))
	var calls sync.WaitGroup
	for range 100 {
		calls.Go(func() {
			if _, err := client.UnaryCall(t.Context(), echo("")); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if count != 100 {
		t.Errorf("count = %d after 100 calls", count)
	}
}

func TestOtherMethodsPassThrough(t *testing.T) {
	l := newLocker()
	client := serve(t, &service{
		unary: answering("you"),
		duplex: func(s testpb.TestService_FullDuplexCallServer) error {
			return s.Send(&testpb.StreamingOutputCallResponse{})
		},
	},
		unary(t, testpb.TestService_EmptyCall_FullMethodName, newGuard(t, l, guard.Key("k"), guard.OneKey())),
		streaming(t, inputCall, newGuard(t, l, guard.Key("k"), guard.OneKey())))
	if res, err := client.UnaryCall(t.Context(), echo("")); err != nil || res.GetUsername() != "you" {
		t.Errorf("UnaryCall = %v, %v, want the handler's answer", res, err)
	}
	stream, err := client.FullDuplexCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Errorf("Recv = %v, want the handler's message", err)
	}
	if len(l.keys) > 0 {
		t.Errorf("methods without a rule took %d locks", len(l.keys))
	}
}

func TestPolicies(t *testing.T) {
	tests := []struct {
		opts []guard.Option
		err  error // of the locker
		want string
	}{
		{[]guard.Option{guard.Busy(guard.Skip)}, lock.ErrBusy, ""},
		{[]guard.Option{guard.Outage(guard.Skip)}, errors.New("down"), ""},
		{[]guard.Option{guard.Busy(guard.RunUnlocked)}, lock.ErrBusy, "you"},
		{[]guard.Option{guard.Outage(guard.RunUnlocked)}, errors.New("down"), "you"},
		{[]guard.Option{guard.When(`req.ResponseStatus.Message == "lock"`)}, lock.ErrBusy, "you"},
	}
	for _, tt := range tests {
		g := newGuard(t, failing(tt.err), append(tt.opts, guard.Key("k"), guard.OneKey())...)
		client := serve(t, &service{unary: answering("you")}, unary(t, unaryCall, g))
		res, err := client.UnaryCall(t.Context(), echo(""))
		if err != nil || res.GetUsername() != tt.want {
			t.Errorf("%+v: %v, %v, want an answer to %q", g.Spec(), res, err, tt.want)
		}
	}
}

// A caller that gives up while it waits gets no handler run for it, and leaves nobody in line.
func TestCallerCancelsWhileWaiting(t *testing.T) {
	l := newLocker()
	ended := make(chan error, 1)
	observe := grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		res, err := next(ctx, req)
		ended <- err
		return res, err
	})
	client := serve(t, &service{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		t.Error("the handler ran")
		return &testpb.SimpleResponse{}, nil
	}}, observe, unary(t, unaryCall, newGuard(t, l, guard.Key("k"), guard.OneKey(), guard.Wait(guard.Forever))))
	hold, err := l.Locker.Acquire(t.Context(), lock.Request{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var waiter sync.WaitGroup
	waiter.Go(func() {
		if _, err := client.UnaryCall(ctx, echo("")); status.Code(err) != codes.Canceled {
			t.Errorf("UnaryCall = %v, want Canceled", err)
		}
	})
	<-l.keys // it waits now, or is about to
	cancel()
	waiter.Wait()
	if err := <-ended; failureOf(err) != (failure{code: codes.Canceled}) {
		t.Errorf("the interceptor answers %v, want Canceled", err)
	}
	if err := hold.Release(t.Context()); err != nil || !l.free("k") {
		t.Errorf("Release = %v, lock free %v, want nil and true", err, l.free("k"))
	}
}

func TestDeadlineWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker()
		i, err := interceptor.UnaryServer(interceptor.Method(unaryCall, newGuard(t, l, guard.Key("k"), guard.OneKey(), guard.Wait(guard.Forever))))
		if err != nil {
			t.Fatal(err)
		}
		hold, err := l.Locker.Acquire(t.Context(), lock.Request{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err = i(ctx, echo(""), &grpc.UnaryServerInfo{FullMethod: unaryCall}, func(context.Context, any) (any, error) {
			t.Error("the handler ran")
			return nil, nil
		})
		if got := time.Since(start); failureOf(err) != (failure{code: codes.DeadlineExceeded}) || got != time.Second {
			t.Errorf("after %v: %v, want DeadlineExceeded after 1s", got, err)
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestPanicReleasesAndGoesOn(t *testing.T) {
	recovery := grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = status.Errorf(codes.DataLoss, "recovered: %v", p)
			}
		}()
		return next(ctx, req)
	})
	for _, inside := range []bool{false, true} {
		l := newLocker()
		opts := []grpc.ServerOption{recovery, unary(t, unaryCall, newGuard(t, l, guard.Key("k"), guard.OneKey()))}
		if inside {
			slices.Reverse(opts)
		}
		client := serve(t, &service{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			panic("oops")
		}}, opts...)
		_, err := client.UnaryCall(t.Context(), echo(""))
		if s := status.Convert(err); s.Code() != codes.DataLoss || s.Message() != "recovered: oops" {
			t.Errorf("recovery inside %v: %v, want what recovery made of it", inside, err)
		}
		if len(l.keys) != 1 || !l.free("k") {
			t.Errorf("recovery inside %v: %d locks, free %v, want 1 and true", inside, len(l.keys), l.free("k"))
		}
	}
}

// A request of another type than the rule was checked against is nobody's fault but the server's.
func TestRequestOfAnotherType(t *testing.T) {
	var event guard.Event
	observe := guard.Observe(func(_ context.Context, e guard.Event) { event = e })
	i, err := interceptor.UnaryServer(interceptor.Method(unaryCall, newGuard(t, newLocker(), guard.Key("#{req.ResponseSize}"), observe)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = i(t.Context(), &testpb.Payload{}, &grpc.UnaryServerInfo{FullMethod: unaryCall}, func(context.Context, any) (any, error) {
		t.Error("the handler ran")
		return nil, nil
	})
	if got, want := failureOf(err), (failure{codes.Internal, "LOCK_MISUSE", ""}); got != want || event.Outcome != guard.OutcomeFault {
		t.Errorf("= %v, an event of %s, want %v and fault", err, event.Outcome, want)
	}
}
