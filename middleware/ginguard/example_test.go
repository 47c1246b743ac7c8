package ginguard_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
)

func Example() {
	settle := guard.Must(guard.New(memlock.New(), // or a redisson client
		guard.Name("order.settle"),
		guard.Key("order:#{path.id}"),
		guard.Wait(2*time.Second),
	))

	r := gin.New()
	r.POST("/orders/:id/settle", guard.Must(ginguard.New(settle)), func(c *gin.Context) {
		c.String(http.StatusOK, "settled %s", c.Param("id"))
	})

	server := httptest.NewServer(r)
	defer server.Close()
	res, err := http.Post(server.URL+"/orders/42/settle", "application/json", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	fmt.Println(res.Status, string(body))
	// Output: 200 OK settled 42
}
