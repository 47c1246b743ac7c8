package middleware

import (
	"net/http"
	"reflect"
)

// errTimeoutHandler says that a guard stands on the wrong side of http.TimeoutHandler, which answers when its time is
// over and leaves its handler running: the guard would release the lock under it. Package ginguard says so of gin-contrib/timeout.
var errTimeoutHandler = &routeError{"http.TimeoutHandler",
	"http.TimeoutHandler belongs outside of the guard, and so does gin-contrib/timeout: the lock would be free while the handler still runs"}

// isTimeoutHandler reports whether h was made by http.TimeoutHandler.
func isTimeoutHandler(h http.Handler) bool {
	return reflect.TypeOf(h).String() == "*http.timeoutHandler"
}

// isTimeoutWriter reports whether w is the writer that http.TimeoutHandler gives to its handler.
func isTimeoutWriter(w http.ResponseWriter) bool {
	return reflect.TypeOf(w).String() == "*http.timeoutWriter"
}
