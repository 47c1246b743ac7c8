package vet_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReadme holds that the program in the README gets what stands below it.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string) string {
		m := regexp.MustCompile("(?s)```" + kind + "\n(.*?)```").FindSubmatch(text)
		if m == nil {
			t.Fatalf("README.md has no block of %s", kind)
		}
		return string(m[1])
	}
	pkg := generated(t, "orders", block("go"))
	var got strings.Builder
	for _, d := range diagnostics(t, pkg) {
		at := pkg.Fset.Position(d.Pos)
		fmt.Fprintf(&got, "orders.go:%d:%d: %s\n", at.Line, at.Column, d.Message)
	}
	if got, want := got.String(), block("text"); got != want {
		t.Errorf("the program gets\n%s\nand the README says\n%s", got, want)
	}
}
