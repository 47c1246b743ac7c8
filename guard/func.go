package guard

import (
	"cmp"
	"context"
	"errors"
	"reflect"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// Func puts g in front of fn: the returned function takes the locks, runs fn with a context that ends when a lock is
// lost, and gives them back. Templates see the request as `req`. What g leaves open, a tag of the request type may say,
// and Name defaults to the name of that type. An error here is a mistake in the declaration.
//
// The returned function returns fn's own error untouched, or an *Error, or, if ctx ended before fn could start, an error
// that matches both ctx.Err() and the cause of ctx. The result is fn's own also beside an ErrLost.
func Func[Req, Res any](g *Guard, fn func(context.Context, Req) (Res, error)) (func(context.Context, Req) (Res, error), error) {
	if g == nil {
		return nil, errors.New("guard: Func with a nil guard")
	}
	if fn == nil {
		return nil, g.spec.errorf("Func with a nil function")
	}
	r, err := g.forRequest(reflect.TypeFor[Req](), declared{})
	if err != nil {
		return nil, err
	}
	fallback, ok := g.fallback.(func(context.Context, Req, error) (Res, error))
	if !ok && g.fallback != nil {
		return nil, r.spec.errorf("Fallback is a %T, but this function needs a %T", g.fallback, fallback)
	}
	return func(ctx context.Context, req Req) (res Res, err error) {
		work := func(ctx context.Context) (err error) {
			res, err = fn(ctx, req)
			return err
		}
		var instead func(context.Context, error) error
		if fallback != nil {
			instead = func(ctx context.Context, refused error) (err error) {
				res, err = fallback(ctx, req, refused)
				return err
			}
		}
		_, err = r.run(ctx, requestFacts(req), work, instead)
		return res, err
	}, nil
}

// requestFacts are the facts of a function: its request.
func requestFacts(req any) keyexpr.Facts {
	return func(string) (any, error) { return req, nil }
}

// forRequest fits g to functions of one request type. What the options of g leave open, first the tag of the function
// fills in and then that of the request type. Over defaults, both have the last word.
func (g *Guard) forRequest(request reflect.Type, function declared) (*Runner, error) {
	merged := *g
	tag, err := requestTag(request)
	if defaults := g.defaults(); defaults {
		merged.fill(tag.spec, defaults)
		merged.fill(function.spec, defaults)
	} else {
		merged.fill(function.spec, defaults)
		merged.fill(tag.spec, defaults)
	}
	if merged.spec.Name == "" {
		merged.spec.Name = cmp.Or(function.name, typeName(request))
	}
	if err != nil {
		return nil, merged.spec.errorf("%w", err)
	}
	if merged.spec.Key == "" && merged.keyFunc == nil {
		merged.spec.Key = tag.key(merged.spec.Name)
	}
	merged.imply()
	if err := merged.validate(); err != nil {
		return nil, err
	}
	if t := structType(request); t != nil && t.NumField() == 0 {
		merged.spec.OneKey = true // there is nothing to read
	}
	return merged.prepare(keyexpr.Roots{requestRoot: keyexpr.Type(request)})
}

// typeName is the name of a defined type or of a pointer to one, and otherwise empty.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.PkgPath() == "" {
		return ""
	}
	return t.Name()
}
