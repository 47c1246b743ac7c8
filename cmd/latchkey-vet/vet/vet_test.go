package vet_test

import (
	"bytes"
	"cmp"
	"fmt"
	"go/build"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/latchkey-go/latchkey/cmd/latchkey-vet/vet"
)

// The packages in testdata say on each line what is found there. Package analysistest, which has these comments, too, would load all
// that they import from source: that takes minutes.
func TestWhatIsFound(t *testing.T) {
	for _, name := range golden {
		t.Run(name, func(t *testing.T) { wanted(t, fromTestdata(t, name)) })
	}
}

// The golden file of fixes is what it looks like afterwards.
func TestFixes(t *testing.T) {
	pkg := fromTestdata(t, "fixes")
	wanted(t, pkg)
	name := filepath.Join("testdata/src/fixes", "fixes.go")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range slices.Backward(diagnostics(t, pkg, "latchkeydecl")) {
		for _, fix := range d.SuggestedFixes {
			edit := fix.TextEdits[0]
			text = slices.Replace(text, pkg.Fset.Position(edit.Pos).Offset, pkg.Fset.Position(edit.End).Offset, edit.NewText...)
		}
	}
	want, err := os.ReadFile(name + ".golden")
	if err != nil {
		t.Fatal(err)
	}
	if text, err = format.Source(text); err != nil || !bytes.Equal(text, want) {
		t.Errorf("%v: %s is mended to\n%s", err, name, text)
	}
}

func TestAnalysersAreValid(t *testing.T) {
	if err := analysis.Validate(vet.Analyzers()); err != nil {
		t.Error(err)
	}
}

func fromTestdata(t *testing.T, name string) *packages.Package {
	t.Helper()
	dir := filepath.Join("testdata/src", name)
	folder, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	return checked(t, name, read(t, dir, folder.GoFiles))
}

var (
	comment = regexp.MustCompile("(?://|/\\*) want ((?:`[^`]*` ?)+)")
	quoted  = regexp.MustCompile("`([^`]*)`")
)

// wanted holds what is found in a package to the comments in it, such as // want `a regular expression`.
func wanted(t *testing.T, pkg *packages.Package) {
	t.Helper()
	want := make(map[string][]string)
	for _, file := range pkg.Syntax {
		for _, group := range file.Comments {
			for _, c := range group.List {
				p := pkg.Fset.Position(c.Pos())
				if m := comment.FindStringSubmatch(c.Text); m != nil {
					for _, re := range quoted.FindAllStringSubmatch(m[1], -1) {
						at := fmt.Sprintf("%s:%d", p.Filename, p.Line)
						want[at] = append(want[at], re[1])
					}
				}
			}
		}
	}
	for _, d := range diagnostics(t, pkg) {
		p := pkg.Fset.Position(d.Pos)
		at := fmt.Sprintf("%s:%d", p.Filename, p.Line)
		i := slices.IndexFunc(want[at], func(re string) bool { return regexp.MustCompile(re).MatchString(d.Message) })
		if i < 0 {
			t.Errorf("%s: found, and not wanted: %s", at, d.Message)
			continue
		}
		want[at] = slices.Delete(want[at], i, i+1)
	}
	for at, missing := range want {
		for _, re := range missing {
			t.Errorf("%s: wanted, and not found: %s", at, re)
		}
	}
}

// diagnostics are what the analysers of these names, or all, find in a package, in the order of the source.
func diagnostics(t *testing.T, pkg *packages.Package, names ...string) (found []analysis.Diagnostic) {
	t.Helper()
	analysers := slices.DeleteFunc(vet.Analyzers(), func(a *analysis.Analyzer) bool { return len(names) > 0 && !slices.Contains(names, a.Name) })
	graph, err := checker.Analyze(analysers, []*packages.Package{pkg}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range graph.Roots {
		if action.Err != nil {
			t.Fatal(action.Err)
		}
		if lost := action.Result.([]string); len(lost) > 0 {
			t.Errorf("%s panics: %q", action.Analyzer.Name, lost)
		}
		found = append(found, action.Diagnostics...)
	}
	slices.SortFunc(found, func(a, b analysis.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Pos, b.Pos), strings.Compare(a.Message, b.Message))
	})
	return found
}
