package ginguard

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/middleware"
)

var errWritten = errors.New("ginguard: response body already written")

// writer is gin's ResponseWriter for the handlers behind a guard. Their output goes to the writer of package
// middleware, which may hold it back, and from there to gin's own.
type writer struct {
	gin.ResponseWriter
	out    http.ResponseWriter
	status int // 0 until the handlers have chosen one
	size   int // as gin counts: -1 until something was written
}

// Unwrap leads http.ResponseController to the deadlines, which end with the lock.
func (w *writer) Unwrap() http.ResponseWriter { return w.out }

func (w *writer) Size() int           { return w.size }
func (w *writer) Written() bool       { return w.size >= 0 }
func (w *writer) Header() http.Header { return w.out.Header() }

func (w *writer) Status() int { return cmp.Or(w.status, w.ResponseWriter.Status()) }

// WriteHeader takes a note of the status, as gin's does.
func (w *writer) WriteHeader(status int) {
	if status > 0 && !w.Written() {
		w.status = status
	}
}

func (w *writer) WriteHeaderNow() {
	if !w.Written() {
		w.size = 0
		w.say()
	}
}

// say passes a status that was chosen to package middleware. One that was not comes with the first bytes.
func (w *writer) say() {
	if w.status != 0 {
		w.out.WriteHeader(w.status)
	}
}

// end is called when the handlers have returned, and failed with err unless they have answered.
func (w *writer) end(err error) {
	if w.Written() {
		return
	}
	w.say()
	if w.status == 0 {
		middleware.Failed(w.out, err)
	}
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeaderNow()
	n, err := w.out.Write(p)
	w.size += n
	return n, err
}

func (w *writer) WriteString(s string) (int, error) {
	w.WriteHeaderNow()
	n, err := io.WriteString(w.out, s)
	w.size += n
	return n, err
}

func (w *writer) FlushError() error {
	w.WriteHeaderNow()
	return http.NewResponseController(w.out).Flush()
}

func (w *writer) Flush() { _ = w.FlushError() }

// Hijack is refused after a body, as by gin.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.size > 0 {
		return nil, nil, errWritten
	}
	w.size = 0
	return http.NewResponseController(w.out).Hijack()
}
