// Command orders settles orders over HTTP, one at a time for each order, on any number of machines.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/redisson"
)

func main() {
	client := guard.Must(redisson.Open("redis://localhost:6379"))
	settle := guard.Must(guard.New(client,
		guard.Name("order.settle"),
		guard.Key("order:#{path.id}"), // what excludes what: checked now, rendered for each request
		guard.Wait(2*time.Second),     // then 409 with Retry-After
		guard.MaxHold(time.Minute),    // renewed while the handler runs, but no longer
	))
	locked := guard.Must(middleware.New(settle, middleware.Pattern("/orders/{id}/settle")))

	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/settle", locked(http.HandlerFunc(handle)))
	server := &http.Server{Addr: "localhost:8080", Handler: mux}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()

	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	select {
	case err := <-failed:
		log.Print(err)
	case <-interrupted.Done():
	}
	_ = server.Shutdown(context.Background()) // waits for the handlers, and so for their locks
	_ = client.Close()
}

// handle runs under the lock; r.Context() ends if the lock is lost.
func handle(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(time.Second): // the work
		fmt.Fprintln(w, "settled order", r.PathValue("id"))
	case <-r.Context().Done():
	}
}
