package connectguard

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/internal/rules"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// outcomeHeader tells the caller that the answer is not the handler's.
const outcomeHeader = "Latchkey-Outcome"

// call is one call of a method: what its guard may ask, and how it ends.
type call struct {
	method *rules.Bound
	ctx    context.Context
	header http.Header
	req    any       // of a unary method
	conn   *heldConn // or nil
}

// run makes the call under its guard. It reports whether the call was skipped; its error is either the handler's own,
// untouched, or a *connect.Error.
func (c *call) run(handle func(context.Context) error) (skipped bool, err error) {
	ran, err := c.method.Runner.Run(c.ctx, c.fact, handle)
	switch {
	case err == nil:
		return !ran, nil
	case ran:
		return false, Error(err)
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
	if req = c.req; c.conn != nil {
		req, err = c.conn.peek()
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, &refusal{text: "the call has no request message", client: true}
	case err != nil && c.ctx.Err() != nil:
		return nil, c.ctx.Err() // as if the caller had gone while the guard waited for the lock
	case err != nil:
		return nil, &refusal{text: "the request can't be received", client: true, answer: err}
	case reflect.TypeOf(req) != c.method.Request:
		const text = "the request is not of the type that its rule was made for"
		return nil, &refusal{text: text, answer: misuse(c.method, text)}
	}
	return req, nil
}

// metadata is the keyexpr.Lookup of md.
func (c *call) metadata(name string) (string, bool, error) {
	switch values := c.header.Values(name); len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	default:
		return "", false, &refusal{text: "a header that was sent more than once", client: true}
	}
}

// unary makes a call of a unary method.
func unary(ctx context.Context, m *rules.Bound, req connect.AnyRequest, next connect.UnaryFunc) (connect.AnyResponse, error) {
	var res connect.AnyResponse
	c := call{method: m, ctx: ctx, header: req.Header(), req: req.Any()}
	skipped, err := c.run(func(ctx context.Context) (err error) {
		res, err = next(ctx, req)
		return err
	})
	if skipped {
		empty := connect.NewResponse(&response{m.Response.New().Interface()})
		empty.Header().Set(outcomeHeader, guard.OutcomeSkipped)
		return empty, nil
	}
	return res, err
}

// response is a message of a type that is known at run time only.
type response struct{ proto.Message }
