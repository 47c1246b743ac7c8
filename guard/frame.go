package guard

import "context"

// frame is one call of a function. All that it needs is in one piece of memory, because allocations are most of what a
// guard costs.
type frame[Req, Res any] struct {
	call
	of     *function[Req, Res]
	inline func(context.Context) (Res, error) // in place of the function's own, if it is not nil
	req    any                                // a Req, as templates want it
	res    Res
}

// run makes one call of f, or of inline under f's guard. The result is that of the fallback if that ran.
func (f *function[Req, Res]) run(ctx context.Context, req Req, inline func(context.Context) (Res, error)) (ran bool, res Res, err error) {
	c := &frame[Req, Res]{of: f, inline: inline, req: req}
	c.Runner, c.task = f.runner, c
	defer c.forget()
	ran, err = c.start(ctx, c.fact)
	return ran, c.res, err
}

// fact is the keyexpr.Facts of the call: its request.
func (c *frame[Req, Res]) fact(string) (any, error) { return c.req, nil }

// request is what the function was called with, which may be a nil of interface type.
func (c *frame[Req, Res]) request() Req {
	req, _ := c.req.(Req)
	return req
}

// forget lets go of the request and the result, which a context that somebody keeps would otherwise keep, too.
func (c *frame[Req, Res]) forget() {
	var res Res
	c.req, c.res = nil, res
}

func (c *frame[Req, Res]) run(ctx context.Context) (err error) {
	if c.inline != nil {
		c.res, err = c.inline(ctx)
	} else {
		c.res, err = c.of.fn(ctx, c.request())
	}
	return err
}

func (c *frame[Req, Res]) instead(ctx context.Context, refused error) (err error) {
	c.res, err = c.of.fallback(ctx, c.request(), refused)
	return err
}
