package imports

import (
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// updateAPI has TestAPI write down what is exported now.
var updateAPI = flag.Bool("update", false, "write testdata/api.txt anew")

const apiFile = "testdata/api.txt"

// What the root module exports is a file that a change of it changes, too, so that no name comes or goes unseen.
func TestAPI(t *testing.T) {
	now := exported(t)
	if *updateAPI {
		if err := os.WriteFile(apiFile, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	was, is := declarations(string(before)), declarations(now)
	report := func(what string, these, others []string) {
		for _, d := range these {
			if !slices.Contains(others, d) {
				t.Errorf("%s: %s", what, d)
			}
		}
	}
	report("gone", was, is)
	report("new", is, was)
	if t.Failed() {
		t.Errorf("if that is meant, type: go test ./internal/imports -run TestAPI -update, commit internal/imports/%s, and say in CHANGELOG.md what breaks callers", apiFile)
	}
}

// declarations are those of a listing, each with its package in front. One goes on in lines that begin with a tab or a bracket.
func declarations(text string) (all []string) {
	var pkg string
	for line := range strings.Lines(text) {
		switch name, ok := strings.CutPrefix(line, "package "); {
		case ok:
			pkg = strings.TrimSpace(name)
		case strings.ContainsRune("\t)}", rune(line[0])):
			all[len(all)-1] += line
		case line != "\n":
			all = append(all, pkg+": "+line)
		}
	}
	return all
}

// exported lists the public packages of the root module, and what each of them exports, sorted and without comments.
func exported(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(root), ".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || dir == "." {
			return err
		}
		_, nested := os.Stat(path.Join(root, dir, "go.mod"))
		if name := d.Name(); nested == nil || dir == "examples" || dir == "test" || name == "internal" || name == "testdata" || strings.ContainsRune("._", rune(name[0])) {
			return fs.SkipDir
		}
		decls := declarationsOf(t, dir)
		if len(decls) > 0 {
			fmt.Fprintf(&b, "package %s\n%s\n\n", dir, strings.Join(decls, "\n"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String()) + "\n"
}

// declarationsOf are the exported declarations of the package in dir, if there is one that others can import.
func declarationsOf(t *testing.T, dir string) []string {
	t.Helper()
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled = "linux", "amd64", false // the same list everywhere
	found, err := context.ImportDir(filepath.Join(root, dir), 0)
	if _, none := err.(*build.NoGoError); none || err == nil && found.Name == "main" {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range found.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(root, dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, dir)
	if err != nil {
		t.Fatal(err)
	}
	l := &listing{t: t, fset: fset}
	l.values(p.Consts, p.Vars)
	l.functions(p.Funcs)
	for _, typ := range p.Types {
		l.add(typ.Decl)
		l.values(typ.Consts, typ.Vars)
		l.functions(typ.Funcs, typ.Methods)
	}
	slices.Sort(l.decls)
	return l.decls
}

// listing collects declarations as they are printed.
type listing struct {
	t     *testing.T
	fset  *token.FileSet
	decls []string
}

func (l *listing) values(lists ...[]*doc.Value) {
	for _, v := range slices.Concat(lists...) {
		l.add(v.Decl)
	}
}

func (l *listing) functions(lists ...[]*doc.Func) {
	for _, f := range slices.Concat(lists...) {
		f.Decl.Body = nil
		l.add(f.Decl)
	}
}

// add prints one declaration, without the blank lines that its comments leave.
func (l *listing) add(decl ast.Decl) {
	var b strings.Builder
	if err := (&printer.Config{Mode: printer.TabIndent | printer.UseSpaces, Tabwidth: 8}).Fprint(&b, l.fset, decl); err != nil {
		l.t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(b.String(), "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	l.decls = append(l.decls, strings.Join(lines, "\n"))
}
