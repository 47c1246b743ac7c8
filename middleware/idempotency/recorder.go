package idempotency

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"

	"github.com/latchkey-go/latchkey/guard"
)

// largest is the most that is kept of an answer, in bytes.
const largest = 1 << 20

// A recorder is the ResponseWriter of a handler. It passes everything on, and keeps it.
type recorder struct {
	http.ResponseWriter
	ctx   context.Context // of the handler
	names []string        // of headers that are kept

	status           int         // 0 until chosen
	header           http.Header // of names, as they were then
	length           string      // as it was declared
	again            bool        // the answer asks the client to come again
	written          int
	body             []byte
	flushed, errored bool
}

// Unwrap leads http.ResponseController to the deadlines, and middleware.Answer looks at Written and Status.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
func (w *recorder) Written() bool               { return w.status != 0 }
func (w *recorder) Status() int                 { return w.status }

// Failed is called by middleware.Failed.
func (w *recorder) Failed(error) { w.errored = true }

// Hijack returns an error, as the traffic of a connection can't be repeated.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

// WriteHeader keeps the first status that is not informational.
func (w *recorder) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.choose(status, 0)
	}
	w.ResponseWriter.WriteHeader(status)
}

// choose keeps status and headers, at the latest when the first bytes are written.
func (w *recorder) choose(status, first int) {
	if w.status != 0 {
		return
	}
	h := w.Header()
	w.status, w.header, w.length = status, make(http.Header), h.Get("Content-Length")
	w.again = status >= http.StatusInternalServerError || h.Get("Retry-After") != ""
	if n, _ := strconv.Atoi(w.length); !w.again && max(n, first) > largest {
		h.Set("Idempotency-Stored", "false")
	}
	for _, name := range w.names {
		if values, ok := h[name]; ok {
			w.header[name] = slices.Clone(values)
		}
	}
}

// Write keeps the bytes also for a client that has gone, so that the answer is whole when it comes again.
func (w *recorder) Write(p []byte) (int, error) {
	w.choose(http.StatusOK, len(p))
	if w.written += len(p); w.written > largest {
		w.body = nil
	} else {
		w.body = append(w.body, p...)
	}
	n, err := w.ResponseWriter.Write(p)
	if err != nil && w.ctx.Err() != nil && !w.cut() {
		return len(p), nil
	}
	return n, err
}

// Flush implements http.Flusher.
func (w *recorder) Flush() { _ = w.FlushError() }

// FlushError flushes a stream.
func (w *recorder) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		w.choose(http.StatusOK, 0)
		w.flushed = true
	}
	return err
}

// cut reports whether the handler may have stopped before its end, as its context has ended, or its client.
func (w *recorder) cut() bool {
	return w.ctx.Err() != nil && (w.status == 0 || w.flushed || w.written > largest || w.lost())
}

func (w *recorder) lost() bool { return errors.Is(context.Cause(w.ctx), guard.ErrLost) }

// answer fills in the record, now that the handler has returned. It reports false if the answer can't be trusted.
func (w *recorder) answer(r Record) (Record, bool) {
	if w.errored && !w.lost() {
		return r, true
	}
	if w.cut() {
		return r, false
	}
	if w.choose(http.StatusOK, 0); w.again {
		return r, true
	}
	r.Status, r.Header, r.Body, r.TooLarge = w.status, w.header, w.body, w.written > largest
	return r, w.length == "" || w.length == strconv.Itoa(w.written)
}
