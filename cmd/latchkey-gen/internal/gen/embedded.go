package gen

import (
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/tools/go/packages"
)

// declaration returns the declaration of a method that counts for the interface t of w. An interface can embed several that have it, and
// declare it once more; go/types then knows one of them, and the directive may be above another. The nearest one with a directive
// counts, and of those that are equally near there must be one.
func (p *pkg) declaration(w *wrapper, t types.Type, m *types.Func) *types.Func {
	found := p.directed(w, t, m.Name())
	if len(found) == 0 {
		return m
	}
	first, _ := p.directiveOf(found[0], w.obj.Pos())
	for _, other := range found[1:] {
		if d, _ := p.directiveOf(other, w.obj.Pos()); d.text != first.text {
			p.fault(w.obj.Pos(), "%s embeds interfaces with two directives of %s: declare %s in it once more, below the one that it is to have",
				w.name, m.Name(), m.Name())
			break
		}
	}
	return found[0]
}

// directed are the declarations with a directive of the method that t has by a name: its own, or those of what it embeds.
func (p *pkg) directed(w *wrapper, t types.Type, name string) (found []*types.Func) {
	i, ok := t.Underlying().(*types.Interface)
	if !ok {
		return nil // a union, of a constraint
	}
	for m := range i.ExplicitMethods() {
		if m.Name() != name {
			continue
		}
		if _, is := p.directiveOf(m, w.obj.Pos()); is {
			return []*types.Func{m}
		}
	}
	for e := range i.EmbeddedTypes() {
		found = append(found, p.directed(w, e, name)...)
	}
	return found
}

// directiveOf returns the directive of a method, also of one that another package declares for the interface at embeds.
func (p *pkg) directiveOf(m *types.Func, embeds token.Pos) (directive, bool) {
	if m.Pkg() == p.Types {
		d, ok := p.directives[m.Pos()]
		return d, ok
	}
	at := p.Fset.Position(m.Pos())
	lines, known := p.foreign[at.Filename]
	if !known {
		lines = make(map[int]directive)
		text, err := p.textOf(m, at.Filename)
		if err != nil {
			p.fault(embeds, "whether %s, a method of an embedded interface, has a directive can't be seen: %v", m.Name(), err)
		}
		found, _ := scan(parse(p.Fset, at.Filename, text))
		for name, d := range found {
			lines[p.Fset.Position(name).Line] = d
		}
		p.foreign[at.Filename] = lines
	}
	d, ok := lines[at.Line]
	return d, ok
}

// textOf reads the file in which another package declares m. Its path is that in the compiler's output, which is none of this machine for
// the standard library, and for all packages under -trimpath.
func (p *pkg) textOf(m *types.Func, path string) ([]byte, error) {
	if filepath.IsAbs(path) {
		return os.ReadFile(path)
	}
	found, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles, Dir: p.Dir}, m.Pkg().Path())
	if err != nil {
		return nil, err
	}
	for _, other := range found {
		for _, file := range other.GoFiles {
			if filepath.Base(file) == filepath.Base(path) {
				return os.ReadFile(file)
			}
		}
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}
