package ginguard_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

// TestScenarios plays the one table with a handler of gin, before a route and in a struct.
func TestScenarios(t *testing.T) {
	fallback := ginguard.Fallback(func(c *gin.Context, _ error) { adaptertest.Fell(c.Writer) })
	t.Run("New", func(t *testing.T) { adaptertest.Scenarios(t, mount, fallback) })
	t.Run("Bind", func(t *testing.T) { adaptertest.Scenarios(t, bound, fallback) })
}

func bound(t *testing.T, g *guard.Guard, h http.HandlerFunc, opts ...middleware.Option) http.Handler {
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
