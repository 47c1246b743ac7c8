package console_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

func ExampleAllowSwitch() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	client := guard.Must(redisson.New(rdb))
	defer client.Close()
	registry := guard.Must(guard.NewRegistry())
	pay := guard.Must(guard.New(client, guard.In(registry), guard.Name("pay"), guard.Key("order:#{req}"), guard.Switchable()))
	guard.Must(guard.Action(pay, func(context.Context, string) error { return nil }))

	page := guard.Must(console.New(client, registry,
		console.AllowSwitch(func(r *http.Request) error {
			if user, _, _ := r.BasicAuth(); user != "on-call" {
				return errors.New("not on call")
			}
			return nil
		}),
		console.OnSwitch(func(_ context.Context, s console.Switched) {
			fmt.Println(s.Who, "switched", s.Guard, s.Mode, "until", s.Until)
		}),
		console.Log(slog.New(slog.DiscardHandler)),
	))
	for _, user := range []string{"trainee", "on-call"} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/switch?guard=pay", nil)
		r.RemoteAddr = "127.0.0.1:5000"
		r.SetBasicAuth(user, "secret")
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r) // the form
		fmt.Println(user, w.Code)
	}
	// Output:
	// trainee 403
	// on-call 200
}
