// Package route reads the patterns of routes, in the spellings of several routers, and the struct tags that have them.
package route

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// Method returns the method that a pattern begins with, and the rest: for "POST /orders/{id}", POST and /orders/{id}.
func Method(pattern string) (method, path string) {
	if method, rest, ok := strings.Cut(pattern, " "); ok {
		return method, strings.TrimLeft(rest, " \t")
	}
	return "", pattern
}

// Names returns the names in a pattern of any router that sets path values: net/http's {id} and {rest...}, chi's
// {id:[0-9]+} and *, and the :id and *rest of gin and echo.
func Names(pattern string) (names []string) {
	_, path := Method(pattern)
	for segment := range strings.SplitSeq(path, "/") {
		if name, ok := colonName(segment); ok {
			names = append(names, name)
		} else if segment == "*" {
			names = append(names, "*")
		}
	}
	return append(names, braced(path)...)
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

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

// Check returns the names in a pattern of net/http. A mux of net/http decides which patterns are valid, except for
// those that are another router's spelling and would be literal text.
func Check(pattern string) (names []string, err error) {
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
	method, path := Method(pattern)
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
	return strings.TrimLeft(method+" "+strings.Join(segments, "/"), " ")
}

func respellSegment(segment string) string {
	switch {
	case segment == "*":
		return "{rest...}"
	case strings.HasPrefix(segment, "{") && strings.HasSuffix(segment, "}") && strings.Contains(segment, ":"):
		name, _, _ := strings.Cut(segment, ":")
		return name + "}"
	}
	if _, ok := colonName(segment); !ok {
		return segment
	}
	return FromGin(segment)
}

// FromGin writes a route of gin as net/http does.
func FromGin(route string) string {
	segments := strings.Split(route, "/")
	for i, s := range segments {
		switch {
		case strings.HasPrefix(s, ":"):
			segments[i] = "{" + s[1:] + "}"
		case strings.HasPrefix(s, "*"):
			segments[i] = "{" + s[1:] + "...}"
		}
	}
	return strings.Join(segments, "/")
}

// ToGin writes a pattern of net/http as gin does.
func ToGin(pattern string) string {
	segments := strings.Split(pattern, "/")
	for i, s := range segments {
		if !strings.HasPrefix(s, "{") || !strings.HasSuffix(s, "}") {
			continue
		}
		name := s[1 : len(s)-1]
		if rest, ok := strings.CutSuffix(name, "..."); ok {
			segments[i] = "*" + rest
		} else {
			segments[i] = ":" + name
		}
	}
	return strings.Join(segments, "/")
}

// Gin splits a route of gin into its method, which may be missing, and its path.
func Gin(pattern string) (method, path string, err error) {
	method, path = Method(pattern)
	switch own := ToGin(path); {
	case own != path:
		return "", "", fmt.Errorf("route %q is not in gin's spelling: write %q", pattern, strings.TrimLeft(method+" "+own, " "))
	case !strings.HasPrefix(path, "/"):
		return "", "", fmt.Errorf("route %q does not begin with a slash", pattern)
	case method != strings.ToUpper(method):
		return "", "", fmt.Errorf("route %q has a method in lower case: write %q", pattern, strings.ToUpper(method)+" "+path)
	}
	return method, path, nil
}
