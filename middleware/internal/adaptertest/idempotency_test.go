package adaptertest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
	"github.com/latchkey-go/latchkey/middleware/idempotency"
)

// TestIdempotencyBehindGin sends each request twice to gin's handlers, which answer in gin's ways.
func TestIdempotencyBehindGin(t *testing.T) {
	caller := func(r *http.Request) (string, error) {
		c, err := ginguard.ContextOf(r)
		if err != nil {
			return "", err
		}
		return c.GetString("user"), nil
	}
	for _, tt := range []struct {
		name   string
		run    gin.HandlerFunc
		status int
		body   string
		runs   int
	}{
		{"JSON", func(c *gin.Context) { c.JSON(201, gin.H{"id": c.Param("id")}) }, 201, `{"id":"42"}`, 1},
		{"a body that is bound", func(c *gin.Context) {
			var order struct{ Cents int }
			if err := c.ShouldBindJSON(&order); err != nil {
				c.AbortWithStatus(400)
				return
			}
			c.String(200, "%d", order.Cents)
		}, 200, "100", 1},
		{"a status alone", func(c *gin.Context) { c.Status(204) }, 204, "", 1},
		{"an abort", func(c *gin.Context) { c.AbortWithStatusJSON(422, gin.H{"no": "stock"}) }, 422, `{"no":"stock"}`, 1},
		{"a stream", func(c *gin.Context) {
			n := 0
			c.Stream(func(w io.Writer) bool {
				n++
				fmt.Fprintf(w, "event %d\n", n)
				return n < 3
			})
		}, 200, "event 1\nevent 2\nevent 3\n", 1},
		{"an error that is answered further out", func(c *gin.Context) { _ = c.Error(errors.New("no stock")) }, 418, "no stock", 2},
		{"an error with an answer", func(c *gin.Context) { _ = c.AbortWithError(404, errors.New("no such order")) }, 404, "", 1},
		{"an error of the server's", func(c *gin.Context) { c.AbortWithStatus(503) }, 503, "", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runs := 0
			s := httptest.NewServer(onGinOnce(caller, func(c *gin.Context) {
				runs++
				tt.run(c)
			}))
			defer s.Close()
			for i := range 2 {
				a := pay(t, s)
				if a.status != tt.status || a.body != tt.body || a.replayed != (i == 1 && tt.runs == 1) {
					t.Errorf("answer %d = %+v", i+1, a)
				}
			}
			if runs != tt.runs {
				t.Errorf("the handler ran %d times, want %d", runs, tt.runs)
			}
		})
	}
}

// onGinOnce has h behind package idempotency, and a handler in front that answers for what is left in c.Errors.
func onGinOnce(caller func(*http.Request) (string, error), h gin.HandlerFunc) http.Handler {
	g := guard.Must(guard.New(memlock.New(), guard.Name("order.pay"), guard.Key("order:#{path.id}")))
	once := guard.Must(idempotency.New(g, idempotency.NewMemory(0), caller, idempotency.With(middleware.Pattern("/orders/{id}"))))
	r := gin.New()
	r.Use(func(c *gin.Context) { c.Set("user", "ann") }, func(c *gin.Context) {
		c.Next()
		if len(c.Errors) > 0 && !c.Writer.Written() && c.Writer.Status() == http.StatusOK {
			c.String(http.StatusTeapot, c.Errors.Last().Error())
		}
	})
	r.POST("/orders/:id", ginguard.From(once), h)
	return r
}

type paid struct {
	status   int
	body     string
	replayed bool
}

func pay(t *testing.T, s *httptest.Server) paid {
	t.Helper()
	q, err := http.NewRequest(http.MethodPost, s.URL+"/orders/42", strings.NewReader(`{"Cents": 100}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Idempotency-Key", "k-1")
	res, err := s.Client().Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return paid{res.StatusCode, string(body), res.Header.Get("Idempotency-Replayed") == "true"}
}
