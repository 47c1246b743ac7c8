package middleware

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// expired is a deadline that makes reads and writes fail, also those that are under way.
var expired = time.Unix(1, 0)

// firstByte is how long a first write to a client may take after a loss: see writer.
const firstByte = time.Second

// link connects a handler to its client: the server's writer, or the connection once it was hijacked.
type link interface {
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// linkLocked finds it among the writers further out, unless the connection was hijacked.
func (w *writer) linkLocked() link {
	for out := w.ResponseWriter; w.link == nil; out = further(out) {
		if out == nil {
			w.link = http.NewResponseController(w.ResponseWriter) // which says that it can't
			break
		}
		w.link, _ = out.(link)
	}
	return w.link
}

// further returns the writer that w is around, as most are that have no method Unwrap: struct{ http.ResponseWriter; status int }. It is
// nil if there is none.
func further(w http.ResponseWriter) (next http.ResponseWriter) {
	if around, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
		return around.Unwrap()
	}
	if v := reflect.Indirect(reflect.ValueOf(w)); v.Kind() == reflect.Struct {
		if field := v.FieldByName("ResponseWriter"); field.IsValid() && field.CanInterface() {
			next, _ = reflect.TypeAssert[http.ResponseWriter](field)
		}
	}
	return next
}

// loss returns the error that reads and writes fail with after the lock is lost, or nil.
func (w *writer) loss() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lossLocked()
}

// lossLocked looks whether the lock was lost, or a newer request waits for a handler that may wait for its client. The end of
// the context for any other reason is none of our business.
func (w *writer) lossLocked() error {
	if w.lost != nil || w.ctx == nil || w.ctx.Err() == nil {
		return w.lost
	}
	switch cause := context.Cause(w.ctx); {
	case errors.Is(cause, lock.ErrLost):
		w.lost = fmt.Errorf("middleware: the connection ended with the lock: %w", cause)
		w.enforceLocked()
	case errors.Is(cause, lock.ErrReplaced) && w.newer == nil:
		w.newer = fmt.Errorf("middleware: no more is read for a request that was replaced: %w", cause)
		w.enforceLocked()
	}
	return w.lost
}

// enforceLocked sets the deadlines that the state of w requires. It is called again whenever that state changes, as the
// server lifts deadlines on its own, such as when a connection is hijacked.
//
// After a loss, the client must see that the response has an end, but not its own. An error may go out in full, and a
// response that was not begun is still open. The server itself may read, too, before it sends the header.
func (w *writer) enforceLocked() {
	begun, failed := w.phase != holding, w.status >= http.StatusBadRequest
	reads := w.hijacked || w.reads
	ends := w.newer != nil && reads || w.lost != nil && (w.hijacked || begun && !failed || !begun && reads)
	if ends && w.linkLocked().SetReadDeadline(expired) == nil {
		w.interrupted.Store(true)
	}
	switch {
	case w.lost == nil || failed || !begun:
	case w.phase == opening:
		_ = w.linkLocked().SetWriteDeadline(time.Now().Add(firstByte))
	default:
		_ = w.linkLocked().SetWriteDeadline(expired)
	}
}

// opens is called before the client is written to. It reports whether it is for the first time.
func (w *writer) opens() (first bool, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusalLocked(); err != nil {
		return false, err
	}
	if first = w.phase == holding; first {
		w.phase = opening
	}
	return first, nil
}

// opened is called when the client has what was written, or err says why not.
func (w *writer) opened(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase == opening {
		w.phase = open
	}
	if refused := w.refusalLocked(); refused != nil {
		w.enforceLocked()
		return refused
	}
	return err
}

// over is called before the handler reads from its client, and says why it can't.
func (w *writer) over() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := !w.reads
	w.reads = true
	err := cmp.Or(w.lossLocked(), w.newer)
	if first && err != nil {
		w.enforceLocked() // or the server itself would wait for the rest of the body
	}
	return err
}

// refusal is why writes are refused: the lock is lost, and the response not an error.
func (w *writer) refusal() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refusalLocked()
}

func (w *writer) refusalLocked() error {
	if err := w.lossLocked(); err != nil && w.status < http.StatusBadRequest {
		return err
	}
	return nil
}

// blame puts the loss of the lock in the place of an error that it has most likely caused.
func (w *writer) blame(err error) error {
	if err == nil {
		return nil
	}
	return cmp.Or(w.loss(), err)
}

// blameRead is blame for a read, which may also have been ended for a newer request.
func (w *writer) blameRead(err error) error {
	if err = w.blame(err); err == nil || errors.Is(err, io.EOF) {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.lost, w.newer, err)
}

// upload is the body of a request that comes from the connection.
type upload struct {
	io.Reader
	w *writer
}

func (u *upload) Read(p []byte) (int, error) {
	if err := u.w.over(); err != nil {
		return 0, err
	}
	n, err := u.Reader.Read(p)
	return n, u.w.blameRead(err)
}

// cut breaks off a response that was begun, so that it can't pass for complete. A write deadline in the past does that
// even where a recovery middleware would swallow the panic. The client keeps the bytes that it has read already.
//
// It reports false if only a panic can do that.
func (w *writer) cut(err error) bool {
	w.last = nil
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hijacked {
		w.lost = cmp.Or(w.lost, err)
		w.answerLocked()
		_ = w.linkLocked().SetReadDeadline(expired)
		_ = w.linkLocked().SetWriteDeadline(expired)
		return true
	}
	_ = w.linkLocked().SetWriteDeadline(time.Now().Add(firstByte))
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a client without a byte would send the request again
	if w.endsByClosing() && abort(w.ResponseWriter) {
		return true
	}
	return w.linkLocked().SetWriteDeadline(expired) == nil
}

// endsByClosing reports whether the client takes the end of the connection for that of the response.
func (w *writer) endsByClosing() bool {
	return w.major == 1 && w.length < 0 && !w.bodyless() &&
		(w.minor == 0 || w.ResponseWriter.Header().Get("Transfer-Encoding") == "identity")
}

// abort closes the connection such that the client sees an error instead of an end: a reset.
func abort(w http.ResponseWriter) bool {
	for ; w != nil; w = further(w) {
		if h, ok := w.(http.Hijacker); ok { // which gin's refuses to be after a body
			if conn, _, err := h.Hijack(); err == nil {
				sever(conn)
				return true
			}
		}
	}
	return false
}

func sever(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn() // which does not say good-bye
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
