package main

import "net/http"

// newMux is net/http's own router. The guard stands inside of it: outside, there are no path values yet.
func newMux(s *shop, guarded func(http.Handler) http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /stock/{product}", authenticate(guarded(http.HandlerFunc(s.sell))))
	return mux
}
