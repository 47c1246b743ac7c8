package guard

import (
	"context"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// frame is one call of a function. All that it needs is in one piece of memory, because allocations are most of what a
// guard costs.
type frame[Req, Res any] struct {
	call
	of     *function[Req, Res]
	inline func(context.Context) (Res, error) // in place of the function's own, if it is not nil
	req    Req
	res    Res
}

// run makes one call of f, or of inline under f's guard. The result is that of the fallback if that ran.
func (f *function[Req, Res]) run(ctx context.Context, req Req, inline func(context.Context) (Res, error)) (ran bool, res Res, err error) {
	c := &frame[Req, Res]{of: f, inline: inline, req: req}
	c.Runner, c.task = f.runner, c
	defer c.forget()
	var facts keyexpr.Facts // a closure, which most calls do without
	if !c.byTask || c.when != nil {
		facts = c.fact
	}
	ran, err = c.start(ctx, facts)
	return ran, c.res, err
}

// fact is the keyexpr.Facts of the call: its request.
func (c *frame[Req, Res]) fact(string) (any, error) { return c.req, nil }

// appendKeys has the template read the request where it is.
func (c *frame[Req, Res]) appendKeys(room []string) ([]string, error) {
	return someKeys(c.Runner.key.AppendKeysOf(c.ctx, room, &c.req))
}

// forget lets go of the request and the result, which a context that somebody keeps would otherwise keep, too.
func (c *frame[Req, Res]) forget() {
	var req Req
	var res Res
	c.req, c.res = req, res
}

func (c *frame[Req, Res]) run(ctx context.Context) (err error) {
	if c.inline != nil {
		c.res, err = c.inline(ctx)
	} else {
		c.res, err = c.of.fn(ctx, c.req)
	}
	return err
}

func (c *frame[Req, Res]) instead(ctx context.Context, refused error) (err error) {
	c.res, err = c.of.fallback(ctx, c.req, refused)
	return err
}
