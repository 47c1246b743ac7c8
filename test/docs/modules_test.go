package docs

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// Each module is kept up to date, and each that users require is released.
func TestNoModuleIsForgotten(t *testing.T) {
	root := os.DirFS("../..")
	updates, err := fs.ReadFile(root, ".github/dependabot.yml")
	if err != nil {
		t.Fatal(err)
	}
	release, err := fs.ReadFile(root, "tools/release.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*/go.mod", "*/*/go.mod", "*/*/*/go.mod"} {
		files, err := fs.Glob(root, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			dir := path.Dir(file)
			if !strings.Contains(string(updates), "\n      - /"+dir+"\n") {
				t.Errorf(".github/dependabot.yml does not list %s", dir)
			}
			top, name, _ := strings.Cut(dir, "/")
			users := top == "cmd" || top == "lock" && !strings.Contains(name, "/") || top == "interceptor" || top == "jobs"
			if users && !strings.Contains(string(release), dir) {
				t.Errorf("tools/release.sh does not release %s", dir)
			}
		}
	}
}
