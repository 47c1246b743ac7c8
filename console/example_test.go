package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/console"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/redisson"
)

func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	client := guard.Must(redisson.New(rdb))
	defer client.Close()
	registry := guard.Must(guard.NewRegistry())

	page, err := console.New(client, registry,
		console.ShowKeys(console.Whole),
		console.AllowFree(func(r *http.Request) error {
			if user, _, _ := r.BasicAuth(); user != "on-call" {
				return errors.New("not on call")
			}
			return nil
		}),
		console.OnFree(func(_ context.Context, f console.Freed) { fmt.Println(f.Who, "freed a lock:", f.Reason) }),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/ops/locks/", page)

	// A request from elsewhere sees nothing before there is console.Authorize.
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://shop.example/ops/locks/", nil))
	fmt.Println(w.Code, w.Body)
	// Output:
	// 403 This console answers requests from its own machine only. The option console.Authorize opens it to others.
}
