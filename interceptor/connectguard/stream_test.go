package connectguard_test

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/connectguard"
	"github.com/latchkey-go/latchkey/lock"
)

// The message that was read for the key is received by the handler too, before all others.
func TestFirstMessageIsReplayed(t *testing.T) {
	for protocol := range protocols {
		l := newLocker()
		var got []string
		client := serve(t, service{fill: func(_ context.Context, s *connect.ClientStream[request]) (*connect.Response[response], error) {
			for s.Receive() {
				got = append(got, s.Msg().GetOrderId())
			}
			return connect.NewResponse(&response{Orders: int64(len(got))}), s.Err()
		}}, protocol, guards(t, connectguard.Method(fillCall, newGuard(t, l, guard.Key("order:#{req.order_id}"), guard.When(`req.order_id != "none"`)))))
		stream := client.fill.CallClientStream(t.Context())
		for _, id := range []string{"a", "b", "c"} {
			if err := stream.Send(&request{OrderId: id}); err != nil {
				t.Fatal(err)
			}
		}
		res, err := stream.CloseAndReceive()
		if err != nil || res.Msg.GetOrders() != 3 || got[0] != "a" || got[2] != "c" || <-l.keys != "order:a" {
			t.Errorf("%s: received %q, %v, want a, b, c under the key of the first", protocol, got, err)
		}
	}
}

// A first message that can't be received is the handler's to refuse, where a guard in shadow mode has found that out for its key.
func TestFailureOfTheFirstMessageIsReplayed(t *testing.T) {
	for protocol, options := range protocols {
		reg := guard.Must(guard.NewRegistry())
		g := newGuard(t, newLocker(), guard.Key("order:#{req.order_id}"), guard.In(reg), guard.Switchable())
		var got []string
		server := httptest.NewServer(connect.NewClientStreamHandler(fillCall, func(_ context.Context, s *connect.ClientStream[request]) (*connect.Response[response], error) {
			for s.Receive() {
				got = append(got, s.Msg().GetOrderId())
			}
			return connect.NewResponse(&response{}), s.Err()
		}, connect.WithReadMaxBytes(100), connect.WithInterceptors(guards(t, connectguard.Method(fillCall, g)))))
		if err := reg.Switch("g", guard.Shadow); err != nil {
			t.Fatal(err)
		}
		stream := connect.NewClient[request, response](server.Client(), server.URL+fillCall, options...).CallClientStream(t.Context())
		for _, id := range []string{strings.Repeat("a", 200), "b"} {
			_ = stream.Send(&request{OrderId: id}) // the handler may have returned
		}
		if _, err := stream.CloseAndReceive(); connect.CodeOf(err) != connect.CodeResourceExhausted || len(got) > 0 {
			t.Errorf("%s: received %q, %v, want resource_exhausted", protocol, got, err)
		}
		server.Close()
	}
}

// A stream holds its lock to its end, and one without a message has no key.
func TestStreamsHoldAndNeedKeys(t *testing.T) {
	end := make(chan struct{})
	client := serve(t, service{
		watch: func(_ context.Context, _ *connect.Request[request], s *connect.ServerStream[response]) error {
			if err := s.Send(&response{Orders: 1}); err != nil {
				return err
			}
			<-end
			return nil
		},
	}, "grpc", guards(t, connectguard.Method(watchCall, newGuard(t, newLocker(), guard.Key("order:#{req.order_id}"))),
		connectguard.Method(fillCall, newGuard(t, newLocker(), guard.Key("order:#{req.order_id}")))))
	watch := func(id string) *connect.ServerStreamForClient[response] {
		stream, err := client.watch.CallServerStream(t.Context(), order(id))
		if err != nil {
			t.Fatal(err)
		}
		return stream
	}
	first := watch("7")
	if !first.Receive() || first.Msg().GetOrders() != 1 {
		t.Error(first.Err())
	}
	second := watch("7")
	if second.Receive() || failureOf(second.Err()).reason != "LOCK_BUSY" {
		t.Errorf("beside an open stream: %v, want LOCK_BUSY", second.Err())
	}
	close(end)
	if first.Receive() || first.Err() != nil {
		t.Errorf("first ends with %v, want nil", first.Err())
	}
	_, err := client.fill.CallClientStream(t.Context()).CloseAndReceive()
	if got, want := failureOf(err), (failure{code: connect.CodeInvalidArgument, reason: "LOCK_KEY", field: "order_id"}); got != want {
		t.Errorf("without a message: %v, want %v", err, want)
	}
}

// A handler that waits for a silent client learns that its lock is gone, and so does the client.
func TestStreamEndsWhenLost(t *testing.T) {
	for protocol := range protocols {
		for _, swallow := range []bool{false, true} {
			l := newLocker()
			waiting := make(chan struct{})
			var recv, cause error
			client := serve(t, service{fill: func(ctx context.Context, s *connect.ClientStream[request]) (*connect.Response[response], error) {
				s.Receive()
				close(waiting)
				if s.Receive() {
					t.Errorf("%s: a message after the loss: %v", protocol, s.Msg())
				}
				recv, cause = s.Err(), context.Cause(ctx)
				if swallow {
					return connect.NewResponse(&response{}), nil
				}
				return nil, recv
			}}, protocol, guards(t, connectguard.Method(fillCall, newGuard(t, l, guard.Key("order:#{req.order_id}")))))
			stream := client.fill.CallClientStream(t.Context())
			if err := stream.Send(&request{OrderId: "7"}); err != nil {
				t.Fatal(err)
			}
			<-waiting
			l.ForceUnlock("order:7")
			conn, err := stream.Conn()
			if err != nil {
				t.Fatal(err)
			}
			err = conn.Receive(&response{})
			want := failure{code: connect.CodeInternal, reason: "LOCK_LOST"}
			if failureOf(err) != want || failureOf(recv) != want || !errors.Is(cause, lock.ErrLost) {
				t.Errorf("%s: the client gets %v, the handler %v and its context %v, want %v", protocol, err, recv, cause, want)
			}
			if err := conn.CloseRequest(); err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("%s: CloseRequest = %v", protocol, err)
			}
		}
	}
}

// The message that was read for the key is not for a handler that has lost the lock before it receives.
func TestNoReplayAfterLoss(t *testing.T) {
	for protocol := range protocols {
		l := newLocker()
		var recv error
		client := serve(t, service{fill: func(ctx context.Context, s *connect.ClientStream[request]) (*connect.Response[response], error) {
			l.ForceUnlock("order:7")
			<-ctx.Done()
			if s.Receive() {
				t.Errorf("%s: a message after the loss: %v", protocol, s.Msg())
			}
			recv = s.Err()
			return nil, recv
		}}, protocol, guards(t, connectguard.Method(fillCall, newGuard(t, l, guard.Key("order:#{req.order_id}")))))
		stream := client.fill.CallClientStream(t.Context())
		if err := stream.Send(&request{OrderId: "7"}); err != nil {
			t.Fatal(err)
		}
		_, err := stream.CloseAndReceive()
		if want := (failure{code: connect.CodeInternal, reason: "LOCK_LOST"}); failureOf(err) != want || failureOf(recv) != want {
			t.Errorf("%s: the client gets %v, the handler %v, want %v", protocol, err, recv, want)
		}
	}
}
