package middleware_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	stdos "os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

func TestStreaming(t *testing.T) {
	next := make(chan struct{})
	s := httptest.NewServer(mount(t, newGuard(t, memlock.New()), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			if i == 0 {
				w.(http.Flusher).Flush()
			} else if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			<-next // the client has it while the handler goes on
		}
	}))
	defer s.Close()
	res, err := s.Client().Get(s.URL + "/orders/42")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for i := range 3 {
		if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) || !lines.Scan() {
			t.Fatalf("event %d = %q, %v", i, lines.Text(), lines.Err())
		}
		next <- struct{}{}
	}
}

// overLater gives out locks whose contexts end with a loss when they were given back.
func overLater(ctx context.Context, r lock.Request) (lock.Hold, error) {
	h, err := adaptertest.Free(ctx, r)
	ctx, end := context.WithCancelCause(ctx)
	return overHold{h, ctx, end}, err
}

type overHold struct {
	lock.Hold
	ctx context.Context
	end context.CancelCauseFunc
}

func (h overHold) Context() context.Context { return h.ctx }

func (h overHold) Release(ctx context.Context) error {
	defer h.end(lock.ErrLost)
	return h.Hold.Release(ctx)
}

func hijack(w http.ResponseWriter) (io.WriteCloser, error) {
	conn, _, err := w.(http.Hijacker).Hijack()
	return conn, err
}

func TestHijack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		locker lock.Locker
		status int
		hijack func(http.ResponseWriter) (io.WriteCloser, error)
	}{
		{"assertion", memlock.New(), 299, hijack},
		{"controller", memlock.New(), 299, func(w http.ResponseWriter) (io.WriteCloser, error) {
			conn, _, err := http.NewResponseController(w).Hijack()
			return conn, err
		}},
		{"after its status", memlock.New(), 101, func(w http.ResponseWriter) (io.WriteCloser, error) {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "mine")
			w.WriteHeader(http.StatusSwitchingProtocols)
			return hijack(w)
		}},
		{"lost after its handler", adaptertest.Locker(overLater), 299, hijack},
		{"lost", adaptertest.Locker(adaptertest.Losing), 500, hijack},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conns := make(chan io.WriteCloser, 1)
			mux := mount(t, newGuard(t, tt.locker), func(w http.ResponseWriter, r *http.Request) {
				conn, err := tt.hijack(w)
				if err != nil {
					t.Error(err)
				}
				conns <- conn
			})
			var logged bytes.Buffer
			done := make(chan struct{})
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(done)
				mux.ServeHTTP(w, r)
			}))
			s.Config.ErrorLog = log.New(&logged, "", 0)
			s.Start()
			defer s.Close()
			go func() { // a hijacked connection outlives its handler
				<-done
				conn := <-conns
				if _, err := io.WriteString(conn, "HTTP/1.1 299 Mine\r\nContent-Length: 0\r\n\r\n"); (err != nil) != (tt.status == 500) {
					t.Errorf("write to the connection: %v", err)
				}
				conn.Close()
			}()
			res, err := s.Client().Get(s.URL + "/orders/42")
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != tt.status || logged.Len() != 0 {
				t.Errorf("status = %d, want %d; net/http logged %q", res.StatusCode, tt.status, logged.String())
			}
		})
	}
}

// TestHijackKeepsWhatCameBefore has a client that does not wait to be told that it may speak another protocol.
func TestHijackKeepsWhatCameBefore(t *testing.T) {
	s := httptest.NewServer(mount(t, newGuard(t, memlock.New()), func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		for range 2 {
			line, err := rw.ReadString('\n')
			if err != nil {
				t.Error(err)
			}
			fmt.Fprint(conn, line)
		}
	}))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET /orders/42 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\none\ntw")
	lines := bufio.NewReader(conn)
	for _, want := range []string{"one\n", "two\n"} {
		if line, err := lines.ReadString('\n'); line != want {
			t.Errorf("echo = %q, %v, want %q", line, err, want)
		}
		fmt.Fprint(conn, "o\n")
	}
}

// talk sends text to a handler of a hijacked connection, and returns all that it says.
func talk(t *testing.T, l lock.Locker, text string, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(mount(t, newGuard(t, l), h))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /orders/42 HTTP/1.1\r\nHost: x\r\n\r\n%s", text)
	said, err := io.ReadAll(conn)
	if err != nil {
		t.Error(err)
	}
	return string(said)
}

// TestHijackedConnection has all that a server's own connection can do.
func TestHijackedConnection(t *testing.T) {
	got := make(chan string, 1)
	said := talk(t, memlock.New(), "hello", func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, errCopy := io.Copy(conn, strings.NewReader("copied"))
		heard := make([]byte, 5)
		_, errRead := io.ReadFull(rw, heard)
		half, ok := conn.(interface{ CloseWrite() error })
		if !ok || half.CloseWrite() != nil || errCopy != nil || errRead != nil {
			t.Errorf("half %v, copy %v, read %v", ok, errCopy, errRead)
		}
		if _, err := io.WriteString(conn, "more"); err == nil {
			t.Error("a write after CloseWrite")
		}
		got <- string(heard)
	})
	if heard := <-got; said != "copied" || heard != "hello" {
		t.Errorf("said %q, heard %q", said, heard)
	}
}

