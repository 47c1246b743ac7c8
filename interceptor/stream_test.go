package interceptor_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

type (
	duplexServer = testpb.TestService_FullDuplexCallServer
	outputServer = testpb.TestService_StreamingOutputCallServer
	inputServer  = testpb.TestService_StreamingInputCallServer
)

// ofMessage is a key that needs the first message.
func ofMessage() guard.Option { return guard.Key("order:#{req.ResponseStatus.Message}") }

// message is a message of a stream, with a field that its Go type does not know.
func message(s string) *testpb.StreamingOutputCallRequest {
	m := &testpb.StreamingOutputCallRequest{ResponseStatus: &testpb.EchoStatus{Message: s}}
	m.ProtoReflect().SetUnknown(protoreflect.RawFields{0xf8, 0x7f, 42}) // field 2047 is 42
	return m
}

// open starts a FullDuplexCall and sends messages.
func open(t *testing.T, client testpb.TestServiceClient, messages ...string) testpb.TestService_FullDuplexCallClient {
	t.Helper()
	stream, err := client.FullDuplexCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if err := stream.Send(message(m)); err != nil {
			t.Fatal(err)
		}
	}
	return stream
}

// closed returns how stream ends when its client has no more to say.
func closed(t *testing.T, stream testpb.TestService_FullDuplexCallClient) error {
	t.Helper()
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	_, err := stream.Recv()
	return err
}

// ready answers once, to say that the handler runs, and then receives to the end.
func ready(s duplexServer) error {
	if err := s.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
		return err
	}
	for {
		if _, err := s.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// The message that was read for the key is received by the handler too, as it was sent and before all others.
func TestFirstMessageIsReplayed(t *testing.T) {
	for _, when := range []string{"", `req.ResponseStatus.Message != ""`} {
		l := newLocker()
		var got []*testpb.StreamingOutputCallRequest
		client := serve(t, &service{duplex: func(s duplexServer) error {
			for {
				m, err := s.Recv()
				if errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
				got = append(got, m)
			}
		}}, streaming(t, duplexCall, newGuard(t, l, ofMessage(), guard.FromSpec(guard.Spec{When: when}))))
		if err := closed(t, open(t, client, "a", "b", "c")); !errors.Is(err, io.EOF) {
			t.Errorf("the stream ends with %v, want EOF", err)
		}
		if key := <-l.keys; key != "order:a" {
			t.Errorf("key %q, want that of the first message", key)
		}
		want := []*testpb.StreamingOutputCallRequest{message("a"), message("b"), message("c")}
		if !slices.EqualFunc(got, want, func(a, b *testpb.StreamingOutputCallRequest) bool { return proto.Equal(a, b) }) {
			t.Errorf("received %v, want %v", got, want)
		}
	}
}

func TestServerStream(t *testing.T) {
	l := newLocker()
	client := serve(t, &service{output: func(r *testpb.StreamingOutputCallRequest, s outputServer) error {
		if !proto.Equal(r, message("a")) || l.free("order:a") {
			t.Errorf("request %v, lock free %v, want what was sent, under the lock", r, l.free("order:a"))
		}
		return s.Send(&testpb.StreamingOutputCallResponse{})
	}}, streaming(t, outputCall, newGuard(t, l, ofMessage())))
	stream, err := client.StreamingOutputCall(t.Context(), message("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Errorf("Recv = %v", err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) || !l.free("order:a") {
		t.Errorf("Recv = %v, lock free %v, want EOF and true", err, l.free("order:a"))
	}
}

func TestClientStream(t *testing.T) {
	l := newLocker()
	client := serve(t, &service{input: func(s inputServer) error {
		n := int32(0)
		for {
			if _, err := s.Recv(); errors.Is(err, io.EOF) {
				return s.SendAndClose(&testpb.StreamingInputCallResponse{AggregatedPayloadSize: n})
			} else if err != nil {
				return err
			}
			n++
		}
	}}, streaming(t, inputCall, newGuard(t, l, guard.Key("compressed:#{req.ExpectCompressed.Value}"))))
	stream, err := client.StreamingInputCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := stream.Send(&testpb.StreamingInputCallRequest{ExpectCompressed: &testpb.BoolValue{Value: true}}); err != nil {
			t.Fatal(err)
		}
	}
	res, err := stream.CloseAndRecv()
	if err != nil || res.GetAggregatedPayloadSize() != 3 {
		t.Errorf("CloseAndRecv = %v, %v, want 3 messages", res, err)
	}
	if key := <-l.keys; key != "compressed:true" {
		t.Errorf("key %q", key)
	}
}

func TestStreamWithoutMessage(t *testing.T) {
	l := newLocker()
	client := serve(t, &service{duplex: func(duplexServer) error {
		t.Error("the handler ran")
		return nil
	}}, streaming(t, duplexCall, newGuard(t, l, ofMessage())))
	for _, stream := range []testpb.TestService_FullDuplexCallClient{open(t, client), open(t, client, "")} {
		err := closed(t, stream)
		if got, want := failureOf(err), (failure{codes.InvalidArgument, "LOCK_KEY", ""}); got != want || len(l.keys) > 0 {
			t.Errorf("the stream ends with %v after %d locks, want %v", err, len(l.keys), want)
		}
	}
}

// A key that does not need the request does not wait for it.
func TestStreamWithoutReq(t *testing.T) {
	l := newLocker()
	client := serve(t, &service{duplex: ready}, streaming(t, duplexCall, newGuard(t, l, guard.Key("#{method}:#{md.tenant}"))))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "tenant", "acme")
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil { // before anything was sent
		t.Errorf("Recv = %v", err)
	}
	if err := closed(t, stream); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v, want EOF", err)
	}
	if key := <-l.keys; key != duplexCall+":acme" {
		t.Errorf("key %q", key)
	}
}

