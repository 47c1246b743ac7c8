package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/lock"
)

// innerErrors are errors of guards in the service layer, and what clients get for them.
var innerErrors = []struct {
	err  error
	want failure
}{
	{&guard.Error{Guard: "g", Err: guard.ErrKey, Cause: errors.New("secret")}, failure{codes.InvalidArgument, "LOCK_KEY", ""}},
	{&guard.Error{Guard: "g", Err: guard.ErrBusy, RetryAfter: 3 * time.Second}, failure{codes.Aborted, "LOCK_BUSY", "3s"}},
	{&guard.Error{Guard: "g", Err: guard.ErrBusy, Rate: true, RetryAfter: 2500 * time.Millisecond}, failure{codes.ResourceExhausted, "LOCK_RATE", "2.5s"}},
	{&guard.Error{Guard: "g", Err: guard.ErrBusy, Rate: true, Cause: errors.New("secret")}, failure{codes.ResourceExhausted, "LOCK_RATE", "1s"}},
	{&guard.Error{Guard: "g", Err: guard.ErrBusy, Level: "t:#{req.tenant}"}, failure{codes.Aborted, "LOCK_BUSY", "1s"}},
	{&guard.Error{Guard: "g", Err: guard.ErrOutage, Cause: errors.New("dial tcp secret")}, failure{codes.Unavailable, "LOCK_OUTAGE", "1s"}},
	{&guard.Error{Guard: "g", Err: guard.ErrFault, Cause: errors.New("secret")}, failure{codes.Internal, "LOCK_FAULT", ""}},
	{&guard.Error{Guard: "g", Err: guard.ErrUnsupported}, failure{codes.Internal, "LOCK_MISUSE", ""}},
	{&guard.Error{Guard: "g", Err: guard.ErrLost, Cause: status.Error(codes.NotFound, "secret, of the work")}, failure{codes.Internal, "LOCK_LOST", ""}},
	{fmt.Errorf("secret order: %w", &guard.Error{Guard: "g", Err: guard.ErrBusy}), failure{codes.Aborted, "LOCK_BUSY", "1s"}},
	{errors.Join(errors.New("secret"), &guard.Error{Guard: "g", Err: guard.ErrBusy}), failure{codes.Aborted, "LOCK_BUSY", "1s"}},
}

// A guard of the service layer behind gRPC answers as one in front of the method does: in methods with a rule and without,
// of all kinds, and by Status where there is no interceptor.
func TestGuardsOfTheServiceLayerAnswerWell(t *testing.T) {
	locker := newLocker()
	outer, err := guard.New(locker, guard.Name("outer"), guard.Key("k"), guard.OneKey())
	if err != nil {
		t.Fatal(err)
	}
	guarded, err := interceptor.New(interceptor.Method(unaryCall, outer), interceptor.Method(duplexCall, outer))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := interceptor.New(interceptor.Method(inputCall, outer))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range innerErrors {
		if got := failureOf(interceptor.Status(tt.err)); got != tt.want {
			t.Errorf("Status(%v) = %v, want %v", tt.err, got, tt.want)
		}
		for _, guards := range []*interceptor.Guards{guarded, elsewhere} {
			client := serve(t, &service{
				unary:  func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) { return nil, tt.err },
				duplex: func(duplexServer) error { return tt.err },
			}, guards.ServerOptions()...)
			_, err := client.UnaryCall(t.Context(), echo(""))
			_, streamErr := open(t, client).Recv()
			for _, err := range []error{err, streamErr} {
				if got := failureOf(err); got != tt.want || strings.Contains(status.Convert(err).Proto().String(), "secret") || len(violations(status.Convert(err))) > 0 {
					t.Errorf("handler returns %v, the client gets %v, want %v", tt.err, err, tt.want)
				}
			}
		}
	}
	if interceptor.Status(nil) != nil {
		t.Error("Status(nil) is an error")
	}
}

// Only bad values are the client's fault. What a template's function or the lock service can't do is the server's.
func TestWhoseFaultItIs(t *testing.T) {
	tenant := func(err error) guard.Option {
		return guard.TemplateFunc("tenant", func(context.Context) (string, error) { return "", err })
	}
	for _, tt := range []struct {
		name string
		l    lock.Locker
		opts []guard.Option
		want failure
	}{
		{"function fails", newLocker(), []guard.Option{tenant(errors.New("secret")), guard.Key("#{tenant()}")}, failure{codes.Internal, "LOCK_FAULT", ""}},
		{"function's database is down", newLocker(), []guard.Option{tenant(fmt.Errorf("secret: %w", guard.ErrOutage)), guard.Key("#{tenant()}")},
			failure{codes.Unavailable, "LOCK_OUTAGE", "1s"}},
		{"function blames the request", newLocker(), []guard.Option{tenant(fmt.Errorf("secret: %w", guard.ErrKey)), guard.Key("#{tenant()}")},
			failure{codes.InvalidArgument, "LOCK_KEY", ""}},
		{"key function fails", newLocker(), []guard.Option{guard.KeyFunc(func(*testpb.SimpleRequest) (string, error) { return "", errors.New("secret") })},
			failure{codes.Internal, "LOCK_FAULT", ""}},
		{"command refused", failing(fmt.Errorf("secret: %w", lock.ErrRefused)), []guard.Option{guard.Key("k"), guard.OneKey(), guard.Outage(guard.RunUnlocked)},
			failure{codes.Internal, "LOCK_FAULT", ""}},
	} {
		client := serve(t, &service{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			t.Errorf("%s: the handler ran", tt.name)
			return nil, nil
		}}, unary(t, unaryCall, newGuard(t, tt.l, tt.opts...)))
		_, err := client.UnaryCall(t.Context(), echo(""))
		if got := failureOf(err); got != tt.want || strings.Contains(status.Convert(err).Proto().String(), "secret") {
			t.Errorf("%s: %v, want %v and no more", tt.name, err, tt.want)
		}
	}
}

