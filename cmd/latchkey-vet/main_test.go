package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// meant are the tests of this repository in which mistakes stand on purpose. Elsewhere, one that is meant has a comment
// that says why.
var meant = []string{
	"guard/adapter_test.go", "guard/bind_test.go", "guard/entry_test.go", "guard/example_entry_test.go", "guard/example_test.go",
	"guard/guardtest/guardtest_test.go", "guard/lifecycle_test.go", "guard/log_test.go", "guard/mistakes_more_test.go", "guard/mistakes_test.go",
	"guard/registry_test.go", "guard/requesttag_test.go", "guard/spec_test.go", "lock/locktest/brokenlocker_test.go", "middleware/bind_test.go",
	"middleware/example_entry_test.go", "middleware/ginguard/bind_test.go", "middleware/mistakes_test.go",
}

var finding = regexp.MustCompile(`^(?:vet: )?(\S+\.go):\d+:\d+: `)

// TestNothingIsFoundInThisRepository runs the program as go vet does, on all modules with their examples: what it reports there is
// wrong, as everything there starts.
func TestNothingIsFoundInThisRepository(t *testing.T) {
	tool := build(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range modules(t, root) {
		cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"vet"}, flags...), "-vettool="+tool, "./...")...)
		cmd.Dir = filepath.Join(root, dir)
		out, err := cmd.CombinedOutput()
		found := false
		for line := range strings.Lines(string(out)) {
			m := finding.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			found = true
			if file := filepath.ToSlash(filepath.Join(dir, m[1])); !slices.Contains(meant, file) {
				t.Errorf("in %s: %s", dir, line)
			}
		}
		if err != nil && !found {
			t.Errorf("in %s: %v: %s", dir, err, out)
		}
	}
}

// A mistake is an exit status, so that a build ends there.
func TestAMistakeEndsABuild(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+build(t), "./vet/testdata/src/units")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "units.go:24:") || !strings.Contains(string(out), "Wait of Request is 5ns") {
		t.Errorf("go vet: %v: %s", err, out)
	}
	cmd = exec.CommandContext(t.Context(), "go", "vet", "-vettool="+build(t), "-latchkeyunit=false", "./vet/testdata/src/units")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go vet without the analyser: %v: %s", err, out)
	}
}

func build(t *testing.T) string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "latchkey-vet")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return tool
}

// elsewhere are modules that take minutes to compile, and which .ci/services vets.
var elsewhere = []string{"examples/frameworks", "docs/check"}

// modules are the folders with a go.mod below root, but those of tools.
func modules(t *testing.T, root string) (dirs []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || path == "tools") {
			return fs.SkipDir
		}
		if d.Name() == "go.mod" && !slices.Contains(elsewhere, filepath.ToSlash(filepath.Dir(path))) {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}
