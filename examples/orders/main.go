// Command orders settles orders over HTTP, one at a time for each order, on any number of machines.
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

func main() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	client := guard.Must(redisson.New(rdb))
	defer client.Close()

	settle := guard.Must(guard.New(client,
		guard.Name("order.settle"),
		guard.Key("order:#{path.id}"), // what excludes what: checked now, rendered for each request
		guard.Wait(2*time.Second),     // then 409 with Retry-After
		guard.MaxHold(time.Minute),    // renewed while the handler runs, but no longer
	))
	locked := guard.Must(middleware.New(settle, middleware.Pattern("/orders/{id}/settle")))

	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/settle", locked(http.HandlerFunc(handle)))
	log.Fatal(http.ListenAndServe("localhost:8080", mux))
}

// handle runs under the lock; r.Context() ends if the lock is lost.
func handle(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(time.Second): // the work
		fmt.Fprintln(w, "settled order", r.PathValue("id"))
	case <-r.Context().Done():
	}
}
