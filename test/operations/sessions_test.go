package operations

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/doctest"
)

// Whoever types what stands in the documents sees what stands there.
func TestSessions(t *testing.T) {
	player := doctest.Player{Root: "../..", Tools: []string{"hold", "rehearse", "../../cmd/latchkey"}}
	if n := player.Play(t, doctest.Pages(t, "../../docs/operations/*.md")...); n < 15 {
		t.Errorf("%d sessions in the documents: that can't be all", n)
	}
}
