package middleware_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

type payment struct{ Order string }

// serve sends a payment through a handler that calls a guarded function of the service layer.
func serve(t *testing.T, l lock.Locker, order string,
	answer func(http.ResponseWriter, *http.Request, error) bool) (status int, h http.Header, body string) {
	t.Helper()
	g := guard.Must(guard.New(l, guard.Name("order.pay"), guard.Key("order:#{req.Order}")))
	pay := guard.Must(guard.Func(g, func(_ context.Context, p payment) (string, error) {
		if p.Order == "unknown" {
			return "", errors.New("no such order")
		}
		return "paid", nil
	}))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "identity") // as middleware that compresses would
		receipt, err := pay(r.Context(), payment{order})
		if err != nil {
			err = fmt.Errorf("pay: %w", err)
		}
		switch {
		case answer(w, r, err):
		case err != nil:
			http.Error(w, err.Error(), http.StatusNotFound)
		default:
			fmt.Fprint(w, receipt)
		}
	}))
	t.Cleanup(s.Close)
	res, err := s.Client().Post(s.URL, "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode, res.Header, read(t, res.Body)
}

func TestAnswerMapsErrorsOfTheServiceLayer(t *testing.T) {
	locked := guard.Must(middleware.NewAnswer(middleware.Status(guard.ErrBusy, http.StatusLocked),
		middleware.Respond(func(w http.ResponseWriter, _ *http.Request, p middleware.Problem) { fmt.Fprint(w, p.Guard, " ", p.Err) })))
	for _, tt := range []struct {
		name   string
		locker lock.Locker
		order  string
		answer func(http.ResponseWriter, *http.Request, error) bool
		status int
		retry  string
		body   string
	}{
		{"done", memlock.New(), "7f3a", middleware.Answer, 200, "", "paid"},
		{"own error", memlock.New(), "unknown", middleware.Answer, 404, "", "no such order"},
		{"no key", memlock.New(), "", middleware.Answer, 400, "", `"fact":"req.Order"`},
		{"busy", adaptertest.Busy(2500 * time.Millisecond), "7f3a", middleware.Answer, 409, "3", `guard#ErrBusy","title"`},
		{"busy, other status", adaptertest.Busy(0), "7f3a", locked, 423, "1", `order.pay pay: guard "order.pay": lock: held by others`},
		{"outage", adaptertest.Locker(adaptertest.Down), "7f3a", middleware.Answer, 503, "1", `"guard":"order.pay"`},
		{"refused", adaptertest.Locker(adaptertest.Refusing), "7f3a", middleware.Answer, 500, "", `guard#ErrFault"`},
		{"lost", adaptertest.Locker(adaptertest.Losing), "7f3a", middleware.Answer, 500, "", `guard#ErrLost"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, h, body := serve(t, tt.locker, tt.order, tt.answer)
			if status != tt.status || h.Get("Retry-After") != tt.retry || !strings.Contains(body, tt.body) {
				t.Errorf("answer = %d, Retry-After %q, %s, want %d, %q, %s", status, h.Get("Retry-After"), body, tt.status, tt.retry, tt.body)
			}
			if h.Get("Content-Encoding") != "identity" {
				t.Errorf("the headers of middleware are gone: %v", h)
			}
			if strings.Contains(body, "7f3a") || strings.Contains(body, "10.9.8.7") {
				t.Errorf("body tells too much: %s", body)
			}
		})
	}
}

// TestAnswerKeepsAResponse has begun to answer when it learns of the loss.
func TestAnswerKeepsAResponse(t *testing.T) {
	g := newGuard(t, memlock.New())
	h := mount(t, g, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "half")
		if !middleware.Answer(w, r, &guard.Error{Guard: "order.pay", Err: guard.ErrLost}) {
			t.Error("the error is not the guard's")
		}
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
	if w.Body.String() != "half" {
		t.Errorf("body = %q", w.Body)
	}
}

// TestDrainingIsNotTheLockServicesFault sends a request to a program that is about to end.
func TestDrainingIsNotTheLockServicesFault(t *testing.T) {
	w := httptest.NewRecorder()
	err := &guard.Error{Guard: "order.pay", Err: guard.ErrOutage, Cause: guard.ErrDraining}
	if !middleware.Answer(w, httptest.NewRequest(http.MethodPost, "/", nil), err) || w.Code != 503 || strings.Contains(w.Body.String(), "lock service") {
		t.Errorf("answer = %d %s", w.Code, w.Body)
	}
}

func TestNewAnswerReportsMistakes(t *testing.T) {
	if _, err := middleware.NewAnswer(middleware.Status(guard.ErrBusy, 200), nil); err == nil ||
		!strings.Contains(err.Error(), "200") || !strings.Contains(err.Error(), "nil option") {
		t.Errorf("NewAnswer = %v, want both mistakes", err)
	}
}

// TestRespondGetsTheStatus calls functions that forget to write one.
func TestRespondGetsTheStatus(t *testing.T) {
	for _, tt := range []struct {
		name    string
		respond func(http.ResponseWriter, *http.Request, middleware.Problem)
		status  int
		body    string
	}{
		{"nothing", func(http.ResponseWriter, *http.Request, middleware.Problem) {}, 503, ""},
		{"a body only", func(w http.ResponseWriter, _ *http.Request, p middleware.Problem) { fmt.Fprint(w, p.Guard) }, 503, "order.settle"},
		{"a flush only", func(w http.ResponseWriter, _ *http.Request, p middleware.Problem) { w.(http.Flusher).Flush() }, 503, ""},
		{"by a controller", func(w http.ResponseWriter, _ *http.Request, p middleware.Problem) {
			_ = http.NewResponseController(w).Flush()
		}, 503, ""},
		{"hints first", func(w http.ResponseWriter, _ *http.Request, p middleware.Problem) {
			w.WriteHeader(http.StatusEarlyHints)
		}, 503, ""},
		{"its own", func(w http.ResponseWriter, _ *http.Request, p middleware.Problem) { w.WriteHeader(http.StatusTeapot) }, 418, ""},
		{"by http.Error", func(w http.ResponseWriter, _ *http.Request, p middleware.Problem) {
			http.Error(w, "no", http.StatusInternalServerError)
		}, 500, "no\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(mount(t, newGuard(t, adaptertest.Locker(adaptertest.Down)), nil, middleware.Respond(tt.respond)))
			defer s.Close()
			res, err := s.Client().Get(s.URL + "/orders/42")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if body := read(t, res.Body); res.StatusCode != tt.status || body != tt.body {
				t.Errorf("response = %d %q, want %d %q", res.StatusCode, body, tt.status, tt.body)
			}
		})
	}
}

// TestRespondHasTheLastWord answers for a loss with a page of its own.
func TestRespondHasTheLastWord(t *testing.T) {
	l := memlock.New()
	h := mount(t, newGuard(t, l), func(w http.ResponseWriter, _ *http.Request) {
		l.ForceUnlock("order:42")
		if _, err := io.WriteString(w, "done"); !errors.Is(err, guard.ErrLost) {
			t.Errorf("write = %v, want ErrLost", err)
		}
	}, middleware.Respond(func(w http.ResponseWriter, _ *http.Request, _ middleware.Problem) {
		w.WriteHeader(http.StatusOK)
		fmt.Fprint(w, "look before retrying")
	}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
	if w.Code != 200 || w.Body.String() != "look before retrying" {
		t.Errorf("response = %d %s", w.Code, w.Body)
	}
}

func TestSkipSaysSo(t *testing.T) {
	h := mount(t, newGuard(t, adaptertest.Busy(0), guard.Busy(guard.Skip)), nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
	if w.Code != 204 || w.Header().Get("Latchkey-Outcome") != "skipped" {
		t.Errorf("response = %d %v", w.Code, w.Header())
	}
}

// shopError is an error of another package, which says how it is answered.
type shopError struct{ err error }

func (e shopError) Error() string { return "no stock" }
func (e shopError) Problem() middleware.Problem {
	return middleware.Problem{Type: "https://shop.test/stock", Title: "No stock", Status: 422, Guard: "shop", RetryAfter: time.Minute, Err: e.err}
}

func TestAnswerTakesErrorsThatHaveAProblem(t *testing.T) {
	inner := errors.New("row 7 is empty")
	for _, cause := range []error{nil, inner} {
		var told error
		answer := guard.Must(middleware.NewAnswer(middleware.Respond(func(w http.ResponseWriter, _ *http.Request, p middleware.Problem) {
			told = p.Err
			fmt.Fprint(w, p.Title, " at ", p.Guard)
		})))
		err := fmt.Errorf("pay: %w", shopError{cause})
		w := httptest.NewRecorder()
		if !answer(w, httptest.NewRequest(http.MethodPost, "/", nil), err) || w.Code != 422 || w.Header().Get("Retry-After") != "60" || w.Body.String() != "No stock at shop" {
			t.Errorf("answer = %d %v %s", w.Code, w.Header(), w.Body)
		}
		if want := cmp.Or(cause, err); told != want {
			t.Errorf("Respond was told %v, want %v", told, want)
		}
	}
}

// listener is a writer between a handler and its guard.
type listener struct {
	http.ResponseWriter
	heard []error
}

func (l *listener) Failed(err error) { l.heard = append(l.heard, err) }

// Writers between a handler and its guard hear that it has failed, and so does the guard.
func TestFailedTellsWritersBetween(t *testing.T) {
	var events guardtest.Events
	var between listener
	no := errors.New("no stock")
	g := guard.Must(guard.New(memlock.New(), guard.Name("order.settle"), guard.Key("order:#{path.id}"), guard.Observe(events.Observe)))
	h := mount(t, g, func(w http.ResponseWriter, _ *http.Request) {
		between.ResponseWriter = w
		middleware.Failed(&between, nil)
		middleware.Failed(struct{ http.ResponseWriter }{&between}, no)
	})
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/orders/42", nil))
	if len(between.heard) != 1 || between.heard[0] != no {
		t.Errorf("heard %v, want %v", between.heard, no)
	}
	events.WantOutcomes(t, "order.settle", guard.OutcomeError)
}
