package ginguard

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/internal/route"
	"github.com/latchkey-go/latchkey/middleware"
)

// Bind puts a guard in front of each handler that a struct declares with a guard tag, in place. target points to the
// struct. Handlers are fields of type gin.HandlerFunc or func(*gin.Context). g mostly has defaults, which tags override:
//
//	type API struct {
//		Settle gin.HandlerFunc `route:"POST /orders/:id/settle" guard:"order:#{user}:#{path.id}; wait=2s"`
//		List   gin.HandlerFunc `route:"GET /orders"`
//	}
//	err := ginguard.Bind(guard.Must(guard.New(locker)), &api, ginguard.Value[string]("user"))
//
// A route tag is the whole route of the field in gin's spelling, that of its group included, so that the names of
// parameters are checked here instead of by the first request; Bind registers nothing, see [Register]. Fields without a
// guard tag stay as they are. The options are for all fields; what differs from field to field stands in its tag. A handler
// that wants options of its own has no guard tag, and goes through New. Otherwise it is like [guard.Bind], which says where tagged
// fields are found and what a guard is called.
func Bind(g *guard.Guard, target any, opts ...middleware.Option) error {
	return adapter.BindFields(g, target, func(f adapter.Field) (reflect.Value, error) {
		handler, err := handlerOf(f.Value)
		if err != nil {
			return f.Value, err
		}
		if isGuarded(handler) {
			return f.Value, errors.New("handler is guarded already")
		}
		own := slices.Clip(opts)
		if pattern, ok, err := route.Lookup(f.Tag); err != nil {
			return f.Value, err
		} else if ok {
			_, path, err := route.Gin(pattern)
			if err != nil {
				return f.Value, err
			}
			own = append(own, middleware.Pattern(route.FromGin(path)))
		}
		before, err := newWrapper(f.Guard, own)
		if err != nil {
			return f.Value, err
		}
		return reflect.ValueOf((&guarded{before, handler}).serve).Convert(f.Value.Type()), nil
	})
}

// guarded is one handler with a guard in front of it.
type guarded struct {
	before  *wrapper
	handler gin.HandlerFunc
}

func (g *guarded) serve(c *gin.Context) { g.before.serve(c, g.handler) }

// Register registers the handlers of a struct for the routes in their tags, with an engine or a group of its routes. It
// comes after Bind, for the fields with a guard tag and those without. target points to the struct; fields are found where
// Bind finds them. The error joins the mistakes of all fields, those that gin finds included; what has no mistake is
// registered all the same.
func Register(router gin.IRoutes, target any) error {
	if router == nil {
		return errors.New("ginguard: Register with a nil router")
	}
	err := route.Each(target, func(pattern string, f reflect.StructField, v reflect.Value) error {
		method, path, err := route.Gin(pattern)
		if err != nil {
			return err
		}
		handler, err := handlerOf(v)
		if err != nil {
			return err
		}
		if _, guarded := f.Tag.Lookup("guard"); guarded && !isGuarded(handler) {
			return errors.New("field has a guard tag, but no guard yet: call Bind first")
		}
		return register(router, method, path, handler)
	})
	if err != nil {
		return fmt.Errorf("ginguard: Register: %w", err)
	}
	return nil
}

func register(router gin.IRoutes, method, path string, handler gin.HandlerFunc) (err error) {
	if method == "" {
		return fmt.Errorf("route %q has no method: write %q", path, "POST "+path)
	}
	if group, ok := router.(interface{ BasePath() string }); ok && group.BasePath() != "/" {
		base := strings.TrimSuffix(group.BasePath(), "/")
		rest, ok := strings.CutPrefix(path, base)
		if !ok || rest != "" && rest[0] != '/' {
			return fmt.Errorf("route %q is not one of this group, whose routes begin with %q", path, base)
		}
		path = rest
	}
	defer func() {
		if p := recover(); p != nil { // so gin says that a route is wrong or conflicts with another one
			err = fmt.Errorf("%v", p)
		}
	}()
	router.Handle(method, path, handler)
	return nil
}

// handlerOf returns the handler that a field holds.
func handlerOf(v reflect.Value) (gin.HandlerFunc, error) {
	t := reflect.TypeFor[gin.HandlerFunc]()
	if v.Kind() != reflect.Func || !v.CanConvert(t) {
		if v.CanConvert(reflect.TypeFor[http.HandlerFunc]()) {
			return nil, fmt.Errorf("field has a tag of a handler, but is a %v: bind it by package middleware, or make it a gin.HandlerFunc", v.Type())
		}
		return nil, fmt.Errorf("field has a tag of a handler, but is a %v, not a gin.HandlerFunc", v.Type())
	}
	h, _ := reflect.TypeAssert[gin.HandlerFunc](v.Convert(t))
	if h == nil {
		return nil, errors.New("handler is nil")
	}
	return h, nil
}

// isGuarded reports whether h was made by Bind.
func isGuarded(h gin.HandlerFunc) bool { return nameOf(h) == nameOf(new(guarded).serve) }

// nameOf is how a function is called in the program. That of a method does not depend on its receiver.
func nameOf(h gin.HandlerFunc) string { return runtime.FuncForPC(reflect.ValueOf(h).Pointer()).Name() }
