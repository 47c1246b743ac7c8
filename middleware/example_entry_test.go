package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
)

// send makes one request and prints the answer.
func send(h http.Handler, method, url string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, url, nil))
	fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
}

// held is a locker of which somebody else holds a key.
func held(key string) lock.Locker {
	locker := memlock.New()
	guard.Must(locker.Acquire(context.Background(), lock.Request{Key: key}))
	return locker
}

// The key is made of what authentication has found out. A claim that the claims don't have would be an error at start.
func ExampleWithFacts() {
	type claims struct{ Tenant string }
	g := guard.Must(guard.New(memlock.New(), guard.Name("basket"), guard.Key("basket:#{claims.Tenant}")))
	wrap := guard.Must(middleware.New(g, middleware.WithFacts("claims", func(r *http.Request) (claims, error) {
		return claims{Tenant: r.Header.Get("Tenant")}, nil // in a program, from the request's context
	})))
	send(wrap(http.NotFoundHandler()), http.MethodPost, "/basket")
	// Output: 400 {"type":"https://pkg.go.dev/github.com/latchkey-go/latchkey/guard#ErrKey","title":"No lock key in the request","status":400,"detail":"The lock needs claims.Tenant, which is missing, empty, there twice, spelt in other letters or of the wrong kind.","guard":"basket","fact":"claims.Tenant"}
}

func ExampleBind() {
	type API struct {
		Settle http.HandlerFunc `route:"POST /orders/{id}/settle" guard:"order:#{path.id}; wait=2s"`
		List   http.HandlerFunc `route:"GET /orders"`
	}
	api := &API{
		Settle: func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, "settled", r.PathValue("id"), guard.Held(r.Context(), "API.Settle"))
		},
		List: func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "42, 43") },
	}
	defaults := guard.Must(guard.New(memlock.New())) // or a redisson client
	if err := middleware.Bind(defaults, api); err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	if err := middleware.Register(mux, api); err != nil {
		fmt.Println(err)
		return
	}
	send(mux, http.MethodPost, "/orders/42/settle")
	send(mux, http.MethodGet, "/orders")
	// Output:
	// 200 settled 42 true
	// 200 42, 43
}

// A path value that the route does not have is found before there is a request.
func ExampleBind_mistake() {
	api := &struct {
		Settle http.HandlerFunc `route:"POST /orders/{id}/settle" guard:"order:#{path.order}"`
	}{func(http.ResponseWriter, *http.Request) {}}
	err := middleware.Bind(guard.Must(guard.New(memlock.New())), api)
	fmt.Println(err)
	// Output: guard: Bind of Settle: middleware: guard "Settle": key: keyexpr: unknown name order of path: there is id (at offset 13 of "order:#{path.order}")
}

// A guard stands in front of a function of the service layer, and its handler gets the guard's error back.
func ExampleAnswer() {
	type payment struct{ Order string }
	g := guard.Must(guard.New(held("order:42"), guard.Name("order.pay"), guard.Key("order:#{req.Order}")))
	pay := guard.Must(guard.Func(g, func(_ context.Context, p payment) (string, error) {
		if p.Order == "7" {
			return "", errors.New("no such order")
		}
		return "paid", nil
	}))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		receipt, err := pay(r.Context(), payment{r.FormValue("order")})
		switch {
		case middleware.Answer(w, r, err):
		case err != nil:
			http.Error(w, err.Error(), http.StatusNotFound)
		default:
			fmt.Fprintln(w, receipt)
		}
	})
	send(handler, http.MethodPost, "/pay?order=1")
	send(handler, http.MethodPost, "/pay?order=7")
	send(handler, http.MethodPost, "/pay?order=42")
	// Output:
	// 200 paid
	// 404 no such order
	// 409 {"type":"https://pkg.go.dev/github.com/latchkey-go/latchkey/guard#ErrBusy","title":"Locked by another request","status":409,"detail":"Another request kept the lock for as long as this one could wait. Nothing was done; retry later.","guard":"order.pay"}
}

func ExampleFallback() {
	g := guard.Must(guard.New(held("report:2026"), guard.Name("report"), guard.Key("report:#{query.year}")))
	wrap := guard.Must(middleware.New(g, middleware.Fallback(func(w http.ResponseWriter, r *http.Request, err error) {
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintln(w, "being made, come back later")
	})))
	handler := wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "made") }))
	send(handler, http.MethodPost, "/report?year=2025")
	send(handler, http.MethodPost, "/report?year=2026")
	// Output:
	// 200 made
	// 202 being made, come back later
}

func ExampleStatus() {
	g := guard.Must(guard.New(held("import"), guard.Name("import"), guard.Key("import"), guard.OneKey()))
	wrap := guard.Must(middleware.New(g,
		middleware.Status(guard.ErrBusy, http.StatusTooManyRequests),
		middleware.Respond(func(w http.ResponseWriter, r *http.Request, p middleware.Problem) {
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprintf(w, "%s: %s\n", p.Guard, p.Title)
		}),
	))
	send(wrap(http.NotFoundHandler()), http.MethodPost, "/import")
	// Output: 429 import: Locked by another request
}
