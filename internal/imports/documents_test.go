package imports

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	testDeclared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	testNamed    = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	testCommand  = regexp.MustCompile("`go test \\./(\\S+) -run (\\w+)`")
)

// tests are all tests of this repository: by their folder, also those of modules below the root.
func tests(t *testing.T) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{}
	err := fs.WalkDir(os.DirFS(root), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path.Join(root, file))
		for _, m := range testDeclared.FindAllSubmatch(text, -1) {
			dir := path.Dir(file)
			if found[dir] == nil {
				found[dir] = map[string]bool{}
			}
			found[dir][string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// What docs/security.md and docs/guarantees.md say is shown by tests that are there, and their commands run what they name.
func TestDocumentsNameTests(t *testing.T) {
	byDir := tests(t)
	all := map[string]bool{}
	for _, names := range byDir {
		for name := range names {
			all[name] = true
		}
	}
	for _, document := range []string{"docs/security.md", "docs/guarantees.md", "docs/behaviour.md"} {
		text, err := os.ReadFile(path.Join(root, document))
		if err != nil {
			t.Fatal(err)
		}
		named := testNamed.FindAllSubmatch(text, -1)
		if len(named) < 20 {
			t.Errorf("%s names %d tests: that can't be all", document, len(named))
		}
		for _, m := range named {
			if !all[string(m[1])] {
				t.Errorf("%s names %s, which is nowhere", document, m[1])
			}
		}
		for _, m := range testCommand.FindAllSubmatch(text, -1) {
			if !byDir[string(m[1])][string(m[2])] {
				t.Errorf("%s: %s is not in %s", document, m[2], m[1])
			}
		}
	}
}
