package interceptor_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/lock"
)

// receiving is a stream that tells when each RecvMsg began and how it ended.
type receiving struct {
	grpc.ServerStream
	ctx    context.Context
	begins chan struct{}
	ends   chan error
}

func (s receiving) Context() context.Context { return s.ctx }

func (s receiving) RecvMsg(m any) error {
	s.begins <- struct{}{}
	err := s.ServerStream.RecvMsg(m)
	s.ends <- err
	return err
}

// watched tells how the RecvMsg and SendMsg of guarded streams go, on the server's side of the guard.
func watched(begins chan struct{}, ends chan error, hidden bool) grpc.ServerOption {
	return grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		ctx := s.Context()
		if hidden { // as in another transport than gRPC's own
			ctx = grpc.NewContextWithServerTransportStream(ctx, struct{ grpc.ServerTransportStream }{})
		}
		return next(srv, receiving{s, ctx, begins, ends})
	})
}

// A handler that waits for a silent client learns that its lock is gone, and so does the client. Nobody goes on waiting.
func TestStreamEndsWhenLost(t *testing.T) {
	type view struct {
		recv, send, cause error
	}
	for _, tt := range []struct {
		swallow, hidden bool
		serve           func(testing.TB, *service, ...grpc.ServerOption) testpb.TestServiceClient
	}{
		{swallow: false, serve: serve}, {swallow: true, serve: serve},
		{swallow: false, serve: serveHTTP}, {swallow: true, serve: serveHTTP},
		{swallow: false, hidden: true, serve: serve}, {swallow: true, hidden: true, serve: serve},
	} {
		l := newLocker()
		seen := make(chan view, 1)
		begins, ends := make(chan struct{}, 10), make(chan error, 10)
		client := tt.serve(t, &service{duplex: func(s duplexServer) error {
			var v view
			v.recv = ready(s)
			v.send = s.Send(&testpb.StreamingOutputCallResponse{})
			v.cause = context.Cause(s.Context())
			seen <- v
			if tt.swallow {
				return nil
			}
			return v.recv
		}}, watched(begins, ends, tt.hidden), streaming(t, duplexCall, newGuard(t, l, ofMessage())))
		stream := open(t, client, "a")
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		<-begins // for the first message
		<-begins // for the one that does not come
		l.ForceUnlock("order:a")
		want := failure{codes.Internal, "LOCK_LOST", ""}
		if _, err := stream.Recv(); failureOf(err) != want {
			t.Errorf("the client gets %v, want %v", err, want)
		}
		v := <-seen
		if failureOf(v.recv) != want || failureOf(v.send) != want || !errors.Is(v.cause, lock.ErrLost) {
			t.Errorf("Recv = %v, Send = %v, context ended with %v, want %v and ErrLost", v.recv, v.send, v.cause, want)
		}
		for err := range ends {
			if err != nil { // the one that was interrupted; the one before it got the message
				break
			}
		}
	}
}

// A handler that waits for a silent client makes way for a newer call, whatever it returns, and its client is told.
func TestStreamEndsForANewerCall(t *testing.T) {
	for _, tt := range []struct {
		swallow, hidden bool
		serve           func(testing.TB, *service, ...grpc.ServerOption) testpb.TestServiceClient
	}{
		{serve: serve}, {swallow: true, serve: serve}, {serve: serveHTTP}, {hidden: true, serve: serve},
	} {
		outcomes := make(chan string, 2)
		g := newGuard(t, newLocker(), ofMessage(), guard.Busy(guard.Replace), guard.Observe(func(_ context.Context, e guard.Event) { outcomes <- e.Outcome }))
		client := tt.serve(t, &service{duplex: func(s duplexServer) error {
			if err := ready(s); !tt.swallow {
				return err
			}
			return nil
		}}, watched(make(chan struct{}, 10), make(chan error, 10), tt.hidden), streaming(t, duplexCall, g))
		older, newer := open(t, client, "a"), open(t, client)
		if _, err := older.Recv(); err != nil {
			t.Fatal(err)
		}
		if err := newer.Send(message("a")); err != nil {
			t.Fatal(err)
		}
		if _, err := newer.Recv(); err != nil { // which waits for the older one to go
			t.Fatal(err)
		}
		if _, err := older.Recv(); failureOf(err) != (failure{codes.Aborted, "LOCK_REPLACED", ""}) {
			t.Errorf("the client of the older call gets %v, want LOCK_REPLACED", err)
		}
		if got := <-outcomes; got != guard.OutcomeReplaced {
			t.Errorf("the older call is %q, want %q", got, guard.OutcomeReplaced)
		}
		if err := closed(t, newer); !errors.Is(err, io.EOF) {
			t.Errorf("the newer call ends with %v, want the handler's end", err)
		}
	}
}

