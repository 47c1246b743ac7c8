package middleware_test

import (
	"net/http"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

// TestScenarios plays the one table with a handler of net/http, in a mux and in a struct.
func TestScenarios(t *testing.T) {
	fallback := middleware.Fallback(func(w http.ResponseWriter, _ *http.Request, _ error) { adaptertest.Fell(w) })
	t.Run("New", func(t *testing.T) { adaptertest.Scenarios(t, mount, fallback) })
	t.Run("Bind", func(t *testing.T) { adaptertest.Scenarios(t, bound, fallback) })
}

func bound(t *testing.T, g *guard.Guard, h http.HandlerFunc, opts ...middleware.Option) http.Handler {
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
