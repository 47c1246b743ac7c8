package gen

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The packages beside this one are generated, and compiled: they are what all of this should come to.
func TestGenerate(t *testing.T) {
	files, err := Generate("..", "./...")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, Relative("..", f.Path))
		if f.Stale != "" {
			t.Errorf("%s: stale, %s: go -C cmd/latchkey-gen generate ./...", f.Path, f.Stale)
		}
		if formatted, err := format.Source(f.Text); err != nil || !bytes.Equal(formatted, f.Text) {
			t.Errorf("%s is not formatted: %v", f.Path, err)
		}
	}
	want := "clash/clash_latchkey.go shop/functions_latchkey.go shop/generic_latchkey.go shop/orders_latchkey.go store/store_latchkey.go"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("generated %s, want %s", got, want)
	}
}

// module writes packages of this module, by their files' paths, and returns the folder that they are in. A file without a
// package clause gets one, with the imports that most need.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("testdata", "module")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.RemoveAll(dir)
		_ = os.Remove("testdata") // if nobody else is in there
	})
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if !strings.Contains(text, "package ") {
		text = "package p\n\nimport \"context\"\n\n" + text + "\n\nvar _ context.Context\n"
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// generate generates what is in dir, and writes it.
func generate(t *testing.T, dir string) []File {
	t.Helper()
	files, err := Generate(dir, "./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := f.Write(); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Each package uses the wrapper that is generated for it: it does not compile before, and after most changes.
func TestFilesGetStale(t *testing.T) {
	const source = `type Orders interface {
	//latchkey:guard order:#{id}
	Pay(ctx context.Context, id string) error
}

type app struct{ orders *GuardedOrders }

func start(o Orders) (a app, err error) {
	a.orders, err = GuardOrders(nil, o)
	return a, err
}`
	changes := []struct{ source, stale string }{
		{source, ""},
		{strings.ReplaceAll(source, "id string", "id int64"), "it is not what the directives say"},
		{strings.ReplaceAll(source, "id}", "id}; wait=2s"), "it is not what the directives say"},
		{strings.ReplaceAll(source, "Pay(", "Settle("), "it is not what the directives say"},
		{"// no directive\nfunc start() {}", "its source has no directives anymore"},
	}
	files := make(map[string]string)
	for i := range changes {
		files[fmt.Sprintf("p%d/orders.go", i)] = source
	}
	dir := module(t, files)
	for _, f := range generate(t, dir) {
		if f.Stale != "it is not there" {
			t.Errorf("%s: stale %q before it was made", f.Path, f.Stale)
		}
	}
	for i, c := range changes {
		write(t, filepath.Join(dir, fmt.Sprintf("p%d/orders.go", i)), c.source)
	}
	made := generate(t, dir)
	for i, c := range changes {
		if made[i].Stale != c.stale {
			t.Errorf("stale: %q, want %q, of\n%s", made[i].Stale, c.stale, c.source)
		}
	}
	gone := filepath.Dir(made[len(made)-1].Path)
	if _, err := os.Stat(filepath.Join(gone, "orders_latchkey.go")); !os.IsNotExist(err) {
		t.Errorf("what was generated is still there: %v", err)
	}
	if _, err := Generate(gone, "./..."); err == nil || err.Error() != "no directive in ./...: write //latchkey:guard order:#{id}; wait=5s above a method of an interface, or above a function" {
		t.Errorf("without a directive: %v", err)
	}
}

func TestConstraintsAreKept(t *testing.T) {
	for name, want := range map[string]string{
		"orders.go": "orders_latchkey.go", "orders_linux.go": "orders_latchkey_linux.go", "orders_windows_arm64.go": "orders_latchkey_windows_arm64.go",
		"orders_amd64.go": "orders_latchkey_amd64.go", "orders_eu.go": "orders_eu_latchkey.go", "linux.go": "linux_latchkey.go", "a_linux_eu.go": "a_linux_eu_latchkey.go",
	} {
		if got := target("/x/" + name); got != "/x/"+want {
			t.Errorf("target(%s) = %s, want %s", name, got, want)
		}
	}
	dir := module(t, map[string]string{"orders.go": "//go:build !windows && !plan9\n\npackage p\n\nimport \"context\"\n\n//latchkey:guard order:#{id}\nfunc Pay(ctx context.Context, id string) error { return nil }\n"})
	files := generate(t, dir)
	if want := header + "\n//go:build !windows && !plan9\n\npackage p\n"; !strings.HasPrefix(string(files[0].Text), want) {
		t.Errorf("generated %.200s", files[0].Text)
	}
}

func TestOthersFilesAreLeftAlone(t *testing.T) {
	const mine = "package p\n\nconst mine = 1\n"
	dir := module(t, map[string]string{
		"orders.go":          "//latchkey:guard order:#{id}\nfunc Pay(ctx context.Context, id string) error { return nil }",
		"orders_latchkey.go": mine,
	})
	_, err := Generate(dir, ".")
	if err == nil || !strings.Contains(err.Error(), "orders_latchkey.go: is not generated, and stands where the generated code belongs: give it another name") {
		t.Errorf("Generate: %v", err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "orders_latchkey.go")); string(text) != mine {
		t.Errorf("it was overwritten: %s", text)
	}
}