// TestHijackedConnectionAfterALoss tells the client once, and not in the middle of something else.
func TestHijackedConnectionAfterALoss(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flush bool
		want  string // the first lines of answers
	}{
		{"nothing said", false, "HTTP/1.1 500 Internal Server Error"},
		{"a response begun", true, "HTTP/1.1 200 OK"},
	} {
		l := memlock.New()
		said := talk(t, l, "onetwo", func(w http.ResponseWriter, _ *http.Request) {
			if tt.flush {
				w.(http.Flusher).Flush()
			}
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			l.ForceUnlock("order:42")
			if n, err := conn.Read(make([]byte, 3)); n > 0 || !errors.Is(err, guard.ErrLost) {
				t.Errorf("%s: read %d bytes, %v, want ErrLost", tt.name, n, err)
			}
			time.AfterFunc(100*time.Millisecond, func() { conn.Close() }) // later than the guard
		})
		var first []string
		for line := range strings.Lines(said) {
			if strings.HasPrefix(line, "HTTP/1.1") {
				first = append(first, strings.TrimSpace(line))
			}
		}
		if got := strings.Join(first, " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestCopiesInPieces declares a length, and takes it piece by piece from a file that has more.
func TestCopiesInPieces(t *testing.T) {
	all := make([]byte, 200_000)
	for i := range all {
		all[i] = byte(i / 7)
	}
	name := filepath.Join(t.TempDir(), "file")
	if err := stdos.WriteFile(name, all, 0o600); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(mount(t, newGuard(t, memlock.New()), func(w http.ResponseWriter, r *http.Request) {
		f, err := stdos.Open(name)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		w.Header().Set("Content-Length", "100000")
		for _, n := range []int64{60_000, 1, 39_999} {
			if m, err := io.CopyN(w, f, n); m != n || err != nil {
				t.Errorf("copied %d, %v, want %d", m, err, n)
			}
		}
	}))
	defer s.Close()
	res, err := s.Client().Get(s.URL + "/orders/42")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := read(t, res.Body); got != string(all[:100_000]) {
		t.Errorf("got %d bytes, and not those of the file", len(got))
	}
}

// flusher is a server's writer whose flush is a function.
type flusher struct {
	*httptest.ResponseRecorder
	flush func() error
}

func (f flusher) FlushError() error { return f.flush() }

// TestLossDuringAFlush loses the lock while the client does not read.
func TestLossDuringAFlush(t *testing.T) {
	errDeadline := errors.New("i/o timeout")
	for _, tt := range []struct {
		name string
		at   int // the flush that loses the lock
		work func(w http.ResponseWriter) error
	}{
		{"the first", 0, func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }},
		{"another", 1, func(w http.ResponseWriter) error {
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
			return http.NewResponseController(w).Flush()
		}},
	} {
		l, flushes := memlock.New(), 0
		w := flusher{httptest.NewRecorder(), func() error {
			flushes++
			if flushes <= tt.at {
				return nil
			}
			l.ForceUnlock("order:42")
			return errDeadline
		}}
		h := mount(t, newGuard(t, l), func(w http.ResponseWriter, _ *http.Request) {
			if err := tt.work(w); !errors.Is(err, guard.ErrLost) {
				t.Errorf("%s: %v, want ErrLost", tt.name, err)
			}
		})
		func() {
			defer func() { _ = recover() }() // as the writer has no deadline to cut with
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
		}()
		if w.Body.Len() > 0 {
			t.Errorf("%s: wrote %d bytes after the loss", tt.name, w.Body.Len())
		}
	}
}

// deadlines is a server's writer that tells when writes are made to fail.
type deadlines struct {
	flusher
	ends chan time.Time
}

func (w deadlines) SetWriteDeadline(at time.Time) error {
	w.ends <- at
	return nil
}

// TestFirstByteAfterALoss loses the lock during the first flush, in which the client gets the first byte. Without one it would
// send the request again. Afterwards, nothing more is written.
func TestFirstByteAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := memlock.New(), deadlines{ends: make(chan time.Time, 10)}
		w.flusher = flusher{httptest.NewRecorder(), func() error {
			l.ForceUnlock("order:42")
			if left := time.Until(<-w.ends); left != time.Second {
				t.Errorf("the first flush ends after %v, want 1s", left)
			}
			w.flush = func() error { return nil }
			return io.ErrShortWrite
		}}
		mount(t, newGuard(t, l), func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 10_000))
			_ = http.NewResponseController(w).Flush()
		}).ServeHTTP(&w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
		if left := time.Until(<-w.ends); left > 0 {
			t.Errorf("the next write ends after %v, want at once", left)
		}
	})
}

