// Package gotypetest loads the source of the package that is tested, so that what a check says of its types can be compared
// with what it says of the compiled ones.
package gotypetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Package is a package of the source, type-checked with its tests.
type Package struct {
	Fset  *token.FileSet
	Files []*ast.File
	Types *types.Package
	Info  *types.Info
}

// listed is what the go command says about a package.
type listed struct {
	Dir, ImportPath, Name, Export, ForTest string

	GoFiles []string
}

// Load loads the package in the folder of the test: with the tests that are inside of it, or for outside, those that are not.
func Load(t testing.TB, outside bool) *Package {
	t.Helper()
	exports := make(map[string]string)
	var found listed
	wd, _ := os.Getwd()
	for _, p := range list(t) {
		path, _, ours := strings.Cut(p.ImportPath, " ")
		if !ours && exports[path] != "" {
			continue // the one that is compiled for the tests has the last word
		}
		exports[path] = p.Export
		if p.Dir == wd && p.ForTest != "" && strings.HasSuffix(path, "_test") == outside {
			found = p
		}
	}
	if found.ImportPath == "" {
		t.Fatal("gotypetest: no such package")
	}
	pkg := &Package{Fset: token.NewFileSet(), Info: &types.Info{
		Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object),
	}}
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(pkg.Fset, filepath.Join(found.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		pkg.Files = append(pkg.Files, file)
	}
	conf := types.Config{Importer: importer.ForCompiler(pkg.Fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, errors.New("no export data for " + path)
		}
		return os.Open(exports[path])
	})}
	var err error
	if pkg.Types, err = conf.Check(found.ImportPath, pkg.Fset, pkg.Files, pkg.Info); err != nil {
		t.Fatal(err)
	}
	return pkg
}

// list asks the go command for the package in the folder, with its tests and all that they import.
func list(t testing.TB) (all []listed) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-test", "-json=Dir,ImportPath,Name,Export,ForTest,GoFiles", ".")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// Type returns the type called name, also one that a function declares.
func (p *Package) Type(t testing.TB, name string) types.Type {
	t.Helper()
	for _, obj := range p.Info.Defs {
		if named, ok := obj.(*types.TypeName); ok && named.Name() == name {
			return named.Type()
		}
	}
	t.Fatalf("gotypetest: no type %s", name)
	return nil
}
