package guard

import (
	"context"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// Func puts g in front of fn: the returned function takes the locks, runs fn with a context that ends when a lock is
// lost, and gives them back. Templates see the request as `req`. A tag of the request type may fill in the fields that
// g leaves open, and Name defaults to the name of that type. An error here is a mistake in the declaration.
//
// The returned function returns fn's own error untouched, or an *Error, or, if ctx ended before fn could start, an error
// that matches both ctx.Err() and the cause of ctx. The result is fn's own also beside an ErrLost. Where a policy drops
// the call, the result is zero and the error nil; Try tells that from success.
//
//go:noinline
func Func[Req, Res any](g *Guard, fn func(context.Context, Req) (Res, error)) (func(context.Context, Req) (Res, error), error) {
	f, err := newFunction(entryPoint{"Func", reflect.TypeFor[Req](), reflect.TypeFor[fallbackFunc[Req, Res]](), fn == nil}, g, fn)
	if err != nil {
		return nil, err
	}
	return f.call, nil
}

// Action is Func for a function without a result.
//
//go:noinline
func Action[Req any](g *Guard, fn func(context.Context, Req) error) (func(context.Context, Req) error, error) {
	work := func(ctx context.Context, req Req) (none, error) { return none{}, fn(ctx, req) }
	f, err := newFunction(entryPoint{"Action", reflect.TypeFor[Req](), reflect.TypeFor[func(context.Context, Req, error) error](), fn == nil}, g, work)
	if err != nil {
		return nil, err
	}
	return action[Req]{f}.call, nil
}

// Job is Func for a function without a request and a result, such as a scheduled task. Its key reads nothing. TryJob says whether it ran.
func Job(g *Guard, fn func(context.Context) error) (func(context.Context) error, error) {
	f, err := newJob("Job", g, fn)
	if err != nil {
		return nil, err
	}
	return job{f}.call, nil
}

// TryJob is Job for callers that need to know whether fn was called: ran is false where the job was dropped, or a fallback ran instead.
func TryJob(g *Guard, fn func(context.Context) error) (func(context.Context) (ran bool, err error), error) {
	f, err := newJob("TryJob", g, fn)
	if err != nil {
		return nil, err
	}
	return job{f}.try, nil
}

// A Result is the outcome of a call of a function guarded by Try.
type Result[T any] struct {
	// Ran reports whether the function was called. With a nil Err, false says that the call was dropped, or that a fallback
	// ran instead.
	Ran bool
	// Value is the result of the function, or that of the fallback.
	Value T
	// Err is as Func returns it.
	Err error
}

// Try is Func for callers that need to know whether fn was called: with the policy Skip, a dropped call has no error.
//
//go:noinline
func Try[Req, Res any](g *Guard, fn func(context.Context, Req) (Res, error)) (func(context.Context, Req) Result[Res], error) {
	f, err := newFunction(entryPoint{"Try", reflect.TypeFor[Req](), reflect.TypeFor[fallbackFunc[Req, Res]](), fn == nil}, g, fn)
	if err != nil {
		return nil, err
	}
	return f.try, nil
}

// newJob is newFunction for Job and TryJob.
func newJob(entry string, g *Guard, fn func(context.Context) error) (*function[none, none], error) {
	work := func(ctx context.Context, _ none) (none, error) { return none{}, fn(ctx) }
	return newFunction(entryPoint{entry, nil, reflect.TypeFor[func(context.Context, error) error](), fn == nil}, g, work)
}

// function is fn with a guard.
type function[Req, Res any] struct {
	runner   *runner
	fn       func(context.Context, Req) (Res, error)
	fallback fallbackFunc[Req, Res]
	facts    func(Req) keyexpr.Facts
	inPlace  bool // the template reads a request where it is, and needs no facts
}

// entryPoint describes an entry point to newFunction.
type entryPoint struct {
	name     string
	request  reflect.Type // nil for a function without one
	fallback reflect.Type
	isNil    bool // the function
}

// newFunction fits g to fn, unless it was fitted to it as to a function with a directive.
func newFunction[Req, Res any](e entryPoint, g *Guard, fn func(context.Context, Req) (Res, error)) (_ *function[Req, Res], err error) {
	if err := g.unmade(e.name + " with"); err != nil {
		return nil, err
	}
	if e.isNil {
		return nil, g.spec.errorf("%s with a nil function", e.name)
	}
	f := &function[Req, Res]{runner: g.fitted, fn: fn, fallback: fallbackOf[Req, Res](g.fallback), facts: factsOf[Req]}
	if f.runner == nil {
		if f.runner, err = g.fit(fittingOf(e.request, e.fallback)); err != nil {
			return nil, err
		}
	}
	fact, _ := g.fact.(func(*Req, string) any)
	if f.inPlace = fact == nil && f.runner.key != nil; fact != nil {
		f.facts = func(req Req) keyexpr.Facts {
			return func(root string) (any, error) { return fact(&req, root), nil }
		}
	}
	return f, nil
}

func (f *function[Req, Res]) call(ctx context.Context, req Req) (Res, error) {
	_, res, err := f.run(ctx, req, nil)
	return res, err
}

func (f *function[Req, Res]) try(ctx context.Context, req Req) (r Result[Res]) {
	r.Ran, r.Value, r.Err = f.run(ctx, req, nil)
	return r
}

// none is the request, or the result, of a function without one.
type none = struct{}

// action is a function without a result, and job one without a request as well.
type (
	action[Req any] struct{ f *function[Req, none] }
	job             struct{ f *function[none, none] }
)

func (a action[Req]) call(ctx context.Context, req Req) error {
	_, err := a.f.call(ctx, req)
	return err
}

func (j job) call(ctx context.Context) error {
	_, err := j.f.call(ctx, none{})
	return err
}

func (j job) try(ctx context.Context) (ran bool, err error) {
	ran, _, err = j.f.run(ctx, none{}, nil)
	return ran, err
}

// fallbackFunc runs in place of a function.
type fallbackFunc[Req, Res any] = func(context.Context, Req, error) (Res, error)

// fallbackOf is f, a fallback of one of the three kinds or nil, for a function of these types, which it fits if a policy wants it.
func fallbackOf[Req, Res any](f any) fallbackFunc[Req, Res] {
	switch f := f.(type) {
	case fallbackFunc[Req, Res]:
		return f
	case func(context.Context, Req, error) error:
		return func(ctx context.Context, req Req, err error) (res Res, _ error) { return res, f(ctx, req, err) }
	case func(context.Context, error) error:
		return func(ctx context.Context, _ Req, err error) (res Res, _ error) { return res, f(ctx, err) }
	}
	return nil
}

// isGuarded reports whether fn, which is a function, has been returned by an entry point or replaced by Bind. It goes by the
// name that the compiler gave it, which is that of the entry point as long as that is not inlined.
func isGuarded(fn reflect.Value) bool {
	name := runtime.FuncForPC(fn.Pointer()).Name()
	ours, ok := strings.CutPrefix(name, reflect.TypeFor[Guard]().PkgPath()+".")
	if !ok {
		return name == "reflect.makeFuncStub"
	}
	entries := []string{"Func[", "Action[", "Try[", "job."}
	return slices.ContainsFunc(entries, func(entry string) bool { return strings.HasPrefix(ours, entry) })
}
