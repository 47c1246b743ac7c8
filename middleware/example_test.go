package middleware_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
)

func Example() {
	settle := guard.Must(guard.New(memlock.New(), // or a redisson client
		guard.Name("order.settle"),
		guard.Key("order:#{path.id}"),
		guard.Wait(2*time.Second),
	))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "settled %s", r.PathValue("id"))
	})

	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/settle", guard.Must(middleware.New(settle,
		middleware.Pattern("POST /orders/{id}/settle"),
	))(handler))

	server := httptest.NewServer(mux)
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

// The key comes from the body, which the handler reads again.
func ExampleBody() {
	type transfer struct {
		From   string `json:"from"`
		Amount int    `json:"amount"`
	}
	g := guard.Must(guard.New(memlock.New(), guard.Name("transfer"), guard.Key("account:#{body.From}")))
	wrap := guard.Must(middleware.New(g, middleware.Body[transfer]()))
	handler := wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(w, r.Body); err != nil {
			fmt.Println(err)
		}
	}))

	for _, body := range []string{`{"from": "alice", "amount": 3}`, `{"amount": 3}`} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/transfer", strings.NewReader(body)))
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 200 {"from": "alice", "amount": 3}
	// 400 {"type":"https://pkg.go.dev/github.com/latchkey-go/latchkey/guard#ErrKey","title":"No lock key in the request","status":400,"detail":"The lock needs body.From, which is missing, empty, there twice, spelt in other letters or of the wrong kind.","guard":"transfer","fact":"body.From"}
}
