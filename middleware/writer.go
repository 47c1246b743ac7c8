package middleware

import (
	"context"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// maxBuffered and maxUnflushed are how much of a response is kept until the lock was given back, in bytes. Where nothing
// can be flushed, nobody can say whether the client has a byte of it, and more is kept.
const (
	maxBuffered  = 4 << 10
	maxUnflushed = 1 << 20
)

// phase is how far a response is.
type phase int

const (
	holding phase = iota // nothing was sent: the response can still be replaced
	opening              // the first bytes are on their way, or will be
	open                 // the client has the beginning
	ended                // the handler has returned, and all of its response was passed on
)

// A writer is the ResponseWriter of a guarded handler. The client must not see a complete success if the lock is lost,
// also when that is found out only at the release. So the writer holds back
//
//   - the whole response, as long as it is small and the handler does not flush it: it can be replaced by an error;
//   - all of a response without a body (HEAD, 204, 304);
//   - the last byte of a response whose Content-Length was declared.
//
// A chunked response, and any of HTTP/2, is complete only when the server ends it, which is after the release. One that
// ends with the connection (HTTP/1.0) is broken off with a reset.
//
// A response that has begun is flushed before it is broken off: a client that has no byte of it would take a closed connection
// for one that was closed too early by chance, and might send the request again (net/http's Transport does).
//
// The bytes held back are written as a handler would write them, and nothing is flushed on their behalf: middleware
// further out may decide by the first Write. After the handler has returned, the writer passes everything on: routers
// write errors to it then.
type writer struct {
	http.ResponseWriter
	major, minor int // version of HTTP
	head         bool
	before       http.Header // the handler ran

	// The handler's side.
	header  http.Header // as it was when the status was chosen
	length  int64       // declared; -1 is not known
	written int64       // by the handler
	held    []byte
	last    []byte // byte of length, held back
	implied int    // status of a response that has none
	unsaid  bool   // the status: the server supposes it, too
	failure error  // that the response does not tell

	mu          sync.Mutex
	status      int // 0 until chosen; written with the mutex held, and by the handler's side only
	phase       phase
	link        link            // ends reads and writes; nil until it is needed
	hijacked    bool            // link is the handler's own connection
	ctx         context.Context // of the handler, while it runs
	stop        func() bool     // ends the watch over ctx
	reads       bool            // the handler does, from the connection
	interrupted atomic.Bool     // reads have been made to fail: the connection is of no more use for requests
	lost        error           // what reads and writes return
	newer       error           // what reads return, as a newer request takes the place of this one
}

// response is a ResponseWriter that knows whether anything was written, as this package's, gin's and others' do.
type response interface {
	Written() bool // false as long as the status can still be chosen
	Status() int
}

// reset makes w the writer of one request.
func (w *writer) reset(to http.ResponseWriter, r *http.Request) {
	w.ResponseWriter, w.major, w.minor = to, r.ProtoMajor, r.ProtoMinor
	w.head, w.length, w.implied = r.Method == http.MethodHead, -1, http.StatusOK
	if out, ok := to.(response); ok && out.Written() {
		w.status, w.phase = out.Status(), open
	}
}

// outward returns w with the methods that the server's own writer has.
func (w *writer) outward() http.ResponseWriter {
	if _, ok := w.ResponseWriter.(http.Flusher); ok {
		return flusher{w}
	}
	return w
}

type flusher struct{ *writer }

func (f flusher) Flush() { _ = f.FlushError() }

// CloseNotify is that of http.CloseNotifier, which is deprecated but which gin's Stream insists on.
func (f flusher) CloseNotify() <-chan bool {
	if n, ok := f.ResponseWriter.(interface{ CloseNotify() <-chan bool }); ok {
		return n.CloseNotify()
	}
	return nil
}

func (w *writer) failed(err error)            { w.failure = err }
func (w *writer) Written() bool               { return w.status != 0 }
func (w *writer) Status() int                 { return w.status }
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// holds reports whether the client has nothing yet, and the response can be replaced.
func (w *writer) holds() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.phase == holding && !w.hijacked
}

// WriteHeader sends informational statuses at once, as another one follows. The server panics for those that are none.
func (w *writer) WriteHeader(status int) {
	switch {
	case status < 100 || status > 999 || status < 200 && status != http.StatusSwitchingProtocols:
		w.ResponseWriter.WriteHeader(status)
		return
	case w.status != 0: // the first one counts
		return
	case w.phase == ended:
		w.ResponseWriter.WriteHeader(status)
	}
	h := w.Header()
	w.header = h.Clone() // what a handler changes later are trailers
	if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil {
		w.length = n
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = status
}

// bodyless reports whether the response is complete with its header.
func (w *writer) bodyless() bool { return w.head || !bodyAllowed(w.status) }

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(w.implied)
		w.unsaid = w.implied == http.StatusOK
	}
	if kept, err := w.keep(p); err != nil {
		return 0, err
	} else if kept {
		return len(p), nil
	}
	return w.open(p)
}

