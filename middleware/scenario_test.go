package middleware_test

import (
	"net/http"
	"testing"

	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

// TestScenarios plays the one table with a handler of net/http.
func TestScenarios(t *testing.T) {
	adaptertest.Scenarios(t, mount, middleware.Fallback(func(w http.ResponseWriter, _ *http.Request, _ error) { adaptertest.Fell(w) }))
}
