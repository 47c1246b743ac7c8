package guard

import (
	"context"
	"reflect"
	"sync"
)

// Do runs fn under g at once, for work that is no function of its own. req is the request that templates see as `req`;
// struct{}{} is none. A tag of Req may fill in the fields that g leaves open. Results and errors are those of a
// function from Func.
//
//	receipt, err := guard.Do(ctx, pay, req, func(ctx context.Context) (Receipt, error) { … })
//
// The first call finds out whether g fits Req. If not, no call runs anything, and each returns an *Error that matches
// ErrFault. Check finds out when the program starts.
func Do[Req, Res any](ctx context.Context, g *Guard, req Req, fn func(context.Context) (Res, error)) (res Res, err error) {
	if err := g.unmade("Do with"); err != nil {
		return res, &Error{Err: ErrFault, Cause: err}
	}
	f, err := inlineFor[Req, Res](g)
	if err == nil && fn == nil {
		err = g.spec.errorf("Do with a nil function")
	}
	if err != nil {
		return res, &Error{Guard: g.spec.Name, Err: ErrFault, Cause: err}
	}
	_, res, err = f.run(ctx, req, fn)
	return res, err
}

// Check reports whether g fits calls of Do with a Req and a Res. Its error is a mistake in the declaration.
func Check[Req, Res any](g *Guard) error {
	if err := g.unmade("Check of"); err != nil {
		return err
	}
	_, err := inlineFor[Req, Res](g)
	return err
}

// inlineFunctions are the functions of Do that a guard has, by inlineKey.
type inlineFunctions struct {
	sync.Map
	making sync.Mutex // held while a function is made, so that each is made once
}

// inlineKey is the key of a function in inlineFunctions: its types.
type inlineKey[Req, Res any] struct{}

// inlineFor returns the function of Do that g has for the types Req and Res. It is made only once.
func inlineFor[Req, Res any](g *Guard) (*function[Req, Res], error) {
	if f, ok := g.inline.Load(inlineKey[Req, Res]{}); ok {
		return f.(*function[Req, Res]), nil
	}
	g.inline.making.Lock()
	defer g.inline.making.Unlock()
	if f, ok := g.inline.Load(inlineKey[Req, Res]{}); ok {
		return f.(*function[Req, Res]), nil
	}
	f, err := newFunction[Req, Res](entryPoint{"Do", reflect.TypeFor[Req](), reflect.TypeFor[fallbackFunc[Req, Res]](), false}, g, nil)
	if err == nil {
		g.inline.Store(inlineKey[Req, Res]{}, f)
	}
	return f, err
}
