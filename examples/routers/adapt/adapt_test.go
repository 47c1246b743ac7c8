package adapt_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	echo4 "github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/examples/routers/adapt"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/middleware"
)

var errOwn = errors.New("the handler's own")

// seen is what a program notes of one request. outer is the error that comes back through the guard.
type seen struct {
	route    string // as the handler finds it in the request
	outer    error
	restored bool // the request and the response are those from before the guard
}

// programs serve path by a guarded handler that returns err, or writes "done".
var programs = map[string]func(path string, locked func(http.Handler) http.Handler, err error, s *seen) http.Handler{
	"v4": func(path string, locked func(http.Handler) http.Handler, err error, s *seen) http.Handler {
		e := echo4.New()
		e.GET(path, func(c echo4.Context) error {
			s.route = c.Request().Pattern
			if err != nil {
				return err
			}
			return c.String(http.StatusOK, "done")
		}, func(next echo4.HandlerFunc) echo4.HandlerFunc {
			return func(c echo4.Context) error {
				r, w, pattern := c.Request(), c.Response(), c.Request().Pattern
				s.outer = next(c)
				s.restored = c.Request() == r && c.Response() == w && r.Pattern == pattern
				return s.outer
			}
		}, adapt.Echo(locked))
		return e
	},
	"v5": func(path string, locked func(http.Handler) http.Handler, err error, s *seen) http.Handler {
		e := echo5.New()
		e.GET(path, func(c *echo5.Context) error {
			s.route = c.Request().Pattern
			if err != nil {
				return err
			}
			return c.String(http.StatusOK, "done")
		}, func(next echo5.HandlerFunc) echo5.HandlerFunc {
			return func(c *echo5.Context) error {
				r, w, pattern := c.Request(), c.Response(), c.Request().Pattern
				s.outer = next(c)
				s.restored = c.Request() == r && c.Response() == w && r.Pattern == pattern
				return s.outer
			}
		}, adapt.Echo5(locked))
		return e
	},
}

// serve plays one request to a program whose guard has this key and faults.
func serve(t *testing.T, version, path, url, key string, err error, faults ...guardtest.Fault) (*httptest.ResponseRecorder, *guardtest.Locker, seen) {
	t.Helper()
	l := guardtest.New(faults...)
	locked := guard.Must(middleware.New(guard.Must(guard.New(l, guard.Name("order.settle"), guard.Key(key)))))
	var s seen
	w := httptest.NewRecorder()
	programs[version](path, locked, err, &s).ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
	if !s.restored {
		t.Errorf("%s: echo goes on with the request or the response of the guard", version)
	}
	l.WantNothingHeld(t)
	return w, l, s
}

// The key is made of the path values, and of the route in net/http's spelling, which ginguard's has too.
func TestRoute(t *testing.T) {
	for version := range programs {
		for _, tt := range []struct{ path, url, template, key, route string }{
			{"/orders/:id/settle", "/orders/7/settle", "order:#{path.id}", "order:7", "/orders/{id}/settle"},
			{"/orders/:id/:line", "/orders/7/2", "#{route}:#{path.line}", "/orders/%7Bid%7D/%7Bline%7D:2", "/orders/{id}/{line}"},
			{"/files/*", "/files/a/b", `file:#{path["*"]}`, "file:a/b", "/files/*"},
		} {
			w, l, s := serve(t, version, tt.path, tt.url, tt.template, nil)
			if w.Body.String() != "done" || s.route != tt.route || !slices.Equal(l.Keys(), []string{tt.key}) {
				t.Errorf("%s %s: %d %s, route %q, keys %q, want %q and %q", version, tt.path, w.Code, w.Body, s.route, l.Keys(), tt.route, tt.key)
			}
		}
	}
}

// What the handler returns comes back through the guard as it is, and echo answers for it.
func TestErrors(t *testing.T) {
	for version := range programs {
		for _, tt := range []struct {
			err    error
			status int
			body   string
		}{
			{errOwn, 500, `{"message":"Internal Server Error"}` + "\n"},
			{echo4.NewHTTPError(422, "no such order"), 422, `{"message":"no such order"}` + "\n"},
			{echo5.NewHTTPError(422, "no such order"), 422, `{"message":"no such order"}` + "\n"},
		} {
			w, _, s := serve(t, version, "/orders/:id", "/orders/7", "order:#{path.id}", tt.err)
			if _, four := tt.err.(*echo4.HTTPError); tt.status == 422 && four != (version == "v4") {
				continue // each knows its own
			}
			if w.Code != tt.status || w.Body.String() != tt.body || s.outer != tt.err {
				t.Errorf("%s, %v: %d %s, %v", version, tt.err, w.Code, w.Body, s.outer)
			}
		}
	}
}

// A refused request has its answer, and a lost lock is none of the handler's errors.
func TestRefused(t *testing.T) {
	for version := range programs {
		for status, fault := range map[int]guardtest.Fault{
			409: guardtest.Busy(), 503: guardtest.Outage(errors.New("no route to host")), 500: guardtest.LostUnnoticed(),
		} {
			w, _, s := serve(t, version, "/orders/:id", "/orders/7", "order:#{path.id}", nil, fault)
			if w.Code != status || w.Header().Get("Content-Type") != "application/problem+json" || s.outer != nil {
				t.Errorf("%s: %d %s, %v, want %d", version, w.Code, w.Body, s.outer, status)
			}
		}
	}
}
