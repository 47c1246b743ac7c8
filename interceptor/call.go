package interceptor

import (
	"context"
	"errors"
	"io"
	"reflect"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// call is one call of a method: what its guard may ask, and how it ends.
type call struct {
	*method
	ctx     context.Context
	message func() (any, error) // gives the request
}

// refusal is the error of a fact that can't be had, with the status that the caller gets.
type refusal struct{ status error }

func (r *refusal) Error() string { return r.status.Error() }

// Is reports whether the request is at fault, which decides what observers are told.
func (r *refusal) Is(target error) bool {
	return target == guard.ErrKey && status.Code(r.status) == codes.InvalidArgument
}

// run makes the call under its guard. It reports whether the call was skipped; its error is either the handler's own,
// untouched, or a status.
func (c *call) run(handle func(context.Context) error) (skipped bool, err error) {
	ran, err := c.runner.Run(c.ctx, c.fact, handle)
	refused, ok := errors.AsType[*refusal](err)
	switch {
	case err == nil:
		return !ran, nil
	case ok && !ran:
		return false, refused.status
	case ran && !c.isLost(err):
		return false, err
	default:
		return false, c.status(c.ctx, err)
	}
}

// isLost reports whether err, returned by a run of the handler, says that the guard lost its lock. Other guards, called
// within the handler, have errors that look the same and are the handler's own.
func (c *call) isLost(err error) bool {
	e, ok := errors.AsType[*guard.Error](err)
	return ok && e.Guard == c.guard && errors.Is(e.Err, guard.ErrLost)
}

// fact is the keyexpr.Facts of the call.
func (c *call) fact(root string) (any, error) {
	switch root {
	case "req":
		return c.req()
	case "method":
		return c.name, nil
	default:
		return keyexpr.Lookup(c.metadata), nil
	}
}

// req returns the request, which has to be of the type that the template was checked against.
func (c *call) req() (any, error) {
	req, err := c.message()
	switch {
	case errors.Is(err, io.EOF):
		return nil, &refusal{c.answer(badKey, "the call has no request message", 0)}
	case err != nil:
		return nil, &refusal{err}
	case reflect.TypeOf(req) != c.request:
		return nil, &refusal{c.answer(misuse, "the request is not of the type that its rule was made for", 0)}
	}
	return req, nil
}

// metadata is the keyexpr.Lookup of md.
func (c *call) metadata(name string) (string, bool, error) {
	switch values := metadata.ValueFromIncomingContext(c.ctx, name); len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	default:
		return "", false, &refusal{c.answer(badKey, "metadata that its key needs was sent more than once", 0)}
	}
}

// unary makes a call of a unary method.
func (m *method) unary(ctx context.Context, req any, next grpc.UnaryHandler) (any, error) {
	var res any
	c := call{method: m, ctx: ctx, message: func() (any, error) { return req, nil }}
	skipped, err := c.run(func(ctx context.Context) (err error) {
		res, err = next(ctx, req)
		return err
	})
	if skipped {
		return m.response.New().Interface(), nil
	}
	return res, err
}
