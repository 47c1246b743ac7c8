package interceptor_test

import (
	"context"
	"errors"
	"testing"

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
	begins chan struct{}
	ends   chan error
}

func (s receiving) RecvMsg(m any) error {
	s.begins <- struct{}{}
	err := s.ServerStream.RecvMsg(m)
	s.ends <- err
	return err
}

// A handler that waits for a silent client learns that its lock is gone, and so does the client. Nobody goes on waiting.
func TestStreamEndsWhenLost(t *testing.T) {
	type view struct {
		recv, send, cause error
	}
	for _, swallow := range []bool{false, true} {
		l := newLocker()
		seen := make(chan view, 1)
		begins, ends := make(chan struct{}, 10), make(chan error, 10)
		observe := grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			return next(srv, receiving{s, begins, ends})
		})
		client := serve(t, &service{duplex: func(s duplexServer) error {
			var v view
			v.recv = ready(s)
			v.send = s.Send(&testpb.StreamingOutputCallResponse{})
			v.cause = context.Cause(s.Context())
			seen <- v
			if swallow {
				return nil
			}
			return v.recv
		}}, observe, streaming(t, duplexCall, newGuard(t, l, ofMessage())))
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
			if err != nil { // the one that was left behind; the one before it got the message
				break
			}
		}
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

// A message that was received by the time that the loss of the lock is noticed is not for this handler.
func TestNoMessageAfterLoss(t *testing.T) {
	c := &stalled{Context: t.Context()}
	l := lockerFunc(func(context.Context, lock.Request) (lock.Hold, error) { return stalledHold{c}, nil })
	s := scripted{ctx: t.Context(), recv: func() error {
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
	s := scripted{ctx: t.Context(), recv: func() error { panic("codec") }}
	err := intercept(t, newGuard(t, newLocker(), guard.Key("k"), guard.OneKey()), s, func(s grpc.ServerStream) (err error) {
		defer func() { err = status.Errorf(codes.DataLoss, "recovered: %v", recover()) }()
		return s.RecvMsg(message(""))
	})
	if status.Convert(err).Message() != "recovered: codec" {
		t.Errorf("= %v, want the codec's panic", err)
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
