package middleware_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
)

type mistakenBody struct {
	ID    string
	Price float64
	Lines []struct{ SKU string }
}

// mistakes are declarations as people get them wrong. None of them starts, and none panics.
var mistakes = []struct {
	name  string
	key   string // "" is that of the path
	guard []guard.Option
	opts  []middleware.Option
	want  string // a part of the error
}{
	// roots and their names
	{name: "misspelt root", key: "order:#{pth.id}", want: "path"},
	{name: "misspelt root in the condition", guard: gs(guard.When(`metod == "POST"`)), want: "method"},
	{name: "headers in the plural", key: "t:#{headers.Tenant}", want: "header"},
	{name: "params of another framework", key: "order:#{params.id}", want: "params"},
	{name: "request of a function", key: "order:#{req.ID}", want: "req"},
	{name: "request of net/http", key: "order:#{r.PathValue}", want: "r"},
	{name: "network address", key: "client:#{remote_addr}", want: "remote_addr"},
	{name: "ip", key: "client:#{ip}", want: "ip"},
	{name: "misspelt path value", key: "order:#{path.idd}", opts: os(middleware.Pattern("POST /orders/{id}")), want: "idd"},
	{name: "path value in another case", key: "order:#{path.ID}", opts: os(middleware.Pattern("POST /orders/{id}")), want: "ID"},
	{name: "path value with a default", key: `order:#{path.idd ?? "none"}`, opts: os(middleware.Pattern("/orders/{id}")), want: "idd"},
	{name: "path value of a route without", opts: os(middleware.Pattern("/orders/{$}")), want: "id"},
	{name: "all path values", key: "order:#{path}", want: "path"},
	{name: "all headers", key: "t:#{header}", want: "header"},
	{name: "misspelt field", key: "order:#{body.IDs}", opts: os(middleware.Body[mistakenBody]()), want: "IDs"},
	{name: "field of a list", key: "order:#{body.Lines.SKU}", opts: os(middleware.Body[mistakenBody]()), want: "order.settle"},
	{name: "struct as a key", key: "order:#{body}", opts: os(middleware.Body[mistakenBody]()), want: "order.settle"},
	{name: "float as a key", key: "order:#{body.Price}", opts: os(middleware.Body[mistakenBody]()), want: "order.settle"},
	{name: "fact that is not declared", key: "order:#{claims.Tenant}", want: "claims"},
	{name: "misspelt field of a fact", key: "order:#{claims.Tenat}", opts: os(claimsFact("claims")), want: "Tenant"},

	// templates
	{name: "shell's braces", key: "order:${path.id}", want: "#{"},
	{name: "net/http's braces", key: "order:{id}:#{method}", opts: os(middleware.Pattern("/orders/{id}")), want: "{id}"},
	{name: "gin's colon", key: "order::id", want: "nothing of the request is read"},
	{name: "no fact at all", key: "orders", want: "share one key"},
	{name: "no key", guard: gs(guard.FromSpec(guard.Spec{Name: "order.settle"})), key: "-", want: "no key"},

	// patterns
	{name: "gin's spelling", opts: os(middleware.Pattern("orders/:id")), want: `write "/orders/{id}"`},
	{name: "chi's regular expression", opts: os(middleware.Pattern("/orders/{id:[0-9]+}")), want: `write "/orders/{id}"`},
	{name: "open brace", opts: os(middleware.Pattern("POST /orders/{id")), want: "orders/{id"},
	{name: "empty pattern", opts: os(middleware.Pattern("")), want: "pattern"},
	{name: "two wildcards of a name", opts: os(middleware.Pattern("/orders/{id}/lines/{id}")), want: "id"},

	// options
	{name: "nil option", opts: os(nil), want: "nil option"},
	{name: "success as a status", opts: os(middleware.Status(guard.ErrBusy, 200)), want: "200"},
	{name: "client's status for an outage", opts: os(middleware.Status(guard.ErrOutage, 429)), want: "429"},
	{name: "server's status for a bad request", opts: os(middleware.Status(guard.ErrKey, 500)), want: "500"},
	{name: "no status", opts: os(middleware.Status(guard.ErrLost, 599+1)), want: "600"},
	{name: "status of no error", opts: os(middleware.Status(nil, 500)), want: "ErrBusy"},
	{name: "status of another error", opts: os(middleware.Status(context.Canceled, 499)), want: "ErrBusy"},
	{name: "no bytes of a body", opts: os(middleware.BodyLimit(0)), want: "not 0"},
	{name: "nil Respond", opts: os(middleware.Respond(nil)), want: "Respond"},
	{name: "nil Fallback", opts: os(middleware.Fallback(nil)), want: "Fallback"},
	{name: "nil fact", opts: os(middleware.WithFacts[string]("user", nil)), want: "user"},
	{name: "fact over a root", opts: os(claimsFact("path")), want: "path"},
	{name: "fact twice", opts: os(claimsFact("claims"), claimsFact("claims")), want: "two roots"},
	{name: "fact without a name", opts: os(claimsFact("")), want: "root"},
	{name: "fact with a header's name", opts: os(claimsFact("X-User")), want: "X-User"},

	// guards
	{name: "fallback of functions", guard: gs(guard.Fallback(func(context.Context, int, error) (int, error) { return 0, nil })), want: "Fallback"},
	{name: "policy without a fallback", guard: gs(guard.Busy(guard.RunFallback)), want: "fallback"},
	{name: "fallback that never runs", guard: gs(guard.Busy(guard.Skip), guard.Outage(guard.Fail)), opts: os(middleware.Fallback(func(http.ResponseWriter, *http.Request, error) {})), want: "never runs"},
	{name: "key function of another request", key: "-", guard: gs(guard.KeyFunc(func(int) (string, error) { return "", nil })), want: "KeyFunc"},
	{name: "key function of a request by value", key: "-", guard: gs(guard.KeyFunc(func(http.Request) (string, error) { return "", nil })), want: "KeyFunc"},
	{name: "names of arguments", guard: gs(guard.Args("w", "r")), want: "args"},
}

