package ginguard_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

// TestWriterCountsAsGins has handlers that look at what they have written, which must be the same without a guard.
func TestWriterCountsAsGins(t *testing.T) {
	guarded := newGin(t, newGuard(t, memlock.New()))
	for _, tt := range []struct {
		name  string
		steps []func(w gin.ResponseWriter) error
	}{
		{"writes", []func(gin.ResponseWriter) error{
			func(w gin.ResponseWriter) error { w.WriteHeader(http.StatusCreated); return nil },
			func(w gin.ResponseWriter) error { _, err := w.WriteString("two"); return err },
			func(w gin.ResponseWriter) error { w.WriteHeader(http.StatusInternalServerError); return nil },
			func(w gin.ResponseWriter) error { _, err := w.Write([]byte("three")); return err },
			func(w gin.ResponseWriter) error { _, _, err := w.Hijack(); return isError(err) },
		}},
		{"status only", []func(gin.ResponseWriter) error{
			func(w gin.ResponseWriter) error { w.WriteHeader(http.StatusCreated); w.WriteHeaderNow(); return nil },
			func(w gin.ResponseWriter) error { w.WriteHeaderNow(); return nil },
		}},
		{"hijack", []func(gin.ResponseWriter) error{
			func(w gin.ResponseWriter) error {
				conn, _, err := w.Hijack()
				if err == nil {
					_, err = io.WriteString(conn, "HTTP/1.1 299 Mine\r\nContent-Length: 0\r\n\r\n")
					conn.Close()
				}
				return err
			},
		}},
	} {
		for _, early := range []string{"", "early "} {
			if early != "" && tt.name == "hijack" {
				continue
			}
			got := watch(t, early, tt.steps, guarded)
			if want := watch(t, early, tt.steps); !slices.Equal(got, want) {
				t.Errorf("%s after %q: %q, without a guard %q", tt.name, early, got, want)
			}
		}
	}
}

func isError(err error) error {
	if err == nil {
		return nil
	}
	return io.EOF
}

// watch runs the steps in a handler behind others, the first of which may write something, and returns what can be seen.
func watch(t *testing.T, early string, steps []func(gin.ResponseWriter) error, before ...gin.HandlerFunc) (seen []string) {
	t.Helper()
	look := func(w gin.ResponseWriter, err error) {
		seen = append(seen, fmt.Sprintf("%d bytes, written %v, status %d, %v", w.Size(), w.Written(), w.Status(), err))
	}
	handled := make(chan struct{})
	e := gin.New()
	e.Use(func(c *gin.Context) {
		if early != "" {
			c.String(http.StatusAccepted, early)
		}
	})
	e.GET("/orders/:id", append(before, func(c *gin.Context) {
		defer close(handled)
		look(c.Writer, nil)
		for _, step := range steps {
			look(c.Writer, step(c.Writer))
		}
	})...)
	s := httptest.NewServer(e)
	defer s.Close()
	res, err := s.Client().Get(s.URL + "/orders/42")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	<-handled
	return append(seen, fmt.Sprintf("%d %s %v", res.StatusCode, body, err))
}

// TestLossAfterAnEarlierHandlerHasWritten loses a lock before the client has a byte of what was written in front of the guard.
// Closed without one, the connection would have net/http's Transport send the request again.
func TestLossAfterAnEarlierHandlerHasWritten(t *testing.T) {
	runs := 0
	e := gin.New()
	e.GET("/", func(*gin.Context) {})
	e.GET("/orders/:id", func(c *gin.Context) { c.String(http.StatusOK, "early") },
		newGin(t, newGuard(t, adaptertest.Locker(adaptertest.Losing))), func(*gin.Context) { runs++ })
	s := httptest.NewServer(e)
	defer s.Close()
	for _, path := range []string{"/", "/orders/42"} { // the first for a connection to be used again
		res, err := s.Client().Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); err == nil && path != "/" {
			t.Errorf("a complete response: %s", body)
		}
		res.Body.Close()
	}
	if runs != 1 {
		t.Errorf("the handler ran %d times", runs)
	}
}
