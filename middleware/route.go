package middleware

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/internal/route"
	"github.com/latchkey-go/latchkey/internal/suggest"
)

// routeError says that a guard does not fit the route that it stands in. That is the program's fault, and the same for
// each request.
type routeError struct{ route, reason string }

func (e *routeError) Error() string { return "middleware: " + e.reason }

// Route implements the method that report looks for, also in errors of package ginguard.
func (e *routeError) Route() string { return e.route }

// errNoRoute is for guards that stand where no route is known yet.
const errNoRoute = "this request has no route: place the guard inside of the router, around one handler"

// route is the pattern that the router has matched, without the method, which is a fact of its own.
func (f *facts) route() (string, error) {
	if f.r.Pattern == "" {
		return "", &routeError{"", errNoRoute}
	}
	_, path := route.Method(f.r.Pattern)
	return path, nil
}

// pathValue refuses a name that the route does not have. It would be missing from each request, which is not the
// client's fault; before ?? it would give one key to all of them.
//
// Some routers hand out a value as it is escaped in the URL, if that is escaped in another way than net/http does it: chi, echo,
// and gin with UseRawPath. Nobody can tell a value that was unescaped from one that was not, so that all escapes go: one path has
// one key, however it is spelt.
func (f *facts) pathValue(name string) (string, bool, error) {
	var v string
	var ok bool
	if f.vars != nil {
		v, ok = f.vars(f.r)[name]
	} else {
		v = f.r.PathValue(name)
		ok = v != "" || slices.Contains(route.Names(f.r.Pattern), name)
	}
	switch {
	case !ok:
		return "", false, f.noPathValue(name)
	case strings.Contains(v, "%"):
		v = unescaped(v)
	}
	return v, v != "", nil // what {rest...} matches can be empty
}

// unescaped returns s without escapes, and without those that were escaped themselves. It goes through s once, as s may be long and have
// escapes in escapes: each is replaced when its last byte was read, and may end the one before it.
func unescaped(s string) string {
	plain := make([]byte, 0, len(s))
	for i := range len(s) {
		plain = append(plain, s[i])
		for n := len(plain); n >= 3 && plain[n-3] == '%'; n = len(plain) {
			if _, err := hex.Decode(plain[n-3:], plain[n-2:]); err != nil {
				break
			}
			plain = plain[:n-2]
		}
	}
	return string(plain)
}

// noPathValue says why there is no path value of that name.
func (f *facts) noPathValue(name string) error {
	if f.r.Pattern == "" && f.vars == nil {
		return &routeError{"", fmt.Sprintf("no path value %q: %s", name, errNoRoute)}
	}
	names := route.Names(f.r.Pattern)
	if f.vars != nil {
		names = slices.Sorted(maps.Keys(f.vars(f.r)))
	}
	return &routeError{f.r.Pattern, fmt.Sprintf("the route %q has no path value %q%s", f.r.Pattern, name, suggest.Ending(name, names))}
}

// report logs once for each route that the guard does not fit it, as each of its requests has the same error.
func (m *middleware) report(ctx context.Context, err error) {
	e, ok := errors.AsType[interface {
		error
		Route() string
	}](err)
	if !ok {
		return
	}
	if _, again := m.reported.LoadOrStore(e.Route(), true); !again {
		slog.ErrorContext(ctx, "guard does not fit its route", "guard", m.guard, "error", e)
	}
}
