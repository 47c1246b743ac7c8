package adaptertest

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
)

// contexts gives a request the kind of context that it asks for, as middleware further out could.
func contexts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		switch r.Header.Get("Test-Context") {
		case "deadline":
			var end context.CancelFunc
			ctx, end = context.WithTimeout(ctx, time.Millisecond)
			defer end()
		case "canceled":
			cancel()
		}
		if r.Header.Get("Test-Form") != "" {
			_ = r.ParseForm()
		}
		if r.Header.Get("Test-Gzip") != "" {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Cache-Control", "no-store")
			z := gzip.NewWriter(w)
			defer z.Close()
			w = compressed{w, z}
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// compressed is the writer of middleware that compresses whatever is written.
type compressed struct {
	http.ResponseWriter
	z io.Writer
}

func (c compressed) Write(p []byte) (int, error) { return c.z.Write(p) }

// HangUps closes the connection of a client that waits for the lock.
func HangUps(t *testing.T, mount Mount) {
	const jsonBody = `{"id":"7f3a"}`
	for _, tt := range []struct {
		name, method, body, key string
		options                 []middleware.Option
		stays                   bool // the hang-up goes unnoticed
	}{
		{name: "no body", method: "GET", key: pathKey},
		{name: "body that the key uses", method: "POST", body: jsonBody, key: "order:#{body.id}"},
		{name: "body read ahead", method: "POST", body: jsonBody, key: pathKey, options: options(middleware.ReadAhead())},
		{name: "small body", method: "POST", body: jsonBody, key: pathKey},
		{name: "largest small body", method: "POST", body: strings.Repeat("x", 64<<10), key: pathKey},
		{name: "large body read ahead", method: "POST", body: strings.Repeat("x", 64<<10+1), key: pathKey, options: options(middleware.ReadAhead())},
		// What ReadAhead is for. Should net/http learn to notice, so may its documentation.
		{name: "large body", method: "POST", body: strings.Repeat("x", 64<<10+1), key: pathKey, stays: true},
		{name: "small body over the limit", method: "POST", body: jsonBody, key: pathKey, options: options(middleware.BodyLimit(12)), stays: true},
		{name: "streamed body", method: "POST", body: jsonBody, key: pathKey, options: options(middleware.Stream()), stays: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := NewQueue()
			holder, err := q.Locker.Acquire(t.Context(), lock.Request{Key: "order:7f3a"})
			if err != nil {
				t.Fatal(err)
			}
			ran := make(chan struct{}, 1)
			g := guard.Must(guard.New(q, guard.Name("order.settle"), guard.Key(tt.key), guard.Wait(time.Hour)))
			s := httptest.NewServer(mount(t, g, func(http.ResponseWriter, *http.Request) { ran <- struct{}{} }, tt.options...))
			defer s.Close()

			conn := dial(t, s)
			fmt.Fprintf(conn, "%s /orders/7f3a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", tt.method, len(tt.body), tt.body)
			<-q.Entered
			conn.Close()
			if tt.stays {
				release(t, holder)
				<-ran
				return
			}
			select {
			case <-q.Left: // before the lock comes free
			case <-time.After(10 * time.Second):
				t.Error("the request stays in line")
			}
			release(t, holder)
			s.Close() // joins the handler
			if len(ran) != 0 {
				t.Error("the handler ran for a client that had gone")
			}
			again, err := q.Locker.Acquire(t.Context(), lock.Request{Key: "order:7f3a"})
			if err != nil {
				t.Fatalf("somebody is still in line: %v", err)
			}
			release(t, again)
		})
	}
}

// SlowBody sends half of a body to a request whose context ends.
func SlowBody(t *testing.T, mount Mount) {
	g := guard.Must(guard.New(Locker(Down), guard.Name("order.settle"), guard.Key("order:#{body.id}")))
	s := httptest.NewServer(contexts(mount(t, g, text(200, "done"))))
	defer s.Close()
	conn := dial(t, s)
	fmt.Fprint(conn, "POST /orders/7f3a HTTP/1.1\r\nHost: x\r\nTest-Context: deadline\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	answer, err := io.ReadAll(conn) // ends, as the connection is of no more use
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(answer), "HTTP/1.1 504 ") {
		t.Errorf("answer = %q, want status 504", answer)
	}
}

// Exclusion sends many requests for one key at once, to a handler that counts without any lock of its own.
func Exclusion(t *testing.T, mount Mount) {
	const requests = 50
	count := 0
	q := NewQueue()
	g := guard.Must(guard.New(q, guard.Name("order.settle"), guard.Key(pathKey), guard.Wait(time.Minute)))
	s := httptest.NewServer(mount(t, g, func(w http.ResponseWriter, r *http.Request) {
		count++ // for the race detector
		if !guard.Held(r.Context(), "order.settle") {
			t.Error("the handler's context is not the held one")
		}
	}))
	defer s.Close()
	var clients sync.WaitGroup
	for range requests {
		clients.Go(func() {
			res, err := s.Client().Post(s.URL+"/orders/7", "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Errorf("status = %d", res.StatusCode)
			}
		})
	}
	clients.Wait()
	if count != requests || q.Acquired.Load() != requests {
		t.Errorf("%d handlers ran under %d locks, want %d", count, q.Acquired.Load(), requests)
	}
}

func dial(t *testing.T, s *httptest.Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func release(t *testing.T, h lock.Hold) {
	t.Helper()
	if err := h.Release(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}
