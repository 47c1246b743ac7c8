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
	"strings"
	"testing"
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

func (c *closable) Close() error { c.closed = true; return nil }

func TestBodyIsReplayed(t *testing.T) {
	const sent = " {\"id\" : \"7\"}\n"
	for _, tt := range []struct {
		name, key string
		opts      []middleware.Option
		untouched bool
	}{
		{"used", "order:#{body.id}", nil, false},
		{"not used", "order:#{path.id}", nil, true},
		{"read ahead", "order:#{path.id}", []middleware.Option{middleware.ReadAhead()}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			left := strings.NewReader(sent)
			original := &closable{Reader: left}
			h := mount(t, newGuard(t, memlock.New(), guard.Key(tt.key)), func(w http.ResponseWriter, r *http.Request) {
				if got := left.Len() == len(sent); got != tt.untouched {
					t.Errorf("body untouched: %v, want %v", got, tt.untouched)
				}
				got, err := io.ReadAll(r.Body)
				if string(got) != sent || err != nil || r.ContentLength != int64(len(sent)) {
					t.Errorf("body = %q, %v, length %d", got, err, r.ContentLength)
				}
				if err := r.Body.Close(); err != nil {
					t.Error(err)
				}
			}, tt.opts...)
			r := httptest.NewRequest(http.MethodPost, "/orders/42", original)
			r.ContentLength = int64(len(sent))
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
		r := httptest.NewRequest(http.MethodPost, "/orders/42", io.NopCloser(strings.NewReader(tt.body)))
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

// TestMultipartFilesAreRemoved looks for the form in the request that the server cleans up after.
func TestMultipartFilesAreRemoved(t *testing.T) {
	var sent bytes.Buffer
	m := multipart.NewWriter(&sent)
	if err := m.WriteField("name", "value"); err != nil {
		t.Fatal(err)
	}
	m.Close()
	h := mount(t, newGuard(t, memlock.New()), func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
	})
	r := httptest.NewRequest(http.MethodPost, "/orders/42", &sent)
	r.Header.Set("Content-Type", m.FormDataContentType())
	h.ServeHTTP(httptest.NewRecorder(), r)
	if r.MultipartForm == nil {
		t.Error("the server does not see the form")
	}
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
