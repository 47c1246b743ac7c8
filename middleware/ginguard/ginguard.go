// Package ginguard puts a guard in front of gin handlers. It is package middleware for gin: the same facts, options
// and responses, with gin's parameters as path values.
//
//	var settle = guard.Must(guard.New(locker,
//		guard.Name("order.settle"),
//		guard.Key("order:#{user}:#{path.id}"),
//		guard.Wait(2*time.Second),
//	))
//
//	r := gin.Default()
//	r.POST("/orders/:id/settle", authenticate, guard.Must(ginguard.New(settle, ginguard.Value[string]("user"))), handler)
//
// Everything after it in the chain runs under the lock, with the held context in c.Request. Place it behind
// authentication, and in the chain of a route or of a group whose routes all have the parameters of its key: a parameter
// that a route does not have is found by its first request, answered with 500 and logged once. Recovery may stand on
// either side. A refused request is answered and aborted: handlers after the guard do not run, while those before it go
// on after their c.Next, see c.IsAborted and c.Writer.Status, and find c.Errors as they left it.
//
// A request without a route passes untouched, so that a guard in [gin.Engine.Use] neither changes a 404 or a 405 nor
// takes a lock for one. This holds for handlers in NoRoute, too: guard those by package middleware, around what they call.
//
// The facts, beside those of package middleware, whose table has them all:
//
//	path.id     a parameter of the route, [gin.Context.Param], of *rest without the slash in front
//	route       the route in net/http's spelling, /orders/{id}, so that both adapters make the same key of it
//	any name    what other handlers put into the context with c.Set: [Value]; or made of the context: [WithFacts]
//
// Facts are the values that gin's handlers see: a body is JSON where ShouldBind takes it for that, which needs the type
// application/json and no GET, and a cookie has no escapes. Where the key uses the query, only a GET may have a body,
// as ShouldBind would read that: [middleware.QueryOnly] and [middleware.BodyIsJSON] are for handlers that bind by type,
// such as ShouldBindQuery and ShouldBindJSON. A body that ShouldBindBodyWith has read in front of the guard is taken
// from there.
//
// A guard.KeyFunc or guard.KeysFunc, in place of a template, takes a *gin.Context or a *[http.Request].
//
// [Bind] guards the handlers of a struct, with a tag on each, and [Register] registers them. For a refusal by a guard of the
// service layer there is [Answer], and [Errors] for programs that collect errors in c.Errors. See package middleware for templates
// and statuses.
package ginguard

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/internal/route"
	"github.com/latchkey-go/latchkey/middleware"
)

// New returns a gin handler that runs the rest of the chain under g. It is safe for concurrent use, on any number of
// routes. Errors are those of [middleware.New]. [middleware.Pattern] takes a route in net/http's spelling, also here:
// "/orders/{id}".
func New(g *guard.Guard, opts ...middleware.Option) (gin.HandlerFunc, error) {
	w, err := newWrapper(g, opts)
	if err != nil {
		return nil, err
	}
	return w.rest, nil
}

// From returns a gin handler that runs the rest of the chain behind middleware of net/http, such as that of package idempotency. It tells
// that of gin's route and parameters as New does. If the middleware answers in place of its handler, the chain is aborted.
//
//	r.POST("/orders/:id/pay", ginguard.From(once), pay)
func From(wrap func(http.Handler) http.Handler) gin.HandlerFunc {
	return (&wrapper{wrap: wrap}).rest
}

func newWrapper(g *guard.Guard, opts []middleware.Option) (*wrapper, error) {
	if adapter.RequestType(g) == reflect.TypeFor[*gin.Context]() {
		opts = append(slices.Clip(opts), WithFacts("req", func(c *gin.Context) (*gin.Context, error) { return c, nil }))
	}
	wrap, err := middleware.New(g, unwrap(opts)...)
	if err != nil {
		return nil, err
	}
	return &wrapper{wrap: wrap}, nil
}

// wrapper puts the guard in front of gin's handlers.
type wrapper struct {
	wrap   func(http.Handler) http.Handler
	chains sync.Map // what is known of each of gin's chains of handlers, by method and route
}

