package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

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
	return afterMethod(f.r.Pattern), nil
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
	if names := wildcards(f.r.Pattern); !slices.Contains(names, name) {
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

func afterMethod(pattern string) string {
	if _, rest, ok := strings.Cut(pattern, " "); ok {
		return strings.TrimLeft(rest, " \t")
	}
	return pattern
}

// wildcards returns the names in a pattern of any router that sets path values: net/http's {id} and {rest...}, chi's
// {id:[0-9]+} and *, and the :id and *rest of gin and echo.
func wildcards(pattern string) (names []string) {
	for segment := range strings.SplitSeq(afterMethod(pattern), "/") {
		if name, ok := colonName(segment); ok {
			names = append(names, name)
		} else if segment == "*" {
			names = append(names, "*")
		}
	}
	return append(names, braced(pattern)...)
}

// colonName is the name in a segment of gin's or echo's spelling.
func colonName(segment string) (name string, ok bool) {
	if len(segment) < 2 || segment[0] != ':' && segment[0] != '*' {
		return "", false
	}
	return segment[1:], identifier.MatchString(segment[1:])
}

// braced returns the names in braces. A regular expression behind a name may have braces of its own.
func braced(pattern string) (names []string) {
	depth, start := 0, 0
	for i := range len(pattern) {
		switch pattern[i] {
		case '{':
			if depth++; depth == 1 {
				start = i + 1
			}
		case '}':
			if depth--; depth != 0 {
				continue
			}
			name, _, _ := strings.Cut(pattern[start:i], ":")
			if name = strings.TrimSuffix(name, "..."); name != "$" {
				names = append(names, name)
			}
		}
	}
	return names
}

// pathNames returns the names of the wildcards in a pattern of net/http. What a pattern is, a mux of net/http decides,
// but for what is one in another router's spelling and would be literal text.
func pathNames(pattern string) (names []string, err error) {
	if own := respell(pattern); own != pattern {
		return nil, fmt.Errorf("pattern %q is not in net/http's spelling: write %q", pattern, own)
	}
	defer func() {
		if p := recover(); p != nil {
			names, err = nil, fmt.Errorf("pattern: %v", p)
		}
	}()
	http.NewServeMux().Handle(pattern, http.NotFoundHandler())
	return braced(pattern), nil
}

// respell writes a pattern of gin, echo or chi as net/http does: /orders/:id as /orders/{id}.
func respell(pattern string) string {
	path := afterMethod(pattern)
	method := strings.TrimSuffix(pattern, path)
	segments := strings.Split(path, "/")
	changed := false
	for i, segment := range segments {
		if own := respellSegment(segment); own != segment {
			segments[i], changed = own, true
		}
	}
	if !changed {
		return pattern
	}
	if segments[0] != "" && !strings.Contains(segments[0], ".") { // no host, but a path without its slash
		segments = append([]string{""}, segments...)
	}
	return method + strings.Join(segments, "/")
}

func respellSegment(segment string) string {
	name, ok := colonName(segment)
	switch {
	case ok && segment[0] == ':':
		return "{" + name + "}"
	case ok:
		return "{" + name + "...}"
	case segment == "*":
		return "{rest...}"
	case strings.HasPrefix(segment, "{") && strings.HasSuffix(segment, "}") && strings.Contains(segment, ":"):
		name, _, _ := strings.Cut(segment, ":")
		return name + "}"
	}
	return segment
}
