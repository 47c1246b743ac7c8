package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/latchkey-go/latchkey/internal/route"
	"github.com/latchkey-go/latchkey/internal/suggest"
)

// routeError says that a guard does not fit the route that it stands in. That is the program's fault, and the same for
// each request.
type routeError struct{ route, reason string }

func (e *routeError) Error() string { return "middleware: " + e.reason }

// Route is what report looks for, also in errors of package ginguard.
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
func (f *facts) pathValue(name string) (string, bool, error) {
	if v := f.r.PathValue(name); v != "" {
		return v, true, nil
	}
	if f.r.Pattern == "" {
		return "", false, &routeError{"", fmt.Sprintf("no path value %q: %s", name, errNoRoute)}
	}
	if names := route.Names(f.r.Pattern); !slices.Contains(names, name) {
		return "", false, &routeError{f.r.Pattern, fmt.Sprintf("the route %q has no path value %q%s", f.r.Pattern, name, suggest.Ending(name, names))}
	}
	return "", false, nil // what {rest...} matches can be empty
}

// report logs once for each route that the guard does not fit it, as each of its requests has the same error.
func (a *adapter) report(ctx context.Context, err error) {
	e, ok := errors.AsType[interface {
		error
		Route() string
	}](err)
	if !ok {
		return
	}
	if _, again := a.reported.LoadOrStore(e.Route(), true); !again {
		slog.ErrorContext(ctx, "guard does not fit its route", "guard", a.guard, "error", e)
	}
}
