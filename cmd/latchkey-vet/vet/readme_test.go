package vet_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/latchkey-go/latchkey/cmd/latchkey-vet/vet"
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
	pkg := generated(t, filepath.Join(root(t), "cmd/latchkey-vet/vet/testdata/src/readme"), block("go"))
	graph, err := checker.Analyze(vet.Analyzers(), []*packages.Package{pkg}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, action := range graph.Roots {
		for _, d := range action.Diagnostics {
			at := pkg.Fset.Position(d.Pos)
			got = append(got, fmt.Sprintf("%03d orders.go:%d:%d: %s\n", at.Line, at.Line, at.Column, d.Message))
		}
	}
	slices.Sort(got)
	for i, line := range got {
		got[i] = line[4:]
	}
	if got, want := strings.Join(got, ""), block("text"); got != want {
		t.Errorf("the program gets\n%s\nand the README says\n%s", got, want)
	}
}
