package connectguard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"connectrpc.com/connect"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/connectguard"
	"github.com/latchkey-go/latchkey/interceptor/internal/shoppb"
	"github.com/latchkey-go/latchkey/lock"
)

// scripted is a stream whose Receive is a function.
type scripted struct {
	connect.StreamingHandlerConn
	receive func(m any) error
}

func (s scripted) Receive(m any) error         { return s.receive(m) }
func (s scripted) RequestHeader() http.Header  { return http.Header{} }
func (s scripted) ResponseHeader() http.Header { return http.Header{} }
func (s scripted) Spec() connect.Spec {
	return connect.Spec{Procedure: fillCall, StreamType: connect.StreamTypeClient}
}

// intercept runs handle as the handler of a guarded stream s.
func intercept(t *testing.T, g *guard.Guard, s scripted, handle func(connect.StreamingHandlerConn) error) error {
	t.Helper()
	return guards(t, connectguard.Method(fillCall, g)).WrapStreamingHandler(func(_ context.Context, conn connect.StreamingHandlerConn) error {
		return handle(conn)
	})(t.Context(), s)
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
	s := scripted{receive: func(any) error {
		c.lost = true
		return nil
	}}
	err := intercept(t, newGuard(t, l, guard.Key("k"), guard.OneKey()), s, func(conn connect.StreamingHandlerConn) error {
		if err := conn.Receive(&request{}); failureOf(err).reason != "LOCK_LOST" {
			t.Errorf("Receive = %v, want LOCK_LOST", err)
		}
		return nil
	})
	if failureOf(err).reason != "LOCK_LOST" {
		t.Errorf("= %v, want LOCK_LOST", err)
	}
}

// A handler that waits for a silent client makes way for a newer call.
func TestReceiveEndsForANewerCall(t *testing.T) {
	g := newGuard(t, newLocker(), guard.Key("k"), guard.OneKey(), guard.Busy(guard.Replace))
	silent := scripted{receive: func(any) error { select {} }}
	ran, older := make(chan struct{}), make(chan error, 1)
	go func() {
		older <- intercept(t, g, silent, func(conn connect.StreamingHandlerConn) error {
			close(ran)
			return conn.Receive(&request{})
		})
	}()
	<-ran
	if err := intercept(t, g, silent, func(connect.StreamingHandlerConn) error { return nil }); err != nil {
		t.Errorf("the newer call: %v", err)
	}
	if got := failureOf(<-older); got.code != connect.CodeAborted || got.reason != "LOCK_REPLACED" {
		t.Errorf("the older call: %v, want LOCK_REPLACED", got)
	}
}

// Receive goes on elsewhere while the handler waits for it. A panic there is the handler's all the same.
func TestPanicOfReceiveReachesTheHandler(t *testing.T) {
	s := scripted{receive: func(any) error { panic("codec") }}
	err := intercept(t, newGuard(t, newLocker(), guard.Key("k"), guard.OneKey()), s, func(conn connect.StreamingHandlerConn) (err error) {
		defer func() { err = connect.NewError(connect.CodeDataLoss, fmt.Errorf("recovered: %v", recover())) }()
		return conn.Receive(&request{})
	})
	if e, _ := errors.AsType[*connect.Error](err); e == nil || e.Message() != "recovered: codec" {
		t.Errorf("= %v, want the codec's panic", err)
	}
}

// The message that was read for the key takes the place of whatever was in the handler's.
func TestReplayIntoAUsedMessage(t *testing.T) {
	s := scripted{receive: func(m any) error {
		m.(*request).OrderId = "7"
		return nil
	}}
	err := intercept(t, newGuard(t, newLocker(), guard.Key("order:#{req.order_id}")), s, func(conn connect.StreamingHandlerConn) error {
		m := &request{OrderId: "8"}
		m.ProtoReflect().SetUnknown([]byte{0xf8, 0x3f, 1})
		if err := conn.Receive(m); err != nil || m.GetOrderId() != "7" || len(m.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("received %v, %v, want the order 7 and nothing else", m, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestReceivingAnotherType(t *testing.T) {
	s := scripted{receive: func(any) error { return nil }}
	g := newGuard(t, newLocker(), guard.Key("k"), guard.OneKey(), guard.When("req != nil"))
	err := intercept(t, g, s, func(conn connect.StreamingHandlerConn) error { return conn.Receive(&shoppb.OrderResponse{}) })
	if got := failureOf(err); got.code != connect.CodeInternal || got.reason != "LOCK_MISUSE" {
		t.Errorf("= %v, want LOCK_MISUSE", err)
	}
}
