package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/latchkey-go/latchkey/redisson" // what the package in testdata imports
)

// meant are the tests of this repository in which mistakes stand on purpose. Elsewhere, one that is meant has a comment
// that says why.
var meant = []string{
	"cmd/latchkey-vet/vet/declarations_test.go", "guard/adapter/adapter_test.go", "guard/bind_test.go", "guard/entry_test.go", "guard/example_entry_test.go", "guard/example_test.go",
	"guard/guardtest/guardtest_test.go", "guard/lifecycle_test.go", "guard/log_test.go", "guard/mistakes_more_test.go", "guard/mistakes_test.go",
	"guard/registry_test.go", "guard/requesttag_test.go", "guard/spec_test.go", "lock/locktest/brokenlocker_test.go", "middleware/bind_test.go",
	"middleware/example_entry_test.go", "middleware/ginguard/bind_test.go", "middleware/mistakes_test.go",
}

var finding = regexp.MustCompile(`^(\S+\.go):\d+:\d+: `)

// TestNothingIsFoundInThisRepository runs the program on the modules here with their examples and tests: what it reports there is wrong,
// as everything there starts. By itself it reads what is imported once, where go vet would start it for each imported package.
func TestNothingIsFoundInThisRepository(t *testing.T) {
	tool := build(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range modules(t, root) {
		cmd := exec.CommandContext(t.Context(), tool, patterns(t, root, dir)...)
		cmd.Dir = filepath.Join(root, dir)
		out, err := cmd.CombinedOutput()
		found := false
		for line := range strings.Lines(string(out)) {
			m := finding.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			found = true
			file, err := filepath.Rel(root, m[1])
			if err != nil || !slices.Contains(meant, filepath.ToSlash(file)) {
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
	tool := build(t)
	cmd := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+tool, "./vet/testdata/src/units")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "units.go:25:") || !strings.Contains(string(out), "Wait is 5ns") {
		t.Errorf("go vet: %v: %s", err, out)
	}
	cmd = exec.CommandContext(t.Context(), tool, "-latchkeyunit=false", "./vet/testdata/src/units")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("without the analyser: %v: %s", err, out)
	}
}

// build returns the program, which is built once.
func build(t *testing.T) string {
	t.Helper()
	name, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

var dir string // of the program

var built = sync.OnceValues(func() (string, error) {
	tool := filepath.Join(dir, "latchkey-vet")
	if out, err := exec.Command("go", "build", "-race=false", "-o", tool, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return tool, nil
})

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "latchkey-vet"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// elsewhere are modules, and a folder of one, that import much and declare little: .ci/services runs the program there.
var elsewhere = []string{
	"benchmarks", "cmd/latchkey", "cmd/latchkey-gen", "examples/frameworks", "faults", "interceptor/connectguard", "jobs/temporalguard",
	"lock/etcdlock", "lock/mongolock", "lock/sqllock", "lock/zklock", "test",
}

// TestElsewhereIsLookedAt holds that the other job names what this one leaves out.
func TestElsewhereIsLookedAt(t *testing.T) {
	job, err := os.ReadFile("../../.ci/services")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(strings.ReplaceAll(string(job), "\\\n", "")), " ")
	if list := "for dir in " + strings.Join(elsewhere, " ") + `; do (cd "$dir" && "$bin/latchkey-vet"`; !strings.Contains(words, list) {
		t.Errorf(".ci/services runs the program on others than %v", elsewhere)
	}
}

// modules are the folders with a go.mod below root, but those of tools and elsewhere.
func modules(t *testing.T, root string) (dirs []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || path == "tools" || slices.Contains(elsewhere, path)) {
			return fs.SkipDir
		}
		if d.Name() == "go.mod" {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// patterns name the packages of a module: all of them, or those of its folders that are not elsewhere.
func patterns(t *testing.T, root, dir string) (found []string) {
	t.Helper()
	if !slices.ContainsFunc(elsewhere, func(other string) bool { return strings.HasPrefix(other, filepath.ToSlash(dir)+"/") }) {
		return []string{"./..."}
	}
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(elsewhere, filepath.ToSlash(filepath.Join(dir, e.Name()))) {
			found = append(found, "./"+e.Name()+"/...")
		}
	}
	return found
}
