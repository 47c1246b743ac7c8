package middleware

import (
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// heldBack is how much of a response is kept until the lock was given back.
const heldBack = 4 << 10

// response is a ResponseWriter that knows whether anything was written, as this package's, gin's and others' do.
type response interface {
	http.ResponseWriter
	Written() bool // false as long as the status can still be chosen
	Status() int
}

// record returns w itself if it is a response, and otherwise one that nothing was written to.
func record(w http.ResponseWriter) response {
	if out, ok := w.(response); ok {
		return out
	}
	return unwritten{w}
}

type unwritten struct{ http.ResponseWriter }

func (unwritten) Written() bool                 { return false }
func (unwritten) Status() int                   { return 0 }
func (u unwritten) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// phase is how far a response is.
type phase int

const (
	holding  phase = iota // nothing was sent: the response can still be replaced
	opening               // what was held back is on its way
	open                  // the client has the beginning
	hijacked              // the connection is the handler's
	ended                 // the handler has returned
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
// Methods that not every ResponseWriter has go the way of http.ResponseController: they find what wrappers further out
// have, and otherwise return http.ErrNotSupported.
type writer struct {
	http.ResponseWriter
	major, minor int // version of HTTP
	head         bool
	limit        int         // of buf
	outer        http.Header // bodyHeaders that are not the handler's

	// The handler's side.
	header  http.Header // as it was then, if it may have changed since
	length  int64       // declared; -1 is not known
	written int64       // by the handler
	buf     *[]byte     // held back
	tail    [1]byte     // the last byte of length
	tailed  bool

	mu          sync.Mutex
	status      int // 0 until chosen; written with the mutex held, and by the handler's side only
	phase       phase
	ctx         context.Context // of the handler, while it runs
	stop        func() bool     // ends the watch over ctx; nil if there is none
	reads       bool            // the handler does, from the connection
	interrupted bool            // reads have been made to fail
	lost        error           // what writes return
	newer       error           // what reads return, as a newer request takes the place of this one
	grace       *time.Timer     // while opening
	conn        *conn           // once hijacked
}

// reset makes w the writer of one request.
func (w *writer) reset(to http.ResponseWriter, r *http.Request) {
	w.ResponseWriter, w.major, w.minor = to, r.ProtoMajor, r.ProtoMinor
	w.head, w.length, w.limit = r.Method == http.MethodHead, -1, heldBack
	w.outer = headersOf(to, bodyHeaders...)
	if out, ok := to.(response); ok && out.Written() {
		w.status, w.phase = out.Status(), open
	}
	if _, ok := to.(http.Flusher); !ok && isTimeoutWriter(to) {
		w.limit = math.MaxInt // http.TimeoutHandler keeps all of the response, too: nothing is ever on its way
	}
}

// outward returns w with the methods that the server's own writer has.
func (w *writer) outward() http.ResponseWriter {
	if _, ok := w.ResponseWriter.(http.Flusher); !ok {
		return w
	}
	if _, ok := w.ResponseWriter.(closeNotifier); !ok {
		return flusher{w}
	}
	return notifier{flusher{w}}
}

type flusher struct{ *writer }

func (f flusher) Flush() { _ = f.FlushError() }

// closeNotifier is http.CloseNotifier, which is deprecated but which gin's Stream insists on.
type closeNotifier interface{ CloseNotify() <-chan bool }

type notifier struct{ flusher }

func (n notifier) CloseNotify() <-chan bool { return n.ResponseWriter.(closeNotifier).CloseNotify() }

func (w *writer) Written() bool               { return w.status != 0 }
func (w *writer) Status() int                 { return w.status }
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Header keeps the header as it was when the status was chosen: what a handler changes later are trailers.
func (w *writer) Header() http.Header {
	h := w.ResponseWriter.Header()
	if w.status != 0 && w.header == nil && w.holds() {
		w.header = h.Clone()
	}
	return h
}

func (w *writer) holds() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.phase == holding
}

// WriteHeader sends informational statuses at once, as another one follows.
func (w *writer) WriteHeader(status int) {
	switch {
	case status < 100 || status > 999:
		w.ResponseWriter.WriteHeader(status) // the server panics
	case w.status != 0: // the first one counts
	case status >= 200 || status == http.StatusSwitchingProtocols:
		w.choose(status)
	default:
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *writer) choose(status int) {
	w.note(status)
	if text := w.ResponseWriter.Header().Get("Content-Length"); text != "" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			w.length = n
		}
	}
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

func (w *writer) Write(p []byte) (int, error)       { return write(w, p) }
func (w *writer) WriteString(s string) (int, error) { return write(w, s) }

func write[P []byte | string](w *writer, p P) (int, error) {
	if w.status == 0 {
		w.choose(http.StatusOK)
	}
	if done, err := keep(w, p); err != nil {
		return 0, err
	} else if done {
		return len(p), nil
	}
	if err := w.open(); err != nil {
		return 0, err
	}
	return pass(w, p)
}

// keep holds p back if it can.
func keep[P []byte | string](w *writer, p P) (done bool, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusalLocked(); err != nil {
		return false, err
	}
	n := int64(len(p))
	switch {
	case n == 0:
		return w.phase == holding, nil
	case w.phase == hijacked || w.phase == ended:
		return false, nil
	case !bodyAllowed(w.status):
		return false, http.ErrBodyNotAllowed
	case w.length >= 0 && w.written+n > w.length:
		return false, http.ErrContentLength
	case w.phase != holding:
		return false, nil
	}
	room := w.limit - len(w.heldLocked())
	if len(p) > room {
		if !w.head {
			return false, nil
		}
		p = p[:room] // the server eats it, but counts what is little
	}
	if w.buf == nil {
		w.buf = buffers.Get().(*[]byte)
	}
	*w.buf = append(*w.buf, p...)
	w.written += n
	return true, nil
}

var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, heldBack)
	return &b
}}

