// Package keytest shows that what was compiled once may run for many requests at once.
package keytest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// Goroutines is how many requests run at once, each with other facts than the others.
const Goroutines = 8

// AtOnce calls run in several goroutines at once, and holds each answer to the one that run gave alone. What is compiled is
// shared by all requests: a closure that assigns to a variable outside of itself mixes up two of them, which the race
// detector sees even where the answers happen to be right.
func AtOnce(t *testing.T, what string, run func(i int) (keys []string, err error)) {
	t.Helper()
	answer := func(i int) string {
		keys, err := run(i)
		return fmt.Sprintf("%q, %v", keys, err)
	}
	var alone [Goroutines]string
	for i := range alone {
		alone[i] = answer(i)
	}
	var others sync.WaitGroup
	start := make(chan struct{})
	for i, want := range alone {
		others.Go(func() {
			<-start
			for range 3 {
				if got := answer(i); got != want {
					t.Errorf("%s comes to %s among others, and to %s alone", what, got, want)
				}
			}
		})
	}
	close(start)
	others.Wait()
}

// Literals returns the texts in the tests of the package that is tested: among them all templates, conditions and
// expressions of its tables, also of those that will be written.
func Literals(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value) // which the compiler of Go has read before
				texts = append(texts, text)
			}
			return true
		})
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}
