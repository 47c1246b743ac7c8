package neighbours

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
)

// TestTimeoutInside has a timeout between the guard and the handler. It answers when its time is over and leaves the handler
// running, so the guard would give the lock back under it: each request is refused, and the program's log says why, once.
func TestTimeoutInside(t *testing.T) {
	for _, p := range []program{
		{name: "http.TimeoutHandler", new: func(e *env) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/orders/{id}", e.std()(http.TimeoutHandler(e, time.Hour, "too late")))
			return mux
		}},
		{name: "gin-contrib/timeout", new: func(e *env) http.Handler {
			e.inner = []gin.HandlerFunc{ginTimeout()}
			return e.newGin((*gin.Context).AbortWithError)
		}},
	} {
		logs := logged(t)
		with, a := play{program: p, work: works[0], protocol: http1, state: &states[0]}.run(t)
		if with.status != http.StatusInternalServerError || with.envelope.Get("Content-Type") != "application/problem+json" || a.runs != 0 || a.held {
			t.Errorf("%s: %v, %+v", p.name, with, a)
		}
		if got := logs.String(); strings.Count(got, "guard=order.settle") != 1 {
			t.Errorf("%s: logged %q", p.name, got)
		}
	}
}
