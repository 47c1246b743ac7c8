package docs

import (
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/internal/doctest"
)

var pages = []string{"../../docs/*.md", "../../docs/start/*.md", "../../docs/migrate/*.md", "../../docs/agents/*.md"}

// Whoever types what stands in the documents sees what stands there.
func TestSessions(t *testing.T) {
	player := doctest.Player{Root: "../..", Tools: []string{"../../cmd/latchkey"}}
	originals := slices.DeleteFunc(doctest.Pages(t, pages...), func(page string) bool { return strings.HasSuffix(page, ".zh-CN.md") })
	if n := player.Play(t, originals...); n < 4 {
		t.Errorf("%d sessions in the documents: that can't be all", n)
	}
}

// Code in the documents is code that is compiled and tested elsewhere.
func TestQuotes(t *testing.T) {
	doctest.Quotes(t, "../..", doctest.Pages(t, append(pages, "../../README.md")...)...)
}
