package interceptor

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/latchkey-go/latchkey/internal/suggest"
)

// kind is what an interceptor can guard.
type kind bool

const (
	unary     kind = false
	streaming kind = true
)

// describe fills in what the registered descriptor of m says, and checks that m is of the kind that is wanted. A method
// without a descriptor is all right if its request type is known.
func (m *method) describe(want kind) error {
	d, err := find(m.name)
	if err != nil {
		if m.request != nil && wellFormed(m.name) {
			return nil
		}
		return err
	}
	if got := kind(d.IsStreamingClient() || d.IsStreamingServer()); got != want {
		if got == streaming {
			return errors.New("the method is streaming: give its rule to StreamServer")
		}
		return errors.New("the method is unary: give its rule to UnaryServer")
	}
	m.single = !d.IsStreamingServer()
	if t, err := protoregistry.GlobalTypes.FindMessageByName(d.Output().FullName()); err == nil {
		m.response = t
	}
	if m.request != nil {
		return nil
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.Input().FullName())
	if err != nil {
		return fmt.Errorf("no Go type is registered for its request %s: name one with Request", d.Input().FullName())
	}
	m.request = reflect.TypeOf(t.Zero().Interface())
	return nil
}

// find returns the registered descriptor of a method. Its error names the method that was probably meant.
func find(name string) (protoreflect.MethodDescriptor, error) {
	if service, method, ok := strings.Cut(strings.TrimPrefix(name, "/"), "/"); ok && wellFormed(name) {
		full := protoreflect.FullName(service).Append(protoreflect.Name(method))
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(full)
		if d, ok := d.(protoreflect.MethodDescriptor); ok && err == nil {
			return d, nil
		}
	}
	if near := nearest(name); near != "" {
		return nil, fmt.Errorf("no such method is registered, did you mean %q?", near)
	}
	return nil, errors.New("no such method is registered: import the package generated for its service, or name its type with Request")
}

// wellFormed reports whether name looks like /package.Service/Method.
func wellFormed(name string) bool {
	service, method, ok := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	return ok && name[0] == '/' && service != "" && method != "" && !strings.Contains(method, "/")
}

// nearest returns the registered method whose full name is most like name, or "" if none is like it at all. What is
// missing at the beginning, most likely the package, does not make names unlike.
func nearest(name string) string {
	best, least := "", math.MaxInt
	for known := range registered {
		d := suggest.Distance(name, known)
		alike := 2*d <= max(len(name), len(known)) || name != "" && strings.HasSuffix(known, name)
		if alike && (d < least || d == least && known < best) {
			best, least = known, d
		}
	}
	return best
}

// registered calls yield with the full name of each registered method.
func registered(yield func(string) bool) {
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				if !yield(fmt.Sprintf("/%s/%s", s.FullName(), s.Methods().Get(j).Name())) {
					return false
				}
			}
		}
		return true
	})
}
