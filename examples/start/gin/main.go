// Command gin settles orders behind gin, one request at a time for each order. docs/start/gin.md walks through it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
	"github.com/latchkey-go/latchkey/redisson"
)

func main() {
	client := guard.Must(redisson.Open("redis://localhost:6379"))
	settle := guard.Must(guard.New(client,
		guard.Name("order.settle"),
		guard.Key("order:#{path.id}"),
		guard.Wait(500*time.Millisecond),
		guard.MaxHold(time.Minute),
	))

	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.POST("/orders/:id/settle", guard.Must(ginguard.New(settle)), handle)
	server := &http.Server{Addr: "localhost:8080", Handler: r}

	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(interrupted, func() { _ = server.Shutdown(context.Background()) })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Print(err)
	}
	_ = client.Close()
}

// handle runs under the lock. The request's context ends if the lock is lost.
func handle(c *gin.Context) {
	select {
	case <-time.After(2 * time.Second): // the work
		c.String(http.StatusOK, fmt.Sprintf("settled order %s\n", c.Param("id")))
	case <-c.Request.Context().Done():
	}
}
