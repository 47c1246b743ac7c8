package interceptor

import (
	"context"
	"errors"
	"io"
	"reflect"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/interceptor/internal/answer"
	"github.com/latchkey-go/latchkey/interceptor/internal/rules"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// call is one call of a method: what its guard may ask, and how it ends.
type call struct {
	method *rules.Bound
	ctx    context.Context
	req    any         // of a unary method
	stream *heldStream // or nil
}

// run makes the call under its guard. It reports whether the call was skipped; its error is either the handler's own,
// untouched, or a status.
func (c *call) run(handle func(context.Context) error) (skipped bool, err error) {
	ran, err := c.method.Runner.Run(c.ctx, c.fact, handle)
	switch {
	case err == nil:
		return !ran, nil
	case ran:
		return false, Status(err)
	default:
		return false, c.refused(err)
	}
}

// fact is the keyexpr.Facts of the call.
func (c *call) fact(root string) (any, error) {
	switch root {
	case "req":
		return c.request()
	case "method":
		return c.method.Name, nil
	default:
		return keyexpr.Lookup(c.metadata), nil
	}
}

// request returns the request, which has to be of the type that the template was checked against.
func (c *call) request() (req any, err error) {
	if req = c.req; c.stream != nil {
		req, err = c.stream.peek()
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, &refusal{text: "the call has no request message", client: true}
	case err != nil && c.ctx.Err() != nil && status.Code(err) == status.FromContextError(c.ctx.Err()).Code():
		return nil, c.ctx.Err() // as if the caller had gone while the guard waited for the lock
	case err != nil:
		return nil, &refusal{text: "the request can't be received", client: true, status: err}
	case reflect.TypeOf(req) != c.method.Request:
		const text = "the request is not of the type that its rule was made for"
		return nil, &refusal{text: text, status: misuse(c.method, text)}
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
		return "", false, &refusal{text: "metadata that was sent more than once", client: true}
	}
}

func misuse(m *rules.Bound, text string) error {
	return statusOf(answer.New(answer.Misuse, m.Spec.Name, text, 0))
}

// unary makes a call of a unary method.
func unary(ctx context.Context, m *rules.Bound, req any, next grpc.UnaryHandler) (any, error) {
	if m.Fallback != nil {
		return unaryOr(ctx, m, req, next)
	}
	var res any
	c := call{method: m, ctx: ctx, req: req}
	skip, err := c.run(func(ctx context.Context) (err error) {
		res, err = next(ctx, req)
		return err
	})
	if skip {
		return skipped(ctx, m), nil
	}
	return res, err
}

// unaryOr is unary for a method with a fallback.
func unaryOr(ctx context.Context, m *rules.Bound, req any, next grpc.UnaryHandler) (any, error) {
	var res any
	instead := false
	c := call{method: m, ctx: ctx, req: req}
	ran, err := m.Runner.RunOr(ctx, c.fact, func(ctx context.Context) (err error) {
		res, err = next(ctx, req)
		return err
	}, func(ctx context.Context, refused error) (err error) {
		instead = true
		res, err = m.Fallback.Run(ctx, req, refused)
		return err
	})
	switch {
	case ran || instead:
		return res, Status(err)
	case err != nil:
		return nil, c.refused(err)
	default:
		return skipped(ctx, m), nil
	}
}

// skipped is the answer to a call that was skipped.
func skipped(ctx context.Context, m *rules.Bound) any {
	_ = grpc.SetHeader(ctx, skippedHeader) // fails only for a caller within the process
	return m.Response.New().Interface()
}

// skippedHeader tells the caller that the answer is not the handler's.
var skippedHeader = metadata.Pairs("latchkey-outcome", "skipped")
