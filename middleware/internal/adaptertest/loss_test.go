package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// A Protocol is one way to talk to a server.
type Protocol struct {
	Name  string
	Start func(http.Handler) *httptest.Server
}

// Protocols are those that behave differently when a connection is broken off.
var Protocols = []Protocol{
	{"HTTP1", func(h http.Handler) *httptest.Server { return start(h, (*httptest.Server).Start) }},
	{"HTTP1-TLS", func(h http.Handler) *httptest.Server { return start(h, (*httptest.Server).StartTLS) }},
	{"HTTP2", func(h http.Handler) *httptest.Server {
		return start(h, func(s *httptest.Server) {
			s.EnableHTTP2 = true
			s.StartTLS()
		})
	}},
}

func start(h http.Handler, start func(*httptest.Server)) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // headers that are written twice, and connections that break off
	start(s)
	return s
}

// LossLocker gives out locks in memory. Those of the key can be lost: at once with Lose, or, if Late is set, by a
// Release that finds them gone.
type LossLocker struct {
	*memlock.Locker
	Key  string
	Late atomic.Bool
}

// Acquire is that of memlock.
func (l *LossLocker) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	h, err := l.Locker.Acquire(ctx, r)
	if err == nil && r.Key == l.Key && l.Late.Load() {
		return lateHold{h}, nil
	}
	return h, err
}

// Lose takes the lock away from its holder, whose context has ended when it returns.
func (l *LossLocker) Lose() {
	if !l.Late.Load() {
		l.ForceUnlock(l.Key)
	}
}

type lateHold struct{ lock.Hold }

func (h lateHold) Release(ctx context.Context) error {
	_ = h.Hold.Release(ctx)
	return &lock.LostError{Held: time.Second}
}

