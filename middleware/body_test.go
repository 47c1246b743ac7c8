package middleware_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

// closable is a body that knows whether it was closed.
type closable struct {
	io.Reader
	closed bool
}

func (c *closable) Read(p []byte) (int, error) {
	if c.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return c.Reader.Read(p)
}

func (c *closable) Close() error { c.closed = true; return nil }

// TestBodyIsReplayed looks which bodies are read before the handler runs, which gets them all the same.
func TestBodyIsReplayed(t *testing.T) {
	const used, notUsed = "order:#{body.id}", "order:#{path.id}"
	forced, waits, replaces := guard.Busy(guard.Fail), guard.Wait(time.Second), guard.Busy(guard.Replace)
	for _, tt := range []struct {
		name, key string
		guard     guard.Option
		opts      []middleware.Option
		size      int
		request   func(*http.Request)
		untouched bool
	}{
		{name: "used", key: used, guard: forced},
		{name: "not used", key: notUsed, guard: forced, untouched: true},
		{name: "read ahead", key: notUsed, guard: forced, opts: os(middleware.ReadAhead())},

		{name: "waiting", key: notUsed, guard: waits},
		{name: "waiting as long as the client", key: notUsed, guard: guard.Wait(guard.Forever)},
		{name: "waiting for the one before", key: notUsed, guard: replaces},
		{name: "streamed", key: notUsed, guard: waits, opts: os(middleware.Stream()), untouched: true},
		{name: "streamed, used", key: used, guard: waits, opts: os(middleware.Stream())},
		{name: "64 KiB", key: notUsed, guard: waits, size: 64 << 10},
		{name: "over 64 KiB", key: notUsed, guard: waits, size: 64<<10 + 1, untouched: true},
		{name: "at the limit", key: notUsed, guard: waits, size: 20, opts: os(middleware.BodyLimit(20))},
		{name: "over the limit", key: notUsed, guard: waits, size: 21, opts: os(middleware.BodyLimit(20)), untouched: true},
		{name: "of unknown length", key: notUsed, guard: waits, request: func(r *http.Request) { r.ContentLength = -1 }, untouched: true},
		{name: "HTTP/2", key: notUsed, guard: waits, request: func(r *http.Request) { r.ProtoMajor = 2 }, untouched: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sent := " {\"id\" : \"7\"}\n"
			sent += strings.Repeat(" ", max(0, tt.size-len(sent)))
			left := strings.NewReader(sent)
			original := &closable{Reader: left}
			h := mount(t, newGuard(t, memlock.New(), guard.Key(tt.key), tt.guard), func(w http.ResponseWriter, r *http.Request) {
				if got := left.Len() == len(sent); got != tt.untouched {
					t.Errorf("body untouched: %v, want %v", got, tt.untouched)
				}
				got, err := io.ReadAll(r.Body)
				if string(got) != sent || err != nil || r.ContentLength != int64(len(sent)) && tt.request == nil {
					t.Errorf("body = %.100q, %v, length %d", got, err, r.ContentLength)
				}
				if err := r.Body.Close(); err != nil {
					t.Error(err)
				}
			}, tt.opts...)
			r := httptest.NewRequest(http.MethodPost, "/orders/42", original)
			r.ContentLength = int64(len(sent))
			if tt.request != nil {
				tt.request(r)
			}
			h.ServeHTTP(httptest.NewRecorder(), r)
			if !original.closed {
				t.Error("closing the body did not close the original")
			}
		})
	}
}

