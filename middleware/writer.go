package middleware

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// response is a ResponseWriter that knows whether anything was written, as this package's, gin's and others' do.
type response interface {
	http.ResponseWriter
	Written() bool // false as long as the status can still be chosen
	Status() int
}

// record returns w itself if it is a response, and otherwise a wrapper that can stream if w can.
func record(w http.ResponseWriter) response {
	if out, ok := w.(response); ok {
		return out
	}
	r := &recorder{ResponseWriter: w}
	if _, ok := w.(http.Flusher); !ok {
		return r
	}
	if _, ok := w.(closeNotifier); !ok {
		return flusher{r}
	}
	return notifier{flusher{r}}
}

// recorder notes the final status and passes everything on. Methods that not every ResponseWriter has go the way of
// http.ResponseController: they find what wrappers further out have, and otherwise return http.ErrNotSupported.
type recorder struct {
	http.ResponseWriter
	status int // 0 until the header is written
}

func (r *recorder) Written() bool               { return r.status != 0 }
func (r *recorder) Status() int                 { return r.status }
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) note(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// WriteHeader does not count informational statuses, which another one follows.
func (r *recorder) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		r.note(status)
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.note(http.StatusOK)
	return r.ResponseWriter.Write(p)
}

func (r *recorder) WriteString(s string) (int, error) {
	r.note(http.StatusOK)
	return io.WriteString(r.ResponseWriter, s)
}

// ReadFrom lets files go to the socket without a copy, if w can do that.
func (r *recorder) ReadFrom(src io.Reader) (int64, error) {
	n, err := io.Copy(r.ResponseWriter, src)
	if n > 0 {
		r.note(http.StatusOK)
	}
	return n, err
}

func (r *recorder) FlushError() error {
	err := http.NewResponseController(r.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		r.note(http.StatusOK)
	}
	return err
}

func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(r.ResponseWriter).Hijack()
	if err == nil {
		r.note(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}

type flusher struct{ *recorder }

func (f flusher) Flush() { _ = f.FlushError() }

// closeNotifier is http.CloseNotifier, which is deprecated but which gin's Stream insists on.
type closeNotifier interface{ CloseNotify() <-chan bool }

type notifier struct{ flusher }

func (n notifier) CloseNotify() <-chan bool { return n.ResponseWriter.(closeNotifier).CloseNotify() }

// cut breaks off a response that was begun, so that it can't pass for complete. A write deadline in the past does that
// even where a recovery middleware would swallow the panic. What the client has read already can't be taken back, and a
// hijacked connection is its handler's business, who was told by the context.
func cut(w http.ResponseWriter) {
	if _, err := w.Write(nil); errors.Is(err, http.ErrHijacked) {
		return
	}
	if http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) != nil {
		panic(http.ErrAbortHandler)
	}
}
