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
)

// heldBack is how much of a response is kept until the lock was given back, in bytes.
const heldBack = 4 << 10

// phase is how far a response is.
type phase int

const (
	holding phase = iota // nothing was sent: the response can still be replaced
	opening              // the first bytes are on their way
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
// A response that has begun is flushed at once: a client that has no byte of it would take a closed connection for one
// that was closed too early by chance, and might send the request again (net/http's Transport does).
//
// What was held back is written as a handler would write it: middleware further out may decide by the first Write.
// After the handler has returned, the writer passes everything on: routers write errors to it then.
type writer struct {
	http.ResponseWriter
	major, minor int // version of HTTP
	head         bool
	limit        int         // of held
	before       http.Header // the handler ran

	// The handler's side.
	header  http.Header // as it was when the status was chosen
	length  int64       // declared; -1 is not known
	written int64       // by the handler
	held    []byte
	last    []byte // byte of length, held back
	implied int    // status of a response that has none
	failure error  // that the response does not tell

	mu          sync.Mutex
	status      int // 0 until chosen; written with the mutex held, and by the handler's side only
	phase       phase
	link        link            // ends reads and writes
	hijacked    bool            // link is the handler's own connection
	ctx         context.Context // of the handler, while it runs
	stop        func() bool     // ends the watch over ctx
	reads       bool            // the handler does, from the connection
	interrupted bool            // reads have been made to fail
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
	w.link = http.NewResponseController(to)
	w.head, w.length, w.limit = r.Method == http.MethodHead, -1, heldBack
	if out, ok := to.(response); ok && out.Written() {
		w.status, w.phase = out.Status(), open
	}
	w.implied = http.StatusOK
	if isTimeoutWriter(to) {
		w.limit = math.MaxInt // http.TimeoutHandler keeps all of the response, too: nothing is ever on its way
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
	h := w.ResponseWriter.Header()
	w.header = h.Clone() // what a handler changes later are trailers
	if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil {
		w.length = n
	}
	w.note(status)
}

func (w *writer) note(status int) {
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
	}
	if kept, err := w.keep(p); err != nil {
		return 0, err
	} else if kept {
		return len(p), nil
	}
	if err := w.open(); err != nil {
		return 0, err
	}
	n := len(p)
	if n > 0 && w.phase != ended && w.written+int64(n) == w.length {
		w.last, n = slices.Clone(p[n-1:]), n-1
	}
	m, err := w.ResponseWriter.Write(p[:n])
	if err == nil && m == n {
		m = len(p)
	}
	w.written += int64(m)
	return m, w.blame(err)
}

// keep holds p back if it can.
func (w *writer) keep(p []byte) (kept bool, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := int64(len(p))
	switch err := w.refusalLocked(); {
	case err != nil:
		return false, err
	case w.hijacked:
		return false, http.ErrHijacked
	case w.phase == ended:
		return false, nil
	case n > 0 && !bodyAllowed(w.status):
		return false, http.ErrBodyNotAllowed
	case w.length >= 0 && w.written+n > w.length:
		return false, http.ErrContentLength
	case w.phase != holding:
		return false, nil
	}
	if room := w.limit - len(w.held); len(p) > room {
		if !w.head {
			return false, nil
		}
		p = p[:room] // the server eats it, but counts what is little
	}
	w.held = append(w.held, p...)
	w.written += n
	return true, nil
}

// open begins the response, so that the handler can go on writing to the client. It returns when the client was sent
// something, or, over HTTP/2, may be sent something: see writer.
func (w *writer) open() error {
	if began, err := w.opens(); !began || err != nil {
		return err
	}
	err := w.send()
	if flushable(w.ResponseWriter) && err == nil {
		err = http.NewResponseController(w.ResponseWriter).Flush()
	}
	return w.opened(err)
}

// send passes on what was held back.
func (w *writer) send() error {
	h := w.ResponseWriter.Header()
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
	if w.major == 1 && w.cannotRead() {
		h.Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(w.status)
	if trails {
		if now, ok := w.ResponseWriter.(interface{ WriteHeaderNow() }); ok { // gin's only takes a note of the status
			now.WriteHeaderNow()
		}
		replace(w.ResponseWriter.Header(), later)
	}
	held := w.held
	w.held = nil
	if len(held) == 0 {
		return nil
	}
	_, err := w.ResponseWriter.Write(held)
	return err
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
	if err := w.refusal(); err != nil {
		return err
	}
	if w.holds() {
		if w.bodyless() || w.written == w.length {
			return nil
		}
		return w.open()
	}
	return w.blame(http.NewResponseController(w.ResponseWriter).Flush())
}

// flushable reports what http.ResponseController would find.
func flushable(w http.ResponseWriter) bool {
	for {
		switch v := w.(type) {
		case interface{ FlushError() error }, http.Flusher:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			return false
		}
	}
}

// finish passes on what was held back, or the end of it.
func (w *writer) finish() {
	if w.status != 0 {
		if w.holds() {
			_ = w.send() // fails if the client has gone
		} else if len(w.last) > 0 {
			_, _ = w.ResponseWriter.Write(w.last)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = ended
}

// discard takes back what the handler has written, and its headers, if the client has seen nothing of it.
func (w *writer) discard() bool {
	if !w.holds() {
		return false
	}
	if w.before != nil {
		replace(w.ResponseWriter.Header(), w.before)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status, w.held, w.length, w.written, w.lost = 0, nil, -1, 0, nil
	return true
}
