package imports

import (
	"cmp"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the folder of the root module, seen from this one.
const root = "../.."

// allowed names every module that go.mod may require for the project's own code, and what it is there for. What these
// bring along is marked "// indirect" there.
var allowed = map[string]string{
	expr:                 "evaluates the holes of key templates",
	gin:                  "middleware/ginguard adapts to it",
	goredis:              "redisson talks to Redis through the client that its users have",
	grpc:                 "interceptor adapts to it",
	miniredis:            "an embedded Redis, for the demo and for tests where there is no server",
	otel:                 "guard's spans and metrics, and redisson's metrics: attributes",
	otel + "/metric":     "guard's metrics, and redisson's: held, lost, renewed and asked are known only there",
	otel + "/trace":      "guard's spans",
	otel + "/sdk":        "tests read the spans back",
	otel + "/sdk/metric": "tests read the metrics back",
	protobuf:             "interceptor reads the fields of a request",
	rpc:                  "interceptor answers with RetryInfo",
}

// Every package has a row, and every import in it, under all build constraints, is one that the row allows.
func TestImports(t *testing.T) {
	requirements := requirements(t)
	strangers := map[string]bool{}
	for _, imp := range imports(t) {
		if _, known := rows[imp.from]; !known {
			strangers[imp.from] = true
			continue
		}
		if problem := imp.fault(requirements); problem != "" {
			t.Errorf("%s: %s", imp.pos, problem)
		}
	}
	for pkg := range strangers {
		t.Errorf("%s has no row in internal/imports: say on which floor it stands and what it may import", pkg)
	}
}

// A dependency is a decision: it comes with a line in allowed, and leaves with it.
func TestRequirements(t *testing.T) {
	required := requirements(t)
	for mod, indirect := range required {
		if !indirect && allowed[mod] == "" {
			t.Errorf("go.mod requires %s: say in internal/imports what it is for, or do without it", mod)
		}
	}
	for mod := range allowed {
		if _, ok := required[mod]; !ok {
			t.Errorf("internal/imports allows %s, which go.mod no longer requires", mod)
		}
	}
}

// importSpec is one line of an import clause.
type importSpec struct {
	pos  string // file:line
	from string // the importing package's path below the module
	path string // the imported package's full path
	test bool
}

// fault says what is wrong with the import, and nothing if all is well.
func (imp importSpec) fault(requirements map[string]bool) string {
	if first, _, _ := strings.Cut(imp.path, "/"); !strings.Contains(first, ".") {
		return "" // only the standard library has no domain in front
	}
	mod, to := resolve(imp.path, requirements)
	if mod == module {
		return fault(imp.from, to, imp.test)
	}
	return moduleFault(imp.from, mod, imp.test)
}

// imports are all those of the module's files. They are read with package os, so that go test knows when a result in its
// cache is out of date.
func imports(t *testing.T) []importSpec {
	t.Helper()
	var specs []importSpec
	err := fs.WalkDir(os.DirFS(root), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && elsewhere(file):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(file, ".go"):
			specs = append(specs, fileImports(t, file)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(specs) == 0 {
		t.Fatal("found no imports at all")
	}
	return specs
}

// elsewhere reports whether a folder is no part of the module, by the go command's rules.
func elsewhere(dir string) bool {
	base := path.Base(dir)
	if dir == "." {
		return false
	}
	_, err := os.Stat(filepath.Join(root, dir, "go.mod"))
	return err == nil || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

func fileImports(t *testing.T, file string) []importSpec {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, filepath.Join(root, file), nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var specs []importSpec
	for _, i := range f.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		pos := file + ":" + strconv.Itoa(fset.Position(i.Pos()).Line)
		specs = append(specs, importSpec{pos, path.Dir(file), name, strings.HasSuffix(file, "_test.go")})
	}
	return specs
}

// resolve splits an import path into its module, the longest of those known that it starts with, and the rest. A path of
// no known module is its own.
func resolve(name string, requirements map[string]bool) (mod, rest string) {
	inside := func(mod string) bool { return name == mod || strings.HasPrefix(name, mod+"/") }
	candidates := slices.Collect(maps.Keys(requirements))
	candidates = slices.DeleteFunc(append(candidates, module), func(mod string) bool { return !inside(mod) })
	if len(candidates) == 0 {
		return name, ""
	}
	mod = slices.MaxFunc(candidates, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	return mod, strings.TrimPrefix(strings.TrimPrefix(name, mod), "/")
}

// requirements are the modules that go.mod requires, and whether it marks them as indirect.
func requirements(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	mods := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") && strings.Contains(fields[0], ".") {
			mods[fields[0]] = strings.HasSuffix(strings.TrimSpace(line), "// indirect")
		}
	}
	if len(mods) == 0 {
		t.Fatal("found no requirements in go.mod")
	}
	return mods
}

func TestResolve(t *testing.T) {
	known := map[string]bool{otel: true, otel + "/sdk": true, goredis: true}
	for _, tt := range []struct{ name, mod, rest string }{
		{otel + "/codes", otel, "codes"},
		{otel + "/sdk/trace", otel + "/sdk", "trace"},
		{otel + "/sdkmetric", otel, "sdkmetric"},
		{goredis, goredis, ""},
		{module + "/lock/memlock", module, "lock/memlock"},
		{"example.com/unknown/pkg", "example.com/unknown/pkg", ""},
	} {
		if mod, rest := resolve(tt.name, known); mod != tt.mod || rest != tt.rest {
			t.Errorf("resolve(%s) = %s, %q, want %s, %q", tt.name, mod, rest, tt.mod, tt.rest)
		}
	}
}
