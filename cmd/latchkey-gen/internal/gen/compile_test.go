package gen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A module that has only the tool would be told that an import has no name.
func TestModuleWithoutLatchkeyIsToldWhatToType(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/shop\n\ngo 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "orders.go"), "package shop\n\nimport \"context\"\n\n"+
		"type Orders interface {\n\t//latchkey:guard order:#{id}\n\tPay(ctx context.Context, id string) error\n}\n")
	_, err := Generate(dir, ".")
	const want = "this module does not require Latchkey yet, which the code to be generated imports: type go get github.com/latchkey-go/latchkey"
	if err == nil || err.Error() != want {
		t.Errorf("Generate: %v, want %s", err, want)
	}
}

// Of a type whose package is internal to another module, the type checker says nothing.
func TestImportsThatTheGoCommandRefusesAreNotWritten(t *testing.T) {
	dir := module(t, map[string]string{
		"lib/internal/secret/secret.go": "package secret\n\ntype Order struct{ ID string }\n",
		"lib/lib.go": "package lib\n\nimport \"github.com/latchkey-go/latchkey/cmd/latchkey-gen/internal/gen/testdata/HERE/lib/internal/secret\"\n\n" +
			"type Store interface{ Put(secret.Order) }\n",
		"p/orders.go": "package p\n\nimport (\n\t\"context\"\n\n\t\"github.com/latchkey-go/latchkey/cmd/latchkey-gen/internal/gen/testdata/HERE/lib\"\n)\n\n" +
			"type Orders interface {\n\t//latchkey:guard order:#{id}\n\tPay(ctx context.Context, id string) error\n\tlib.Store\n}\n",
	})
	for _, name := range []string{"lib/lib.go", "p/orders.go"} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, strings.ReplaceAll(string(text), "HERE", filepath.Base(dir)))
	}
	_, err := Generate(dir, "./...")
	if err == nil || !strings.Contains(err.Error(), "p/orders_latchkey.go:9:2: what is generated does not compile: use of internal package ") {
		t.Errorf("Generate: %v", err)
	}
}
