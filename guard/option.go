package guard

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// An Option declares one thing about a guard, for New. To give the same thing twice is a mistake, which New reports;
// only FromSpec and the options after it override earlier ones.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// give is an option that sets the fields in set from s.
func give(set fields, s Spec) Option {
	return optionFunc(func(c *config) { c.give(set, s) })
}

// giveText is give for texts. An empty one sets nothing.
func giveText(option, text string, set fields, s Spec) Option {
	if text != "" {
		return give(set, s)
	}
	return optionFunc(func(c *config) { c.fault("%s without a text: leave it out", option) })
}

// giveOnce sets a value that is no field of a Spec, once.
func giveOnce[T comparable](option string, value T, at func(*config) *T) Option {
	return optionFunc(func(c *config) {
		var zero T
		c.faults.check(*at(c) != zero, "%s is given twice", option)
		*at(c) = value
	})
}

// giveBound is giveOnce for times that bound something.
func giveBound(option string, d time.Duration, at func(*config) *time.Duration) Option {
	if d < time.Millisecond {
		return optionFunc(func(c *config) { c.fault("%s of %v: give at least 1ms", option, d) })
	}
	return giveOnce(option, d, at)
}

// Name sets Spec.Name, which names the guard in errors, spans and metrics. A guard with a key of its own needs one, unless it is for the
// fields that Bind finds, which have names of their own.
func Name(name string) Option { return giveText("Name", name, fieldName, Spec{Name: name}) }

// Key sets Spec.Key, the template of the keys: "order:#{req.OrderID}". A key that another library or a Java service makes of
// texts, too, is "order:#{raw(req.OrderID)}", because they do not escape what they put in.
func Key(template string) Option {
	return optionFunc(func(c *config) {
		c.give(fieldKey, Spec{Key: template})
		c.source = nil
	})
}

// keySource is adapter.KeySource.
type keySource interface {
	String() string
	Check() error
	Parse(roots keyexpr.Roots, opts ...keyexpr.Option) (*keyexpr.Template, error)
}

// KeyFrom sets the key to one in another language than that of templates, in place of Key: Java's. k is what package spel returns, or another
// adapter.KeySource.
//
//	guard.KeyFrom(spel.Expression("'order:' + #order.id", spel.Params("order")))
//
// Spec.Key is its text, for people; as a template, that text would be refused.
func KeyFrom(k keySource) Option {
	return optionFunc(func(c *config) {
		if isNil(k) {
			c.fault("KeyFrom without a key")
			return
		}
		c.give(fieldKey, Spec{Key: k.String()})
		c.source = k
	})
}

// OneKey sets Spec.OneKey: a key that reads nothing of the request is meant, and all calls share one lock.
func OneKey() Option { return give(fieldOneKey, Spec{OneKey: true}) }

// When sets Spec.When, a condition: where it is false, the work runs without a lock.
func When(condition string) Option {
	return giveText("When", condition, fieldWhen, Spec{When: condition})
}

// Wait sets Spec.Wait, the bound on the time spent waiting for the locks; without it, a call tries once. Wait(Forever) waits for as long
// as the caller's context lasts.
func Wait(d time.Duration) Option { return give(fieldWait, Spec{Wait: d}) }

// Waiters sets Spec.Waiters: at most n calls of this process wait for a key, and one more is busy at once.
func Waiters(n int) Option { return give(fieldWaiters, Spec{Waiters: n}) }

// Lease sets Spec.Lease, after which a lock ends by itself; without it, locks are renewed until the work is done.
func Lease(d time.Duration) Option { return give(fieldLease, Spec{Lease: d}) }

// LeaseFrom sets Spec.LeaseFrom, a template that reads the lease from each request: "#{req.Timeout}", a time.Duration.
func LeaseFrom(t string) Option { return giveText("LeaseFrom", t, fieldLease, Spec{LeaseFrom: t}) }

// MaxHold sets Spec.MaxHold, after which the work's context and the lock end, however often it was renewed.
func MaxHold(d time.Duration) Option { return give(fieldMaxHold, Spec{MaxHold: d}) }

// HoldAtLeast sets Spec.Hold: after success, strangers find the lock held until d has passed since it was taken. So the
// work runs once per interval. Work that fails gives the lock back at once.
func HoldAtLeast(d time.Duration) Option { return give(fieldHold, Spec{Hold: d}) }

// Kind sets Spec.Kind, the sort of lock.
func Kind(k lock.Kind) Option { return give(fieldKind, Spec{Kind: k}) }

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
func Limit(n int) Option { return give(fieldLimit, Spec{Limit: n}) }

// LimitFrom is Limit for a number that each request gives: it sets Spec.LimitFrom, a template such as "#{req.Plan.Slots}".
func LimitFrom(t string) Option { return giveText("LimitFrom", t, fieldLimit, Spec{LimitFrom: t}) }

// Level bounds how many calls run at once under one more key, beside Limit: Limit(1) and Level(20, "all") are one for each Key, and 20 in all. It may be
// given twice, and adds to Spec.Levels. The key is a template of one key, or a constant, in which a comma is #{","}.
func Level(n int, key string) Option { return LevelFrom(strconv.Itoa(n), key) }

