package idempotency_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/idempotency"
)

// pay makes one request and prints the answer.
func pay(h http.Handler, key, body string) {
	r := httptest.NewRequest(http.MethodPost, "/orders/42/pay", bytes.NewBufferString(body))
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("Authorization", "ann")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("Idempotency-Replayed"), w.Body)
}

// caller says who sends a request. In a program, that is what authentication has found out.
func caller(r *http.Request) (string, error) { return r.Header.Get("Authorization"), nil }

func Example() {
	g := guard.Must(guard.New(memlock.New(), // or a redisson client
		guard.Name("order.pay"),
		guard.Key("order:#{path.id}"), // also keeps payments with different keys apart
	))
	once := guard.Must(idempotency.New(g, idempotency.NewMemory(0), caller, // or NewRedis
		idempotency.With(middleware.Pattern("/orders/{id}/pay"))))
	payments := 0
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/pay", once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payments++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d of order %s", payments, r.PathValue("id"))
	})))

	pay(mux, `"8e03978e-40d5"`, `{"cents": 100}`)
	pay(mux, `"8e03978e-40d5"`, `{"cents": 100}`)
	pay(mux, `"8e03978e-40d5"`, `{"cents": 200}`)
	// Output:
	// 201  payment 1 of order 42
	// 201 true payment 1 of order 42
	// 422  {"type":"https://pkg.go.dev/github.com/latchkey-go/latchkey/middleware/idempotency#ErrReused","title":"Idempotency-Key of another request","status":422,"detail":"Another request came with this key before. Nothing was done for this one; give it a key of its own.","guard":"order.pay"}
}

// A hundred clients repeat one request at once. The payment is made once.
func Example_contended() {
	g := guard.Must(guard.New(memlock.New(), guard.Name("order.pay"), guard.Key("pay:#{idempotency}"), guard.Wait(guard.Forever)))
	once := guard.Must(idempotency.New(g, idempotency.NewMemory(0), caller))
	payments := 0
	handler := once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		payments++
		fmt.Fprintf(w, "payment %d", payments)
	}))
	answers := make(map[string]int)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "/pay", nil)
			r.Header.Set("Idempotency-Key", "8e03978e-40d5")
			r.Header.Set("Authorization", "ann")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			mu.Lock()
			defer mu.Unlock()
			answers[w.Body.String()]++
		})
	}
	all.Wait()
	fmt.Println(payments, answers)
	// Output: 1 map[payment 1:100]
}

// For a handler of net/http behind gin, it is one line. For handlers of gin there is ginguard.From.
func Example_gin() {
	g := guard.Must(guard.New(memlock.New(), guard.Name("order.pay"), guard.Key("pay:#{idempotency}")))
	once := guard.Must(idempotency.New(g, idempotency.NewMemory(0), caller))
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "paid") })

	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.POST("/orders/:id/pay", gin.WrapH(once(handler)))

	pay(r, "8e03978e-40d5", `{"cents": 100}`)
	pay(r, "8e03978e-40d5", `{"cents": 100}`)
	// Output:
	// 200  paid
	// 200 true paid
}
