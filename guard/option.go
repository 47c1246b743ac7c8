package guard

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// An Option declares one thing about a guard, for New and Bind. Where options contradict each other, the last wins.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// Name sets Spec.Name, which names the guard in errors, spans and metrics.
func Name(name string) Option {
	return optionFunc(func(c *config) { c.spec.Name = name; c.set |= fieldName })
}

// Key sets Spec.Key, the template of the keys: "order:#{req.OrderID}".
func Key(template string) Option {
	return optionFunc(func(c *config) { c.spec.Key, c.source = template, nil; c.set |= fieldKey })
}

// KeySource is a key that is not written as a template, such as those of package spel.
type KeySource interface {
	// String returns its text, which becomes Spec.Key.
	String() string
	// Check reports a mistake that shows without knowing the facts.
	Check() error
	// Parse checks it against the facts.
	Parse(roots keyexpr.Roots, opts ...keyexpr.Option) (*keyexpr.Template, error)
}

// KeyFrom sets the key to one in another language than that of templates, in place of Key: Java's.
//
//	guard.KeyFrom(spel.Expression("'order:' + #order.id", spel.Params("order")))
//
// Spec.Key is its text, for people; as a template, that text would be refused.
func KeyFrom(k KeySource) Option {
	return optionFunc(func(c *config) {
		c.spec.Key, c.source = "", k
		if k != nil {
			c.spec.Key = k.String()
		}
		c.set |= fieldKey
	})
}

// OneKey sets Spec.OneKey: a key that reads nothing of the request is meant, and all calls share one lock.
func OneKey() Option {
	return optionFunc(func(c *config) { c.spec.OneKey = true; c.set |= fieldOneKey })
}

// When sets Spec.When, a condition: where it is false, the work runs without a lock.
func When(condition string) Option {
	return optionFunc(func(c *config) { c.spec.When = condition; c.set |= fieldWhen })
}

// Wait sets Spec.Wait, the bound on the time spent waiting for the locks; without it, a call tries once.
func Wait(d time.Duration) Option {
	return optionFunc(func(c *config) { c.spec.Wait = d; c.set |= fieldWait })
}

// WaitForever waits for the locks as long as the caller's context lasts.
func WaitForever() Option { return Wait(Forever) }

// Lease sets Spec.Lease, after which a lock ends by itself; without it, locks are renewed until the work is done.
func Lease(d time.Duration) Option {
	return optionFunc(func(c *config) { c.spec.Lease = d; c.set |= fieldLease })
}

// MaxHold sets Spec.MaxHold, after which the work's context and the lock end, however often it was renewed.
func MaxHold(d time.Duration) Option {
	return optionFunc(func(c *config) { c.spec.MaxHold = d; c.set |= fieldMaxHold })
}

// Kind sets Spec.Kind, the sort of lock.
func Kind(k lock.Kind) Option {
	return optionFunc(func(c *config) { c.spec.Kind = k; c.set |= fieldKind })
}

// Fair serves callers in the order of their arrival.
func Fair() Option { return Kind(lock.Fair) }

// Read shares the lock with other readers of the key and excludes writers.
func Read() Option { return Kind(lock.Read) }

// Write excludes readers and writers of the key.
func Write() Option { return Kind(lock.Write) }

// Fenced asks for a lock with a fencing token, which the work gets from Token.
func Fenced() Option { return Kind(lock.Fenced) }

// Spin waits by polling instead of listening for the release.
func Spin() Option { return Kind(lock.Spin) }

// Limit lets up to n calls run at once: it sets Spec.Limit and makes the kind lock.Permit.
func Limit(n int) Option {
	return optionFunc(func(c *config) {
		c.spec.Limit, c.spec.Kind = n, lock.Permit
		c.set |= fieldLimit | fieldKind
	})
}

// OnBusy sets Spec.Busy: what to do when others held a lock for all of Wait.
func OnBusy(p Policy) Option {
	return optionFunc(func(c *config) { c.spec.Busy = p; c.set |= fieldBusy })
}

// OnOutage sets Spec.Outage: what to do when the lock service could not answer.
func OnOutage(p Policy) Option {
	return optionFunc(func(c *config) { c.spec.Outage = p; c.set |= fieldOutage })
}

// FromSpec sets all fields at once. A zero field counts as not given, so that a tag may still fill it in.
func FromSpec(s Spec) Option {
	return optionFunc(func(c *config) { c.spec, c.source, c.set = s, nil, s.nonZero() })
}

// KeyFunc computes the key in Go, in place of Key, for what a template can't say. An empty key is ErrKey, and so is an
// error that matches ErrKey or keyexpr.ErrValue; one that matches ErrOutage is an outage, any other ErrFault. The guard fits calls whose request (the root `req`) is a Req: those of Func, and of adapters that offer one.
func KeyFunc[Req any](key func(Req) (string, error)) Option {
	return optionFunc(func(c *config) { c.keyFunc = newKeyFunc(key) })
}

// Fallback runs in place of the work when a lock is busy or the lock service out, and gets the *Error that says which.
// It is called with the caller's context, without the lock, and its results are the call's. The guard fits Func with
// functions of the same request and result only.
func Fallback[Req, Res any](f func(context.Context, Req, error) (Res, error)) Option {
	return optionFunc(func(c *config) { c.fallback, c.nilFallback = f, f == nil })
}

// Function gives the templates of this guard a function of the user's own, as keyexpr.Func describes it: it may take a
// context first, and may fail: with ErrKey or ErrOutage as KeyFunc, or else ErrFault. Several options add up.
//
//	guard.Function("tenant", func(ctx context.Context) (string, error) { … }), guard.Key("#{tenant()}:#{req.OrderID}")
func Function(name string, fn any) Option {
	return optionFunc(func(c *config) { c.functions = append(c.functions, keyexpr.Func(name, fn)) })
}

// TracerProvider sets where spans go; without it, or for nil, to OpenTelemetry's global provider.
func TracerProvider(p trace.TracerProvider) Option {
	return optionFunc(func(c *config) { c.tracers = p })
}

// MeterProvider sets where metrics go; without it, or for nil, to OpenTelemetry's global provider.
func MeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(c *config) { c.meters = p })
}

// Observe calls f once at the end of each call, after the locks were given back, with the caller's context. Several
// observers are called in the order given. A panic of f is f's own: it reaches the caller, but leaves no lock held.
func Observe(f func(context.Context, Event)) Option {
	return optionFunc(func(c *config) { c.observers = append(c.observers, f) })
}
