package ginguard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/middleware/ginguard"
)

// Middleware of net/http stands in front of gin's handlers, and knows their route and parameters.
func ExampleFrom() {
	members := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.PathValue("id") == "13" {
				http.Error(w, "nobody has "+r.Pattern+" 13", http.StatusForbidden)
				return
			}
			w.Header().Set("Checked", "true")
			next.ServeHTTP(w, r)
		})
	}
	r := gin.New()
	r.POST("/orders/:id/pay", ginguard.From(members), func(c *gin.Context) {
		c.String(http.StatusOK, "paid %s, checked %s", c.Param("id"), c.Writer.Header().Get("Checked"))
	})
	send(r, http.MethodPost, "/orders/42/pay")
	send(r, http.MethodPost, "/orders/13/pay")
	// Output:
	// 200 paid 42, checked true
	// 403 nobody has /orders/{id}/pay 13
}

func TestContextOfARequest(t *testing.T) {
	if c, err := ginguard.ContextOf(httptest.NewRequest(http.MethodPost, "/", nil)); err == nil {
		t.Errorf("a request that did not come through gin has %v", c)
	}
	wrap := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := ginguard.ContextOf(r)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(w, c.GetString("user"))
		})
	}
	ran := false
	r := gin.New()
	r.Use(func(c *gin.Context) { c.Set("user", "ann") }, ginguard.From(wrap))
	r.POST("/orders/:id", func(*gin.Context) { ran = true })
	for _, tt := range []struct {
		path, body string
		status     int
	}{{"/orders/42", "ann", 200}, {"/nowhere", "404 page not found", 404}} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, tt.path, nil))
		if w.Code != tt.status || w.Body.String() != tt.body {
			t.Errorf("%s: %d %s", tt.path, w.Code, w.Body)
		}
	}
	if ran {
		t.Error("the handler ran, for which the middleware has answered")
	}
}
