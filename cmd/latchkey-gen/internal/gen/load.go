package gen

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// pkg is a package that has directives, or code that was generated from some.
type pkg struct {
	*packages.Package
	directives map[token.Pos]directive      // by the places of the names that they are about
	foreign    map[string]map[int]directive // of other packages, by file and the line of the name
	unread     bool                         // it can't be parsed, or imports what there is not
	wrong      faults
}

// load reads the packages that have anything to do with directives. It leaves out files that were generated before:
// they may be out of date, and not fit to the rest anymore. wrong are directives where none can be.
func load(dir string, patterns []string) (pkgs []*pkg, wrong faults, err error) {
	found, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles, Dir: dir}, patterns...)
	if err != nil {
		return nil, nil, err
	}
	var paths []string
	overlay := make(map[string][]byte)
	for _, p := range found {
		for _, err := range p.Errors {
			wrong = append(wrong, placed{position(err.Pos), err.Msg})
		}
		concerned, err := concerns(p, overlay)
		if err != nil {
			return nil, nil, err
		}
		if concerned {
			paths = append(paths, p.PkgPath)
		}
		inTests, err := testDirectives(p.Dir)
		if err != nil {
			return nil, nil, err
		}
		wrong = append(wrong, inTests...)
	}
	if len(paths) == 0 {
		return nil, wrong, nil
	}
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax | packages.NeedTypes |
		packages.NeedTypesInfo | packages.NeedImports
	read, err := packages.Load(&packages.Config{Mode: mode, Dir: dir, Overlay: overlay}, paths...)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range read {
		pkgs = append(pkgs, newPkg(p))
	}
	return pkgs, wrong, nil
}

// asked is the line of a package that wants code to be generated. All of its directives may be those of embedded interfaces.
var asked = regexp.MustCompile(`(?m)^//go:generate .*latchkey-gen`)

// concerns reports whether a package has directives, or what was to be some, or a line that asks for them, or code that was generated from
// them, for which it adds to overlay a file with nothing in it.
func concerns(p *packages.Package, overlay map[string][]byte) (yes bool, err error) {
	for _, path := range p.GoFiles {
		text, err := os.ReadFile(path)
		if err != nil {
			return false, err
		}
		if ours(text) {
			overlay[path] = []byte(constraint(text) + "package " + p.Name + "\n")
			yes = true
			continue
		}
		directives, wrong := scan(parse(token.NewFileSet(), path, text))
		yes = yes || len(directives)+len(wrong) > 0 || asked.Match(text)
	}
	return yes, nil
}

// parse reads a file for its comments. The compiler reports its mistakes.
func parse(fset *token.FileSet, path string, text any) *ast.File {
	f, _ := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if f == nil {
		return &ast.File{}
	}
	return f
}

// testDirectives are those in the files of tests, which nothing is generated for.
func testDirectives(dir string) (wrong faults, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, path := range paths {
		fset := token.NewFileSet()
		directives, _ := scan(parse(fset, path, nil))
		for _, d := range directives {
			wrong = append(wrong, placed{fset.Position(d.pos), "directive in a test: move what it is about to another file, or use guard.Func"})
		}
	}
	return wrong, err
}

// newPkg finds the directives of a package that was read, and whatever makes it impossible to go on.
func newPkg(p *packages.Package) *pkg {
	k := &pkg{Package: p, directives: make(map[token.Pos]directive), foreign: make(map[string]map[int]directive)}
	for _, err := range p.Errors {
		compiler := strings.HasPrefix(err.Msg, "# ") // of this package, about which TypeErrors says more
		if (err.Kind == packages.ParseError || err.Kind == packages.ListError) && !compiler {
			k.wrong = append(k.wrong, placed{position(err.Pos), err.Msg})
		}
	}
	if len(k.wrong) > 0 {
		k.unread, k.wrong = true, k.wrong[:1] // as a slip makes many mistakes of syntax, and what is read behind it is none of a directive's
		return k
	}
	for _, f := range p.Syntax {
		directives, wrong := scan(f)
		maps.Copy(k.directives, directives)
		for _, w := range wrong {
			k.fault(w.pos, "%s", w.text)
		}
	}
	return k
}

func (p *pkg) fault(at token.Pos, format string, args ...any) {
	p.wrong = append(p.wrong, placed{p.Fset.Position(at), fmt.Sprintf(format, args...)})
}

// brokenTypes reports mistakes in the declarations of types, and in the heads of functions with directives. Other
// mistakes may be there only because the generated code is not there yet; expected are the names that it declares.
func (p *pkg) brokenTypes(expected map[string]bool) {
	for _, err := range p.TypeErrors {
		name, undefined := strings.CutPrefix(err.Msg, "undefined: ")
		if undefined && expected[name] {
			continue
		}
		if p.inType(err.Pos) {
			p.fault(err.Pos, "%s", err.Msg)
		}
	}
}

// inType reports whether a place is in the declaration of a type, or in the head of a function with a directive.
func (p *pkg) inType(at token.Pos) bool {
	within := func(n ast.Node) bool { return n.Pos() <= at && at < n.End() }
	for _, f := range p.Syntax {
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.GenDecl:
				if d.Tok == token.TYPE && within(d) {
					return true
				}
			case *ast.FuncDecl:
				if p.directives[d.Name.Pos()].pos.IsValid() && within(d.Type) {
					return true
				}
			}
		}
	}
	return false
}

// constraint is the line of a file that says for which systems it is built, with an empty one behind it, or nothing.
func constraint(text []byte) string {
	for line := range bytes.Lines(text) {
		switch {
		case bytes.HasPrefix(line, []byte("//go:build ")):
			return string(line) + "\n"
		case bytes.HasPrefix(line, []byte("package ")):
			return ""
		}
	}
	return ""
}

// target is the file that is generated from the one at path. A part of its name that says for which systems it is built
// stays at the end.
func target(path string) string {
	stem := strings.TrimSuffix(path, ".go")
	tail := ""
	for range 2 {
		i := strings.LastIndexByte(stem, '_')
		if i < 0 || !constrains(stem[i+1:]) {
			break
		}
		stem, tail = stem[:i], stem[i:]+tail
	}
	return stem + "_latchkey" + tail + ".go"
}

// constrains reports whether a word at the end of a file's name says for which systems it is built.
func constrains(word string) bool {
	nowhere := build.Context{Compiler: "gc", OpenFile: func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("package x\n")), nil
	}}
	built, err := nowhere.MatchFile(".", "x_"+word+".go")
	return err == nil && !built
}

// position reads file:line:column, as package packages writes places.
func position(text string) (at token.Position) {
	for _, number := range []*int{&at.Column, &at.Line} {
		i := strings.LastIndexByte(text, ':')
		n, err := strconv.Atoi(text[i+1:])
		if i < 0 || err != nil {
			break
		}
		*number, text = n, text[:i]
	}
	if at.Line == 0 { // file:line
		at.Line, at.Column = at.Column, 0
	}
	at.Filename = text
	return at
}
