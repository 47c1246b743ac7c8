package ginguard_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

func say(text string) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.String(http.StatusOK, "%s %v", text, guard.Held(c.Request.Context(), "API."+text))
	}
}

type API struct {
	Settle gin.HandlerFunc      `route:"POST /orgs/:org/orders/:id" guard:"#{path.org}:#{user}:#{path.id}"`
	Cancel func(c *gin.Context) `route:"DELETE /orgs/:org/orders/:id" guard:"order:#{path.id}"`
	List   gin.HandlerFunc      `route:"GET /orgs/:org/orders"`
	Inner  struct {
		Files gin.HandlerFunc `route:"PUT /orgs/:org/files/*path" guard:"#{path.path}; name=API.Files"`
	}
}

func newAPI() *API {
	api := &API{Settle: say("Settle"), Cancel: say("Cancel"), List: say("List")}
	api.Inner.Files = say("Files")
	return api
}

func TestBindAndRegister(t *testing.T) {
	for _, prefix := range []string{"", "/orgs", "/orgs/:org/"} {
		t.Run("group "+prefix, func(t *testing.T) {
			var got []string
			api := newAPI()
			if err := ginguard.Bind(guard.Must(guard.New(keys(&got))), api, ginguard.Value[string]("user")); err != nil {
				t.Fatal(err)
			}
			e := gin.New()
			e.Use(func(c *gin.Context) { c.Set("user", "alice") })
			if err := ginguard.Register(e.Group(prefix), api); err != nil {
				t.Fatal(err)
			}
			for _, tt := range []struct{ method, url, body, key string }{
				{"POST", "/orgs/acme/orders/42", "Settle true", "acme:alice:42"},
				{"DELETE", "/orgs/acme/orders/42", "Cancel true", "order:42"},
				{"GET", "/orgs/acme/orders", "List false", ""},
				{"PUT", "/orgs/acme/files/a/b", "Files true", "a/b"},
			} {
				got = nil
				w := httptest.NewRecorder()
				e.ServeHTTP(w, httptest.NewRequest(tt.method, tt.url, nil))
				if w.Code != 200 || w.Body.String() != tt.body || strings.Join(got, " ") != tt.key {
					t.Errorf("%s %s = %d %q with keys %q, want %q with %q", tt.method, tt.url, w.Code, w.Body, got, tt.body, tt.key)
				}
			}
		})
	}
}

// TestBoundHandlerAborts refuses a request in front of handlers that come later.
func TestBoundHandlerAborts(t *testing.T) {
	api := &struct {
		Settle gin.HandlerFunc `guard:"order:#{path.id}; name=settle"`
	}{say("Settle")}
	if err := ginguard.Bind(guard.Must(guard.New(adaptertest.Locker(adaptertest.Down))), api); err != nil {
		t.Fatal(err)
	}
	e := gin.New()
	e.POST("/orders/:id", api.Settle, func(*gin.Context) { t.Error("the chain goes on") })
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
	if w.Code != 503 {
		t.Errorf("status = %d", w.Code)
	}
}

func TestBindReportsMistakes(t *testing.T) {
	h := say("x")
	done := &struct {
		Settle gin.HandlerFunc `guard:"order:#{path.id}"`
	}{h}
	if err := ginguard.Bind(guard.Must(guard.New(memlock.New())), done); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		target any
		want   string
	}{
		{"parameter that the route lacks", &struct {
			Settle gin.HandlerFunc `route:"POST /orders/:id" guard:"order:#{path.idd}"`
		}{h}, "Settle"},
		{"net/http's spelling", &struct {
			Settle gin.HandlerFunc `route:"POST /orders/{id}" guard:"order:#{path.id}"`
		}{h}, `write "POST /orders/:id"`},
		{"no slash", &struct {
			Settle gin.HandlerFunc `route:"orders/:id" guard:"order:#{path.id}"`
		}{h}, "slash"},
		{"handler of net/http", &struct {
			Settle http.HandlerFunc `guard:"order:#{path.id}"`
		}{func(http.ResponseWriter, *http.Request) {}}, "by package middleware"},
		{"no handler", &struct {
			Settle int `guard:"order:#{path.id}"`
		}{}, "is a int"},
		{"nil handler", &struct {
			Settle gin.HandlerFunc `guard:"order:#{path.id}"`
		}{}, "nil"},
		{"root of functions", &struct {
			Settle gin.HandlerFunc `guard:"order:#{req.ID}"`
		}{h}, "req"},
		{"fact that is not declared", &struct {
			Settle gin.HandlerFunc `guard:"order:#{user}"`
		}{h}, "user"},
		{"bound twice", done, "guarded already"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := ginguard.Bind(guard.Must(guard.New(memlock.New())), tt.target)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Bind = %v, want %q in it", err, tt.want)
			}
		})
	}
	if err := ginguard.Bind(guard.Must(guard.New(memlock.New())), newAPI(), nil); err == nil {
		t.Error("Bind with a nil option is no error")
	}
}

func TestRegisterReportsMistakes(t *testing.T) {
	h := say("x")
	e := gin.New()
	e.GET("/orders/:id", h)
	for _, tt := range []struct {
		name   string
		router gin.IRoutes
		target any
		want   string
	}{
		{"not bound", e, newAPI(), "call Bind first"},
		{"no router", nil, newAPI(), "nil router"},
		{"conflict", e, &struct {
			List gin.HandlerFunc `route:"GET /orders/:no"`
		}{h}, "conflict"},
		{"twice", e, &struct {
			List gin.HandlerFunc `route:"GET /orders/:id"`
		}{h}, "already registered"},
		{"no method", e, &struct {
			List gin.HandlerFunc `route:"/list"`
		}{h}, "has no method"},
		{"method in lower case", e, &struct {
			List gin.HandlerFunc `route:"get /list"`
		}{h}, `write "GET /list"`},
		{"of another group", e.Group("/api"), &struct {
			List gin.HandlerFunc `route:"GET /apis"`
		}{h}, `begin with "/api"`},
		{"no tag at all", e, &struct{ List gin.HandlerFunc }{h}, "has a route tag"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := ginguard.Register(tt.router, tt.target); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Register = %v, want %q in it", err, tt.want)
			}
		})
	}
	if err := ginguard.Bind(nil, newAPI(), middleware.ReadAhead()); err == nil {
		t.Error("Bind with a nil guard is no error")
	}
}
