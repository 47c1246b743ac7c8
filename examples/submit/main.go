// Submit takes orders over HTTP, each once, however often an impatient client sends it and to whichever instance. It needs a Redis at
// localhost:6379, and docs/idempotency.md walks through it:
//
//	go -C examples run ./submit
//	curl -i -u ann:secret -H 'Idempotency-Key: 7f9c' -d '{"item": "tea"}' localhost:8080/orders
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware/idempotency"
	"github.com/latchkey-go/latchkey/redisson"
)

func main() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	client := guard.Must(redisson.New(rdb))
	store := guard.Must(idempotency.NewRedis(rdb, "shop:"))
	handler := guard.Must(newHandler(client, store, new(shop)))

	server := &http.Server{Addr: "localhost:8080", Handler: handler}
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(interrupted, func() { _ = server.Shutdown(context.Background()) })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Print(err)
	}
	_ = client.Close()
	_ = rdb.Close()
}

func newHandler(locker lock.Locker, store idempotency.Store, s *shop) (http.Handler, error) {
	g, err := guard.New(locker,
		guard.Name("order.submit"),
		guard.Key("submit:#{idempotency}"), // one lock for a key of a caller
	)
	if err != nil {
		return nil, err
	}
	once, err := idempotency.New(g, store, caller)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", once(http.HandlerFunc(s.submit)))
	return mux, nil
}

// caller says who sends a request: the user whom authentication has let in, which stands in front of this in a program.
func caller(r *http.Request) (string, error) {
	user, _, _ := r.BasicAuth()
	return user, nil
}

// Order is what the shop has accepted.
type Order struct {
	ID   int    `json:"id"`
	Item string `json:"item"`
}

// shop stands for the database that all instances share.
type shop struct {
	mu   sync.Mutex
	sold int
}

// submit need not know that requests can come twice.
func (s *shop) submit(w http.ResponseWriter, r *http.Request) {
	var o Order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, "the body is no order", http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(time.Second): // the payment
	case <-r.Context().Done():
		return // the lock is lost, or the client has gone: a repeat of the request gets the answer that nobody knows
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sold++
	o.ID = s.sold
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(o) // fails if the client has gone
}
