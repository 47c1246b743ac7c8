package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/middleware/idempotency"
)

// Clients that hang up while their request is at work, and what a repeat is told.
func TestHangUps(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  func(w http.ResponseWriter, r *http.Request, gone func())
		want string // of a repeat: unknown or stored
	}{
		{"before the handler wrote", func(_ http.ResponseWriter, _ *http.Request, gone func()) { gone() }, "unknown"},
		{"before a handler that answers all the same", func(w http.ResponseWriter, r *http.Request, gone func()) {
			gone()
			write(w, 300_000, 1000)
		}, "stored"},
		{"after the handler wrote", func(w http.ResponseWriter, _ *http.Request, gone func()) {
			write(w, 300_000, 300_000)
			gone()
		}, "stored"},
		{"while it writes", func(w http.ResponseWriter, _ *http.Request, gone func()) {
			for i := range 300 {
				if i == 100 {
					gone()
				}
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1000)); err != nil {
					return // and the answer is half
				}
			}
		}, "stored"},
		{"in a stream", func(w http.ResponseWriter, _ *http.Request, gone func()) {
			fmt.Fprint(w, "half")
			w.(http.Flusher).Flush()
			gone()
		}, "unknown"},
		{"in an answer that is too large", func(w http.ResponseWriter, _ *http.Request, gone func()) {
			write(w, mib+1, 1000)
			gone()
		}, "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, store *spy) { hangUp(t, store, tt.run, tt.want) })
		})
	}
}

func hangUp(t *testing.T, store *spy, run func(http.ResponseWriter, *http.Request, func()), want string) {
	ctx, hang := context.WithCancel(t.Context())
	s := open(t, store, func(w http.ResponseWriter, r *http.Request) {
		run(w, r, func() {
			hang()
			<-r.Context().Done()
		})
	})
	if _, err := s.try(t, ctx, call{}); err == nil {
		t.Error("the client has an answer")
	}
	for len(s.locks.Held()) > 0 {
		time.Sleep(time.Millisecond)
	}
	a := s.send(t, call{})
	if want == "unknown" {
		wantProblem(t, a, 409, "ErrUnknown")
	} else if a.status != 200 || !a.replayed() || len(a.body) != 300_000 {
		t.Errorf("repeat = %d with %d bytes, replayed %v", a.status, len(a.body), a.replayed())
	}
	s.wantRuns(t, 1)
}

// A handler hears that its lock is lost, or that its stream has nobody to go to.
func TestHandlersHearOfErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(s *shop, w http.ResponseWriter, hang func())
		want error // nil is any
	}{
		{"lost lock", func(s *shop, _ http.ResponseWriter, _ func()) { s.locks.Lose(s.locks.Held()[0]) }, guard.ErrLost},
		{"stream without a client", func(_ *shop, w http.ResponseWriter, hang func()) {
			w.(http.Flusher).Flush()
			hang()
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, hang := context.WithCancel(t.Context())
			wrote := make(chan error, 1)
			var s *shop
			s = open(t, &spy{Store: idempotency.NewMemory(0)}, func(w http.ResponseWriter, r *http.Request) {
				tt.end(s, w, func() {
					hang()
					<-r.Context().Done()
				})
				var err error
				for n := 0; err == nil && n < 1000; n++ { // until the buffers are full
					_, err = w.Write(make([]byte, 1000))
				}
				wrote <- err
			})
			_, _ = s.try(t, ctx, call{})
			if err := <-wrote; err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("Write = %v", err)
			}
			hang()
		})
	}
}

// An upload that does not come to its end is no request.
func TestBrokenUpload(t *testing.T) {
	s := open(t, &spy{Store: idempotency.NewMemory(0)}, paid)
	r := call{}.request(t, t.Context(), s.URL)
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("half"), failing{})), 100
	if res, err := s.Client().Transport.RoundTrip(r); err == nil {
		res.Body.Close()
	}
	s.Close() // waits for the handler
	s.wantRuns(t, 0)
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken") }
