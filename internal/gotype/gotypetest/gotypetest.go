// Package gotypetest loads the source of the package that is tested, so that what a check says of its types can be compared
// with what it says of the compiled ones.
package gotypetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	Dir, ImportPath, Export, ForTest string
	GoFiles                          []string
}

// Load loads the package in the folder of the test: with the tests that are inside of it, or for outside, those that are not.
func Load(outside bool) (*Package, error) {
	found, exports, err := list(outside)
	if err != nil {
		return nil, err
	}
	pkg := &Package{Fset: token.NewFileSet(), Info: &types.Info{
		Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object),
	}}
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(pkg.Fset, filepath.Join(found.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		pkg.Files = append(pkg.Files, file)
	}
	conf := types.Config{Importer: importer.ForCompiler(pkg.Fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, errors.New("no export data for " + path)
		}
		return os.Open(exports[path])
	})}
	pkg.Types, err = conf.Check(found.ImportPath, pkg.Fset, pkg.Files, pkg.Info)
	return pkg, err
}

// list asks the go command for the package in the folder with its tests, and for the compiled types of all that they import.
func list(outside bool) (found listed, exports map[string]string, err error) {
	wd, err := os.Getwd()
	if err != nil {
		return found, nil, err
	}
	args := append([]string{"list", "-export", "-deps", "-test", "-json=Dir,ImportPath,Export,ForTest,GoFiles"}, flags...)
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return found, nil, fmt.Errorf("go list: %w", err)
	}
	exports = make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return found, exports, nil
		} else if err != nil {
			return found, nil, err
		}
		path, _, ours := strings.Cut(p.ImportPath, " ")
		if ours || exports[path] == "" { // the one that is compiled for the tests has the last word
			exports[path] = p.Export
		}
		if p.Dir == wd && p.ForTest != "" && strings.HasSuffix(path, "_test") == outside {
			found = p
		}
	}
}

// Type returns the type called name, also one that a function declares. There must be one.
func (p *Package) Type(name string) types.Type {
	for _, obj := range p.Info.Defs {
		if named, ok := obj.(*types.TypeName); ok && named.Name() == name {
			return named.Type()
		}
	}
	panic("gotypetest: no type " + name)
}
