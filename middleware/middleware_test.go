package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
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

func mount(t *testing.T, g *guard.Guard, h http.HandlerFunc, opts ...middleware.Option) http.Handler {
	t.Helper()
	wrap, err := middleware.New(g, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if h == nil {
		h = func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }
	}
	mux := http.NewServeMux()
	mux.Handle("/orders/{id}", wrap(h))
	return mux
}

// newGuard declares a guard that settles orders.
func newGuard(t testing.TB, l lock.Locker, opts ...guard.Option) *guard.Guard {
	t.Helper()
	g, err := guard.New(l, append([]guard.Option{guard.FromSpec(guard.Spec{Name: "order.settle", Key: "order:#{path.id}"})}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// keys returns a locker that gives out every lock and tells its key.
func keys(got *[]string) adaptertest.Locker {
	return func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		*got = append(*got, r.Key)
		return adaptertest.Free(ctx, r)
	}
}

func TestKeys(t *testing.T) {
	type order struct {
		ID    int64 `json:"id"`
		Lines []struct{ SKU string }
	}
	typed := []middleware.Option{middleware.Body[order]()}
	tenant := middleware.WithFacts("tenant", func(r *http.Request) (string, error) { return r.Header.Get("Tenant"), nil })
	claims := middleware.WithFacts("claims", func(r *http.Request) (*struct{ Roles []string }, error) {
		return &struct{ Roles []string }{[]string{"payer", r.PathValue("id")}}, nil
	})
	for _, tt := range []struct {
		key  string
		opts []middleware.Option
		want string
	}{
		{"r:#{route}", nil, "r:/orders/%7Bid%7D"},
		{"c:#{cookie.session}", nil, "c:s1"},
		{"t:#{tenant}:#{path.id}", []middleware.Option{tenant}, "t:acme:42"},
		{"c:#{claims.Roles[1]}:#{tenant}", []middleware.Option{tenant, claims}, "c:42:acme"},
		{"m:#{method}", nil, "m:POST"},
		{"h:#{host}", nil, "h:shop.example.com"},
		{"p:#{path.id}", nil, "p:42"},
		{"p:#{path.id}", []middleware.Option{middleware.Pattern("POST example.com/orders/{id}/{rest...}")}, "p:42"},
		{"q:#{query.page}", nil, "q:3"},
		{"t:#{header.Tenant}", nil, "t:acme"},
		{`t:#{header["x-tenant-ID"]}`, nil, "t:umbrella"},
		{"b:#{body.id}", nil, "b:7"},
		{"b:#{body.big}", nil, "b:12345678901234567890"},
		{"b:#{body.Lines[0].SKU}", nil, "b:pen"},
		{"b:#{body.ID}", typed, "b:7"},
		{"b:#{body.Lines[1].SKU}", typed, "b:ink"},
		{"#{map(body.Lines, .SKU)}", typed, "ink pen"},
	} {
		t.Run(tt.key, func(t *testing.T) {
			var got []string
			h := mount(t, newGuard(t, keys(&got), guard.Key(tt.key)), func(http.ResponseWriter, *http.Request) {}, tt.opts...)
			r := httptest.NewRequest(http.MethodPost, "/orders/42?page=3", strings.NewReader(
				`{"id": 7, "big": 12345678901234567890, "Lines": [{"SKU": "pen"}, {"SKU": "ink"}]}`))
			r.Host = "Shop.Example.com.:8080"
			r.Header.Set("Tenant", "acme")
			r.Header.Set("X-Tenant-Id", "umbrella")
			r.Header.Set("Cookie", "session=s1; theme=dark")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if key := strings.Join(got, " "); key != tt.want || w.Code != 200 {
				t.Errorf("key = %q, want %q (status %d)", key, tt.want, w.Code)
			}
		})
	}
}

// TestHosts are one host, and so one key, in each of its spellings.
func TestHosts(t *testing.T) {
	for _, tt := range []struct{ host, want string }{
		{"shop.example.com", "shop.example.com"},
		{"Shop.Example.com.:8080", "shop.example.com"},
		{"10.1.2.3:80", "10.1.2.3"},
		{"[FE80::1]:80", "fe80::1"},
		{"[fe80::1]", "fe80::1"},
	} {
		var got []string
		h := mount(t, newGuard(t, keys(&got), guard.Key("#{raw(host)}")), func(http.ResponseWriter, *http.Request) {})
		r := httptest.NewRequest(http.MethodPost, "/orders/42", nil)
		r.Host = tt.host
		h.ServeHTTP(httptest.NewRecorder(), r)
		if key := strings.Join(got, " "); key != tt.want {
			t.Errorf("host %s: key %q, want %q", tt.host, key, tt.want)
		}
	}
}

// TestFactsAreAskedForOnce has a condition and a key that share what a function of the application found out.
func TestFactsAreAskedForOnce(t *testing.T) {
	asked := 0
	tenant := middleware.WithFacts("tenant", func(*http.Request) (string, error) { asked++; return "acme", nil })
	g := newGuard(t, memlock.New(), guard.When(`tenant != ""`), guard.Key("#{tenant}:#{path.id}"))
	h := mount(t, g, func(http.ResponseWriter, *http.Request) {}, tenant)
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/orders/42", nil))
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestRespondReplacesTheResponse(t *testing.T) {
	var got middleware.Problem
	respond := middleware.Respond(func(w http.ResponseWriter, r *http.Request, p middleware.Problem) {
		got = p
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(p.Status)
		fmt.Fprint(w, p.Title)
	})
	h := mount(t, newGuard(t, adaptertest.Busy(1500*time.Millisecond)), nil, respond)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
	if w.Code != 409 || w.Body.String() != "Locked by another request" || w.Header().Get("Retry-After") != "2" {
		t.Errorf("response = %d %v %q", w.Code, w.Header(), w.Body)
	}
	if got.Guard != "order.settle" || got.RetryAfter < 1200*time.Millisecond || got.RetryAfter > 1500*time.Millisecond || !errors.Is(got.Err, guard.ErrBusy) {
		t.Errorf("problem = %+v", got)
	}
}

func TestSeveralKeysOfAFunction(t *testing.T) {
	var got []string
	g := guard.Must(guard.New(keys(&got), guard.Name("order.merge"), guard.KeysFunc(func(r *http.Request) ([]string, error) {
		return []string{"order:" + r.PathValue("id"), "order:" + r.URL.Query().Get("with")}, nil
	})))
	mount(t, g, func(http.ResponseWriter, *http.Request) {}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/orders/7?with=42", nil))
	if s := strings.Join(got, " "); s != "order:42 order:7" {
		t.Errorf("keys = %q", s)
	}
}

func TestHeadHasNoBody(t *testing.T) {
	h := mount(t, newGuard(t, adaptertest.Locker(adaptertest.Down)), nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/orders/42", nil))
	if w.Code != 503 || w.Body.Len() != 0 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("response = %d %v %q", w.Code, w.Header(), w.Body)
	}
}

// recoverer is recovery middleware as everybody writes it.
func recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				http.Error(w, fmt.Sprint(p), http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func TestPanicReleasesAndGoesOn(t *testing.T) {
	none := func(h http.Handler) http.Handler { return h }
	for _, tt := range []struct {
		name            string
		value           any
		outside, inside func(http.Handler) http.Handler
		status          int // 0: the connection is closed
	}{
		{"no recovery", "boom", none, none, 0},
		{"http.ErrAbortHandler", http.ErrAbortHandler, none, none, 0},
		{"recovery outside", "boom", recoverer, none, 500},
		{"recovery inside", "boom", none, recoverer, 500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			locker := memlock.New()
			wrap := guard.Must(middleware.New(newGuard(t, locker)))
			mux := http.NewServeMux()
			mux.Handle("/orders/{id}", tt.outside(wrap(tt.inside(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				panic(tt.value)
			})))))
			var logged bytes.Buffer
			s := httptest.NewUnstartedServer(mux)
			s.Config.ErrorLog = log.New(&logged, "", 0)
			s.Start()
			res, err := s.Client().Get(s.URL + "/orders/42")
			if err == nil {
				res.Body.Close()
			}
			s.Close()
			switch {
			case tt.status == 0 && err == nil:
				t.Errorf("status = %d, want a closed connection", res.StatusCode)
			case tt.status != 0 && (err != nil || res.StatusCode != tt.status):
				t.Errorf("response = %v, %v, want status %d", res, err, tt.status)
			}
			if want := tt.status == 0 && tt.value == "boom"; strings.Contains(logged.String(), "boom") != want {
				t.Errorf("net/http logged %q", logged.String())
			}
			h, err := locker.Acquire(t.Context(), lock.Request{Key: "order:42"})
			if err != nil {
				t.Fatalf("still locked: %v", err)
			}
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNestedGuards takes two locks for one request, the inner of which is lost.
func TestNestedGuards(t *testing.T) {
	outer := guard.Must(middleware.New(newGuard(t, memlock.New(), guard.Name("outer"), guard.Key("tenant:#{header.Tenant}"))))
	inner := mount(t, newGuard(t, adaptertest.Locker(adaptertest.Losing)), func(http.ResponseWriter, *http.Request) {})
	r := httptest.NewRequest(http.MethodPost, "/orders/42", nil)
	r.Header.Set("Tenant", "acme")
	w := httptest.NewRecorder()
	outer(inner).ServeHTTP(w, r)
	if w.Code != 500 || !strings.Contains(w.Body.String(), `"guard":"order.settle"`) {
		t.Errorf("response = %d %s", w.Code, w.Body)
	}
}

// TestFailedTellsTheGuard has handlers whose responses don't say that they have failed, behind a guard that keeps the key of a success.
func TestFailedTellsTheGuard(t *testing.T) {
	errOwn := errors.New("sold out")
	for _, tt := range []struct {
		name, outcome, body string
		work                func(http.ResponseWriter)
	}{
		{"nothing written", guard.OutcomeError, "", func(w http.ResponseWriter) { middleware.Failed(w, errOwn) }},
		{"a success written", guard.OutcomeError, "no", func(w http.ResponseWriter) { fmt.Fprint(w, "no"); middleware.Failed(w, errOwn) }},
		{"behind a wrapper", guard.OutcomeError, "", func(w http.ResponseWriter) { middleware.Failed(wrapped{w}, errOwn) }},
		{"no error", guard.OutcomeOK, "", func(w http.ResponseWriter) { middleware.Failed(w, nil) }},
		{"no guard", guard.OutcomeOK, "", func(http.ResponseWriter) { middleware.Failed(httptest.NewRecorder(), errOwn) }},
	} {
		var events guardtest.Events
		l := memlock.New()
		h := mount(t, newGuard(t, l, guard.HoldAtLeast(time.Hour), guard.Observe(events.Observe)), func(w http.ResponseWriter, _ *http.Request) { tt.work(w) })
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
		e := events.Only(t)
		if e.Outcome != tt.outcome || tt.outcome == guard.OutcomeError && !errors.Is(e.Err, errOwn) {
			t.Errorf("%s: outcome %s, %v, want %s", tt.name, e.Outcome, e.Err, tt.outcome)
		}
		if w.Code != http.StatusOK || w.Body.String() != tt.body {
			t.Errorf("%s: %d %q, want what the handler has written, %q", tt.name, w.Code, w.Body, tt.body)
		}
		hold, err := l.Acquire(t.Context(), lock.Request{Key: "order:42"})
		if kept := err != nil; kept != (tt.outcome == guard.OutcomeOK) {
			t.Errorf("%s: the key was kept: %v, %v", tt.name, kept, hold)
		}
	}
}

// TestWriterOfAnEndedHandler is written to by a router that answers for the error of a handler further out.
func TestWriterOfAnEndedHandler(t *testing.T) {
	var left http.ResponseWriter
	h := mount(t, newGuard(t, memlock.New()), func(w http.ResponseWriter, _ *http.Request) { left = w })
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
	left.Header().Set("X-Late", "1")
	left.WriteHeader(http.StatusTeapot)
	fmt.Fprint(left, "the router says no")
	if w.Code != http.StatusTeapot || w.Body.String() != "the router says no" || w.Result().Header.Get("X-Late") != "1" {
		t.Errorf("response = %d %q %v", w.Code, w.Body, w.Result().Header)
	}
}

type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// captureLog has what is logged by slog's default.
func captureLog(t *testing.T) *bytes.Buffer {
	var logged bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &logged
}
