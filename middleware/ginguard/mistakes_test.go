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
)

// TestMistakesAreFoundAtStart has declarations as people get them wrong. None of them starts, and none panics.
func TestMistakesAreFoundAtStart(t *testing.T) {
	key := guard.Key("order:#{path.id}")
	for _, tt := range []struct {
		name string
		key  guard.Option
		opts []middleware.Option
		want string
	}{
		{"misspelt parameter", guard.Key("order:#{path.idd}"), []middleware.Option{middleware.Pattern("/orders/{id}")}, "idd"},
		{"gin's pattern", key, []middleware.Option{middleware.Pattern("/orders/:id")}, `write "/orders/{id}"`},
		{"gin's catch-all", key, []middleware.Option{middleware.Pattern("/orders/*id")}, `write "/orders/{id...}"`},
		{"parameter as a root", guard.Key("order:#{param.id}"), nil, "param"},
		{"gin's context", guard.Key("order:#{c.id}"), nil, "c"},
		{"value that is not declared", guard.Key("order:#{user}"), nil, "user"},
		{"value of another name", guard.Key("order:#{user}"), []middleware.Option{ginguard.Value[string]("usr")}, "usr"},
		{"value with a key that is no name", key, []middleware.Option{ginguard.Value[string]("user-id")}, "user-id"},
		{"value over a root", key, []middleware.Option{ginguard.Value[string]("path")}, "path"},
		{"value twice", key, []middleware.Option{ginguard.Value[string]("user"), ginguard.Value[int]("user")}, "two roots"},
		{"value that is no key", guard.Key("order:#{user}"), []middleware.Option{ginguard.Value[struct{ ID string }]("user")}, "order.settle"},
		{"misspelt field of a value", guard.Key("order:#{user.Idd}"), []middleware.Option{ginguard.Value[struct{ ID string }]("user")}, "Idd"},
		{"nil fact", key, []middleware.Option{ginguard.WithFacts[string]("user", nil)}, "nil function"},
		{"nil fallback", key, []middleware.Option{ginguard.Fallback(nil)}, "nil function"},
		{"nil option", key, []middleware.Option{nil}, "nil option"},
		{"wrong status", key, []middleware.Option{middleware.Status(guard.ErrBusy, 302)}, "302"},
		{"key function of the context by value", guard.KeyFunc(func(gin.Params) (string, error) { return "", nil }), nil, "KeyFunc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ginguard.New(guard.Must(guard.New(memlock.New(), guard.Name("order.settle"), tt.key)), tt.opts...)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `"order.settle"`) {
				t.Errorf("New = %v, want %q in it and the guard's name", err, tt.want)
			}
		})
	}
	if _, err := middleware.New(newGuard(t, memlock.New()), ginguard.Value[string]("user")); err == nil || !strings.Contains(err.Error(), "another package") {
		t.Errorf("middleware.New with an option of gin's: %v", err)
	}
	if _, err := ginguard.New(nil); err == nil {
		t.Error("New(nil) is no error")
	}
}

// TestMistakesInPlace are those that show when requests come: each is answered with 500 and logged once for a route.
func TestMistakesInPlace(t *testing.T) {
	log := logged(t)
	h := newGin(t, keyed(t, memlock.New(), "order:#{path.idd}"))
	e := gin.New()
	e.POST("/orders/:id", h, func(*gin.Context) { t.Error("the handler ran") })
	e.POST("/invoices/:no", h, func(*gin.Context) { t.Error("the handler ran") })
	for _, url := range []string{"/orders/1", "/orders/2", "/invoices/1", "/orders/3"} {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, url, nil))
		if w.Code != 500 {
			t.Errorf("%s: response = %d %s", url, w.Code, w.Body)
		}
	}
	if n := strings.Count(log.String(), "has no path value"); n != 2 || !strings.Contains(log.String(), "did you mean id") {
		t.Errorf("logged %d times: %s", n, log)
	}
}
