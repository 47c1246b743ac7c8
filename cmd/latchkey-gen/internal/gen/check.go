package gen

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/internal/gotype"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// check runs the check that the program runs when it starts, on the types of the source.
func (p *pkg) check(m *method, world *gotype.World) {
	spec, err := fits(m, world)
	if err != nil {
		p.fault(m.directive.pos, "%s: %s", m.guardName(), sentence(err))
		return
	}
	m.guard = spec.Name
}

// fits returns what the guard of m declares with all tags.
func fits(m *method, world *gotype.World) (spec guard.Spec, err error) {
	if err := spec.UnmarshalText([]byte(m.directive.text)); err != nil {
		return spec, err
	}
	if spec.Args != "" {
		return spec, fmt.Errorf("args=%s: the names are those of the arguments, so leave it out", spec.Args)
	}
	reg, err := guard.NewRegistry() // so that it may be switchable
	if err != nil {
		return spec, err
	}
	options := []guard.Option{guard.In(reg)}
	if spec.Busy == guard.RunFallback || spec.Outage == guard.RunFallback {
		if n, r := len(m.args()), len(m.results()); n > 1 || r > 1 || n == 0 && r > 0 {
			return spec, errors.New("a fallback is for one argument and at most one result, or for neither: put the arguments into a struct")
		}
		options = append(options, guard.Fallback(func(context.Context, error) error { return nil }))
	}
	g, err := guard.New(memlock.New(), options...)
	if err != nil {
		return spec, err
	}
	return adapter.CheckDirective(g, m.guardName(), m.directive.text, m.argNames(), world.Of(m.sig))
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

// words turns the words for options and tags into those for directives.
var words = strings.NewReplacer(
	"give guard.Key", "write its template first, as in "+example,
	"they are for a function without args", "they are for a request that is the only argument, and is called req",
)
