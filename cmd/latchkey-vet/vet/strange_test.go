package vet_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestStrangeDeclarations holds the analyser to what the program says to declarations as nobody writes them.
func TestStrangeDeclarations(t *testing.T) {
	const name = "declarations_test.go"
	pkg := checked(t, "vet_test", read(t, ".", []string{name}))
	var rows []*ast.CompositeLit
	ast.Inspect(pkg.Syntax[0], func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && spec.Names[0].Name == "declarations" {
			for _, elt := range spec.Values[0].(*ast.CompositeLit).Elts {
				rows = append(rows, elt.(*ast.CompositeLit))
			}
		}
		return true
	})
	if len(rows) != len(declarations) {
		t.Fatalf("%d rows in the source, and %d in the program", len(rows), len(declarations))
	}
	got := make([][]string, len(rows))
	elsewhere := make(map[string]token.Position) // at types
	for _, d := range diagnostics(t, pkg, "latchkeydecl") {
		i := slices.IndexFunc(rows, func(lit *ast.CompositeLit) bool { return lit.Pos() <= d.Pos && d.Pos < lit.End() })
		if i >= 0 {
			got[i] = append(got[i], d.Message)
		} else {
			elsewhere[d.Message] = pkg.Fset.Position(d.Pos)
		}
	}
	said := make(map[string]bool)
	refused := 0
	for i, tt := range declarations {
		var want []string
		if err := start(tt.start); err != "" {
			want = strings.Split(err, "\n")
			refused++
		}
		here := got[i]
		for _, line := range want {
			said[line] = true
			if _, ok := elsewhere[line]; ok {
				here = append(here, line)
			}
		}
		slices.Sort(here)
		slices.Sort(want)
		if tt.quiet && len(want) > 0 {
			want = nil
		}
		if !slices.Equal(here, want) {
			t.Errorf("%s: the analyser says\n%s\nand the program\n%s", tt.name, strings.Join(here, "\n"), strings.Join(want, "\n"))
		}
	}
	for message, at := range elsewhere {
		if !said[message] {
			t.Errorf("%v: %s", at, message)
		}
	}
	if refused < 60 {
		t.Errorf("%d of %d are refused", refused, len(declarations))
	}
}

// start is what the program says when it starts. Must says it in a panic.
func start(declare func() error) (said string) {
	defer func() {
		if v := recover(); v != nil {
			said = v.(error).Error()
		}
	}()
	if err := declare(); err != nil {
		return err.Error()
	}
	return ""
}