// A bad request is told which fact is missing, by the name that the template has for it, and never its value.
func TestMissingFactIsNamed(t *testing.T) {
	const value = "secret"
	for _, tt := range []struct {
		key, fact, field string
		md               []string
	}{
		{key: "order:#{req.ResponseStatus.Message}", fact: "req.ResponseStatus.Message", field: "ResponseStatus.Message"},
		{key: "order:#{req.response_status.message}", fact: "req.response_status.message", field: "response_status.message"},
		{key: "order:#{md.tenant}", fact: "md.tenant", field: "md.tenant"},
		{key: "order:#{md.tenant}", fact: "md.tenant", field: "md.tenant", md: []string{"tenant", value, "tenant", value}},
		{key: `order:#{md["x-tenant"]}`, fact: `md["x-tenant"]`, field: `md["x-tenant"]`},
	} {
		var event guard.Event
		observe := guard.Observe(func(_ context.Context, e guard.Event) { event = e })
		client := serve(t, &service{}, unary(t, unaryCall, newGuard(t, newLocker(), guard.Key(tt.key), observe)))
		ctx := metadata.AppendToOutgoingContext(t.Context(), tt.md...)
		_, err := client.UnaryCall(ctx, &testpb.SimpleRequest{ResponseStatus: &testpb.EchoStatus{}})
		s := status.Convert(err)
		if s.Code() != codes.InvalidArgument || !strings.Contains(s.Message(), tt.fact+" is missing or unusable") {
			t.Errorf("key %s: %v, want InvalidArgument that names %s", tt.key, err, tt.fact)
		}
		if got := violations(s); len(got) != 1 || got[0].GetField() != tt.field || got[0].GetReason() != "LOCK_KEY" {
			t.Errorf("key %s: violations %v, want one of %s", tt.key, got, tt.field)
		}
		if strings.Contains(s.Proto().String(), value) {
			t.Errorf("key %s: %v tells a value", tt.key, err)
		}
		if event.Fact != tt.fact || event.Outcome != guard.OutcomeKey {
			t.Errorf("key %s: event of %s with fact %q, want key and %q", tt.key, event.Outcome, event.Fact, tt.fact)
		}
	}
}

func violations(s *status.Status) (all []*errdetails.BadRequest_FieldViolation) {
	for _, d := range s.Details() {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			all = append(all, bad.GetFieldViolations()...)
		}
	}
	return all
}

// A client that hangs up before its first message is nobody's fault, and one whose message can't be read is its own.
func TestFirstMessageThatDoesNotCome(t *testing.T) {
	events := make(chan guard.Event, 1)
	observe := guard.Observe(func(_ context.Context, e guard.Event) { events <- e })
	client := serve(t, &service{}, grpc.MaxRecvMsgSize(100), streaming(t, duplexCall, newGuard(t, newLocker(), ofMessage(), observe)))

	ctx, cancel := context.WithCancel(t.Context())
	if _, err := client.FullDuplexCall(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	if e := <-events; e.Outcome != guard.OutcomeCanceled {
		t.Errorf("event of a client that hung up: %s, %v", e.Outcome, e.Err)
	}
	_, err := open(t, client, strings.Repeat("a", 200)).Recv()
	if got := failureOf(err); got.code != codes.ResourceExhausted {
		t.Errorf("of a message that is too long: %v, want what gRPC says", err)
	}
	if e := <-events; e.Outcome != guard.OutcomeKey {
		t.Errorf("event of a message that is too long: %s, %v", e.Outcome, e.Err)
	}
}

// A call that was skipped says so in its header.
func TestSkippedCallsSaySo(t *testing.T) {
	g := newGuard(t, failing(lock.ErrBusy), guard.Key("k"), guard.OneKey(), guard.Busy(guard.Skip))
	guards, err := interceptor.New(interceptor.Method(unaryCall, g), interceptor.Method(inputCall, g))
	if err != nil {
		t.Fatal(err)
	}
	client := serve(t, &service{}, guards.ServerOptions()...)
	var header metadata.MD
	if _, err := client.UnaryCall(t.Context(), echo(""), grpc.Header(&header)); err != nil || header.Get("latchkey-outcome")[0] != "skipped" {
		t.Errorf("unary: %v with header %v", err, header)
	}
	stream, err := client.StreamingInputCall(t.Context(), grpc.Header(&header))
	if err != nil {
		t.Fatal(err)
	}
	header = nil
	if _, err := stream.CloseAndRecv(); err != nil || header.Get("latchkey-outcome")[0] != "skipped" {
		t.Errorf("stream: %v with header %v", err, header)
	}
}
