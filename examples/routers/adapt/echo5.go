package adapt

import (
	"net/http"

	"github.com/labstack/echo/v5"
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
				if err = next(c); err != nil {
					failed(under.Context(), err)
				}
			})).ServeHTTP(w, r)
			return err
		}
	}
}