// TestBodyIsReplayedAfterFunctions has functions of the application that read the body, each from its beginning.
func TestBodyIsReplayedAfterFunctions(t *testing.T) {
	const sent = "id=7&page=2"
	read := func(r *http.Request) (string, error) {
		r.Body.Close() // which is not the handler's
		data, err := io.ReadAll(r.Body)
		return string(data[:min(4, len(data))]), err
	}
	var got []string
	g := newGuard(t, keys(&got), guard.FromSpec(guard.Spec{Name: "order.settle", Key: "#{one}:#{two}"}))
	h := mount(t, g, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.PostFormValue("id"), r.PostFormValue("page"))
	},
		middleware.WithFacts("one", func(r *http.Request) (string, error) {
			text, _ := read(r) // as careless functions do
			return cmp.Or(text, "unknown"), nil
		}), middleware.WithFacts("two", func(r *http.Request) (string, error) { return r.PostFormValue("page"), nil }),
		middleware.BodyLimit(int64(len(sent))))
	for _, tt := range []struct {
		body   string
		status int
		want   string
	}{{sent, 200, "72"}, {sent + "0", 413, "larger than"}} {
		r := httptest.NewRequest(http.MethodPost, "/orders/42", &closable{Reader: strings.NewReader(tt.body)})
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("response = %d %s, want %d %s", w.Code, w.Body, tt.status, tt.want)
		}
	}
	if key := strings.Join(got, " "); key != "id=7:2" {
		t.Errorf("keys = %q", key)
	}
}

// TestTooLargeIsSaidAtOnce announces a body that is over the limit and waits to be told to send it.
func TestTooLargeIsSaidAtOnce(t *testing.T) {
	g := newGuard(t, adaptertest.Locker(adaptertest.Down), guard.Key("order:#{body.id}"))
	s := httptest.NewServer(mount(t, g, nil, middleware.BodyLimit(12)))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /orders/42 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 13\r\n\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 413 ") {
		t.Errorf("answer = %q, %v, want status 413", line, err)
	}
}

// cancelAtEOF is a body whose request is over when it has been read.
type cancelAtEOF struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c cancelAtEOF) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if err == io.EOF {
		c.cancel()
	}
	return n, err
}

