package main

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// newChi uses the guard as chi's middleware, by With: what Use adds to the outermost router runs before the request has a
// route, and so without path values.
func newChi(s *shop, guarded func(http.Handler) http.Handler) http.Handler {
	r := chi.NewRouter()
	r.Use(authenticate)
	r.With(guarded).Post("/stock/{product}", s.sell)
	return r
}