// LevelFrom is Level for a number that each request gives, by a template as that of LimitFrom.
func LevelFrom(limit, key string) Option {
	return optionFunc(func(c *config) {
		text := limit + " of " + key
		if c.single&fieldLevels != 0 {
			text = c.spec.Levels + ", " + text
		}
		c.single &^= fieldLevels // as each adds to those before
		c.give(fieldLevels, Spec{Levels: text})
	})
}

// Rate lets n calls with the same key begin within per, however long they take: it sets Spec.Rate and makes the kind lock.Permit.
func Rate(n int, per time.Duration) Option {
	return give(fieldRate, Spec{Rate: strconv.Itoa(n) + "/" + printDuration(per)})
}

// Burst sets Spec.Burst: how many of the Rate may begin at once, in place of all of them. 1 spaces them evenly.
func Burst(n int) Option { return give(fieldBurst, Spec{Burst: n}) }

// Busy sets Spec.Busy: what to do when others held a lock for all of Wait.
func Busy(p Policy) Option { return give(fieldBusy, Spec{Busy: p}) }

// Outage sets Spec.Outage: what to do when the lock service could not answer.
func Outage(p Policy) Option { return give(fieldOutage, Spec{Outage: p}) }

// Methods sets Spec.Methods: the guard is for requests of these methods of HTTP, and others pass without a lock.
func Methods(names ...string) Option {
	list := strings.Join(names, ",")
	return giveText("Methods", list, fieldMethods, Spec{Methods: list})
}

// Args sets Spec.Args, the names of the arguments of a function that Bind guards. They mostly stand in its tag.
func Args(names ...string) Option {
	list := strings.Join(names, ",")
	return giveText("Args", list, fieldArgs, Spec{Args: list})
}

// Switchable sets Spec.Switchable: the guard may be switched off, or to shadow mode, while the program runs.
func Switchable() Option { return give(fieldSwitchable, Spec{Switchable: true}) }

// FromSpec sets the fields that s gives, over earlier options; a zero field is not given. Options that follow may set
// them once more, and tags fill in the fields that are still open.
func FromSpec(s Spec) Option {
	return optionFunc(func(c *config) {
		c.fromSpec(s)
		c.single &^= s.given()
	})
}

// Fallback runs f in place of the work when a lock is busy or the lock service out. f is a function like the guarded one, with an error as
// its last argument: the *Error that says which.
//
//	guard.Fallback(func(ctx context.Context, req PayRequest, refused error) (Receipt, error) { … }) // for Func, Try and Do
//	guard.Fallback(func(ctx context.Context, req PayRequest, refused error) error { … })            // for Action
//	guard.Fallback(func(ctx context.Context, refused error) error { … })                            // for Job and TryJob
//
// It is called with the caller's context, without the lock, and its results are the call's. It is the policy RunFallback for busy and
// outage, unless another one is given. Whether f fits is checked where the guard meets its function, or the functions that Bind finds.
func Fallback[F any](f F) Option {
	return optionFunc(func(c *config) {
		c.faults.check(isNil(f), "Fallback without a function")
		c.faults.check(c.fallback != nil, "two fallbacks: give one")
		c.fallback = f
		if t := reflect.TypeFor[F](); t.Kind() == reflect.Func { // which may be a type of the user's own
			t = reflect.FuncOf(slices.Collect(t.Ins()), slices.Collect(t.Outs()), t.IsVariadic())
			c.fallback = reflect.ValueOf(f).Convert(t).Interface()
		}
	})
}

// TemplateFunc gives the templates of this guard a function of the user's own, as keyexpr.Func describes it: it may take a
// context first, and may fail: with ErrKey or ErrOutage as KeyFunc, or else ErrFault. Several options add up.
//
//	guard.TemplateFunc("tenant", func(ctx context.Context) (string, error) { … }), guard.Key("#{tenant()}:#{req.OrderID}")
func TemplateFunc(name string, fn any) Option {
	return optionFunc(func(c *config) {
		if isNil(fn) {
			c.fault("TemplateFunc %s without a function", name)
			return
		}
		c.functions = append(c.functions, keyexpr.Func(name, fn))
	})
}

// TracerProvider sets where spans go; without it, or for nil, to OpenTelemetry's global provider.
func TracerProvider(p trace.TracerProvider) Option {
	if isNil(p) {
		p = nil
	}
	return giveOnce("TracerProvider", p, func(c *config) *trace.TracerProvider { return &c.tracers })
}

// MeterProvider sets where metrics go; without it, or for nil, to OpenTelemetry's global provider.
func MeterProvider(p metric.MeterProvider) Option {
	if isNil(p) {
		p = nil
	}
	return giveOnce("MeterProvider", p, func(c *config) *metric.MeterProvider { return &c.meters })
}

// Observe calls f once at the end of each call, after the locks were given back, with the caller's context, and when Lead is elected,
// under the lock and with the context of the work. Several observers are called in the order given. A panic of f is f's own: it reaches the
// caller, but leaves no lock held.
func Observe(f func(context.Context, Event)) Option {
	return optionFunc(func(c *config) { c.observers = append(c.observers, f) })
}
