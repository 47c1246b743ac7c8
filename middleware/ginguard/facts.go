package ginguard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"

	"github.com/latchkey-go/latchkey/internal/view"
	"github.com/latchkey-go/latchkey/middleware"
)

// option is one that needs the gin.Context. Package middleware refuses it, as there is none there.
type option struct{ middleware.Option }

// unwrap returns opts as package middleware knows them.
func unwrap(opts []middleware.Option) []middleware.Option {
	plain := []middleware.Option{reader{}}
	for _, o := range opts {
		if own, ok := o.(option); ok {
			o = own.Option
		}
		plain = append(plain, o)
	}
	return plain
}

// reader is an option that says how gin's handlers read a request.
type reader struct{ middleware.Option }

func (reader) View() view.Reader {
	return view.Reader{JSON: isJSON, Body: keptBody, Cookie: url.QueryUnescape, Bind: true}
}

// keptBody is the body that ShouldBindBodyWith has read in front of the guard.
func keptBody(r *http.Request) []byte {
	c, err := ContextOf(r)
	if err != nil {
		return nil
	}
	data, _ := c.Get(gin.BodyBytesKey)
	kept, _ := data.([]byte)
	return kept
}

// isJSON reports whether gin's ShouldBind takes the body of r for JSON.
func isJSON(r *http.Request) bool {
	kind := r.Header.Get("Content-Type")
	if end := strings.IndexAny(kind, " ;"); end >= 0 {
		kind = kind[:end]
	}
	return binding.Default(r.Method, kind) == binding.JSON
}

// WithFacts is [middleware.WithFacts] for facts that are made of the gin.Context:
//
//	ginguard.WithFacts("claims", func(c *gin.Context) (Claims, error) { return auth.Claims(c) })
func WithFacts[T any](root string, f func(*gin.Context) (T, error)) middleware.Option {
	if f == nil {
		return middleware.WithFacts[T](root, nil) // an error that says so
	}
	return option{middleware.WithFacts(root, func(r *http.Request) (T, error) {
		c, err := ContextOf(r)
		if err != nil {
			return *new(T), err
		}
		defer restore(c, c.Writer, c.Request)
		c.Request = r // whose body can be read twice
		return f(c)
	})}
}

// Value gives templates what an earlier handler has put into the context with c.Set(name, …), as a root of the same name
// and of type T. For other keys than names there is WithFacts. A request for which nothing was set, or something of
// another type, is the program's fault, answered with 500 and logged once: the guard stands in front of the handler that sets it. Where
// there are users without a name, set an empty one, which is a 400.
func Value[T any](name string) middleware.Option {
	return WithFacts(name, func(c *gin.Context) (T, error) {
		v, ok := c.Get(name)
		if !ok {
			return *new(T), &misplaced{c.FullPath(), fmt.Sprintf("nothing was set as %q: place the guard behind the handler that sets it", name)}
		}
		t, ok := v.(T)
		if !ok {
			return t, &misplaced{c.FullPath(), fmt.Sprintf("%q was set to a %T, and the guard wants a %v", name, v, reflect.TypeFor[T]())}
		}
		return t, nil
	})
}

// misplaced says that a guard does not fit the handlers in front of it, which package middleware logs once for a route.
type misplaced struct{ route, reason string }

func (e *misplaced) Error() string { return "ginguard: " + e.reason }
func (e *misplaced) Route() string { return e.route }

type contextKey struct{}

// ContextOf returns the gin.Context of a request that New or From has passed on: in functions that know only the request, such as a
// caller of package idempotency. Any other request is an error.
func ContextOf(r *http.Request) (*gin.Context, error) {
	c, ok := r.Context().Value(contextKey{}).(*gin.Context)
	if !ok {
		return nil, errors.New("ginguard: a request without its gin.Context")
	}
	return c, nil
}
