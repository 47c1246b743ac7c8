package gen

import (
	"fmt"
	"go/format"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/latchkey-go/latchkey/internal/gotype"
)

// source is a file with the code generated from it.
type source struct {
	path       string
	constraint string
	wrappers   []*wrapper
}

// generate returns the files of a package, or the mistakes in its directives.
func (p *pkg) generate() (files []File, wrong faults, err error) {
	if p.unread {
		return nil, p.wrong, nil
	}
	sources, old, err := p.sources()
	if err != nil {
		return nil, nil, err
	}
	names := make(map[string]bool)
	for _, s := range sources {
		for _, w := range s.wrappers {
			p.claim(w, names)
		}
	}
	p.brokenTypes(names)
	world := gotype.New()
	for _, s := range sources {
		for _, w := range s.wrappers {
			p.checkAll(w, world)
		}
	}
	if len(p.wrong) > 0 {
		return nil, p.wrong, nil
	}
	for _, s := range sources {
		text, err := format.Source(p.write(s))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: generated code: %w", s.path, err)
		}
		f, err := newFile(target(s.path), text)
		if err != nil {
			return nil, nil, err
		}
		delete(old, f.Path)
		files = append(files, f)
	}
	for path := range old {
		files = append(files, File{Path: path, Stale: "its source has no directives anymore"})
	}
	return files, nil, nil
}

// sources returns the files that something is generated from, and those that are generated.
func (p *pkg) sources() (all []source, generated map[string]bool, err error) {
	generated = make(map[string]bool)
	for _, f := range p.Syntax {
		path := p.Fset.Position(f.Package).Filename
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		if ours(text) {
			generated[path] = true
		} else if wrappers := p.declared(f); len(wrappers) > 0 {
			all = append(all, source{path, constraint(text), wrappers})
		}
	}
	return all, generated, nil
}

// claim notes the names that the code of w declares, none of which may be taken.
func (p *pkg) claim(w *wrapper, names map[string]bool) {
	for _, name := range w.declares() {
		if other := p.Types.Scope().Lookup(name); other != nil {
			p.fault(other.Pos(), "%s is what the code that is generated for %s declares: give this another name", name, w.name)
		} else if names[name] {
			p.fault(w.obj.Pos(), "%s is declared twice in what is generated: rename %s", name, w.name)
		}
		names[name] = true
	}
}

// checkAll checks the directives of w.
func (p *pkg) checkAll(w *wrapper, world *gotype.World) {
	guards := make(map[string]string)
	for _, m := range w.methods {
		if !m.guarded || m.unfit {
			continue
		}
		p.check(m, world)
		if other := guards[m.guard]; other != "" && m.guard != "" {
			p.fault(m.directive.pos, "%s: the name %q is also that of %s: name=... gives one of them another", m.guardName(), m.guard, other)
		}
		guards[m.guard] = m.fn.Name()
	}
}

// compile reports what would not compile of the files that are going to be written, which are of packages of dir.
func compile(dir string, files []File) error {
	overlay := make(map[string][]byte)
	var patterns []string
	for _, f := range files {
		if f.Text != nil && f.Stale != "" {
			overlay[f.Path] = f.Text
			patterns = append(patterns, "file="+f.Path)
		}
	}
	if len(patterns) == 0 {
		return nil
	}
	const mode = packages.NeedName | packages.NeedCompiledGoFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedImports
	pkgs, err := packages.Load(&packages.Config{Mode: mode, Dir: dir, Overlay: overlay}, patterns...)
	if err != nil {
		return err
	}
	var wrong faults
	for _, p := range pkgs {
		for _, at := range mistakes(p, dir) {
			if strings.HasPrefix(at.text, "could not import "+root) {
				return fmt.Errorf("this module does not require Latchkey yet, which the code to be generated imports: type go get %s", root)
			}
			if _, generated := overlay[at.Filename]; generated {
				wrong = append(wrong, placed{at.Position, "what is generated does not compile: " + at.text})
			}
		}
	}
	return wrong.join(dir)
}

// mistakes are what the compiler would say about a package of dir, and what the go command says about its imports, which may be
// internal to others: to the type checker, that is no mistake.
func mistakes(p *packages.Package, dir string) (all faults) {
	listed := make(map[string]bool)
	line := func(at token.Position) string { return fmt.Sprintf("%s:%d", at.Filename, at.Line) }
	for _, err := range p.Errors {
		if err.Kind != packages.ListError {
			continue
		}
		at := position(err.Pos)
		if base, err := filepath.Abs(dir); err == nil && !filepath.IsAbs(at.Filename) {
			at.Filename = filepath.Join(base, at.Filename)
		}
		listed[line(at)] = true
		all = append(all, placed{at, err.Msg})
	}
	for _, err := range p.TypeErrors {
		if at := p.Fset.Position(err.Pos); !listed[line(at)] { // it could not be imported, for the reason above
			all = append(all, placed{at, err.Msg})
		}
	}
	return all
}
