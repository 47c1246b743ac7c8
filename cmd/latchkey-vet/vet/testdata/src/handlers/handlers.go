// Package handlers has handlers of net/http.
package handlers

import (
	"errors"
	"net/http"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
)

type Body struct {
	OrderID string
	Price   float64
}

type Claims struct{ Tenant string }

func claims(*http.Request) (Claims, error) { return Claims{}, nil }

func handlers(l lock.Locker, more ...middleware.Option) {
	settle := guard.Must(guard.New(l, guard.Name("settle"), guard.Key("order:#{path.idd}"))) // want `guard "settle": key: keyexpr: unknown name idd of path, did you mean id\?`
	_, _ = middleware.New(settle, middleware.Pattern("POST /orders/{id}"))
	_, _ = middleware.New(settle) // any path value, as the route is not known

	body := guard.Must(guard.New(l, guard.Name("body"), guard.Key("order:#{body.OrdreID}:#{claims.Tenat}"))) // want `middleware: guard "body": key: keyexpr: unknown field OrdreID of Body`
	_, _ = middleware.New(body, middleware.Body[Body](), middleware.WithFacts("claims", claims))
	fact := guard.Must(guard.New(l, guard.Name("fact"), guard.Key("order:#{claims.Tenat}"))) // want `unknown field Tenat of Claims, did you mean Tenant\?` `middleware: guard "fact": key: keyexpr: unknown name claims: there is body, cookie`
	_, _ = middleware.New(fact, middleware.WithFacts("claims", claims))
	_, _ = middleware.New(fact, more...)
	_, _ = middleware.New(fact)

	g := guard.Must(guard.New(l, guard.Name("g"), guard.Key("order:#{path.id}"), guard.Methods("POST")))
	_, _ = middleware.New(g, middleware.Pattern("/orders/:id"))                                                              // want `middleware: guard "g": pattern "/orders/:id" is not in net/http's spelling: write "/orders/{id}"`
	_, _ = middleware.New(g, middleware.Status(guard.ErrBusy, 200))                                                          // want `status 200 does not say what guard.ErrBusy means`
	_, _ = middleware.New(g, middleware.BodyLimit(0), nil)                                                                   // want `a body limit must be at least 1 byte, not 0` `nil option`
	_, _ = middleware.New(g, middleware.WithFacts[string]("user", nil))                                                      // want `WithFacts: nil function for root "user"`
	_, _ = middleware.New(g, middleware.WithFacts("path", claims))                                                           // want `every request has a root "path" already`
	_, _ = middleware.New(guard.Must(guard.New(l, guard.Name("f"), guard.Key("#{path.id}"), guard.Busy(guard.RunFallback)))) // want `policy fallback without a fallback`
	_, _ = middleware.New(g, middleware.Fallback(func(http.ResponseWriter, *http.Request, error) {}))
}

// Elsewhere is bound elsewhere, with facts that are not known here.
type Elsewhere struct {
	Settle http.HandlerFunc                         `route:"POST /orders/{id}" guard:"order:#{tenant}:#{path.id}"`
	Cancel func(http.ResponseWriter, *http.Request) `route:"POST /orders/{id}" guard:"order:#{path.idd}"` // want `middleware: guard "Elsewhere.Cancel": key: keyexpr: unknown name idd of path, did you mean id\?`
	Purge  http.Handler                             `route:"POST /orders/:id" guard:"order:#{path.id}"`   // want `is not in net/http's spelling`
	List   http.HandlerFunc                         `route:"GET /orders"`
}

type API struct {
	Settle http.HandlerFunc `route:"POST /orders/{id}" guard:"order:#{tenant}:#{path.id}"` // want `guard: Bind of API.Settle: middleware: guard "API.Settle": key: keyexpr: unknown name tenant: write claims.tenant`
	Cancel http.HandlerFunc `route:"POST /orders/{id}" guard:"order:#{claims.Tenant}:#{path.id}; methods=POST"`
	Number int              `guard:"order:#{path.id}"` // want `guard: Bind of API.Number: field has a tag of a handler, but is a int, not an http.HandlerFunc or an http.Handler`
}

func bind(l lock.Locker, api *API) error {
	return errors.Join(middleware.Bind(guard.Must(guard.New(l)), api, middleware.WithFacts("claims", claims)))
}