func (w *writer) heldLocked() []byte {
	if w.buf == nil {
		return nil
	}
	return *w.buf
}

// dropLocked forgets what was held back.
func (w *writer) dropLocked() {
	if w.buf == nil {
		return
	}
	if cap(*w.buf) == heldBack {
		*w.buf = (*w.buf)[:0]
		buffers.Put(w.buf)
	}
	w.buf = nil
}

// pass writes p to the client, but for the byte that would make the response complete.
func pass[P []byte | string](w *writer, p P) (n int, err error) {
	total := len(p)
	last := w.length >= 0 && total > 0 && w.written+int64(total) == w.length
	if last {
		w.tail[0], w.tailed = p[total-1], true
		p = p[:total-1]
	}
	switch p := any(p).(type) {
	case []byte:
		n, err = w.ResponseWriter.Write(p)
	case string:
		n, err = io.WriteString(w.ResponseWriter, p)
	}
	if last && err == nil {
		n++
	}
	w.written += int64(n)
	return n, w.blame(err)
}

// open begins the response, so that the handler can go on writing to the client. It returns when the client was sent
// something, or, over HTTP/2, may be sent something: see writer.
func (w *writer) open() error {
	w.mu.Lock()
	if w.phase != holding {
		w.mu.Unlock()
		return nil
	}
	w.phase = opening
	w.mu.Unlock()

	w.watch()
	err := w.send()
	if flush := http.NewResponseController(w.ResponseWriter).Flush(); err == nil && !errors.Is(flush, http.ErrNotSupported) {
		err = flush
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = open
	if w.grace != nil {
		w.grace.Stop()
	}
	if refused := w.refusalLocked(); refused != nil {
		return refused
	}
	return err
}

// send passes on what was held back.
func (w *writer) send() error {
	if w.status == 0 {
		return nil
	}
	h := w.ResponseWriter.Header()
	var later http.Header
	if w.header != nil {
		later = maps.Clone(h)
		replace(h, w.header)
		announce(h, later)
	}
	if w.major == 1 && w.cannotRead() {
		h.Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(w.status)
	if now, ok := w.ResponseWriter.(interface{ WriteHeaderNow() }); ok { // gin's only takes a note of the status
		now.WriteHeaderNow()
	}
	if later != nil {
		replace(w.ResponseWriter.Header(), later) // which is another map by now
		w.header = nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.buf == nil {
		return nil
	}
	defer w.dropLocked()
	data := *w.buf
	w.mu.Unlock()
	defer w.mu.Lock()
	_, err := w.ResponseWriter.Write(data)
	return err
}

// cannotRead reports whether the connection is of no more use for requests.
func (w *writer) cannotRead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.interrupted
}

func replace(h, by http.Header) {
	clear(h)
	maps.Copy(h, by)
}

// announce puts those of later into h that are trailers by http.TrailerPrefix: a server that does not expect any would not
// send trailers with a response that it knows all of.
func announce(h, later http.Header) {
	for name, values := range later {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			h[name] = values
		}
	}
}

// FlushError flushes a response that is not complete, and holds back one that is.
func (w *writer) FlushError() error {
	if !flushable(w.ResponseWriter) {
		return http.ErrNotSupported
	}
	if w.status == 0 {
		w.choose(http.StatusOK)
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
