package gen

import (
	"context"
	"errors"
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/gotype"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// plan is what was found out about a directive.
type plan struct {
	name  string      // of the guard
	paths []fieldPath // that the generated code follows for the key; without any, the template makes it
}

// check runs the check that the program runs when it starts, on the types of the source.
func (p *pkg) check(m *method, world *gotype.World) {
	spec, paths, err := fits(m, world)
	if err != nil {
		p.fault(m.directive.pos, "%s: %s", m.guardName(), sentence(err))
		return
	}
	m.plan.name = spec.Name
	for _, text := range paths {
		path, ok := p.follow(m, text)
		if !ok {
			m.plan.paths = nil
			return
		}
		m.plan.paths = append(m.plan.paths, path)
	}
}

// fits returns what the guard of m declares with all tags, and the paths of its key.
func fits(m *method, world *gotype.World) (spec guard.Spec, paths []string, err error) {
	if err := spec.UnmarshalText([]byte(m.directive.text)); err != nil {
		return spec, nil, err
	}
	if spec.Args != "" {
		return spec, nil, fmt.Errorf("args=%s: the names are those of the arguments, so leave it out", spec.Args)
	}
	reg, err := guard.NewRegistry() // so that it may be switchable
	if err != nil {
		return spec, nil, err
	}
	options := []guard.Option{guard.In(reg)}
	if spec.Busy == guard.RunFallback || spec.Outage == guard.RunFallback {
		if n, r := len(m.args()), len(m.results()); n > 1 || r > 1 || n == 0 && r > 0 {
			return spec, nil, errors.New("a fallback is for one argument and at most one result, or for neither: put the arguments into a struct")
		}
		options = append(options, guard.FallbackJob(func(context.Context, error) error { return nil }))
	}
	g, err := guard.New(memlock.New(), options...)
	if err != nil {
		return spec, nil, err
	}
	return g.CheckDirective(m.guardName(), m.directive.text, m.argNames(), world.Of(m.sig))
}

// sentence is err without the names that its place says already.
func sentence(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		line = strings.TrimPrefix(line, "guard: ")
		for _, about := range []string{`guard "`, "directive of "} {
			if rest, ok := strings.CutPrefix(line, about); ok {
				_, line, _ = strings.Cut(rest, ": ")
			}
		}
		lines[i] = line
	}
	return words.Replace(strings.Join(lines, "; "))
}

// words are what options and tags are told, and what directives are.
var words = strings.NewReplacer(
	"give guard.Key", "write its template first, as in "+example,
	"they are for a function without args", "they are for a request that is the only argument, and is called req",
)

// fieldPath is a path along fields to a value of the key.
type fieldPath struct {
	text  string   // as keyexpr.Pattern has it
	nils  []string // what must not be nil, in Go
	value string   // the value, in Go
	call  string   // the method of keyexpr.Pattern that takes it
}

// follow writes a path in Go. It starts at a, which points to the arguments.
func (p *pkg) follow(m *method, text string) (path fieldPath, ok bool) {
	names := strings.Split(text, ".")
	t := m.args()[slices.IndexFunc(m.args(), func(a param) bool { return a.name == names[0] })].t
	path.text, path.value = text, start(m, names, t)
	for _, name := range names[1:] {
		if to, is := t.Underlying().(*types.Pointer); is {
			pointer := path.value
			if pointer == "(*a)" {
				pointer = "*a"
			}
			path.nils = append(path.nils, pointer)
			t = to.Elem()
		}
		f := fieldOf(t, name)
		if f == nil || !f.Exported() && f.Pkg() != p.Types {
			return path, false
		}
		path.value += "." + name
		t = f.Type()
	}
	basic, is := t.Underlying().(*types.Basic)
	if !is {
		return path, false
	}
	want := types.Typ[types.String]
	path.call = "Text"
	switch info := basic.Info(); {
	case info&types.IsUnsigned != 0:
		want, path.call = types.Typ[types.Uint64], "Uint"
	case info&types.IsInteger != 0:
		want, path.call = types.Typ[types.Int64], "Int"
	}
	if !types.Identical(t, want) {
		path.value = want.Name() + "(" + path.value + ")"
	}
	return path, true
}

// start is the argument that a path begins with.
func start(m *method, names []string, t types.Type) string {
	_, isStruct := t.Underlying().(*types.Struct)
	switch {
	case len(m.args()) > 1:
		return "a." + names[0]
	case len(names) == 1:
		return "*a"
	case isStruct:
		return "a"
	}
	return "(*a)"
}

// fieldOf returns the field of a struct that has this name and is no other's.
func fieldOf(t types.Type, name string) *types.Var {
	if s, ok := t.Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if f.Name() == name {
				return f
			}
		}
	}
	return nil
}
