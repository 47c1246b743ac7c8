package ginguard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
)

// send makes one request and prints the answer.
func send(h http.Handler, method, url string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, url, nil))
	fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
}

// Each user has a lock of their own, by what authentication has put into the context.
func ExampleValue() {
	g := guard.Must(guard.New(memlock.New(), guard.Name("wallet"), guard.Key("wallet:#{user}")))
	authenticate := func(c *gin.Context) { c.Set("user", c.Query("token")) } // an empty name is refused with 400

	r := gin.New()
	r.POST("/wallet", authenticate, guard.Must(ginguard.New(g, ginguard.Value[string]("user"))), func(c *gin.Context) {
		c.String(http.StatusOK, "wallet of %s", c.GetString("user"))
	})
	send(r, http.MethodPost, "/wallet?token=alice")
	// Output: 200 wallet of alice
}

func ExampleBind() {
	type API struct {
		Settle gin.HandlerFunc `route:"POST /api/orders/:id/settle" guard:"order:#{path.id}; wait=2s"`
		List   gin.HandlerFunc `route:"GET /api/orders"`
	}
	api := &API{
		Settle: func(c *gin.Context) { c.String(http.StatusOK, "settled %s", c.Param("id")) },
		List:   func(c *gin.Context) { c.String(http.StatusOK, "42, 43") },
	}
	defaults := guard.Must(guard.New(memlock.New())) // or a redisson client
	if err := ginguard.Bind(defaults, api); err != nil {
		fmt.Println(err)
		return
	}
	r := gin.New()
	if err := ginguard.Register(r.Group("/api"), api); err != nil {
		fmt.Println(err)
		return
	}
	send(r, http.MethodPost, "/api/orders/42/settle")
	send(r, http.MethodGet, "/api/orders")
	// Output:
	// 200 settled 42
	// 200 42, 43
}

// Handlers leave the errors of guarded functions in c.Errors, and one handler in front of them all answers.
func ExampleErrors() {
	locker := memlock.New()
	guard.Must(locker.Acquire(context.Background(), lock.Request{Key: "order:42"})) // by somebody else
	g := guard.Must(guard.New(locker, guard.Name("order.pay"), guard.Key("order:#{req}")))
	pay := guard.Must(guard.Func(g, func(context.Context, string) (string, error) { return "paid", nil }))

	r := gin.New()
	r.Use(guard.Must(ginguard.Errors()))
	r.POST("/orders/:id/pay", func(c *gin.Context) {
		receipt, err := pay(c.Request.Context(), c.Param("id"))
		if err != nil {
			_ = c.Error(err) // or ginguard.Answer(c, err), here
			return
		}
		c.String(http.StatusOK, receipt)
	})
	send(r, http.MethodPost, "/orders/7/pay")
	send(r, http.MethodPost, "/orders/42/pay")
	// Output:
	// 200 paid
	// 409 {"type":"https://pkg.go.dev/github.com/latchkey-go/latchkey/guard#ErrBusy","title":"Locked by another request","status":409,"detail":"Another request kept the lock for as long as this one could wait. Nothing was done; retry later.","guard":"order.pay"}
}
