package middleware_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
)

// endings gives out one lock, whose context ends as a test says.
type endings struct {
	ctx context.Context
	end context.CancelCauseFunc
}

func (e *endings) Acquire(ctx context.Context, _ lock.Request) (lock.Hold, error) {
	e.ctx, e.end = context.WithCancelCause(ctx)
	return e, nil
}

func (e *endings) Context() context.Context      { return e.ctx }
func (e *endings) Release(context.Context) error { return nil }

// server is net/http's side of a request, with something that happens in the middle of a method.
type server struct {
	*httptest.ResponseRecorder
	at          string // before or after the server's own part of a method
	event       func()
	read, write time.Time // deadlines
}

func (s *server) happens(at string) {
	if s.at == at {
		s.at = ""
		s.event()
		synctest.Wait() // for what the end of a context sets off
	}
}

func (s *server) SetReadDeadline(t time.Time) error  { s.read = t; return nil }
func (s *server) SetWriteDeadline(t time.Time) error { s.write = t; return nil }

func (s *server) FlushError() error {
	s.happens("before flush")
	s.happens("after flush")
	return nil
}

// Hijack lifts the deadlines, as that of net/http does.
func (s *server) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	s.happens("before hijack")
	s.read, s.write = time.Time{}, time.Time{}
	s.happens("after hijack")
	conn := &wire{server: s}
	return conn, bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn)), nil
}

// wire is a hijacked connection.
type wire struct {
	net.Conn
	*server
}

func (w *wire) Read([]byte) (int, error)           { return 0, errors.New("i/o timeout") }
func (w *wire) Write(p []byte) (int, error)        { w.happens("before write"); return len(p), nil }
func (w *wire) SetReadDeadline(t time.Time) error  { return w.server.SetReadDeadline(t) }
func (w *wire) SetWriteDeadline(t time.Time) error { return w.server.SetWriteDeadline(t) }
func (w *wire) Close() error                       { return nil }

// TestEventsAtEachPoint has a loss, and a newer request, come at each point where what ends the reads and writes of a handler changes:
// around a hijack and a flush, before the first write to a hijacked connection, and at the end of the handler. Reads end whenever that is, and
// after a loss writes do once the client has a byte.
func TestEventsAtEachPoint(t *testing.T) {
	flush := func(w http.ResponseWriter) func([]byte) (int, error) {
		_ = http.NewResponseController(w).Flush()
		return w.Write
	}
	hijack := func(w http.ResponseWriter) func([]byte) (int, error) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return func([]byte) (int, error) { return 0, err }
		}
		return conn.Write
	}
	flushAndHijack := func(w http.ResponseWriter) func([]byte) (int, error) {
		_ = http.NewResponseController(w).Flush()
		return hijack(w)
	}
	for _, tt := range []struct {
		at    string
		begun bool // the client has a byte then
		work  func(http.ResponseWriter) func([]byte) (int, error)
	}{
		{"before hijack", false, hijack}, {"after hijack", false, hijack}, {"before write", true, hijack}, {"before flush", true, flush}, {"after flush", true, flush},
		{"after flush", true, flushAndHijack}, {"after hijack", true, flushAndHijack},
	} {
		for _, cause := range []error{lock.ErrLost, lock.ErrReplaced} {
			synctest.Test(t, func(t *testing.T) {
				e := new(endings)
				s := &server{ResponseRecorder: httptest.NewRecorder(), at: tt.at, event: func() { e.end(cause) }}
				h := guard.Must(middleware.New(newGuard(t, e, guard.Key("k"), guard.OneKey())))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = r.Body.Read(make([]byte, 1))
					write := tt.work(w)
					_, _ = write([]byte("HTTP"))
					if _, err := write([]byte("more")); errors.Is(cause, lock.ErrLost) != errors.Is(err, lock.ErrLost) {
						t.Errorf("%v %s: a write = %v", cause, tt.at, err)
					}
					if !s.read.Equal(time.Unix(1, 0)) {
						t.Errorf("%v %s: reads may go on until %v", cause, tt.at, s.read)
					}
					if errors.Is(cause, lock.ErrLost) && tt.begun && !s.write.Equal(time.Unix(1, 0)) {
						t.Errorf("%v %s: writes may go on until %v", cause, tt.at, s.write)
					}
				}))
				defer func() { _ = recover() }() // http.ErrAbortHandler
				h.ServeHTTP(s, httptest.NewRequest(http.MethodPost, "/", io.NopCloser(strings.NewReader("body"))))
			})
		}
	}
}

// TestNothingEndsAfterTheHandler has the context of a lock end when its handler has returned: the server may use the connection again.
func TestNothingEndsAfterTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := new(endings)
		s := &server{ResponseRecorder: httptest.NewRecorder()}
		guard.Must(middleware.New(newGuard(t, e, guard.Key("k"), guard.OneKey())))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = r.Body.Read(make([]byte, 1))
			_ = http.NewResponseController(w).Flush()
		})).ServeHTTP(s, httptest.NewRequest(http.MethodPost, "/", io.NopCloser(strings.NewReader("body"))))
		e.end(lock.ErrLost)
		synctest.Wait()
		if !s.read.IsZero() || !s.write.IsZero() {
			t.Errorf("deadlines of %v and %v", s.read, s.write)
		}
	})
}
