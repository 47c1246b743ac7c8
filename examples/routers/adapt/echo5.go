package adapt

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/middleware"
)

// Echo5 is [Echo] for version 5.
func Echo5(wrap func(http.Handler) http.Handler) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) (err error) {
			r, w := c.Request(), c.Response()
			for _, p := range c.PathValues() {
				r.SetPathValue(p.Name, p.Value)
			}
			defer describe(r, c.Path())()
			wrap(http.HandlerFunc(func(held http.ResponseWriter, under *http.Request) {
				defer func() {
					c.SetRequest(r)
					c.SetResponse(w)
				}()
				c.SetRequest(under)
				c.SetResponse(echo.NewResponse(held, c.Logger()))
				err = next(c)
				middleware.Failed(held, err)
			})).ServeHTTP(outer(w), r)
			return err
		}
	}
}

// outer is w with a Flush that does not panic.
func outer(w http.ResponseWriter) http.ResponseWriter {
	if own, ok := w.(*echo.Response); ok {
		return flushing{own, own.ResponseWriter}
	}
	return w // of other middleware's, whose Flush is its own
}
