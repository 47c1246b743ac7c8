package gen

import (
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/tools/go/packages"
)

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
