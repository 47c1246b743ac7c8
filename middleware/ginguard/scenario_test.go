package ginguard_test

import (
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/middleware/ginguard"
	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

// TestScenarios plays the one table with a handler of gin.
func TestScenarios(t *testing.T) {
	adaptertest.Scenarios(t, mount, ginguard.Fallback(func(c *gin.Context, _ error) { adaptertest.Fell(c.Writer) }))
}
