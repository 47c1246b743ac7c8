package guard

import (
	"context"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// run makes one call of f, or of inline under f's guard. The result is that of the fallback if that ran.
func (f *function[Req, Res]) run(ctx context.Context, req Req, inline func(context.Context) (Res, error)) (ran bool, res Res, err error) {
	r := f.runner.current()
	if r.next != nil {
		return f.descend(ctx, req, inline)
	}
	t := f.task(req, inline, &res)
	fr := &frame[Req]{req: req}
	defer fr.forget()
	var facts keyexpr.Facts // a closure in the heap, which most calls do without
	if f.inPlace {
		t.appendKeys = func(ctx context.Context, room []string) ([]string, error) {
			return r.key.AppendKeysOf(ctx, room, &fr.req)
		}
	}
	if !f.inPlace || r.when != nil || r.expressions != nil {
		facts = f.facts(req)
	}
	c := call{runner: r, shared: &fr.shared}
	ran, err = c.start(ctx, facts, &t, nil)
	return ran, res, err
}

// descend is run for a Stack, whose calls know of each other and are in the heap, as is all that they call.
func (f *function[Req, Res]) descend(ctx context.Context, req Req, inline func(context.Context) (Res, error)) (ran bool, res Res, err error) {
	t := f.task(req, inline, &res)
	ran, err = f.runner.RunOr(ctx, f.facts(req), t.run, t.instead)
	return ran, res, err
}

// task is the work of one call, and its fallback, with the result in res. It is inlined, so that they are on the stack of run.
func (f *function[Req, Res]) task(req Req, inline func(context.Context) (Res, error), res *Res) task {
	return task{
		run: func(ctx context.Context) (err error) {
			*res, err = f.work(ctx, req, inline)
			return err
		},
		instead: func(ctx context.Context, refused error) (err error) {
			*res, err = f.fallback(ctx, req, refused)
			return err
		},
	}
}

// work calls inline, if there is one, or else f's own function.
func (f *function[Req, Res]) work(ctx context.Context, req Req, inline func(context.Context) (Res, error)) (Res, error) {
	if inline != nil {
		return inline(ctx)
	}
	return f.fn(ctx, req)
}

// frame is the heap memory of a call of a function, in one piece.
type frame[Req any] struct {
	shared
	req Req // for templates, which read it where it is
}

// forget drops the request, which would otherwise live as long as a context that somebody keeps.
func (f *frame[Req]) forget() { f.req = *new(Req) }

// factsOf is the Facts of a call of a function: its request.
func factsOf[Req any](req Req) keyexpr.Facts { return func(string) (any, error) { return req, nil } }
