package guard

import (
	"fmt"
	"log/slog"
	"reflect"

	"github.com/latchkey-go/latchkey/lock"
)

// Guard is a checked declaration together with the locker that serves it. Put it in front of a function with Func, or
// hand it to an adapter. It is immutable and safe for concurrent use.
type Guard struct {
	config
	locker  lock.Locker
	tel     *telemetry
	local   *local   // shared by all copies
	rest    []*Guard // behind it, of a Stack
	unread  bool     // requests have nothing to read, also for the rest
	adopted bool     // the fallback of the first guard of a Stack is its own, too
	inline  *inlineFunctions
	origin  *Guard // that New returned; this one may be a copy
	said    Spec   // by Override
	owner   any    // what declares the rest: with Bind the type of the struct, with a directive that of the interface, or a function's name

	fitted *runner // to the function or route behind the guard
	fact   any     // of a function with a directive: what returns an argument, a func(*Req, string) any
}

// New declares a guard over l. Everything that can be known without the request is checked here; the rest (whether the
// template fits the request) by Func, Bind or the adapter. Errors name the guard.
func New(l lock.Locker, opts ...Option) (*Guard, error) {
	g := &Guard{locker: l, inline: new(inlineFunctions), local: newLocal()}
	g.origin = g
	for i, opt := range opts {
		if opt == nil {
			g.fault("option %d of %d is nil", i+1, len(opts))
			continue
		}
		opt.apply(&g.config)
	}
	g.faults.check(isNil(l), "nil locker")
	if g.registry != nil {
		g.registry.equip(&g.config)
	}
	g.spec.imply()
	g.serves()
	if err := g.validate(); err != nil {
		return nil, err
	}
	var err error
	if g.tel, err = newTelemetry(g.tracers, g.meters); err != nil {
		return nil, g.spec.errorf("metrics: %w", err)
	}
	if g.registry != nil {
		g.registry.declared(g.spec.Name)
	}
	return g, nil
}

// detached returns a copy of g that is a guard of its own.
func (g *Guard) detached() *Guard {
	other := *g
	other.inline = new(inlineFunctions)
	return &other
}

// isNil reports whether v is nil, or holds a nil pointer or function, which would panic at the first call.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch v := reflect.ValueOf(v); v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan:
		return v.IsNil()
	}
	return false
}

// unmade reports a guard that New did not make.
func (g *Guard) unmade(what string) error {
	switch {
	case g == nil:
		return fmt.Errorf("guard: %s a nil guard", what)
	case g.origin == nil:
		return fmt.Errorf("guard: %s a guard that New did not make", what)
	}
	return nil
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
func (g *Guard) Spec() Spec {
	s := g.spec
	s.zeros = 0 // so that equal declarations are ==, however they were spelled
	return s
}

// String returns the Spec as the text of a tag; of a Stack, those of all its guards with bars between them.
func (g *Guard) String() string {
	if g == nil {
		return "<nil>"
	}
	specs := []Spec{g.spec}
	for _, next := range g.rest {
		specs = append(specs, next.spec)
	}
	return specsText(specs)
}

// LogValue implements [slog.LogValuer]: logs have the text of String.
func (g *Guard) LogValue() slog.Value { return slog.StringValue(g.String()) }
