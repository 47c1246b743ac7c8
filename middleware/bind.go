package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"runtime"
	"slices"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/internal/route"
)

// Bind puts a guard in front of each handler that a struct declares with a guard tag, in place. target points to the
// struct. Handlers are fields of type http.HandlerFunc, func(http.ResponseWriter, *http.Request) or http.Handler. g mostly
// has defaults, which tags override:
//
//	type API struct {
//		Settle http.HandlerFunc `route:"POST /orders/{id}/settle" guard:"order:#{path.id}; wait=2s"`
//		Cancel http.HandlerFunc `route:"POST /orders/{id}/cancel" guard:"order:#{path.id}; busy=skip"`
//		List   http.HandlerFunc `route:"GET /orders"`
//	}
//	err := middleware.Bind(guard.Must(guard.New(locker)), &api, middleware.WithFacts("claims", claimsOf))
//
// A route tag is the pattern of the field, in net/http's spelling, so that the names of path values are checked here
// instead of by the first request; Bind registers nothing, see [Register]. Fields without a guard tag stay as they are.
// The options are for all fields; what differs from field to field stands in its tag. A handler that wants options of its own
// has no guard tag, and goes through New. Otherwise it is like [guard.Bind], which says where tagged fields are found and what a
// guard is called.
func Bind(g *guard.Guard, target any, opts ...Option) error {
	return adapter.BindFields(g, target, func(f adapter.Field) (reflect.Value, error) {
		handler, err := handlerOf(f.Value)
		if err != nil {
			return f.Value, err
		}
		switch {
		case isGuarded(handler):
			return f.Value, errors.New("handler is guarded already")
		case isTimeoutHandler(handler):
			return f.Value, errors.New(errTimeoutHandler.reason + ": wrap the field after Bind")
		}
		options := slices.Clip(opts)
		if pattern, ok, err := route.Lookup(f.Tag); err != nil {
			return f.Value, err
		} else if ok {
			options = append(options, Pattern(pattern))
		}
		wrap, err := New(f.Guard, options...)
		if err != nil {
			return f.Value, err
		}
		own, _ := wrap(handler).(*guarded)
		if f.Value.Kind() == reflect.Interface {
			return reflect.ValueOf(own), nil
		}
		return reflect.ValueOf(own.ServeHTTP).Convert(f.Value.Type()), nil
	})
}

// Register registers the handlers of a struct for the patterns in their route tags, with a router such as
// [http.ServeMux] or one of chi. It comes after Bind, for the fields with a guard tag and those without. target points to
// the struct; fields are found where Bind finds them. The error joins the mistakes of all fields, those that the router
// finds included; what has no mistake is registered all the same.
func Register(router interface {
	Handle(pattern string, handler http.Handler)
}, target any) error {
	if router == nil {
		return errors.New("middleware: Register with a nil router")
	}
	err := route.Each(target, func(pattern string, f reflect.StructField, v reflect.Value) (err error) {
		if _, err := route.Check(pattern); err != nil {
			return err
		}
		handler, err := handlerOf(v)
		if err != nil {
			return err
		}
		if _, guarded := f.Tag.Lookup("guard"); guarded && !isGuarded(handler) {
			return errors.New("field has a guard tag, but no guard yet: call Bind first")
		}
		defer func() {
			if p := recover(); p != nil { // so routers say that a pattern conflicts with another one
				err = fmt.Errorf("%v", p)
			}
		}()
		router.Handle(pattern, handler)
		return nil
	})
	if err != nil {
		return fmt.Errorf("middleware: Register: %w", err)
	}
	return nil
}

// handlerOf returns the handler that a field holds.
func handlerOf(v reflect.Value) (http.Handler, error) {
	var h http.Handler
	switch {
	case v.Kind() == reflect.Func && v.CanConvert(reflect.TypeFor[http.HandlerFunc]()):
		f, _ := reflect.TypeAssert[http.HandlerFunc](v.Convert(reflect.TypeFor[http.HandlerFunc]()))
		if f != nil {
			h = f
		}
	case v.Type() == reflect.TypeFor[http.Handler]():
		h, _ = reflect.TypeAssert[http.Handler](v)
	default:
		return nil, fmt.Errorf("field has a tag of a handler, but is a %v, not an http.HandlerFunc or an http.Handler", v.Type())
	}
	if h == nil {
		return nil, errors.New("handler is nil")
	}
	return h, nil
}

// isGuarded reports whether h was made by the middleware of this package, on the outside.
func isGuarded(h http.Handler) bool {
	if _, ok := h.(*guarded); ok {
		return true
	}
	f, ok := h.(http.HandlerFunc)
	return ok && nameOf(f) == nameOf(new(guarded).ServeHTTP)
}

// nameOf is how a function is called in the program. That of a method does not depend on its receiver.
func nameOf(f http.HandlerFunc) string { return runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name() }
