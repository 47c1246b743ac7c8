package middleware

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// past is a deadline that makes reads and writes fail, also those that are under way.
var past = time.Unix(1, 0)

// firstByte is how long a first write to a client may take after a loss: see writer.
const firstByte = time.Second

// begin tells w that the handler starts, with ctx. Nobody else knows of w yet.
func (w *writer) begin(ctx context.Context) { w.ctx = ctx }

// upload is the body of a request that comes from the connection.
type upload struct {
	io.ReadCloser
	w *writer
}

func (u *upload) Read(p []byte) (int, error) {
	if err := u.w.read(); err != nil {
		return 0, err
	}
	n, err := u.ReadCloser.Read(p)
	return n, u.w.blameRead(err)
}

// read is called before the handler reads from the connection.
func (w *writer) read() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads = true
	w.watchLocked()
	if err := w.lossLocked(); err != nil {
		return err
	}
	return w.newer
}

// watch is called before the handler can block in the connection, which most handlers never do: they write little, and
// find out by themselves that their context has ended.
func (w *writer) watch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watchLocked()
}

func (w *writer) watchLocked() {
	if w.stop == nil && w.ctx != nil && w.ctx.Done() != nil {
		w.stop = context.AfterFunc(w.ctx, w.check)
	}
}

// end tells w that the handler has returned. From then on no deadline is set behind the server's back.
func (w *writer) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.lossLocked()
	w.ctx = nil
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// check looks whether the lock was lost.
func (w *writer) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.lossLocked()
}

// lossLocked returns what the handler gets to know about the loss of its lock, and ends its reads and writes when the
// loss is new. A newer request ends its reads: it waits for a handler that may wait for its client. The end of the context for
// any other reason is none of our business.
func (w *writer) lossLocked() error {
	if w.lost != nil || w.ctx == nil || w.ctx.Err() == nil {
		return w.lost
	}
	cause := context.Cause(w.ctx)
	if errors.Is(cause, lock.ErrReplaced) {
		w.replacedLocked(cause)
	}
	if !errors.Is(cause, lock.ErrLost) {
		return nil
	}
	w.lost = fmt.Errorf("middleware: the connection ended with the lock: %w", cause)
	if w.conn != nil {
		w.conn.lose(w.lost)
		return w.lost
	}
	// The server itself may read, too, before it sends the header. An error that has begun goes on, and may have promised that
	// the connection does: see send.
	if begun := w.phase != holding; begun && w.status < http.StatusBadRequest || !begun && w.reads {
		w.interrupted = http.NewResponseController(w.ResponseWriter).SetReadDeadline(past) == nil
	}
	if w.phase == opening && w.major == 1 {
		w.grace = time.AfterFunc(firstByte, w.endWrites)
	} else {
		w.endWritesLocked()
	}
	return w.lost
}

// replacedLocked ends the reads of a handler that a newer request waits for. What it writes still reaches the client.
func (w *writer) replacedLocked(cause error) {
	if w.newer != nil {
		return
	}
	w.newer = fmt.Errorf("middleware: no more is read for a request that was replaced: %w", cause)
	if w.conn != nil {
		w.conn.endReads(w.newer)
	} else if w.reads {
		w.interrupted = http.NewResponseController(w.ResponseWriter).SetReadDeadline(past) == nil
	}
}

func (w *writer) endWrites() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx != nil {
		w.endWritesLocked()
	}
}

// endWritesLocked lets the client see that the response has an end, but not its own. An error may be told in full, and
// what was not begun is yet to be decided.
func (w *writer) endWritesLocked() {
	if w.phase == holding || w.status >= http.StatusBadRequest {
		return
	}
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(past)
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
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.lossLocked(), err)
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

func (w *writer) SetReadDeadline(t time.Time) error {
	return w.setDeadline(http.NewResponseController(w.ResponseWriter).SetReadDeadline, t)
}

func (w *writer) SetWriteDeadline(t time.Time) error {
	return w.setDeadline(http.NewResponseController(w.ResponseWriter).SetWriteDeadline, t)
}

// setDeadline does not let a handler lift the deadline that a loss has set.
func (w *writer) setDeadline(set func(time.Time) error, t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.lossLocked(); err != nil {
		return err
	}
	return set(t)
}

// finish sends what was held back, or the end of it, to the client.
func (w *writer) finish() {
	if w.status != 0 {
		w.finishBody()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = ended
	w.dropLocked()
}

func (w *writer) finishBody() {
	if w.holds() {
		_ = w.send() // fails if the client has gone
	} else if w.tailed {
		_, _ = w.ResponseWriter.Write(w.tail[:])
	}
}

// flushAll sends all of a response that was held back, while the server is about to close the connection.
func (w *writer) flushAll() {
	w.mu.Lock()
	n := len(w.heldLocked())
	w.mu.Unlock()
	if w.Written() && !w.head && w.holds() {
		w.ResponseWriter.Header().Set("Content-Length", strconv.Itoa(n))
	}
	w.finish()
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// discard takes back what the handler has written, if the client has seen nothing of it.
func (w *writer) discard() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase != holding {
		return false
	}
	w.dropLocked()
	h := w.ResponseWriter.Header()
	if w.header != nil {
		replace(h, w.header)
	}
	h.Del("Trailer")
	maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.HasPrefix(name, http.TrailerPrefix) })
	w.status, w.header, w.length, w.written, w.lost = 0, nil, -1, 0, nil
	return true
}

// truncate takes back what would make a response complete: the last byte of a known length, or all that has no body.
func (w *writer) truncate() {
	w.tailed = false
	if w.bodyless() && w.discard() || w.written != w.length {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if held := w.heldLocked(); len(held) > 0 {
		*w.buf = held[:len(held)-1]
	}
}

// cut breaks off a response that was begun, so that it can't pass for complete. A write deadline in the past does that
// even where a recovery middleware would swallow the panic. What the client has read already can't be taken back.
//
// It reports false if only a panic can do that.
func (w *writer) cut(err error) bool {
	w.tailed = false
	if w.conn != nil {
		w.conn.lose(err)
		return true
	}
	control := http.NewResponseController(w.ResponseWriter)
	_ = control.Flush() // a client without a byte would send the request again
	if w.endsByClosing() && abort(w.ResponseWriter) {
		return true
	}
	return control.SetWriteDeadline(past) == nil
}

// endsByClosing reports whether the client takes the end of the connection for that of the response.
func (w *writer) endsByClosing() bool {
	return w.major == 1 && w.length < 0 && !w.bodyless() &&
		(w.minor == 0 || w.ResponseWriter.Header().Get("Transfer-Encoding") == "identity")
}

// abort closes the connection such that the client sees an error instead of an end: a reset.
func abort(w http.ResponseWriter) bool {
	for {
		if h, ok := w.(http.Hijacker); ok {
			if conn, _, err := h.Hijack(); err == nil {
				sever(conn)
				return true
			}
		}
		further, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = further.Unwrap()
	}
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
