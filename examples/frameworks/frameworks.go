// Package frameworks puts guards in front of handlers of go-zero, GoFrame and Kratos, each in the framework's own way. The page
// docs/recipes.md explains it; the tests start a server of each.
package frameworks

import (
	"net/http"

	"github.com/go-kratos/kratos/v2/transport"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/gogf/gf/v2/net/ghttp"

	"github.com/latchkey-go/latchkey/middleware"
)

// Guarded is what middleware.New returns.
type Guarded = func(http.Handler) http.Handler

// ForKratos makes a filter of Kratos' HTTP server, for a route. A filter of the whole server runs before the route is known.
func ForKratos(wrap Guarded) khttp.FilterFunc {
	return func(next http.Handler) http.Handler {
		return wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if tr, ok := transport.FromServerContext(r.Context()); ok {
				if ht, ok := tr.(*khttp.Transport); ok {
					*ht.Request() = *r // the service finds the held context there, too
				}
			}
			next.ServeHTTP(w, r)
		}))
	}
}

// ForGoFrame makes a middleware of GoFrame's ghttp. GoFrame keeps a response until all middleware has run; here it is written within the guard,
// so that no success is sent for work whose lock was lost. A handler's error is left to the middleware further out that answers for it.
func ForGoFrame(wrap Guarded) ghttp.HandlerFunc {
	return func(r *ghttp.Request) {
		guarded := wrap(http.HandlerFunc(func(w http.ResponseWriter, held *http.Request) {
			r.SetCtx(held.Context())
			r.Middleware.Next()
			middleware.Failed(w, r.GetError())
			if r.Response.Status != 0 {
				w.WriteHeader(r.Response.Status)
			}
			if r.Response.BufferLength() > 0 {
				_, _ = w.Write(r.Response.Buffer())
			}
			r.Response.ClearBuffer()
		}))
		for name, value := range r.GetRouterMap() {
			r.SetPathValue(name, value)
		}
		guarded.ServeHTTP(r.Response.RawWriter(), r.Request)
		r.Response.ClearBuffer()
	}
}
