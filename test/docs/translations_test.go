package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/internal/doctest"
)

var (
	fenced = regexp.MustCompile("(?ms)^```.*?^```$|^(?:    \\S[^\n]*\n)+")
	inline = regexp.MustCompile("`[^`\n]+`")
)

// same are the parts of a page that a translation has to have, too: blocks of code, and the code in each row of each table.
func same(page string) (parts []string) {
	parts = fenced.FindAllString(page, -1)
	for line := range strings.Lines(fenced.ReplaceAllString(page, "")) {
		if strings.HasPrefix(line, "|") {
			code := inline.FindAllString(line, -1)
			slices.Sort(code) // words may stand in another order
			parts = append(parts, strings.Join(code, " "))
		}
	}
	return parts
}

// Code and tables of a translation are those of the page that it translates.
func TestTranslationsHaveTheSameCodeAndTables(t *testing.T) {
	for _, page := range doctest.Pages(t, "../../README.zh-CN.md", "../../docs/*/*.zh-CN.md") {
		translated, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		original, err := os.ReadFile(strings.TrimSuffix(page, ".zh-CN.md") + ".md")
		if err != nil {
			t.Fatal(err)
		}
		got, want := same(string(translated)), same(string(original))
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("%s: part %d is\n%s\nand in the original\n%s", page, i+1, got[i], want[i])
				break
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s has %d blocks and rows, and the original %d", page, len(got), len(want))
		}
	}
}
