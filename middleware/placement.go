package middleware

import (
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
)

// errTimeoutHandler says that a guard stands on the wrong side of http.TimeoutHandler, which answers when its time is
// over and leaves its handler running: the guard would release the lock under it.
var errTimeoutHandler = &routeError{"http.TimeoutHandler",
	"http.TimeoutHandler belongs outside of the guard, which would release the lock while the handler still runs"}

// isTimeoutHandler reports whether h was made by http.TimeoutHandler.
func isTimeoutHandler(h http.Handler) bool {
	return reflect.TypeOf(h).String() == "*http.timeoutHandler"
}

// isTimeoutWriter reports whether w is what http.TimeoutHandler gives to its handler.
func isTimeoutWriter(w http.ResponseWriter) bool {
	return reflect.TypeOf(w).String() == "*http.timeoutWriter"
}

// placement finds an http.TimeoutHandler that is hidden between a guard and its handler. It looks at the stack of the
// first response, and of those with http.TimeoutHandler's status.
type placement struct{ looked, wrong atomic.Bool }

func (p *placement) see(status int) {
	if p.looked.Load() && status != http.StatusServiceUnavailable {
		return
	}
	p.looked.Store(true)
	if underTimeoutHandler() {
		p.wrong.Store(true)
	}
}

// underTimeoutHandler reports whether an http.TimeoutHandler is between the caller and the guard above it.
func underTimeoutHandler() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "net/http.(*timeoutHandler).ServeHTTP":
			return true
		case !more || strings.HasSuffix(f.Function, "/middleware.(*facts).pass"):
			return false
		}
	}
}
