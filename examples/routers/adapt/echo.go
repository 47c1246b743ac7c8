// Package adapt makes middleware of echo from that of net/http, which is what middleware.New returns. Copy the function that
// you need: this package is an example, so that no framework comes with Latchkey.
package adapt

import (
	"net/http"
	"regexp"

	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/middleware"
)

// Echo makes middleware of echo, version 4, for a route or a group. Everything behind it runs under the guard:
//
//	locked := guard.Must(middleware.New(settle))
//	e.POST("/orders/:id/settle", handler, adapt.Echo(locked))
//
// The path values and the route stand where net/http has them. The context has a request and a response of the guard's for as long as
// the lock is held. An error that the handler returns fails the call, and goes on to echo as it would without a guard: other
// middleware and the error handler see it after the lock was given back. A refused request has its answer, and returns no error.
func Echo(wrap func(http.Handler) http.Handler) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) (err error) {
			r, w := c.Request(), c.Response()
			for i, name := range c.ParamNames() {
				r.SetPathValue(name, c.ParamValues()[i])
			}
			defer describe(r, c.Path())()
			wrap(http.HandlerFunc(func(held http.ResponseWriter, under *http.Request) {
				defer func() { // also when next panics, for who recovers from that
					c.SetRequest(r)
					c.SetResponse(w)
				}()
				c.SetRequest(under)
				c.SetResponse(echo.NewResponse(held, c.Echo()))
				err = next(c)
				middleware.Failed(held, err)
			})).ServeHTTP(flushing{w, w.Writer}, r)
			return err
		}
	}
}

// flushing is a response of echo whose Flush returns an error where echo's own panics: where somebody in front of echo, such as
// http.TimeoutHandler, keeps the response. The guard flushes what it can no longer take back.
type flushing struct {
	http.ResponseWriter
	below http.ResponseWriter
}

func (f flushing) Flush()                      { _ = f.FlushError() }
func (f flushing) FlushError() error           { return http.NewResponseController(f.below).Flush() }
func (f flushing) Unwrap() http.ResponseWriter { return f.below }

// describe gives r the route in net/http's spelling. The returned function takes it away: echo may stand behind a mux that
// has set its own.
func describe(r *http.Request, path string) (undo func()) {
	outer := r.Pattern
	r.Pattern = parameter.ReplaceAllString(path, "/{$1}")
	return func() { r.Pattern = outer }
}

// parameter is one in a route of echo. The * of the rest stays, which guards know.
var parameter = regexp.MustCompile(`/:([^/]+)`)
