package vet_test

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
)

// tested are the folders whose sources the tests check, below the root module. The others of these tests import no more.
var tested = []string{"guard", "middleware", "middleware/ginguard"}

// golden are packages in testdata that say what is found in them.
var golden = []string{"requests", "binds", "options", "handlers", "ginhandlers", "rpc", "units", "held"}

// world is what the sources have in common: they are parsed and checked here, and what they import comes compiled, all in one go.
type world struct {
	fset    *token.FileSet
	imports types.Importer
}

var theWorld = sync.OnceValues(func() (*world, error) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		return nil, err
	}
	imports := make(map[string]bool)
	for _, dir := range tested {
		pkg, err := build.ImportDir(filepath.Join(root, dir), 0)
		if err != nil {
			return nil, err
		}
		note(imports, pkg.XTestImports)
	}
	for _, name := range append(golden, "fixes") {
		pkg, err := build.ImportDir(filepath.Join("testdata/src", name), 0)
		if err != nil {
			return nil, err
		}
		note(imports, pkg.Imports)
	}
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedExportFile | packages.NeedImports | packages.NeedDeps, Dir: root,
	}, slices.Sorted(maps.Keys(imports))...)
	if err != nil {
		return nil, err
	}
	files := make(map[string]string)
	packages.Visit(pkgs, nil, func(p *packages.Package) { files[p.PkgPath] = p.ExportFile })
	w := &world{fset: token.NewFileSet()}
	w.imports = importer.ForCompiler(w.fset, "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("nothing in testdata imports %s", path)
		}
		return os.Open(files[path])
	})
	return w, nil
})

func note(set map[string]bool, names []string) {
	for _, name := range names {
		set[name] = true
	}
}

// checked is a package of these files, by their names.
func checked(t *testing.T, path string, files map[string][]byte) *packages.Package {
	t.Helper()
	w, err := theWorld()
	if err != nil {
		t.Fatal(err)
	}
	pkg := &packages.Package{ID: path, PkgPath: path, Fset: w.fset, TypesSizes: types.SizesFor("gc", build.Default.GOARCH), TypesInfo: &types.Info{
		Types: make(map[ast.Expr]types.TypeAndValue), Instances: make(map[*ast.Ident]types.Instance), Defs: make(map[*ast.Ident]types.Object),
		Uses: make(map[*ast.Ident]types.Object), Implicits: make(map[ast.Node]types.Object), Selections: make(map[*ast.SelectorExpr]*types.Selection),
		Scopes: make(map[ast.Node]*types.Scope), FileVersions: make(map[*ast.File]string),
	}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, err := parser.ParseFile(w.fset, name, files[name], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		pkg.Syntax, pkg.Name = append(pkg.Syntax, file), file.Name.Name
	}
	conf := types.Config{Importer: w.imports, Sizes: pkg.TypesSizes, Error: func(err error) { t.Error(err) }}
	if pkg.Types, err = conf.Check(path, w.fset, pkg.Syntax, pkg.TypesInfo); err != nil {
		t.FailNow()
	}
	return pkg
}

// read are the files of a folder.
func read(t *testing.T, dir string, names []string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Join(dir, name)] = text
	}
	return files
}

// generated is a package of one file that is not there.
func generated(t *testing.T, name, text string) *packages.Package {
	t.Helper()
	return checked(t, name, map[string][]byte{name + ".go": []byte(text)})
}