// rest runs the rest of the chain. Without a route there is no handler to guard.
func (wr *wrapper) rest(c *gin.Context) {
	if c.FullPath() != "" {
		wr.serve(c, (*gin.Context).Next)
	}
}

// serve runs next, which is one handler or the rest of the chain, under the guard.
func (wr *wrapper) serve(c *gin.Context, next gin.HandlerFunc) {
	r := wr.request(c)
	defer func() { c.Request.MultipartForm = r.MultipartForm }() // whose files the server removes
	ran := false
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ran = true
		defer restore(c, c.Writer, c.Request)
		out, errs := replace(c, w, r), len(c.Errors)
		next(c)
		if len(c.Errors) > errs {
			out.end(c.Errors.Last())
		} else {
			out.end(nil)
		}
	})
	if wr.chain(c).timeout {
		handler = http.TimeoutHandler(handler, 0, "") // which package middleware refuses
	}
	wr.wrap(handler).ServeHTTP(c.Writer, r)
	if !ran {
		c.Abort()
	}
}

// request is the request with what gin knows of it, where package middleware looks for that.
func (wr *wrapper) request(c *gin.Context) *http.Request {
	r := c.Request.WithContext(context.WithValue(c.Request.Context(), contextKey{}, c))
	r.Pattern = wr.chain(c).pattern
	for _, p := range c.Params {
		if strings.HasSuffix(c.FullPath(), "/*"+p.Key) {
			p.Value = strings.TrimPrefix(p.Value, "/") // as net/http has it
		}
		r.SetPathValue(p.Key, p.Value)
	}
	return r
}

// chain describes a chain of handlers.
type chain struct {
	pattern string // the route in net/http's spelling
	timeout bool   // behind a guard, which would release the lock while the handler still runs
}

func (wr *wrapper) chain(c *gin.Context) chain {
	id := c.Request.Method + c.FullPath()
	if known, ok := wr.chains.Load(id); ok {
		return known.(chain)
	}
	made := chain{pattern: route.FromGin(c.FullPath())}
	guarded := false
	for _, name := range c.HandlerNames() {
		guarded = guarded || strings.HasPrefix(name, reflect.TypeFor[wrapper]().PkgPath()+".")
		made.timeout = made.timeout || guarded && strings.HasPrefix(name, "github.com/gin-contrib/timeout.")
	}
	wr.chains.Store(id, made)
	return made
}

// replace gives c the writer and the request of package middleware, for what runs behind it.
func replace(c *gin.Context, w http.ResponseWriter, r *http.Request) *writer {
	out := &writer{ResponseWriter: c.Writer, out: w, size: c.Writer.Size()}
	c.Writer, c.Request = out, r
	return out
}

func restore(c *gin.Context, w gin.ResponseWriter, r *http.Request) { c.Writer, c.Request = w, r }

// Fallback is [middleware.Fallback] with the gin.Context. The handlers behind the guard do not run after it.
func Fallback(f func(c *gin.Context, err error)) middleware.Option {
	if f == nil {
		return middleware.Fallback(nil) // an error that says so
	}
	return option{middleware.Fallback(func(w http.ResponseWriter, r *http.Request, err error) {
		c, _ := ContextOf(r) // there is one, as New has put it there
		defer restore(c, c.Writer, c.Request)
		replace(c, w, r)
		f(c, err)
	})}
}

// Answer is [middleware.Answer]: it answers for an error of a guard in the service layer, aborts the chain, and reports
// whether it did.
func Answer(c *gin.Context, err error) bool {
	if !middleware.Answer(c.Writer, c.Request, err) {
		return false
	}
	c.Abort()
	return true
}

// Errors returns a handler for [gin.Engine.Use] that answers for the errors of guards which handlers leave in c.Errors,
// the last one first, if nothing was written. It takes the options of [middleware.NewAnswer]. New does not do that by
// itself, as many programs write c.Errors out in a handler of their own: call Answer there.
func Errors(opts ...middleware.Option) (gin.HandlerFunc, error) {
	answer, err := middleware.NewAnswer(opts...)
	if err != nil {
		return nil, err
	}
	return func(c *gin.Context) {
		c.Next()
		for _, e := range slices.Backward(c.Errors) {
			if answer(c.Writer, c.Request, e) {
				return
			}
		}
	}, nil
}