// keep holds p back if it can.
func (w *writer) keep(p []byte) (kept bool, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := int64(len(p))
	switch {
	case w.lossLocked() != nil && w.status < http.StatusBadRequest:
		return false, w.lost
	case w.hijacked || w.phase == ended:
		return false, nil
	case n > 0 && !bodyAllowed(w.status):
		return false, http.ErrBodyNotAllowed
	case w.length >= 0 && w.written+n > w.length:
		return false, http.ErrContentLength
	case w.phase != holding:
		return false, nil
	}
	if len(w.held)+len(p) > maxBuffered {
		if room := w.limit() - len(w.held); len(p) > room {
			if !w.head {
				return false, nil
			}
			p = p[:room] // the server eats it, but counts what is little
		}
	}
	w.held = append(w.held, p...)
	w.written += n
	return true, nil
}

// limit is how much is held back.
func (w *writer) limit() int {
	switch {
	case isTimeoutWriter(w.ResponseWriter):
		return math.MaxInt // http.TimeoutHandler keeps all of the response, too: nothing is ever on its way
	case !flushable(w.ResponseWriter):
		return maxUnflushed
	}
	return maxBuffered
}

// open passes p on, after what was held back, but for the last byte.
func (w *writer) open(p []byte) (n int, err error) {
	if w.hijacked {
		return 0, http.ErrHijacked
	}
	first, err := w.opens()
	if err != nil {
		return 0, err
	}
	all := len(p)
	if all > 0 && w.phase != ended && w.written+int64(all) == w.length {
		w.last, p = slices.Clone(p[all-1:]), p[:all-1]
	}
	if first {
		n, err = w.send(p)
	} else if all > 0 {
		n, err = w.ResponseWriter.Write(p)
	}
	if err == nil && n == len(p) {
		n = all
	}
	w.written += int64(n)
	return n, w.blame(err)
}

// send passes on what was held back, and p. It returns how much of p that is. As a handler does it, a status that is not said comes with
// the first bytes: middleware further out may decide by these.
func (w *writer) send(p []byte) (n int, err error) {
	h := w.Header()
	var later http.Header
	trails := !maps.EqualFunc(h, w.header, slices.Equal)
	if trails {
		later = maps.Clone(h)
		replace(h, w.header)
		for name, values := range later {
			if strings.HasPrefix(name, http.TrailerPrefix) {
				h[name] = values // or a server that does not expect trailers would send all of a small response without them
			}
		}
	}
	if w.major == 1 && w.interrupted.Load() {
		h.Set("Connection", "close")
	}
	held := w.held
	w.held = nil
	if !w.unsaid || len(held)+len(p) == 0 {
		w.ResponseWriter.WriteHeader(w.status)
	}
	if len(held) > 0 {
		_, err = w.ResponseWriter.Write(held)
	}
	if len(p) > 0 && err == nil {
		n, err = w.ResponseWriter.Write(p)
	}
	if trails {
		w.sendHeader()
		replace(w.Header(), later)
	}
	return n, err
}

// sendHeader has gin send the header. Until then, it only takes a note of the status.
func (w *writer) sendHeader() {
	if now, ok := w.ResponseWriter.(interface{ WriteHeaderNow() }); ok {
		now.WriteHeaderNow()
	}
}

func replace(h, by http.Header) {
	clear(h)
	maps.Copy(h, by)
}

// FlushError flushes a response that is not complete, and holds back one that is.
func (w *writer) FlushError() error {
	if !flushable(w.ResponseWriter) {
		return http.ErrNotSupported
	}
	if w.status == 0 {
		w.WriteHeader(w.implied)
	}
	if w.holds() && (w.bodyless() || w.written == w.length) {
		return w.refusal()
	}
	if _, err := w.open(nil); err != nil {
		return err
	}
	return w.opened(http.NewResponseController(w.ResponseWriter).Flush())
}

// flushable reports whether w can be flushed to the client. Some writers have a Flush that fails, or panics, where one further out has none.
func flushable(w http.ResponseWriter) bool {
	for {
		further, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = further.Unwrap()
	}
	switch w.(type) {
	case interface{ FlushError() error }, http.Flusher:
		return true
	}
	return false
}

// finish passes on the bytes that were held back, or the end of them.
func (w *writer) finish() {
	w.mu.Lock()
	held := w.phase == holding && !w.hijacked
	w.phase = ended
	w.mu.Unlock()
	switch {
	case w.status == 0:
	case held:
		_, _ = w.send(nil) // fails if the client has gone
	case len(w.last) > 0:
		_, _ = w.ResponseWriter.Write(w.last)
	}
}

// discard drops the handler's output, and its headers, if the client has seen nothing of it.
func (w *writer) discard() bool {
	if !w.holds() {
		return false
	}
	if w.before != nil {
		replace(w.Header(), w.before)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status, w.unsaid, w.held, w.length, w.written, w.lost = 0, false, nil, -1, 0, nil
	return true
}
