package interceptor

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"reflect"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/latchkey-go/latchkey/interceptor/internal/answer"
	"github.com/latchkey-go/latchkey/interceptor/internal/rules"
	"github.com/latchkey-go/latchkey/lock"
)

// stream makes a call of a streaming method.
func stream(m *rules.Bound, srv any, s grpc.ServerStream, next grpc.StreamHandler) error {
	held := &heldStream{ServerStream: s, method: m}
	c := rules.Call{Method: m, Context: s.Context(), Stream: held, Transport: transport{}}
	skipped, err := c.Run(func(ctx context.Context) error {
		held.ctx = ctx
		stop := held.watch()
		defer func() { _ = stop() }()
		err := next(srv, held)
		if told := stop(); err == nil && errors.Is(told, lock.ErrReplaced) {
			return told // so that no client hears that it went well
		}
		return err
	}, nil)
	if !skipped {
		return err
	}
	_ = s.SetHeader(skippedHeader) // fails only where the call has ended
	if m.Single {
		return s.SendMsg(m.Response.New().Interface())
	}
	return nil
}

// heldStream is the stream for the handler of a guarded stream: the caller's, which ends when the lock is lost, and
// when a newer call takes the place of this one.
type heldStream struct {
	grpc.ServerStream
	method *rules.Bound
	ctx    context.Context // of the lock
	first  any             // a message that was read for the key, until the handler has received it
	ends   bool            // the whole call ends with the lock: nobody goes on waiting in the ServerStream
}

// watch ends the whole call when the lock is lost or a newer call has come, with the status that says so: nothing less
// interrupts a handler that waits in gRPC's own RecvMsg or SendMsg. Without a transport that can do it, RecvMsg has to
// wait elsewhere. The returned function ends the watch. It must be called before the lock is given back, and returns
// the status that the client got.
func (s *heldStream) watch() (stop func() (told error)) {
	transport, ok := grpc.ServerTransportStreamFromContext(s.ServerStream.Context()).(ender)
	// Within an HTTP server, WriteStatus waits for a SendMsg that waits for the client.
	if !ok || s.ServerStream.Context().Value(http.ServerContextKey) != nil {
		return func() error { return nil }
	}
	s.ends = true
	var told error
	done := make(chan struct{})
	stopped := context.AfterFunc(s.ctx, func() {
		defer close(done)
		if told = s.over(); told != nil {
			_ = transport.WriteStatus(status.Convert(told)) // fails only where the client has gone
		}
	})
	return sync.OnceValue(func() error {
		if stopped() {
			return nil
		}
		<-done
		return told
	})
}

// ender is a stream of gRPC's transports. WriteStatus sends the status that the call ends with, unless one was sent, and
// makes what is blocked in the stream fail.
type ender interface{ WriteStatus(*status.Status) error }

// Peek reads the first message, for the condition and the key.
func (s *heldStream) Peek() (any, error) {
	if s.first != nil {
		return s.first, nil
	}
	m := reflect.New(s.method.Request.Elem()).Interface()
	if err := s.ServerStream.RecvMsg(m); err != nil {
		if gone := s.ServerStream.Context().Err(); gone != nil && status.Code(err) == status.FromContextError(gone).Code() {
			return nil, gone
		}
		return nil, err
	}
	s.first = m
	return m, nil
}

// Context returns the context of the lock, which derives from the caller's.
func (s *heldStream) Context() context.Context { return s.ctx }

// SendMsg sends m, and fails as soon as the call is over.
func (s *heldStream) SendMsg(m any) error {
	if err := s.over(); err != nil {
		return err
	}
	if err := s.ServerStream.SendMsg(m); err != nil {
		return cmp.Or(s.over(), err)
	}
	return nil
}

// RecvMsg receives into m, and fails as soon as the call is over: m is of no use then.
func (s *heldStream) RecvMsg(m any) error {
	if err := s.over(); err != nil {
		return err
	}
	if first := s.first; first != nil {
		s.first = nil
		return s.replay(m, first)
	}
	if s.ends {
		err := s.ServerStream.RecvMsg(m)
		return cmp.Or(s.over(), err)
	}
	return s.receive(m)
}

// receive is RecvMsg where nothing interrupts that of the ServerStream. The handler waits here, and
// the goroutine, should it be left behind, ends with the call.
func (s *heldStream) receive(m any) error {
	received := make(chan receipt, 1)
	go func() { received <- receive(s.ServerStream, m) }()
	select {
	case r := <-received:
		return s.take(r)
	case <-s.ctx.Done():
	}
	if err := s.over(); err != nil {
		return err
	}
	return s.take(<-received) // the caller has gone, or the handler returned: gRPC knows what to say
}

// receipt is the result of a RecvMsg.
type receipt struct {
	err      error
	panicked any
}

func receive(s grpc.ServerStream, m any) (r receipt) {
	// A codec or another interceptor may panic, and whoever recovers from that stands above the handler.
	defer func() { r.panicked = recover() }()
	return receipt{err: s.RecvMsg(m)}
}

// take is the end of receive. A message that came after the call was over is not for this handler.
func (s *heldStream) take(r receipt) error {
	if r.panicked != nil {
		panic(r.panicked)
	}
	return cmp.Or(s.over(), r.err)
}

// over returns the status for a lost lock or a newer call, and nil as long as neither has come.
func (s *heldStream) over() error {
	if s.ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(s.ctx)
	a, ok := answer.Ended(cause, s.method.Spec.Name)
	if !ok {
		return nil
	}
	return &ended{statusOf(a), cause}
}

// ended is a status and what it is for, by which the guard knows that a handler which returns it has stopped for a newer call.
type ended struct {
	error
	cause error
}

func (e *ended) GRPCStatus() *status.Status { return status.Convert(e.error) }
func (e *ended) Unwrap() error              { return e.cause }

// replay hands first to the handler as if it had just been received.
func (s *heldStream) replay(m, first any) error {
	to, ok := m.(proto.Message)
	if from, isProto := first.(proto.Message); ok && isProto && sameMessage(to, from) {
		proto.Reset(to)
		proto.Merge(to, from)
		return nil
	}
	if reflect.TypeOf(m) != reflect.TypeOf(first) {
		return transport{}.Misuse(s.method, "its handler receives another type than its rule was made for")
	}
	reflect.ValueOf(m).Elem().Set(reflect.ValueOf(first).Elem())
	return nil
}

// sameMessage reports whether a and b have the same fields, though perhaps different Go types.
func sameMessage(a, b proto.Message) bool {
	return a.ProtoReflect().Descriptor() == b.ProtoReflect().Descriptor()
}
