package middleware_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
)

// TestTimeoutHandlerOutside is the right order: the lock stays until the handler has returned.
func TestTimeoutHandlerOutside(t *testing.T) {
	for dt := time.Millisecond; !lockedBehindTimeout(t, dt); dt *= 2 { // the handler may not have run by then
	}
}

// lockedBehindTimeout calls a guarded handler behind an http.TimeoutHandler of dt, and looks whether it has the lock when the client has
// its answer. It reports whether the handler ran.
func lockedBehindTimeout(t *testing.T, dt time.Duration) (ran bool) {
	locker := memlock.New()
	answered, left := make(chan struct{}), make(chan struct{})
	wrap := guard.Must(middleware.New(newGuard(t, locker, guard.Key("orders"), guard.OneKey())))
	guarded := wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ran = true
		<-r.Context().Done()
		<-answered // as a handler that takes its time
		if h, err := locker.Acquire(t.Context(), lock.Request{Key: "orders"}); !errors.Is(err, lock.ErrBusy) {
			t.Errorf("Acquire beside the handler = %v, %v", h, err)
		}
	}))
	s := httptest.NewServer(http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		guarded.ServeHTTP(w, r)
	}), dt, "too late"))
	defer s.Close()
	res, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status = %d, want 503", res.StatusCode)
	}
	close(answered)
	<-left
	return ran
}

// TestTimeoutHandlerOutsideOfALoss is a response that http.TimeoutHandler would have kept to itself.
func TestTimeoutHandlerOutsideOfALoss(t *testing.T) {
	for _, size := range []int{4, 100_000} {
		l := memlock.New()
		wrap := guard.Must(middleware.New(newGuard(t, l, guard.Key("orders"), guard.OneKey())))
		s := httptest.NewServer(http.TimeoutHandler(wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(make([]byte, size))
			l.ForceUnlock("orders")
		})), time.Minute, ""))
		res, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusInternalServerError {
			t.Errorf("%d bytes: status = %d, want 500", size, res.StatusCode)
		}
		s.Close()
	}
}

// TestTimeoutHandlerInside is the wrong order, in which the lock would be released while the handler runs.
func TestTimeoutHandlerInside(t *testing.T) {
	var logged bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	inside := http.TimeoutHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("ran") }), time.Minute, "")
	h := guard.Must(middleware.New(newGuard(t, memlock.New(), guard.Key("orders"), guard.OneKey())))(inside)
	if text := logged.String(); !strings.Contains(text, "http.TimeoutHandler") || !strings.Contains(text, "order.settle") {
		t.Errorf("logged when it is wrapped: %s", text)
	}
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != http.StatusInternalServerError {
			t.Errorf("status = %d, want 500", w.Code)
		}
	}
	if n := strings.Count(logged.String(), "http.TimeoutHandler belongs"); n != 1 {
		t.Errorf("logged %d times: %s", n, logged.String())
	}
	api := struct {
		Settle http.Handler `guard:"orders; one-key"`
	}{inside}
	if err := middleware.Bind(guard.Must(guard.New(memlock.New())), &api); err == nil || !strings.Contains(err.Error(), "wrap the field after Bind") {
		t.Errorf("Bind = %v", err)
	}
}