func TestStreamHoldsToItsEnd(t *testing.T) {
	l := newLocker()
	client := serve(t, &service{duplex: ready}, streaming(t, duplexCall, newGuard(t, l, ofMessage())))
	first := open(t, client, "a")
	if _, err := first.Recv(); err != nil {
		t.Fatal(err)
	}
	second := open(t, client, "a")
	if _, err := second.Recv(); failureOf(err) != (failure{codes.Aborted, "LOCK_BUSY", "1s"}) {
		t.Errorf("beside an open stream: %v, want busy", err)
	}
	if err := closed(t, first); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v, want EOF", err)
	}
	third := open(t, client, "a")
	if err := closed(t, third); err != nil {
		t.Errorf("after the stream: %v", err)
	}
}

func TestStreamPanicReleasesAndGoesOn(t *testing.T) {
	recovery := grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = status.Errorf(codes.DataLoss, "recovered: %v", p)
			}
		}()
		return next(srv, s)
	})
	for _, inside := range []bool{false, true} {
		l := newLocker()
		opts := []grpc.ServerOption{recovery, streaming(t, duplexCall, newGuard(t, l, ofMessage()))}
		if inside {
			slices.Reverse(opts)
		}
		client := serve(t, &service{duplex: func(duplexServer) error { panic("oops") }}, opts...)
		_, err := open(t, client, "a").Recv()
		if s := status.Convert(err); s.Code() != codes.DataLoss || s.Message() != "recovered: oops" {
			t.Errorf("recovery inside %v: %v, want what recovery made of it", inside, err)
		}
		if len(l.keys) != 1 || !l.free("order:a") {
			t.Errorf("recovery inside %v: %d locks, free %v, want 1 and true", inside, len(l.keys), l.free("order:a"))
		}
	}
}

func TestStreamCancelledWhileWaiting(t *testing.T) {
	l := newLocker()
	ended := make(chan error, 1)
	observe := grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		err := next(srv, s)
		ended <- err
		return err
	})
	client := serve(t, &service{duplex: func(duplexServer) error {
		t.Error("the handler ran")
		return nil
	}}, observe, streaming(t, duplexCall, newGuard(t, l, ofMessage(), guard.Wait(guard.Forever))))
	hold, err := l.Locker.Acquire(t.Context(), lock.Request{Key: "order:a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, messages := range [][]string{{"a"}, nil} { // waiting for the lock, and for the first message
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := client.FullDuplexCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			if err := stream.Send(message(m)); err != nil {
				t.Fatal(err)
			}
			<-l.keys
		}
		cancel()
		if got := status.Code(<-ended); got != codes.Canceled {
			t.Errorf("after %d messages the interceptor answers %v, want Canceled", len(messages), got)
		}
	}
	if err := hold.Release(t.Context()); err != nil || !l.free("order:a") {
		t.Errorf("Release = %v, lock free %v, want nil and true", err, l.free("order:a"))
	}
}

// A stream that is skipped ends well, with the empty response where its client needs one.
func TestSkippedStreams(t *testing.T) {
	g := newGuard(t, failing(lock.ErrBusy), guard.Key("k"), guard.OneKey(), guard.Busy(guard.Skip))
	client := serve(t, &service{}, streaming(t, duplexCall, g), streaming(t, inputCall, g), streaming(t, outputCall, g))
	if err := closed(t, open(t, client)); !errors.Is(err, io.EOF) {
		t.Errorf("both ways: %v, want EOF", err)
	}
	in, err := client.StreamingInputCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if res, err := in.CloseAndRecv(); err != nil || !proto.Equal(res, &testpb.StreamingInputCallResponse{}) {
		t.Errorf("client stream: %v, %v, want an empty response", res, err)
	}
	out, err := client.StreamingOutputCall(t.Context(), message("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("server stream: %v, want EOF", err)
	}
}
