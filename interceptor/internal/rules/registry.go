package rules

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/latchkey-go/latchkey/internal/suggest"
)

// registered are the methods in files, by their full names.
func registered(files *protoregistry.Files) map[string]protoreflect.MethodDescriptor {
	methods := make(map[string]protoreflect.MethodDescriptor)
	files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				methods[fmt.Sprintf("/%s/%s", s.FullName(), s.Methods().Get(j).Name())] = s.Methods().Get(j)
			}
		}
		return true
	})
	return methods
}

// find returns the methods of b that r matches, sorted. A method whose request type is given need not be registered.
func (b *binder) find(r Rule) ([]string, error) {
	switch r.rank {
	case byMethod, byOption:
		return b.findMethod(r)
	case byService:
		return b.findService(r)
	default:
		return b.findPattern(r)
	}
}

func (b *binder) findMethod(r Rule) ([]string, error) {
	if b.registered[r.text] != nil || r.request != nil && wellFormed(r.text) {
		return []string{r.text}, nil
	}
	if near := nearest(r.text, maps.Keys(b.registered)); near != "" {
		return nil, fmt.Errorf("no such method is registered, did you mean %q?", near)
	}
	return nil, errors.New("no such method is registered: import the package generated for its service, or name its type with Request")
}

func (b *binder) findService(r Rule) ([]string, error) {
	found := b.matching(func(name string) bool { return serviceOf(name) == r.service() })
	if len(found) > 0 {
		return found, nil
	}
	services := make(map[string]bool)
	for name := range b.registered {
		services[serviceOf(name)] = true
	}
	if near := nearest(r.service(), maps.Keys(services)); near != "" {
		return nil, fmt.Errorf("no such service is registered, did you mean %q?", near)
	}
	return nil, errors.New("no such service is registered: import the package generated for it")
}

func (b *binder) findPattern(r Rule) ([]string, error) {
	switch {
	case strings.ContainsAny(r.text, `?[]\{}`):
		return nil, errors.New("a pattern knows * only, for any text without a slash")
	case !wellFormed(r.text):
		return nil, errors.New(`want a pattern like "/bank.v1.*/Transfer*"`)
	case !strings.Contains(r.text, "*"):
		return nil, errors.New("a pattern without a * is the name of a method: use Method")
	}
	found := b.matching(func(name string) bool {
		ok, err := path.Match(r.text, name)
		return ok && err == nil
	})
	if len(found) == 0 {
		return nil, errors.New("no registered method matches: import the packages generated for the services")
	}
	return found, nil
}

func (b *binder) matching(match func(name string) bool) (found []string) {
	for name := range b.registered {
		if match(name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// serviceOf is the service in the full name of a method.
func serviceOf(name string) string { return strings.TrimPrefix(path.Dir(name), "/") }

// wellFormed reports whether name looks like /package.Service/Method.
func wellFormed(name string) bool {
	service, method, ok := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	return ok && name[0] == '/' && service != "" && method != "" && !strings.Contains(method, "/")
}

// nearest returns the one of all that is most like name, or "" if none is like it at all. A beginning that is
// missing, most likely the package, does not make names unlike.
func nearest(name string, all func(func(string) bool)) string {
	best, least := "", math.MaxInt
	for known := range all {
		d := suggest.Distance(name, known)
		alike := 2*d <= max(len(name), len(known)) || name != "" && strings.HasSuffix(known, name)
		if alike && (d < least || d == least && known < best) {
			best, least = known, d
		}
	}
	return best
}
