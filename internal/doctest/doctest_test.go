package doctest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSessionsAreFoundAndPrinted(t *testing.T) {
	page := "text\n\n   ```console\n   $ echo a\n   a\n   ```\n\n```console\n$ true\n```\n"
	found := sessionsOf(page)
	if len(found) != 2 || found[0].text != "$ echo a\na\n" || found[1].text != "$ true\n" {
		t.Fatalf("found %+v", found)
	}
	found[0].output = "$ echo a\nb\n"
	if got, want := strings.Replace(page, found[0].all, found[0].printing(), 1), strings.Replace(page, "   a\n", "   b\n", 1); got != want {
		t.Errorf("updated page\n%s\nwant\n%s", got, want)
	}
}

func TestPlainHidesWhatDiffersEachTime(t *testing.T) {
	const a, b = "held for 1.5s by 8c0a8f2e-0000-4000-8000-000000000001, token 1234", "held for 22ms by 00000000-0000-4000-8000-000000000002, token 567"
	if plain(a) != plain(b) {
		t.Errorf("%q and %q", plain(a), plain(b))
	}
	if plain("permits 3") == plain("permits 4") {
		t.Error("a small number may differ")
	}
}

// A document can't pass whose code or sessions are not as they say.
func TestBrokenDocuments(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("package a\n\nfunc A() {\n\tone()\n\ttwo()\n\tthree()\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ page, want string }{
		{"<!-- a.go -->\n```go\nfunc A() {\n\tone()\n// …\n\tthree()\n```\n", ""},
		{"<!-- a.go -->\n```go\nfunc A() {\n\tthree()\n```\n", "doesn't"},
		{"```go\nfunc A() {\n```\n", "without"},
		{"text\n```go\nfunc A() {\n```\n", "without"},
	} {
		if got := misquotes(tt.page, func(string) (string, error) {
			b, err := os.ReadFile(filepath.Join(root, "a.go"))
			return string(b), err
		}); strings.Join(got, "") == "" != (tt.want == "") || !strings.Contains(strings.Join(got, ""), tt.want) {
			t.Errorf("%q: %q, want %q", tt.page, got, tt.want)
		}
	}
}
