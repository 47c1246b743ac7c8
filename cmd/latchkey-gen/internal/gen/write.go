package gen

import (
	"bytes"
	"fmt"
	"go/types"
	"path"
	"slices"
	"strconv"
	"strings"
)

// typeName is the type that is generated for an interface, and constructor the function that makes one.
func (w *wrapper) typeName() string    { return title("Guarded", w.name) }
func (w *wrapper) constructor() string { return title("Guard", w.name) }

// argsName is the type of several arguments of a method, and resultsName that of several results.
func (m *method) argsName() string    { return m.partName() + "Args" }
func (m *method) resultsName() string { return m.partName() + "Results" }

func (m *method) partName() string {
	if m.iface {
		return lower(m.name) + upper(m.fn.Name())
	}
	return lower(m.name)
}

// declares are the names that the code of w declares.
func (w *wrapper) declares() []string {
	names := []string{w.constructor()}
	if w.iface {
		names = append(names, w.typeName())
	}
	for _, m := range w.methods {
		if m.guarded && len(m.params) > 2 {
			names = append(names, m.argsName())
		}
		if m.guarded && len(m.results()) > 1 {
			names = append(names, m.resultsName())
		}
	}
	return names
}

// printer writes a file.
type printer struct {
	bytes.Buffer
	pkg     *types.Package
	imports map[string]string // names by path
	names   map[string]bool   // of them
}

func (w *printer) f(format string, args ...any) { fmt.Fprintf(w, format, args...) }

// write returns the text of a file.
func (p *pkg) write(s source) []byte {
	w := &printer{pkg: p.Types, imports: make(map[string]string), names: make(map[string]bool)}
	for _, local := range []string{"locker", "next", "opts", "w", "err"} {
		w.names[local] = true // which constructors use
	}
	guard, lock := w.imported(root+"/guard", "guard"), w.imported(root+"/lock", "lock")
	adapter := w.imported(root+"/guard/adapter", "adapter")
	w.imported("context", "context")
	for _, made := range s.wrappers {
		e := &emitter{printer: w, wrapper: made, guard: guard, adapter: adapter, lock: lock}
		if made.iface {
			e.wrapperType()
		} else {
			e.function()
		}
	}
	head := header + "\n" + s.constraint + "package " + p.Name + "\n\n" + w.importClause()
	return append([]byte(head), w.Bytes()...)
}

// root is the module whose packages generated code imports.
const root = "github.com/latchkey-go/latchkey"

// imported returns the name that a package has in the file: its own, unless something else is called that.
func (w *printer) imported(path, name string) string {
	if known, ok := w.imports[path]; ok {
		return known
	}
	for w.names[name] || w.pkg.Scope().Lookup(name) != nil || types.Universe.Lookup(name) != nil {
		name += "_"
	}
	w.imports[path], w.names[name] = name, true
	return name
}

// importClause names the standard library first.
func (w *printer) importClause() string {
	var std, others []string
	for p, name := range w.imports {
		line := strconv.Quote(p)
		if path.Base(p) != name {
			line = name + " " + line
		}
		if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") {
			others = append(others, line)
		} else {
			std = append(std, line)
		}
	}
	byPath := func(a, b string) int {
		return strings.Compare(a[strings.IndexByte(a, '"'):], b[strings.IndexByte(b, '"'):])
	}
	slices.SortFunc(std, byPath)
	slices.SortFunc(others, byPath)
	return "import (\n" + strings.Join(std, "\n") + "\n\n" + strings.Join(others, "\n") + "\n)\n\n"
}

// of is a type as the file writes it.
func (w *printer) of(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == w.pkg {
			return ""
		}
		return w.imported(p.Path(), p.Name())
	})
}

// params is a list of parameters; a variadic one is written as such.
func (w *printer) params(params []param, variadic bool) string {
	var list []string
	for i, p := range params {
		t := w.of(p.t)
		if variadic && i == len(params)-1 {
			t = "..." + w.of(p.t.(*types.Slice).Elem())
		}
		list = append(list, p.name+" "+t)
	}
	return strings.Join(list, ", ")
}

// names is the list of params as they are passed on.
func names(params []param, prefix string, variadic bool) string {
	var list []string
	for _, p := range params {
		list = append(list, prefix+p.name)
	}
	text := strings.Join(list, ", ")
	if variadic {
		text += "..."
	}
	return text
}

// resultList is the types of the results of m, as they stand behind its parameters.
func (w *printer) resultList(m *method) string {
	var list []string
	for v := range m.sig.Results().Variables() {
		list = append(list, w.of(v.Type()))
	}
	if len(list) == 1 {
		return list[0]
	}
	return "(" + strings.Join(list, ", ") + ")"
}

// typeParams is the list that w declares, and what it is used with.
func (w *printer) typeParams(list *types.TypeParamList) (declared, used string) {
	var params, args []string
	for t := range list.TypeParams() {
		params = append(params, t.Obj().Name()+" "+w.of(t.Constraint()))
		args = append(args, t.Obj().Name())
	}
	if len(params) == 0 {
		return "", ""
	}
	return "[" + strings.Join(params, ", ") + "]", "[" + strings.Join(args, ", ") + "]"
}
