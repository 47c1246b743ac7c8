package frameworks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/gogf/gf/v2/frame/g"
	"github.com/gogf/gf/v2/net/ghttp"
	"github.com/gorilla/mux"
	"github.com/zeromicro/go-zero/rest"
	"github.com/zeromicro/go-zero/rest/pathvar"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
)

// server serves POST /orders/{id}/settle by settle, guarded, and returns its address.
type server func(t *testing.T, guarded Guarded, settle func(ctx context.Context, id string) string) (url string)

var servers = map[string]server{"go-zero": serveGoZero, "GoFrame": serveGoFrame, "Kratos": serveKratos}

// pathValues are those of frameworks that keep them where net/http does not look.
var pathValues = map[string][]middleware.Option{"go-zero": {middleware.PathValues(pathvar.Vars)}, "Kratos": {middleware.PathValues(mux.Vars)}}

func serveGoZero(t *testing.T, guarded Guarded, settle func(context.Context, string) string) string {
	address := free(t)
	conf := rest.RestConf{Host: "127.0.0.1", Port: port(t, address)}
	conf.Log.Mode, conf.Log.Level = "console", "severe"
	conf.MaxConns = 100
	s := rest.MustNewServer(conf)
	s.AddRoutes(rest.WithMiddlewares([]rest.Middleware{rest.ToMiddleware(guarded)}, rest.Route{
		Method: http.MethodPost, Path: "/orders/:id/settle",
		Handler: func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, settle(r.Context(), pathvar.Vars(r)["id"]))
		},
	}))
	go s.Start()
	t.Cleanup(s.Stop)
	return listens(t, address)
}

func serveGoFrame(t *testing.T, guarded Guarded, settle func(context.Context, string) string) string {
	address := free(t)
	s := g.Server(address) // a name of its own
	s.SetAddr(address)
	s.SetDumpRouterMap(false)
	s.SetLogStdout(false)
	s.Group("/", func(group *ghttp.RouterGroup) {
		group.Middleware(ForGoFrame(guarded))
		group.POST("/orders/:id/settle", func(r *ghttp.Request) {
			r.Response.Write(settle(r.Context(), r.GetRouter("id").String()))
		})
	})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown() })
	return listens(t, address)
}

func serveKratos(t *testing.T, guarded Guarded, settle func(context.Context, string) string) string {
	address := free(t)
	s := khttp.NewServer(khttp.Address(address), khttp.Timeout(10*time.Second))
	s.Route("/").POST("/orders/{id}/settle", func(c khttp.Context) error {
		return c.String(http.StatusOK, settle(c, c.Vars().Get("id")))
	}, ForKratos(guarded))
	go func() { _ = s.Start(context.Background()) }()
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return listens(t, address)
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func port(t *testing.T, address string) (n int) {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func listens(t *testing.T, address string) string {
	t.Helper()
	for start := time.Now(); ; <-time.After(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return "http://" + address
		} else if time.Since(start) > 10*time.Second {
			t.Fatal(err)
		}
	}
}

func guarded(t *testing.T, l lock.Locker, opts ...middleware.Option) Guarded {
	t.Helper()
	settle, err := guard.New(l, guard.Name("order.settle"), guard.Key("order:#{path.id}"))
	if err != nil {
		t.Fatal(err)
	}
	wrap, err := middleware.New(settle, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return wrap
}

func post(t *testing.T, url string) (status int, body string) {
	t.Helper()
	res, err := http.Post(url, "text/plain", nil)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(text)
}

// In each framework, the lock is of the order in the path; whoever comes while it is held is told so, and another order is free.
func TestBusy(t *testing.T) {
	for name, serve := range servers {
		t.Run(name, func(t *testing.T) {
			l := guardtest.New()
			inside, leave := make(chan string, 2), make(chan struct{})
			url := serve(t, guarded(t, l, pathValues[name]...), func(_ context.Context, id string) string {
				inside <- id
				if id == "42" {
					<-leave
				}
				return "settled " + id
			})
			done := make(chan string, 1)
			go func() { _, body := post(t, url+"/orders/42/settle"); done <- body }()
			if id := <-inside; id != "42" {
				t.Errorf("inside with %q", id)
			}
			if status, body := post(t, url+"/orders/42/settle"); status != http.StatusConflict || !strings.Contains(body, "order.settle") {
				t.Errorf("the second gets %d: %s", status, body)
			}
			if status, body := post(t, url+"/orders/43/settle"); status != http.StatusOK || body != "settled 43" {
				t.Errorf("another order gets %d: %s", status, body)
			}
			close(leave)
			if body := <-done; body != "settled 42" {
				t.Errorf("the first gets %s", body)
			}
			l.WantKeys(t, "order:42", "order:43")
			l.WantNothingHeld(t)
		})
	}
}

// The work's context ends when the lock is lost, and its answer is no success.
func TestLost(t *testing.T) {
	for name, serve := range servers {
		t.Run(name, func(t *testing.T) {
			url := serve(t, guarded(t, guardtest.New(guardtest.LostAfter(100*time.Millisecond))), func(ctx context.Context, _ string) string {
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Second):
					t.Error("the context has not ended")
				}
				return "settled"
			})
			if status, body := post(t, url+"/orders/42/settle"); status != http.StatusInternalServerError || strings.Contains(body, "settled") {
				t.Errorf("got %d: %s", status, body)
			}
		})
	}
}

// In GoFrame, the error of a handler is answered by a middleware further out, and fails the work: the key of a success would be kept.
func TestErrorInGoFrame(t *testing.T) {
	var events guardtest.Events
	l := guardtest.New()
	settle := guard.Must(guard.New(l, guard.Name("order.settle"), guard.Key("order:#{path.id}"), guard.HoldAtLeast(time.Hour), guard.Observe(events.Observe)))
	address := free(t)
	s := g.Server(address)
	s.SetAddr(address)
	s.SetDumpRouterMap(false)
	s.SetLogStdout(false)
	s.Group("/", func(group *ghttp.RouterGroup) {
		group.Middleware(ghttp.MiddlewareHandlerResponse, ForGoFrame(guard.Must(middleware.New(settle))))
		group.POST("/orders/:id/settle", func(r *ghttp.Request) { r.SetError(errors.New("sold out")) })
	})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown() })
	if status, body := post(t, listens(t, address)+"/orders/42/settle"); status != http.StatusOK || !strings.Contains(body, "sold out") {
		t.Errorf("got %d: %s", status, body)
	}
	events.WantOutcomes(t, "order.settle", guard.OutcomeError)
	l.WantNothingHeld(t)
}
