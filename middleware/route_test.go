package middleware_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

func read(t *testing.T, r io.Reader) string {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// logged returns what the program logs until the end of the test.
func logged(t *testing.T) *bytes.Buffer {
	var b bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &b
}

// TestMisplacedGuardIsLoggedOnce sends several requests to guards that fit none of their routes.
func TestMisplacedGuardIsLoggedOnce(t *testing.T) {
	log := logged(t)
	wrap := guard.Must(middleware.New(newGuard(t, memlock.New(), guard.FromSpec(guard.Spec{Name: "order.settle", Key: "order:#{path.idd}"}))))
	h := wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }))
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}", h)
	mux.Handle("/invoices/{no}/{rest...}", h)
	outside := http.NewServeMux()
	outside.Handle("/", h)
	for _, tt := range []struct {
		url, want string
		h         http.Handler
	}{
		{"/orders/42", "did you mean id", mux},
		{"/orders/43", "", mux},
		{"/invoices/1/x", "no, rest", mux},
		{"/invoices/2/x", "", mux},
		{"/orders/42", "place the guard inside of the router", h},
		{"/orders/43", "", h},
	} {
		log.Reset()
		w := httptest.NewRecorder()
		tt.h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, tt.url, nil))
		if w.Code != 500 || strings.Contains(w.Body.String(), "idd") {
			t.Errorf("%s: response = %d %s", tt.url, w.Code, w.Body)
		}
		if got := log.String(); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: logged %q, want %q", tt.url, got, tt.want)
		}
	}
}

// TestPathValues are those of routers that know no http.Request.Pattern, and the rest that is empty.
func TestPathValues(t *testing.T) {
	var got []string
	spec := guard.FromSpec(guard.Spec{Name: "files", Key: `#{path.org ?? "none"}:#{path.rest ?? "all"}`})
	h := guard.Must(middleware.New(newGuard(t, keys(&got), spec)))(http.NotFoundHandler())
	mux := http.NewServeMux()
	mux.Handle("/{org}/{rest...}", h)
	mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/acme/", nil))

	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.SetPathValue("org", "umbrella")
	r.SetPathValue("rest", "x")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if want := "acme:all umbrella:x"; strings.Join(got, " ") != want {
		t.Errorf("keys = %q, want %q", got, want)
	}
}

// TestNoRouteNoLock asks a guarded mux for what it does not have.
func TestNoRouteNoLock(t *testing.T) {
	spec := guard.FromSpec(guard.Spec{Name: "tenant", Key: "tenant:#{header.Tenant}"})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}", func(http.ResponseWriter, *http.Request) {})
	h := guard.Must(middleware.New(newGuard(t, adaptertest.Locker(adaptertest.Down), spec)))(mux)
	for _, tt := range []struct {
		method, url string
		status      int
	}{
		{"POST", "/orders/42", 400},
		{"GET", "/orders/42", 405},
		{"POST", "/orderz/42", 404},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, tt.url, nil))
		if w.Code != tt.status {
			t.Errorf("%s %s = %d, want %d", tt.method, tt.url, w.Code, tt.status)
		}
	}
}

func TestPatternOfAnotherRouter(t *testing.T) {
	for _, tt := range []struct{ pattern, want string }{
		{"orders/:id", `write "/orders/{id}"`},
		{"/orders/:id", `write "/orders/{id}"`},
		{"POST /orders/:id/lines/:line", `write "POST /orders/{id}/lines/{line}"`},
		{"example.com/orders/:id", `write "example.com/orders/{id}"`},
		{"/files/*path", `write "/files/{path...}"`},
		{"/files/*", `write "/files/{rest...}"`},
		{"/orders/{id:[0-9]+}", `write "/orders/{id}"`},
		{"/orders/{id", "{id"},
		{"", "pattern"},
	} {
		_, err := middleware.New(newGuard(t, memlock.New()), middleware.Pattern(tt.pattern))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Pattern(%q): %v, want %s", tt.pattern, err, tt.want)
		}
	}
}
