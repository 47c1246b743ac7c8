package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const orders = `package orders

import "context"

type Orders interface {
	//latchkey:guard order:#{id}
	Pay(ctx context.Context, id string) error
}
`

// in writes a package below this folder with orders.go, and returns its path as the go command has it.
func in(t *testing.T, source string) string {
	t.Helper()
	dir, err := os.MkdirTemp(".", "_orders")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "orders.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	return "./" + dir
}

func TestRun(t *testing.T) {
	dir := in(t, orders)
	made := filepath.Join(dir, "orders_latchkey.go")
	prints := func(want int, out string, args ...string) {
		t.Helper()
		var b strings.Builder
		if status := run(args, &b); status != want || !strings.HasPrefix(b.String(), out) || out == "" && b.Len() > 0 {
			t.Errorf("run(%q) = %d, and printed %q, want %d and %q", args, status, b.String(), want, out)
		}
	}
	prints(1, made+": stale, it is not there: run go generate\n", "-check", dir)
	if _, err := os.Stat(made); !os.IsNotExist(err) {
		t.Errorf("-check has written: %v", err)
	}
	prints(0, "", dir)
	prints(0, "", "-check", dir)
	text, err := os.ReadFile(made)
	if err != nil || !strings.Contains(string(text), "func GuardOrders(") {
		t.Errorf("%v, %s", err, text)
	}
	if err := os.WriteFile(made, append(text, "// changed\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	prints(1, made+": stale, it is not what the directives say: run go generate\n", "-check", dir)
	if err := os.WriteFile(filepath.Join(dir, "orders.go"), []byte("package orders\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	prints(1, made+": stale, its source has no directives anymore: run go generate\n", "-check", dir)
	prints(0, "", dir)
	prints(1, "no directive in "+dir, dir)
	prints(2, "flag provided but not defined: -chekc", "-chekc")
	prints(0, "usage: latchkey-gen", "-help")
	prints(2, "orders.go is a file: give packages, such as . or ./...\n", "orders.go")

	bad := in(t, strings.Replace(orders, "#{id}", "#{di}", 1))
	prints(1, filepath.Join(bad, "orders.go")+":6:2: Orders.Pay: key: keyexpr: unknown name di, did you mean id?", "-check", bad)
}
