package guard

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// Guard is a checked declaration together with the locker that serves it. Put it in front of a function with Func, or
// hand it to an adapter. It is immutable and safe for concurrent use.
type Guard struct {
	locker lock.Locker
	config
}

// New declares a guard over l. Everything that can be known without the request is checked here; the rest (whether the
// template fits the request) by Func, Bind or the adapter. Errors name the guard.
func New(l lock.Locker, opts ...Option) (*Guard, error) {
	return nil, errors.New("guard: not built yet")
}

// Must returns v, or panics with err if it is not nil. It is for declarations at start:
//
//	var settle = guard.Must(guard.New(locker, guard.Name("order.settle"), guard.Key("order:#{path.id}")))
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Spec returns the declaration, without what tags add to it in Func.
func (g *Guard) Spec() Spec { return g.spec }

// Func puts g in front of fn: the returned function takes the locks, runs fn with a context that ends when a lock is
// lost, and gives them back. Templates see the request as `req`. What g leaves open, a tag of the request type may say,
// and Name defaults to the name of that type. An error here is a mistake in the declaration.
//
// The returned function returns fn's own error untouched, or an *Error, or, if ctx ended while waiting, an error that
// matches the cause of ctx.
func Func[Req, Res any](g *Guard, fn func(context.Context, Req) (Res, error)) (func(context.Context, Req) (Res, error), error) {
	return nil, errors.New("guard: not built yet")
}

// Bind puts a guard in front of each function that a struct declares with a guard tag, in place. target points to the
// struct; each tagged field holds a func(context.Context, Req) (Res, error) or a func(context.Context, Req) error.
// Other fields stay as they are. Options hold for all fields and win over tags; the name of a guard defaults to
// "<Struct>.<Field>". On error, which names the field, nothing was replaced.
//
//	type Orders struct {
//		Pay func(context.Context, PayRequest) (Receipt, error) `guard:"order:#{req.OrderID}; wait=2s"`
//	}
func Bind(l lock.Locker, target any, opts ...Option) error {
	return errors.New("guard: not built yet")
}

// A Runner is a Guard fitted to the facts that an adapter can offer. It is immutable and safe for concurrent use.
type Runner struct{}

// Prepare fits g to roots, for adapters: it checks that key and condition name nothing else and have fitting types.
// A KeyFunc wants a root `req` of its request type. A Fallback is refused, as only Func knows the type of results.
func (g *Guard) Prepare(roots keyexpr.Roots) (*Runner, error) {
	return nil, errors.New("guard: not built yet")
}

// Uses reports whether the key or the condition names root, so that an adapter can save preparing what nobody reads.
func (r *Runner) Uses(root string) bool { return false }

// Run makes one guarded call: it evaluates the condition, renders the keys, takes the locks in the order of their names
// (all or none), runs fn with a context that ends when one of them is lost, and gives them back, also if fn panics.
//
// ran says whether fn was called. The error is fn's own, untouched; or an *Error; or, if ctx ended before fn could
// start, one that names the guard and matches both ctx.Err() and the cause of ctx. With Skip, a call that could not have
// the lock returns false and nil.
func (r *Runner) Run(ctx context.Context, facts keyexpr.Facts, fn func(context.Context) error) (ran bool, err error) {
	return false, errors.New("guard: not built yet")
}

// Held reports whether ctx belongs to work that the named guard runs under its lock; an empty name is any guard. It
// tells a function that relies on its caller's lock whether it has been called the right way.
func Held(ctx context.Context, name string) bool { return false }
