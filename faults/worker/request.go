package worker

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/faults/history"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/middleware/idempotency"
)

// request has the caller be a client that sends a request until it is answered, as the callers of all workers do with the same one for a
// while. Its work adds it to a set, once. At the end of a round the caller sends one of its own, until its work was done.
func (c *caller) request(t target, end bool) {
	s := &candidacy{caller: c, target: t}
	g := guard.Must(guard.New(s, guard.Name("request"), guard.Key(t.keys[0]), guard.OneKey(), guard.Fenced(), guard.Wait(guard.Forever)))
	store, client := guard.Must(idempotency.NewRedis(c.w.store, "request:")), func(*http.Request) (string, error) { return "client", nil }
	name := fmt.Sprintf("%s:%d", t.keys[0], history.Now()/int64(30*time.Millisecond))
	if end {
		name = c.owner
	}
	once := guard.Must(idempotency.New(g, store, client))
	known := c.send(s, name, once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.stay.held = r.Context()
		c.enter(s.stay)
		if !c.update(s.stay, name, true) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		c.exit(s.stay)
	})))
	if end && !known {
		c.request(t, end)
	}
}

// send sends a request until it is answered, and reports false if the answer is that nobody knows what came of it.
func (c *caller) send(s *candidacy, name string, h http.Handler) (known bool) {
	for ; ; time.Sleep(time.Duration(2+c.rng.IntN(15)) * time.Millisecond) {
		r, w := httptest.NewRequest(http.MethodPost, "/", nil), httptest.NewRecorder()
		r.Header.Set("Idempotency-Key", name)
		h.ServeHTTP(w, r)
		unknown := strings.Contains(w.Body.String(), "#ErrUnknown")
		if unknown {
			s.stay.call.Write(history.Now(), 0, name, false)
		}
		if unknown || w.Code == http.StatusOK {
			return !unknown
		}
	}
}
