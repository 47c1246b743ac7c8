package middleware_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
)

// TestReadsEndForANewerRequest has a handler that waits for its client, in a body that does not come or on a connection that it
// has hijacked, and a newer request that takes its place.
func TestReadsEndForANewerRequest(t *testing.T) {
	for _, tt := range []struct {
		name   string
		read   func(w http.ResponseWriter, r *http.Request) error
		answer string
	}{
		{"a body", func(_ http.ResponseWriter, r *http.Request) error {
			_, err := io.ReadAll(r.Body)
			return err
		}, "HTTP/1.1 409 Conflict\r\n"},
		{"a hijacked connection", func(w http.ResponseWriter, _ *http.Request) error {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = io.ReadAll(rw)
			if _, err := io.WriteString(conn, "bye\r\n"); err != nil {
				t.Errorf("%v, want a handler to take its leave", err)
			}
			return err
		}, "bye\r\n"},
	} {
		entered, ended := make(chan bool, 1), make(chan error, 1)
		g := newGuard(t, memlock.New(), guard.Key("k"), guard.OneKey(), guard.Busy(guard.Replace))
		s := httptest.NewServer(guard.Must(middleware.New(g))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > 0 {
				entered <- true
				ended <- tt.read(w, r)
			}
		})))
		older, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(older, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nabc")
		<-entered
		newer, err := s.Client().Post(s.URL, "", http.NoBody) // which waits for the older one to go
		if err != nil || newer.StatusCode != http.StatusOK {
			t.Errorf("%s: the newer request gets %v, %v", tt.name, newer, err)
		}
		if err := <-ended; !errors.Is(err, guard.ErrReplaced) {
			t.Errorf("%s: the older handler reads %v, want ErrReplaced", tt.name, err)
		}
		newer.Body.Close()
		answer, err := io.ReadAll(older)
		if err != nil || !strings.HasPrefix(string(answer), tt.answer) {
			t.Errorf("%s: the older client gets %q, %v, want %q", tt.name, answer, err, tt.answer)
		}
		older.Close()
		s.Close()
	}
}
