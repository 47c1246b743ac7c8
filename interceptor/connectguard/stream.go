package connectguard

import (
	"cmp"
	"context"
	"reflect"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/internal/answer"
	"github.com/latchkey-go/latchkey/interceptor/internal/rules"
)

// stream makes a call of a streaming method.
func stream(ctx context.Context, m *rules.Bound, conn connect.StreamingHandlerConn, next connect.StreamingHandlerFunc) error {
	held := &heldConn{StreamingHandlerConn: conn, method: m}
	c := rules.Call{Method: m, Context: ctx, Stream: held, Transport: transport(conn.RequestHeader())}
	held.ctx = ctx
	skipped, err := c.Run(func(ctx context.Context) error {
		held.ctx = ctx
		return next(ctx, held)
	}, nil)
	if !skipped {
		return err
	}
	conn.ResponseHeader().Set(outcomeHeader, guard.OutcomeSkipped)
	if m.Single {
		return conn.Send(m.Response.New().Interface())
	}
	return nil
}

// heldConn is the stream for the handler of a guarded stream: the caller's, which ends when the lock is lost, and when
// a newer call takes the place of this one.
type heldConn struct {
	connect.StreamingHandlerConn
	method *rules.Bound
	ctx    context.Context // of the lock, once that is held
	first  proto.Message   // a message that was read for the key, until the handler has received it,
	failed error           // or why it could not be read: Connect would go on with the next one
}

// Peek reads the first message, for the condition and the key.
func (c *heldConn) Peek() (any, error) {
	switch {
	case c.first != nil:
		return c.first, nil
	case c.failed != nil:
		return nil, cmp.Or(c.ctx.Err(), c.failed)
	}
	m, ok := reflect.TypeAssert[proto.Message](reflect.New(c.method.Request.Elem()))
	if !ok {
		return nil, transport{}.Misuse(c.method, "its requests are no messages of protobuf")
	}
	if c.failed = c.StreamingHandlerConn.Receive(m); c.failed != nil {
		return nil, cmp.Or(c.ctx.Err(), c.failed)
	}
	c.first = m
	return m, nil
}

// Send sends m, unless the call is over.
func (c *heldConn) Send(m any) error {
	if err := c.over(); err != nil {
		return err
	}
	return c.StreamingHandlerConn.Send(m)
}

// Receive receives into m, and fails as soon as the call is over: m is of no use then.
func (c *heldConn) Receive(m any) error {
	if err := c.over(); err != nil {
		return err
	}
	if first := c.first; first != nil {
		c.first = nil
		return c.replay(m, first)
	}
	if err := c.failed; err != nil {
		c.failed = nil
		return err
	}
	// Nothing interrupts the Receive of HTTP's own connections but the end of the call. So the handler waits here, and the
	// goroutine, should it be left behind, ends with the call.
	received := make(chan receipt, 1)
	go func() { received <- receive(c.StreamingHandlerConn, m) }()
	select {
	case r := <-received:
		return c.take(r)
	case <-c.ctx.Done():
	}
	if err := c.over(); err != nil {
		return err
	}
	return c.take(<-received) // the caller has gone, or the handler returned: Connect knows what to say
}

// receipt is the result of a Receive.
type receipt struct {
	err      error
	panicked any
}

func receive(conn connect.StreamingHandlerConn, m any) (r receipt) {
	// A codec or another interceptor may panic, and whoever recovers from that stands above the handler.
	defer func() { r.panicked = recover() }()
	return receipt{err: conn.Receive(m)}
}

// take is the end of Receive. A message that came after the call was over is not for this handler.
func (c *heldConn) take(r receipt) error {
	if r.panicked != nil {
		panic(r.panicked)
	}
	return cmp.Or(c.over(), r.err)
}

// over returns the error for a lost lock or a newer call, and nil as long as neither has come.
func (c *heldConn) over() error {
	if c.ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(c.ctx)
	a, ok := answer.Ended(cause, c.method.Spec.Name)
	if !ok {
		return nil
	}
	return errorFor(a, &ended{a.Message, cause})
}

// ended is what a call that is over ends with, by which the guard knows that a handler which returns it has stopped for a
// newer call.
type ended struct {
	text  string
	cause error
}

func (e *ended) Error() string { return e.text }
func (e *ended) Unwrap() error { return e.cause }

// replay hands first to the handler as if it had just been received.
func (c *heldConn) replay(m any, first proto.Message) error {
	to, ok := m.(proto.Message)
	if !ok || to.ProtoReflect().Descriptor() != first.ProtoReflect().Descriptor() {
		return transport{}.Misuse(c.method, "its handler receives another type than its rule was made for")
	}
	proto.Reset(to)
	proto.Merge(to, first)
	return nil
}