// lossHandlers lose their lock by calling lose. What they have written before or after must not pass for a success.
var lossHandlers = []struct {
	name   string
	h1     bool // makes sense for HTTP/1 only
	ends   bool // the connection, or more, so that a loss at the release comes too late
	status int  // of a whole answer: the problem, or the handler's own error; 0 for one that is broken off
	run    func(w http.ResponseWriter, r *http.Request, lose func())
}{
	{name: "nothing", status: 500, run: func(_ http.ResponseWriter, _ *http.Request, lose func()) { lose() }},
	{name: "status", status: 500, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		w.WriteHeader(http.StatusCreated)
		lose()
	}},
	{name: "small", status: 500, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		fmt.Fprint(w, "done")
		lose()
	}},
	{name: "lost before", status: 500, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		lose()
		fmt.Fprint(w, "done")
	}},
	{name: "small with length", status: 500, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		w.Header().Set("Content-Length", "4")
		fmt.Fprint(w, "done")
		flush(w)
		lose()
	}},
	{name: "3 KiB", status: 500, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		fmt.Fprint(w, strings.Repeat("done", 768))
		lose()
	}},
	{name: "8 KiB", run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		fmt.Fprint(w, strings.Repeat("done", 2048))
		lose()
	}},
	{name: "many pieces", run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		for range 2048 {
			_, _ = io.WriteString(w, "done")
		}
		lose()
	}},
	{name: "8 KiB with length", run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		w.Header().Set("Content-Length", "8192")
		fmt.Fprint(w, strings.Repeat("done", 2048))
		flush(w)
		lose()
	}},
	{name: "half of the length", run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		w.Header().Set("Content-Length", "8")
		fmt.Fprint(w, "done")
		flush(w)
		lose()
		fmt.Fprint(w, "done")
	}},
	{name: "flush", run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		flush(w)
		lose()
	}},
	{name: "flush after the loss", ends: true, status: 500, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		fmt.Fprint(w, "half")
		lose()
		flush(w)
	}},
	{name: "4 KiB", status: 500, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		_, _ = w.Write(nil)
		fmt.Fprint(w, strings.Repeat("done", 1024))
		lose()
	}},
	{name: "over 4 KiB", run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		fmt.Fprint(w, strings.Repeat("done", 1025))
		lose()
	}},
	{name: "flush and rest", run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		fmt.Fprint(w, "half")
		flush(w)
		lose()
		fmt.Fprint(w, "rest")
	}},
	{name: "identity", h1: true, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		w.Header().Set("Transfer-Encoding", "identity")
		fmt.Fprint(w, "done")
		flush(w)
		lose()
	}},
	{name: "204", status: 500, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		w.WriteHeader(http.StatusNoContent)
		flush(w)
		lose()
	}},
	{name: "304", status: 500, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		w.WriteHeader(http.StatusNotModified)
		flush(w)
		lose()
	}},
	{name: "303", status: 500, run: func(w http.ResponseWriter, r *http.Request, lose func()) {
		http.Redirect(w, r, "/orders/0", http.StatusSeeOther)
		lose()
	}},
	{name: "early hints", status: 500, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		w.WriteHeader(http.StatusEarlyHints)
		lose()
		w.WriteHeader(http.StatusEarlyHints)
	}},
	{name: "101", h1: true, status: 500, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		w.WriteHeader(http.StatusSwitchingProtocols)
		lose()
	}},
	{name: "trailer", status: 500, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		w.Header().Set("Trailer", "Sum")
		fmt.Fprint(w, "done")
		w.Header().Set("Sum", "4")
		lose()
	}},
	{name: "small file", status: 500, run: func(w http.ResponseWriter, r *http.Request, lose func()) {
		serveFile(w, r, 1000)
		lose()
	}},
	{name: "large file", run: func(w http.ResponseWriter, r *http.Request, lose func()) {
		serveFile(w, r, 1_000_000)
		lose()
	}},
	{name: "error", status: 409, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		lose()
		http.Error(w, "the end", http.StatusConflict)
	}},
	{name: "error that was begun", status: 409, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		http.Error(w, "this is", http.StatusConflict)
		flush(w)
		lose()
		fmt.Fprint(w, "the end")
		flush(w)
	}},
	{name: "panic", ends: true, status: 500, run: func(_ http.ResponseWriter, _ *http.Request, lose func()) {
		lose()
		panic(http.ErrAbortHandler)
	}},
	{name: "panic after a small response", ends: true, status: 500, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		fmt.Fprint(w, "done")
		lose()
		panic(http.ErrAbortHandler)
	}},
	{name: "panic after a flush", ends: true, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		w.Header().Set("Content-Length", "4")
		fmt.Fprint(w, "done")
		flush(w)
		lose()
		panic(http.ErrAbortHandler)
	}},
	{name: "hijack", ends: true, h1: true, run: func(w http.ResponseWriter, _ *http.Request, lose func()) {
		conn, _, err := http.NewResponseController(w).Hijack()
		lose()
		if err == nil {
			conn.Close()
		}
	}},
	{name: "hijack and write", ends: true, h1: true, run: func(w http.ResponseWriter, r *http.Request, lose func()) {
		if r.Method == http.MethodHead {
			lose() // whoever hijacks a connection writes what he likes
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\ndone")
		_ = rw.Flush()
		lose()
		fmt.Fprint(rw, "done")
		_ = rw.Flush()
	}},
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

func serveFile(w http.ResponseWriter, r *http.Request, size int64) {
	f, err := os.CreateTemp("", "latchkey")
	if err != nil {
		panic(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		panic(err)
	}
	http.ServeContent(w, r, "file.bin", time.Time{}, f)
}

// Losses loses the lock of every handler above, while it runs or at the release, for requests that net/http's transport
// sends again when its connection breaks off without a byte. No client may see a complete success, and no handler may
// run twice.
func Losses(t *testing.T, mount Mount) {
	for _, p := range Protocols {
		for _, late := range []bool{false, true} {
			for _, h := range lossHandlers {
				if h.h1 && p.Name == "HTTP2" || late && h.ends {
					continue
				}
				if h.ends && p.Name == "HTTP2" {
					h.status = 0 // a panic resets the stream, whatever was said
				}
				t.Run(fmt.Sprintf("%s/late=%v/%s", p.Name, late, h.name), func(t *testing.T) {
					for _, method := range []string{"GET", "HEAD", "POST"} {
						loseOne(t, mount, p, late, method, h.status, h.run)
					}
				})
			}
		}
	}
}

func loseOne(t *testing.T, mount Mount, p Protocol, late bool, method string, status int, handler func(http.ResponseWriter, *http.Request, func())) {
	t.Helper()
	var runs atomic.Int64
	s, l := lossServer(t, mount, p, func(w http.ResponseWriter, r *http.Request, l *LossLocker) {
		runs.Add(1)
		handler(w, r, l.Lose)
	})
	l.Late.Store(late)
	if _, err := exchange(t, s, "GET", "0"); err != nil { // a connection to be used again
		t.Fatal(err)
	}
	got, err := exchange(t, s, method, "42")
	if err == nil && got.status < 400 {
		t.Errorf("%s: a complete %d: %.60q %v", method, got.status, got.body, got.header)
	}
	whole := map[int]string{500: "ErrLost", 409: "the end"}[status]
	if status > 0 && (err != nil || got.status != status || method != "HEAD" && !strings.Contains(got.body, whole)) {
		t.Errorf("%s: %d %.60q, %v, want %d", method, got.status, got.body, err, status)
	}
	for _, name := range []string{"Location", "Trailer", "Sum", "Last-Modified", "Accept-Ranges"} {
		if err == nil && len(got.header[name]) > 0 {
			t.Errorf("%s: %s of the success is left: %v", method, name, got.header)
		}
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("%s: the handler ran %d times", method, n)
	}
	if got, err := exchange(t, s, "GET", "0"); err != nil || got.status != 200 {
		t.Errorf("%s: the next request: %d, %v", method, got.status, err)
	}
}

// lossServer starts a server that runs handler for order 42, whose lock can be lost. Other orders are answered with 200.
func lossServer(t *testing.T, mount Mount, p Protocol, handler func(http.ResponseWriter, *http.Request, *LossLocker)) (*httptest.Server, *LossLocker) {
	t.Helper()
	l := &LossLocker{Locker: memlock.New(), Key: "order:42"}
	g := guard.Must(guard.New(l, guard.Name("order.settle"), guard.Key(pathKey)))
	s := p.Start(mount(t, g, func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") == "42" {
			handler(w, r, l)
		}
	}))
	t.Cleanup(s.Close)
	return s, l
}

// exchange sends a request and reads all of the response.
func exchange(t *testing.T, s *httptest.Server, method, id string) (response, error) {
	t.Helper()
	r, err := http.NewRequest(method, s.URL+"/orders/"+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "1")
	client := *s.Client()
	client.Timeout = 20 * time.Second
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(r)
	if err != nil {
		return response{}, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: no end of the response", method)
	}
	return response{r.Method, res.StatusCode, res.Header, string(data)}, err
}
