package redisson_test

import (
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wallClock is where this package may look at the wall clock, and why.
var wallClock = map[string]string{
	"suspension": "the wall clock goes on while the machine is suspended, and the monotonic one does not",
	"nextLook":   "clients look at times that are spread over one clock; a step of it has one look come sooner or later, by a round at most",
	"describe":   "since when a lock is held is shown to people",
	"Frees":      "when a lock was freed is by the server's clock, and shown to people",
	"newCard":    "since when there is a client is shown to people",
	"readWaiter": "a deadline in a queue is by the server's clock, and shown to people",
}

// A step of the wall clock changes nothing, but for the check after a suspend: that asks Redis once more. All times of the package
// come from time.Now or the time package's timers, so each has a reading of the monotonic clock, by which it is compared and
// subtracted. What would lose that reading, or make a time without one, is found here by its type.
func TestWallClockDecidesNothing(t *testing.T) {
	used := map[string]bool{}
	for _, dir := range []string{".", "internal/pubsub", "../internal/reply"} {
		for _, use := range wallClockUses(t, dir) {
			used[use.function] = true
			if wallClock[use.function] == "" {
				t.Errorf("%s: %s in %s is by the wall clock", use.pos, use.what, use.function)
			}
		}
	}
	for function := range wallClock {
		if !used[function] {
			t.Errorf("%s does not look at the wall clock any more: take it from the list", function)
		}
	}
}

// The test above finds what it is there for.
func TestWallClockUsesAreFound(t *testing.T) {
	dir := t.TempDir()
	const text = `package p
import "time"
func steps(a, b time.Time, d time.Duration) {
	_ = a.Round(0).Sub(b)
	_ = a.Unix() - b.UnixMilli()
	_ = time.Unix(1, 2)
	_ = a == b
	f := a.UnixNano
	_, _ = f, d.Round(1) // a duration's is harmless
	_ = a.Sub(b) + time.Since(a)
}`
	check(t, os.WriteFile(filepath.Join(dir, "p.go"), []byte(text), 0o600))
	var found []string
	for _, use := range wallClockUses(t, dir) {
		found = append(found, use.what)
	}
	if want := []string{"Round", "Unix", "UnixMilli", "time.Unix", "==", "UnixNano"}; !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

type clockUse struct {
	pos            token.Position
	function, what string
}

// monotonic are the methods of time.Time, and the functions and variables of package time that deal with it, that keep to the
// monotonic clock where there is one.
var monotonic = []string{"Add", "Sub", "After", "Before", "Compare", "IsZero", "time.Now", "time.Since", "time.Until"}

func wallClockUses(t *testing.T, dir string) (uses []clockUse) {
	t.Helper()
	fset := token.NewFileSet()
	packages, err := parser.ParseDir(fset, dir, func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, parser.SkipObjectResolution) //nolint:staticcheck // there are no build tags here
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		var files []*ast.File
		for _, name := range slices.Sorted(maps.Keys(p.Files)) {
			files = append(files, p.Files[name])
		}
		known := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
		config := types.Config{Importer: onlyTime{importer.ForCompiler(fset, "source", nil)}, Error: func(error) {}}
		_, _ = config.Check(dir, fset, files, known) // with errors: other packages are not known
		for _, f := range files {
			uses = append(uses, usesIn(fset, f, known)...)
		}
	}
	return uses
}

func usesIn(fset *token.FileSet, f *ast.File, known *types.Info) (uses []clockUse) {
	for _, d := range f.Decls {
		function := "a declaration"
		if fn, ok := d.(*ast.FuncDecl); ok {
			function = fn.Name.Name
		}
		ast.Inspect(d, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.Ident:
				what = clockName(known.Uses[n])
			case *ast.BinaryExpr:
				if (n.Op == token.EQL || n.Op == token.NEQ) && isTime(known.Types[n.X].Type) {
					what = n.Op.String()
				}
			}
			if what != "" && !slices.Contains(monotonic, what) {
				uses = append(uses, clockUse{fset.Position(n.Pos()), function, what})
			}
			return true
		})
	}
	return uses
}

// clockName names a method of time.Time, or a function of package time that takes or makes one.
func clockName(o types.Object) string {
	fn, ok := o.(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != "time" {
		return ""
	}
	sig := fn.Type().(*types.Signature)
	if sig.Recv() != nil {
		if recv := sig.Recv().Type(); isTime(recv) {
			return fn.Name()
		}
		return ""
	}
	for v := range sig.Results().Variables() {
		if isTime(v.Type()) {
			return "time." + fn.Name()
		}
	}
	return ""
}

func isTime(t types.Type) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := t.(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "time" && n.Obj().Name() == "Time"
}

// onlyTime imports package time and what it needs; others are left out, which makes what they give of no known type.
type onlyTime struct{ types.Importer }

// Import implements [types.Importer].
func (o onlyTime) Import(path string) (*types.Package, error) {
	if path != "time" {
		return nil, errors.New("not needed")
	}
	return o.Importer.Import(path)
}
