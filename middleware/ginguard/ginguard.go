// Package ginguard puts a guard in front of gin handlers. It is package middleware for gin: the same facts, options
// and responses, with gin's parameters as path values.
//
//	var settle = guard.Must(guard.New(locker,
//		guard.Name("order.settle"),
//		guard.Key("order:#{path.id}"),
//		guard.Wait(2*time.Second),
//	))
//
//	r := gin.Default()
//	r.POST("/orders/:id/settle", authenticate, guard.Must(ginguard.New(settle)), handler)
//
// Everything after it in the chain runs under the lock, with the held context in c.Request. Place it behind
// authentication, and in the chain of a route or of a group whose routes all have the parameters of its key. Recovery
// may stand on either side. A refused request is answered and aborted: handlers after the guard do not run, while those
// before it go on after their c.Next, see c.IsAborted and c.Writer.Status, and find c.Errors as they left it.
//
// See package middleware for templates and statuses.
package ginguard

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/middleware"
)

// New returns a gin handler that runs the rest of the chain under g. It is safe for concurrent use, on any number of
// routes. Errors are those of [middleware.New]. [middleware.Pattern] takes a route in net/http's spelling, also here:
// "/orders/{id}".
func New(g *guard.Guard, opts ...middleware.Option) (gin.HandlerFunc, error) {
	wrap, err := middleware.New(g, opts...)
	if err != nil {
		return nil, err
	}
	return func(c *gin.Context) {
		for _, p := range c.Params {
			c.Request.SetPathValue(p.Key, p.Value)
		}
		ran := false
		wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			ran = true
			defer restore(c, c.Request)
			c.Request = r
			c.Next()
		})).ServeHTTP(c.Writer, c.Request)
		if !ran {
			c.Abort()
		}
	}, nil
}

func restore(c *gin.Context, r *http.Request) { c.Request = r }
