package guard

import (
	"context"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// directed is a method or function that has a Directive.
type directed[Req, Res any] struct {
	Directive[Req, Res]
	runner   *Runner
	fallback func(context.Context, Req, error) (Res, error)
}

// wrapFrame is one call of a directed: what frame is for functions, with a key that is made by a pattern if that can be.
type wrapFrame[Req, Res any] struct {
	call
	of  *directed[Req, Res]
	req Req
	res Res
}

func (d *directed[Req, Res]) call(ctx context.Context, req Req) (Res, error) {
	c := &wrapFrame[Req, Res]{of: d, req: req}
	c.Runner, c.task = d.runner, c
	defer c.forget()
	var facts keyexpr.Facts // a closure, which most calls do without
	if !c.byTask || c.when != nil {
		facts = c.fact
	}
	_, err := c.start(ctx, facts)
	return c.res, err
}

func (c *wrapFrame[Req, Res]) fact(root string) (any, error) { //nolint:unparam // it is a keyexpr.Facts
	if c.of.Fact == nil {
		return c.req, nil
	}
	return c.of.Fact(&c.req, root), nil
}

// appendKeys makes the key by the pattern of the Runner. For one that is empty, the template has to say what is wrong, or to make it.
func (c *wrapFrame[Req, Res]) appendKeys(room []string) ([]string, error) {
	if key := c.of.Key(c.pattern, &c.req); key != "" {
		return append(room, key), nil
	}
	return c.keys(c.ctx, room, c.fact)
}

func (c *wrapFrame[Req, Res]) run(ctx context.Context) (err error) {
	c.res, err = c.of.Call(ctx, c.req)
	return err
}

func (c *wrapFrame[Req, Res]) instead(ctx context.Context, refused error) (err error) {
	c.res, err = c.of.fallback(ctx, c.req, refused)
	return err
}

// forget is frame.forget.
func (c *wrapFrame[Req, Res]) forget() {
	var req Req
	var res Res
	c.req, c.res = req, res
}
