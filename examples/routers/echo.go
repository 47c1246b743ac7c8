package main

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// newEcho uses the guard as echo's middleware, by forEcho.
func newEcho(s *shop, guarded func(http.Handler) http.Handler) http.Handler {
	e := echo.New()
	e.Use(echo.WrapMiddleware(authenticate))
	e.POST("/stock/:product", echo.WrapHandler(http.HandlerFunc(s.sell)), forEcho(guarded))
	return e
}

// forEcho makes echo's middleware of net/http's. It puts what echo knows of the route where net/http has it, for the guard
// and for the handler. An error of the handler goes on to echo; a refused request gives none, as it has its answer.
func forEcho(wrap func(http.Handler) http.Handler) echo.MiddlewareFunc {
	std := echo.WrapMiddleware(wrap)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		handler := std(next)
		return func(c echo.Context) error {
			r := c.Request()
			r.Pattern = c.Path()
			for i, name := range c.ParamNames() {
				r.SetPathValue(name, c.ParamValues()[i])
			}
			return handler(c)
		}
	}
}
