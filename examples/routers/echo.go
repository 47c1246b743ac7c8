package main

import (
	"net/http"

	"github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/examples/routers/adapt"
)

// newEcho uses the guard as echo's middleware, by package adapt.
func newEcho(s *shop, guarded func(http.Handler) http.Handler) http.Handler {
	e := echo.New()
	e.Use(echo.WrapMiddleware(authenticate))
	e.POST("/stock/:product", echo.WrapHandler(http.HandlerFunc(s.sell)), adapt.Echo(guarded))
	return e
}

// newEcho5 is newEcho for version 5.
func newEcho5(s *shop, guarded func(http.Handler) http.Handler) http.Handler {
	e := echo5.New()
	e.Use(echo5.WrapMiddleware(authenticate))
	e.POST("/stock/:product", echo5.WrapHandler(http.HandlerFunc(s.sell)), adapt.Echo5(guarded))
	return e
}