// TestErrorsOfTheServer are those that a handler gets without a guard, too.
func TestErrorsOfTheServer(t *testing.T) {
	for _, tt := range []struct {
		name string
		work func(w http.ResponseWriter) error
		want error
	}{
		{"flush of a writer that can't", func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }, http.ErrNotSupported},
		{"more than the length", func(w http.ResponseWriter) error {
			w.Header().Set("Content-Length", "4")
			_, err := io.WriteString(w, "done")
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, "!")
			return err
		}, http.ErrContentLength},
		{"body of a 304", func(w http.ResponseWriter) error {
			w.WriteHeader(http.StatusNotModified)
			_, err := io.WriteString(w, "done")
			return err
		}, http.ErrBodyNotAllowed},
	} {
		mount(t, newGuard(t, memlock.New()), func(w http.ResponseWriter, _ *http.Request) {
			if err := tt.work(w); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			}
		}).ServeHTTP(struct{ http.ResponseWriter }{httptest.NewRecorder()}, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
	}
}

// TestConnectionThatCannotReadIsNotUsedAgain loses the lock of a handler that has read all of its body, so that the server
// would go on with the connection.
func TestConnectionThatCannotReadIsNotUsedAgain(t *testing.T) {
	l := memlock.New()
	s := httptest.NewServer(mount(t, newGuard(t, l), func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		l.ForceUnlock("order:42")
	}))
	defer s.Close()
	res, err := s.Client().Post(s.URL+"/orders/42", "text/plain", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusInternalServerError || !res.Close {
		t.Errorf("status = %d, connection closed: %v; want 500, true", res.StatusCode, res.Close)
	}
}

// TestInformationalStatusIsNoAnswer loses the lock of a handler that has sent 103 Early Hints only.
func TestInformationalStatusIsNoAnswer(t *testing.T) {
	s := httptest.NewServer(mount(t, newGuard(t, adaptertest.Locker(adaptertest.Losing)), func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
	}))
	defer s.Close()
	res, err := s.Client().Get(s.URL + "/orders/42")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusInternalServerError {
		t.Errorf("status = %d, want 500", res.StatusCode)
	}
}

// TestCutWithoutDeadlinePanics loses the lock behind a writer that no deadline can be set on.
func TestCutWithoutDeadlinePanics(t *testing.T) {
	h := mount(t, newGuard(t, adaptertest.Locker(adaptertest.Losing)), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "8192")
		_, _ = w.Write(make([]byte, 8192))
	})
	w := httptest.NewRecorder()
	defer func() {
		if p := recover(); p != http.ErrAbortHandler || w.Body.Len() == 8192 {
			t.Errorf("panic = %v after %d bytes, want http.ErrAbortHandler before all are sent", p, w.Body.Len())
		}
	}()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
}

// TestPanicIsNoSuccess has handlers that panic when they have said all, below recovery that does not answer.
func TestPanicIsNoSuccess(t *testing.T) {
	for _, tt := range []struct {
		name, method string
		status, size int
	}{
		{"no body", "POST", 204, 0},
		{"HEAD", "HEAD", 200, 5},
		{"small", "POST", 200, 5},
		{"large", "POST", 200, 8192},
	} {
		h := mount(t, newGuard(t, memlock.New()), func(w http.ResponseWriter, r *http.Request) {
			if tt.size > 0 {
				w.Header().Set("Content-Length", strconv.Itoa(tt.size))
			}
			w.WriteHeader(tt.status)
			_, _ = w.Write(make([]byte, tt.size))
			panic("boom")
		})
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if recover() != nil {
					w.WriteHeader(http.StatusInternalServerError)
				}
			}()
			h.ServeHTTP(w, r)
		}))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		r, err := http.NewRequest(tt.method, s.URL+"/orders/42", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.Client().Do(r)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if n, err := io.Copy(io.Discard, res.Body); err == nil && res.StatusCode < 500 {
			t.Errorf("%s: a complete %d of %d bytes", tt.name, res.StatusCode, n)
		}
		res.Body.Close()
		s.Close()
	}
}

// TestHTTP2 breaks off a response, and hangs up, where a connection carries many requests.
func TestHTTP2(t *testing.T) {
	lost := mount(t, newGuard(t, adaptertest.Locker(adaptertest.Losing)), func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "half")
		w.(http.Flusher).Flush()
	})
	q := adaptertest.NewQueue()
	if _, err := q.Locker.Acquire(t.Context(), lock.Request{Key: "order:42"}); err != nil {
		t.Fatal(err)
	}
	waiting := mount(t, newGuard(t, q, guard.Wait(time.Minute)), nil)
	mux := http.NewServeMux()
	mux.Handle("/lost/", http.StripPrefix("/lost", lost))
	mux.Handle("/waiting/", http.StripPrefix("/waiting", waiting))
	s := httptest.NewUnstartedServer(mux)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()

	res, err := s.Client().Get(s.URL + "/lost/orders/42")
	if err == nil {
		_, err = io.ReadAll(res.Body)
		res.Body.Close()
	}
	if err == nil || res != nil && res.ProtoMajor != 2 {
		t.Errorf("got a whole response: %v", res)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-q.Entered
		cancel()
	}()
	// An unread body does not hide the hang-up.
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/waiting/orders/42", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res, err = s.Client().Do(r)
	if err == nil {
		res.Body.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Do = %v, want canceled", err)
	}
	<-q.Left
}
