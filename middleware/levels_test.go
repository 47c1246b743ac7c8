package middleware_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
)

// fullLocker serves levels and rates, of which one is met.
type fullLocker struct{ busy *lock.BusyError }

func (l fullLocker) Acquire(context.Context, lock.Request) (lock.Hold, error) { return nil, l.busy }
func (l fullLocker) ServesLevels(...string) error                             { return nil }

// A rate that is used up is 429 whatever other locks are, with the time of its next permit. A level that is full is busy, and named by its template.
func TestLevelsAndRatesAreAnswered(t *testing.T) {
	level := []guard.Option{guard.Limit(1), guard.Level(20, "all"), guard.Level(5, "tenant:#{query.tenant}")}
	rate := []guard.Option{guard.Rate(10, time.Minute)}
	for _, tt := range []struct {
		name   string
		opts   []guard.Option
		busy   lock.BusyError
		status int
		retry  string
		body   []string
	}{
		{
			"rate", rate, lock.BusyError{Rate: true, Remaining: 2100 * time.Millisecond}, 429, "3",
			[]string{`"title":"Too many requests","status":429,"detail":"As many`, "#ErrBusy"},
		},
		{"rate, at once", rate, lock.BusyError{Rate: true}, 429, "1", []string{`"guard":"report"}`}},
		{
			"level", level, lock.BusyError{Level: "tenant:acme"}, 423, "1",
			[]string{`"title":"Locked by another request"`, `"guard":"report","level":"tenant:#{query.tenant}"}`},
		},
		{"constant level", level, lock.BusyError{Level: "all"}, 423, "1", []string{`"level":"all"}`}},
		{"no level", level, lock.BusyError{}, 423, "1", []string{`"guard":"report"}`}},
	} {
		g := guard.Must(guard.New(fullLocker{&tt.busy}, append(tt.opts, guard.Name("report"), guard.Key("report:#{path.id}"))...))
		mux := http.NewServeMux()
		mux.Handle("POST /reports/{id}", guard.Must(middleware.New(g, middleware.Status(guard.ErrBusy, 423)))(http.NotFoundHandler()))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/reports/7?tenant=acme", nil))
		if w.Code != tt.status || w.Header().Get("Retry-After") != tt.retry || strings.Contains(w.Body.String(), "acme") {
			t.Errorf("%s: %d, Retry-After %q, %s, want %d, %q", tt.name, w.Code, w.Header().Get("Retry-After"), w.Body, tt.status, tt.retry)
		}
		for _, want := range tt.body {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %s, want %s", tt.name, w.Body, want)
			}
		}
	}
	w := httptest.NewRecorder()
	err := &guard.Error{Guard: "orders.pay", Err: guard.ErrBusy, Rate: true, RetryAfter: time.Minute}
	if !middleware.Answer(w, httptest.NewRequest(http.MethodPost, "/", nil), err) || w.Code != 429 || w.Header().Get("Retry-After") != "60" {
		t.Errorf("of the service layer: %d, %v", w.Code, w.Header())
	}
}

// A name of a level in other letters, which the handler may read, is not passed over.
func TestLevelInOtherLetters(t *testing.T) {
	l := guardtest.Record(guardtest.PassThrough())
	g := guard.Must(guard.New(l, guard.Name("report"), guard.Key("report:#{path.id}"), guard.Limit(1), guard.LevelFrom("#{body.slots ?? 9}", "all")))
	mux := http.NewServeMux()
	mux.Handle("POST /reports/{id}", guard.Must(middleware.New(g))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	for body, status := range map[string]int{`{}`: 200, `{"slots": 3}`: 200, `{"SLOTS": 1}`: 400} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/reports/7", strings.NewReader(body)))
		if w.Code != status {
			t.Errorf("%s: %d, want %d", body, w.Code, status)
		}
	}
}