func gs(o ...guard.Option) []guard.Option           { return o }
func os(o ...middleware.Option) []middleware.Option { return o }

func claimsFact(name string) middleware.Option {
	return middleware.WithFacts(name, func(*http.Request) (struct{ Tenant string }, error) { return struct{ Tenant string }{"acme"}, nil })
}

func TestMistakesAreFoundAtStart(t *testing.T) {
	for _, tt := range mistakes {
		t.Run(tt.name, func(t *testing.T) {
			opts := gs(guard.Name("order.settle"))
			switch tt.key {
			case "-":
			case "":
				opts = append(opts, guard.Key("order:#{path.id}"))
			default:
				opts = append(opts, guard.Key(tt.key))
			}
			g, err := guard.New(memlock.New(), append(opts, tt.guard...)...)
			if err == nil {
				_, err = middleware.New(g, tt.opts...)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `"order.settle"`) {
				t.Errorf("error = %v, want %q in it and the guard's name", err, tt.want)
			}
		})
	}
}

func TestNewWithoutGuard(t *testing.T) {
	if _, err := middleware.New(nil, nil); err == nil || !strings.Contains(err.Error(), "nil guard") {
		t.Errorf("New(nil) = %v", err)
	}
}

// TestMistakesAreJoined has one of each kind in one declaration.
func TestMistakesAreJoined(t *testing.T) {
	g := guard.Must(guard.New(memlock.New(), guard.Name("order.settle"), guard.Key("order:#{pth.id}"), guard.When("verb"), guard.Wait(time.Second)))
	_, err := middleware.New(g, nil, middleware.Status(guard.ErrBusy, 200), middleware.Pattern("/:id"), middleware.BodyLimit(-1))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"pth", "verb", "nil option", "200", "/{id}", "-1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// TestNilHandlers are refused by the router, as they are without a guard.
func TestNilHandlers(t *testing.T) {
	wrap := guard.Must(middleware.New(newGuard(t, memlock.New())))
	for _, h := range []http.Handler{nil, http.HandlerFunc(nil)} {
		if got := wrap(h); got != nil {
			t.Errorf("wrap(%T) = %T, want nil", h, got)
		}
	}
}

// TestMistakesInPlace are those that show when requests come: each is answered with 500, never with a 4xx, and logged.
func TestMistakesInPlace(t *testing.T) {
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
	inMux := func(pattern string) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle(pattern, h)
			return mux
		}
	}
	outside := func(h http.Handler) http.Handler { return h }
	for _, tt := range []struct {
		name, key string
		place     func(http.Handler) http.Handler
		opts      []middleware.Option
		logged    string
	}{
		{"misspelt path value", "order:#{path.idd}", inMux("/orders/{id}"), nil, "did you mean id"},
		{"pattern of another route", "order:#{path.id}", inMux("/orders/{no}"), os(middleware.Pattern("/orders/{id}")), `has no path value \"id\"`},
		{"outside of the mux", "order:#{path.id}", outside, nil, "inside of the router"},
		{"outside of the mux, with a pattern", "order:#{path.id}", outside, os(middleware.Pattern("/orders/{id}")), "inside of the router"},
		{"route outside of the mux", "order:#{route}", outside, nil, "inside of the router"},
		{"host as a header", "order:#{header.Host}", inMux("/orders/{id}"), nil, "write host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := logged(t)
			g := guard.Must(guard.New(memlock.New(), guard.Name("order.settle"), guard.Key(tt.key)))
			h := tt.place(guard.Must(middleware.New(g, tt.opts...))(handler))
			for range 2 {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
				if w.Code != 500 || !strings.Contains(w.Body.String(), "ErrFault") {
					t.Errorf("response = %d %s", w.Code, w.Body)
				}
			}
			if n := strings.Count(log.String(), tt.logged); n != 1 {
				t.Errorf("logged %d times: %s", n, log)
			}
		})
	}
}
