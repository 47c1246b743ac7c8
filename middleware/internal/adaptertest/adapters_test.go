package adaptertest

import (
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	os.Exit(m.Run())
}

// Mount returns a server's handler that runs h behind g at /orders/{id}, for every method.
type Mount func(t *testing.T, g *guard.Guard, h http.HandlerFunc, opts ...middleware.Option) http.Handler

// adapters are what everything here is played with.
var adapters = []struct {
	name     string
	mount    Mount
	bare     Mount // without the guard
	bind     Mount // by a tag of a struct
	fallback middleware.Option
}{
	{"net-http", onMux, bareMux, boundMux, middleware.Fallback(func(w http.ResponseWriter, _ *http.Request, _ error) { Fell(w) })},
	{"gin", onGin, bareGin, boundGin, ginguard.Fallback(func(c *gin.Context, _ error) { Fell(c.Writer) })},
}

func TestStatuses(t *testing.T)    { each(t, Statuses) }
func TestHangUps(t *testing.T)     { each(t, HangUps) }
func TestSlowBody(t *testing.T)    { each(t, SlowBody) }
func TestExclusion(t *testing.T)   { each(t, Exclusion) }
func TestLosses(t *testing.T)      { each(t, Losses) }
func TestBlocked(t *testing.T)     { each(t, Blocked) }
func TestReset(t *testing.T)       { each(t, Reset) }
func TestDraining(t *testing.T)    { each(t, Draining) }
func TestNothingLeft(t *testing.T) { each(t, NothingLeft) }

func each(t *testing.T, play func(*testing.T, Mount)) {
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) { play(t, a.mount) })
	}
	t.Run("gin with recovery", func(t *testing.T) { play(t, onGinWithRecovery) })
}

func TestRandom(t *testing.T) {
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) { Random(t, a.mount, a.bare) })
	}
}

// TestScenarios plays the table of all adapters with a handler in front of a route and in a struct.
func TestScenarios(t *testing.T) {
	for _, a := range adapters {
		t.Run(a.name+"/New", func(t *testing.T) { Scenarios(t, a.mount, a.fallback) })
		t.Run(a.name+"/Bind", func(t *testing.T) { Scenarios(t, a.bind, a.fallback) })
	}
}

func onMux(t *testing.T, g *guard.Guard, h http.HandlerFunc, opts ...middleware.Option) http.Handler {
	t.Helper()
	wrap, err := middleware.New(g, opts...)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/orders/{id}", wrap(h))
	return mux
}

func bareMux(_ *testing.T, _ *guard.Guard, h http.HandlerFunc, _ ...middleware.Option) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/orders/{id}", h)
	return mux
}

func boundMux(t *testing.T, g *guard.Guard, h http.HandlerFunc, opts ...middleware.Option) http.Handler {
	t.Helper()
	api := struct {
		Settle http.HandlerFunc `route:"POST /orders/{id}" guard:""`
	}{h}
	if err := middleware.Bind(g, &api, opts...); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	if err := middleware.Register(mux, &api); err != nil {
		t.Fatal(err)
	}
	return mux
}

func onGin(t *testing.T, g *guard.Guard, h http.HandlerFunc, opts ...middleware.Option) http.Handler {
	t.Helper()
	return ginWith(t, g, h, opts)
}

// onGinWithRecovery is what most gin servers are: what is broken off must stay broken.
func onGinWithRecovery(t *testing.T, g *guard.Guard, h http.HandlerFunc, opts ...middleware.Option) http.Handler {
	t.Helper()
	return ginWith(t, g, h, opts, gin.RecoveryWithWriter(io.Discard))
}

func ginWith(t *testing.T, g *guard.Guard, h http.HandlerFunc, opts []middleware.Option, outside ...gin.HandlerFunc) http.Handler {
	t.Helper()
	guarded, err := ginguard.New(g, opts...)
	if err != nil {
		t.Fatal(err)
	}
	e := gin.New()
	e.Use(outside...)
	e.Any("/orders/:id", guarded, func(c *gin.Context) { h(c.Writer, c.Request) })
	return e
}

func bareGin(_ *testing.T, _ *guard.Guard, h http.HandlerFunc, _ ...middleware.Option) http.Handler {
	e := gin.New()
	e.Any("/orders/:id", func(c *gin.Context) {
		c.Request.SetPathValue("id", c.Param("id"))
		h(c.Writer, c.Request)
	})
	return e
}

func boundGin(t *testing.T, g *guard.Guard, h http.HandlerFunc, opts ...middleware.Option) http.Handler {
	t.Helper()
	api := struct {
		Settle gin.HandlerFunc `route:"POST /orders/:id" guard:""`
	}{func(c *gin.Context) { h(c.Writer, c.Request) }}
	if err := ginguard.Bind(g, &api, opts...); err != nil {
		t.Fatal(err)
	}
	e := gin.New()
	e.POST("/orders/:id", api.Settle)
	return e
}