// TestInterruptedConnectionIsNotUsedAgain ends a context when the whole body was read, so that the server would go on
// with the connection: the deadline that interrupts reads would end the context of the next request.
func TestInterruptedConnectionIsNotUsedAgain(t *testing.T) {
	h := mount(t, newGuard(t, adaptertest.Locker(adaptertest.Down), guard.Key("order:#{body.id}")), nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = cancelAtEOF{r.Body, cancel}
		h.ServeHTTP(w, r)
	}))
	defer s.Close()
	res, err := s.Client().Post(s.URL+"/orders/42", "application/json", strings.NewReader(`{"id": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || !res.Close {
		t.Errorf("status = %d, connection closed: %v; want 503, closed", res.StatusCode, res.Close)
	}
}

// TestShadowLeavesTheBodyAlone has bodies that are too large for a key, which a guard in shadow mode has begun to read.
func TestShadowLeavesTheBodyAlone(t *testing.T) {
	reg := guard.Must(guard.NewRegistry())
	g := newGuard(t, memlock.New(), guard.Key("order:#{body.id}"), guard.In(reg), guard.Switchable())
	var got []byte
	s := httptest.NewServer(mount(t, g, func(_ http.ResponseWriter, r *http.Request) {
		var err error
		if got, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
	}, middleware.BodyLimit(10)))
	defer s.Close()
	if err := reg.Switch(g.Spec().Name, guard.Shadow); err != nil {
		t.Fatal(err)
	}
	for _, sent := range []string{`{"id": 12}`, `{"id": 123}`, `{"id": 1234567890}`} {
		for _, body := range []io.Reader{strings.NewReader(sent), io.MultiReader(strings.NewReader(sent))} { // the latter of unknown length
			res, err := s.Client().Post(s.URL+"/orders/42", "application/json", body)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusOK || string(got) != sent {
				t.Errorf("the handler reads %q and answers %s, want %q", got, res.Status, sent)
			}
		}
	}
}

// TestNothingIsReadAheadForAGuardThatIsOff has bodies that are too large to be read ahead, as they would be for a guard that is on.
func TestNothingIsReadAheadForAGuardThatIsOff(t *testing.T) {
	reg := guard.Must(guard.NewRegistry())
	g := newGuard(t, memlock.New(), guard.Wait(time.Second), guard.In(reg), guard.Switchable())
	h := mount(t, g, func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(got)
	}, middleware.ReadAhead(), middleware.BodyLimit(10))
	for mode, want := range map[guard.Mode]int{guard.On: http.StatusRequestEntityTooLarge, guard.Off: http.StatusOK, guard.Shadow: http.StatusOK} {
		if err := reg.Switch(g.Spec().Name, mode); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", strings.NewReader("more than ten bytes")))
		if w.Code != want || want == http.StatusOK && w.Body.String() != "more than ten bytes" {
			t.Errorf("%v: %d %q, want %d", mode, w.Code, w.Body, want)
		}
	}
}

// upload is a multipart form with a field and a file, too large for the memory that the tests give it.
func upload(t *testing.T) *http.Request {
	t.Helper()
	var sent bytes.Buffer
	m := multipart.NewWriter(&sent)
	if err := m.WriteField("tenant", "acme"); err != nil {
		t.Fatal(err)
	}
	if file, err := m.CreateFormFile("file", "a.txt"); err != nil {
		t.Fatal(err)
	} else if _, err := file.Write([]byte("content")); err != nil {
		t.Fatal(err)
	}
	m.Close()
	r := httptest.NewRequest(http.MethodPost, "/orders/42", &sent)
	r.Header.Set("Content-Type", m.FormDataContentType())
	return r
}

// TestMultipartFilesAreRemoved has forms with files, which a function of the application or the handler has read, or both.
func TestMultipartFilesAreRemoved(t *testing.T) {
	parse := func(r *http.Request) (string, error) { return "acme", r.ParseMultipartForm(1) }
	for _, tt := range []struct {
		key  string
		read bool // by the handler
	}{
		{"order:#{path.id}", true}, {"order:#{tenant}", false}, {"order:#{tenant}", true},
	} {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		h := mount(t, newGuard(t, memlock.New(), guard.Key(tt.key)), func(_ http.ResponseWriter, r *http.Request) {
			if !tt.read {
				return
			}
			if _, err := parse(r); err != nil {
				t.Error(err)
			}
		}, middleware.WithFacts("tenant", parse))
		r := upload(t)
		h.ServeHTTP(httptest.NewRecorder(), r)
		if (r.MultipartForm != nil) != tt.read {
			t.Errorf("key %s: the server sees a form: %v, want that of a handler: %v", tt.key, r.MultipartForm != nil, tt.read)
		}
		if r.MultipartForm != nil { // as the server does
			if err := r.MultipartForm.RemoveAll(); err != nil {
				t.Error(err)
			}
		}
		if files, err := filepath.Glob(dir + "/*"); err != nil || len(files) > 0 {
			t.Errorf("key %s: left %v, %v", tt.key, files, err)
		}
	}
}

// TestMultipartFormOfAFact has a handler that reads the values of a form which a function of the application has read for the
// key.
func TestMultipartFormOfAFact(t *testing.T) {
	h := mount(t, newGuard(t, memlock.New(), guard.Key("order:#{tenant}")), func(_ http.ResponseWriter, r *http.Request) {
		if got := r.FormValue("tenant"); got != "acme" {
			t.Errorf("FormValue = %q, want acme", got)
		}
		if got := r.PostFormValue("tenant"); got != "acme" {
			t.Errorf("PostFormValue = %q, want acme", got)
		}
		if _, _, err := r.FormFile("file"); err != nil {
			t.Error(err)
		}
	}, middleware.WithFacts("tenant", func(r *http.Request) (string, error) { return r.FormValue("tenant"), nil }))
	h.ServeHTTP(httptest.NewRecorder(), upload(t))
	h = mount(t, newGuard(t, memlock.New(), guard.Key("order:#{tenant}")), func(_ http.ResponseWriter, r *http.Request) {
		if _, err := r.MultipartReader(); err != nil {
			t.Error(err)
		}
	}, middleware.WithFacts("tenant", func(r *http.Request) (string, error) { return r.FormValue("tenant"), nil }))
	h.ServeHTTP(httptest.NewRecorder(), upload(t))
}

// TestExpectedBodyIsNotReadAhead has a client that wants to be told to send its body. It is told when the handler reads.
func TestExpectedBodyIsNotReadAhead(t *testing.T) {
	q := adaptertest.NewQueue()
	holder, err := q.Locker.Acquire(t.Context(), lock.Request{Key: "order:42"})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(mount(t, newGuard(t, q, guard.Wait(time.Minute)), func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /orders/42 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
	<-q.Entered // without a body
	if err := holder.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(conn)
	if line, err := lines.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("answer = %q, %v, want 100 Continue", line, err)
	}
	fmt.Fprint(conn, "body")
	if line, err := lines.ReadString('\n'); line != "\r\n" {
		t.Fatalf("line = %q, %v", line, err)
	}
	if line, err := lines.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 200 ") {
		t.Errorf("answer = %q, %v, want status 200", line, err)
	}
}

// slowWriter is a connection whose deadline takes a second to set.
type slowWriter struct {
	*httptest.ResponseRecorder
	body *io.PipeReader
	set  bool
}

func (w *slowWriter) SetReadDeadline(time.Time) error {
	_ = w.body.Close()
	time.Sleep(time.Second)
	w.set = true
	return nil
}

// TestInterruptionIsOverBeforeTheNextRequest ends the context of a request whose body is read. A deadline that is set after the
// guard has answered would be that of the next request of the connection.
func TestInterruptionIsOverBeforeTheNextRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, upload := io.Pipe()
		defer upload.Close()
		w := &slowWriter{httptest.NewRecorder(), body, false}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h := mount(t, newGuard(t, adaptertest.Locker(adaptertest.Down), guard.Key("order:#{body.id}")), nil)
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/orders/42", body))
		if w.Code != http.StatusGatewayTimeout || !w.set {
			t.Errorf("status = %d, deadline set %v; want 504, true", w.Code, w.set)
		}
	})
}

// TestBodyThatSomebodyHasRead is the program's fault, told once, and no empty body of the client's.
func TestBodyThatSomebodyHasRead(t *testing.T) {
	logged := captureLog(t)
	h := mount(t, newGuard(t, adaptertest.Locker(adaptertest.Down), guard.Key("order:#{body.id}")), nil)
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/orders/42", strings.NewReader(`{"id":1}`))
		_, _ = io.Copy(io.Discard, r.Body)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusInternalServerError {
			t.Errorf("status = %d %s, want 500", w.Code, w.Body)
		}
	}
	if n := strings.Count(logged.String(), "somebody in front of the guard has read the body"); n != 1 {
		t.Errorf("logged %d times: %s", n, logged)
	}
}

// An error that wraps EOF is no end: what has come may be the beginning of another key.
func TestBodyThatBreaksOff(t *testing.T) {
	h := mount(t, newGuard(t, adaptertest.Locker(adaptertest.Down), guard.Key("order:#{body.id}")), nil)
	broken := iotest.ErrReader(fmt.Errorf("stream reset: %w", io.EOF))
	r := httptest.NewRequest(http.MethodPost, "/orders/42", io.MultiReader(strings.NewReader(`{"id":1}`), broken))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest {
		t.Errorf("status = %d %s, want 400", w.Code, w.Body)
	}
}

// TestBodyThatGrows is announced in the length that it has compressed. It is not read ahead beyond what is read without being asked for.
func TestBodyThatGrows(t *testing.T) {
	const size = 2 << 20
	for _, key := range []string{"order:#{path.id}", "order:#{form.id}"} {
		left := &io.LimitedReader{R: endless('a'), N: size}
		h := mount(t, newGuard(t, memlock.New(), guard.Key(key), guard.Wait(time.Second)), func(w http.ResponseWriter, r *http.Request) {
			if read := size - left.N; read > 64<<10+1 {
				t.Errorf("%d bytes were read ahead", read)
			}
			if n, err := io.Copy(io.Discard, r.Body); n != size || err != nil {
				t.Errorf("the handler reads %d bytes, %v", n, err)
			}
		})
		r := httptest.NewRequest(http.MethodPost, "/orders/42", left)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.ContentLength = 2000
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if want := map[bool]int{true: 200, false: 413}[strings.Contains(key, "path")]; w.Code != want {
			t.Errorf("%s: status = %d %s, want %d", key, w.Code, w.Body, want)
		}
	}
}

// endless is a source of one byte.
type endless byte

func (b endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}
