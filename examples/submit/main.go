// Submit takes orders over HTTP, each once, however often an impatient client sends it and to whichever instance.
//
//	go run ./examples/submit                                   # with locks of this process
//	go run ./examples/submit --redis redis://localhost:6379     # with locks that other machines see
//	curl -i -H 'Idempotency-Key: 7f9c' -d '{"Item":"tea"}' localhost:8080/orders
package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/examples/internal/example"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
)

func main() {
	example.Main(func(ctx context.Context, locker lock.Locker, out io.Writer) error {
		handler, err := newHandler(locker, &shop{orders: make(map[string]Order)})
		if err != nil {
			return err
		}
		return example.Serve(ctx, handler, out)
	})
}

// Order is what the shop has accepted.
type Order struct {
	ID   string
	Item string
}

// shop stands for the database that all instances share.
type shop struct {
	mu     sync.Mutex
	orders map[string]Order // by the client's key
	sold   int
}

func (s *shop) find(key string) (Order, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.orders[key]
	return o, ok
}

func (s *shop) sell(key, item string) Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sold++
	o := Order{ID: strconv.Itoa(s.sold), Item: item}
	s.orders[key] = o
	return o
}

// newHandler locks the client's key while an order with it is made. The guard keeps two copies of one request apart; that the
// second finds what the first did is the shop's part.
func newHandler(locker lock.Locker, s *shop) (http.Handler, error) {
	g, err := guard.New(locker, guard.Name("order.submit"), guard.Key(`submit:#{header["Idempotency-Key"]}`), guard.Wait(5*time.Second))
	if err != nil {
		return nil, err
	}
	once, err := middleware.New(g)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", once(http.HandlerFunc(s.submit)))
	return mux, nil
}

func (s *shop) submit(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if o, ok := s.find(key); ok {
		write(w, http.StatusOK, o)
		return
	}
	var wanted struct{ Item string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&wanted); err != nil {
		http.Error(w, "the body is no order", http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(20 * time.Millisecond): // the payment
	case <-r.Context().Done():
		return // the client has gone or the lock is lost: nothing was sold
	}
	write(w, http.StatusCreated, s.sell(key, wanted.Item))
}

func write(w http.ResponseWriter, status int, o Order) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(o) // fails if the client has gone
}
