package keyexpr

import (
	"strings"

	"github.com/expr-lang/expr/builtin"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Option changes how Parse and ParseCondition read a text.
type Option interface{ apply(*config) }

type config struct {
	funcs  []userFunc
	oneKey bool
}

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// OneKey says that a template which reads nothing of the request is meant: one key for all requests, as for a nightly job.
func OneKey() Option { return optionFunc(func(c *config) { c.oneKey = true }) }

// Func gives templates a function of the user's own under name. fn takes any arguments, after a context.Context if it
// wants that of Expand, and returns a value and perhaps an error: func(ctx context.Context, id string) (string, error).
// Calls are type-checked at start. Lists are copied for fn. An error of fn fails the expansion and is returned wrapped; it
// does not match ErrValue unless it does so itself. fn must be safe for concurrent use, and quick: it runs for each request,
// before the lock.
//
// A call counts as reading the request if fn takes a context or the call has an argument that does.
func Func(name string, fn any) Option { return userFunc{name, fn} }

// userFunc is a function of the user's own.
type userFunc struct {
	name string
	fn   any
}

func (f userFunc) apply(c *config) { c.funcs = append(c.funcs, f) }

func newConfig(opts []Option) (c config) {
	for _, o := range opts {
		o.apply(&c)
	}
	return c
}

// addFunc makes a user's function known.
func (c *compilation) addFunc(f userFunc) error {
	_, taken := c.hosts[f.name]
	_, isRoot := c.roots[f.name]
	_, isBuiltin := builtin.Index[f.name]
	switch {
	case !isName(f.name):
		return errAt(c.text, 0, "a function can't be called %q", f.name)
	case taken || isRoot || isBuiltin:
		return errAt(c.text, 0, "function %s: there is something of that name already", f.name)
	}
	fn, err := run.NewFunction(f.name, f.fn)
	if err != nil {
		return errAt(c.text, 0, "%v", err)
	}
	c.hosts[f.name] = &hostFunc{name: f.name, check: fn.Check, call: fn.Call, user: fn}
	return nil
}

// isName reports whether the engine reads s as the name of a function.
func isName(s string) bool {
	for i, r := range s {
		if !isLetter(r) && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	const words = " true false nil not in or and matches contains startsWith endsWith let if else "
	return s != "" && !strings.Contains(words, " "+s+" ")
}