// The message that was read for the key is not for a handler that has lost the lock before it receives.
func TestNoReplayAfterLoss(t *testing.T) {
	l := newLocker()
	received := make(chan error, 1)
	client := serve(t, &service{duplex: func(s duplexServer) error {
		l.ForceUnlock("order:a")
		<-s.Context().Done()
		_, err := s.Recv()
		received <- err
		return err
	}}, streaming(t, duplexCall, newGuard(t, l, ofMessage())))
	stream := open(t, client, "a")
	_, err := stream.Recv()
	if want, got := (failure{codes.Internal, "LOCK_LOST", ""}), <-received; failureOf(err) != want || failureOf(got) != want {
		t.Errorf("the client gets %v, the handler %v, want %v", err, got, want)
	}
}

// A handler that waits for a client which reads nothing is interrupted, too, and the client need not wait for it.
func TestBlockedSendEndsWhenLost(t *testing.T) {
	l := newLocker()
	sent, done := make(chan struct{}, 1000), make(chan error, 1)
	answered := make(chan struct{})
	answer := sync.OnceFunc(func() { close(answered) })
	defer answer()
	client := serve(t, &service{duplex: func(s duplexServer) error {
		big := &testpb.StreamingOutputCallResponse{Payload: &testpb.Payload{Body: make([]byte, 1<<20)}}
		for {
			sent <- struct{}{}
			if err := s.Send(big); err != nil {
				done <- err
				<-answered
				return err
			}
		}
	}}, streaming(t, duplexCall, newGuard(t, l, guard.Key("k"), guard.OneKey())))
	stream := open(t, client)
	<-sent
	<-sent // the windows are full
	l.ForceUnlock("k")
	select {
	case err := <-done:
		if failureOf(err).reason != "LOCK_LOST" {
			t.Errorf("Send = %v, want LOCK_LOST", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Send still waits for the client")
	}
	var err error
	for err == nil {
		_, err = stream.Recv()
	}
	answer()
	if failureOf(err).reason != "LOCK_LOST" {
		t.Errorf("the client gets %v, want LOCK_LOST", err)
	}
}

// A message costs no goroutine and no memory.
func TestMessagesAreNotHandedOver(t *testing.T) {
	s := silent{ctx: grpc.NewContextWithServerTransportStream(t.Context(), transport{})}
	err := intercept(t, newGuard(t, newLocker(), guard.Key("k"), guard.OneKey()), s, func(s grpc.ServerStream) error {
		m := message("")
		if n := testing.AllocsPerRun(100, func() { _ = cmp.Or(s.RecvMsg(m), s.SendMsg(m)) }); n > 0 {
			t.Errorf("%v allocations for a message each way, want none", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// scripted is a stream whose RecvMsg is a function.
type scripted struct {
	grpc.ServerStream
	ctx  context.Context
	recv func() error
}

func (s scripted) Context() context.Context { return s.ctx }
func (s scripted) RecvMsg(any) error        { return s.recv() }

// intercept runs handle as the handler of a guarded stream s.
func intercept(t *testing.T, g *guard.Guard, s grpc.ServerStream, handle func(grpc.ServerStream) error) error {
	t.Helper()
	i, err := interceptor.StreamServer(interceptor.Method(duplexCall, g))
	if err != nil {
		t.Fatal(err)
	}
	return i(nil, s, &grpc.StreamServerInfo{FullMethod: duplexCall}, func(_ any, s grpc.ServerStream) error { return handle(s) })
}

// stalled is the context of a hold in a process that was stopped: it has ended, but nobody has been told.
type stalled struct {
	context.Context
	lost bool
}

func (*stalled) Done() <-chan struct{} { return nil }

func (c *stalled) Err() error {
	if c.lost {
		return lock.ErrLost
	}
	return nil
}

// stalledHold is a hold with a stalled context.
type stalledHold struct{ *stalled }

func (h stalledHold) Context() context.Context      { return h.stalled }
func (h stalledHold) Release(context.Context) error { return h.Err() }

// withAndWithoutTransport are contexts of a stream that gRPC's transport can't end, and of one that it can.
func withAndWithoutTransport(t *testing.T) []context.Context {
	return []context.Context{t.Context(), grpc.NewContextWithServerTransportStream(t.Context(), transport{})}
}

// A message that was received by the time that the loss of the lock is noticed is not for this handler.
func TestNoMessageAfterLoss(t *testing.T) {
	for _, ctx := range withAndWithoutTransport(t) {
		noMessageAfterLoss(t, ctx)
	}
}

func noMessageAfterLoss(t *testing.T, ctx context.Context) {
	c := &stalled{Context: t.Context()}
	l := lockerFunc(func(context.Context, lock.Request) (lock.Hold, error) { return stalledHold{c}, nil })
	s := scripted{ctx: ctx, recv: func() error {
		c.lost = true
		return nil
	}}
	err := intercept(t, newGuard(t, l, guard.Key("k"), guard.OneKey()), s, func(s grpc.ServerStream) error {
		if err := s.RecvMsg(message("")); failureOf(err).reason != "LOCK_LOST" {
			t.Errorf("RecvMsg = %v, want LOCK_LOST", err)
		}
		return nil
	})
	if failureOf(err).reason != "LOCK_LOST" {
		t.Errorf("= %v, want LOCK_LOST", err)
	}
}

func TestPanicOfRecvMsgReachesTheHandler(t *testing.T) {
	for _, ctx := range withAndWithoutTransport(t) {
		s := scripted{ctx: ctx, recv: func() error { panic("codec") }}
		l := newLocker()
		err := intercept(t, newGuard(t, l, guard.Key("k"), guard.OneKey()), s, func(s grpc.ServerStream) (err error) {
			defer func() { err = status.Errorf(codes.DataLoss, "recovered: %v", recover()) }()
			return s.RecvMsg(message(""))
		})
		if status.Convert(err).Message() != "recovered: codec" || !l.free("k") {
			t.Errorf("= %v, lock free %v, want the codec's panic, and true", err, l.free("k"))
		}
	}
}

// An interceptor further out may refuse the message that the key is made of.
func TestRefusalOfTheFirstMessage(t *testing.T) {
	s := scripted{ctx: t.Context(), recv: func() error { return status.Error(codes.PermissionDenied, "not yours") }}
	err := intercept(t, newGuard(t, newLocker(), ofMessage()), s, func(grpc.ServerStream) error {
		t.Error("the handler ran")
		return nil
	})
	if s := status.Convert(err); s.Code() != codes.PermissionDenied || s.Message() != "not yours" {
		t.Errorf("= %v, want the refusal", err)
	}
}

func TestReceivingAnotherType(t *testing.T) {
	s := scripted{ctx: t.Context(), recv: func() error { return nil }}
	g := newGuard(t, newLocker(), guard.Key("k"), guard.OneKey(), guard.When("req != nil"))
	err := intercept(t, g, s, func(s grpc.ServerStream) error { return s.RecvMsg(&testpb.Payload{}) })
	if got, want := failureOf(err), (failure{codes.Internal, "LOCK_MISUSE", ""}); got != want {
		t.Errorf("= %v, want %v", err, want)
	}
}
