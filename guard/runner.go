package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// requestRoot is the name of the request of Func and Bind in templates.
const requestRoot = "req"

// runner is a Guard fitted to the facts of its function or route. It is safe for concurrent use. Only Registry.Override
// changes it, for calls that are yet to begin; see current.
type runner struct {
	latest atomic.Pointer[runner] // made by Override; nil before, and in those that it made

	spec      Spec
	request   lock.Request // that of spec, but for the key
	locker    lock.Locker
	tel       *telemetry
	labels    *labels
	observers []func(context.Context, Event)
	wantKeys  bool   // by one of them
	entry     *entry // nil outside of a Registry
	recent    *recentHolds
	local     *local
	next      *runner // behind it, of a Stack
	guard     *Guard

	leads bool // for Lead

	releaseTimeout time.Duration
	maxRetryAfter  time.Duration // 0 is none

	keyFunc *keyFunc          // or
	key     *keyexpr.Template // the other is nil
	when    *keyexpr.Condition

	expressions []expression // of what is read from requests besides; nil for most guards
}

// Prepare is adapter.Prepare, and returns a guard that is fitted.
func (a adapter) Prepare(roots keyexpr.Roots, methods, fallback, answer bool) (*Guard, error) {
	r, err := a.adapt(roots, abilities{methods: methods, fallback: fallback, answer: answer})
	if err != nil {
		return nil, err
	}
	return r.guard, nil
}

// adapt fits g to roots where functions are not known to it.
func (g *Guard) adapt(roots keyexpr.Roots, can abilities) (*runner, error) {
	if err := g.unmade("Prepare of"); err != nil {
		return nil, err
	}
	fitted := *g
	fitted.faults.check(g.fallback != nil, "a Fallback works with guard.Func and its like only, and would be ignored here")
	fitted.faults.check(g.spec.Args != "", "args=%s is for functions that Bind finds", g.spec.Args)
	return fitted.prepare(roots, can)
}

// current returns the runner of the next call: r, or the one that Registry.Override has made of it since.
func (r *runner) current() *runner {
	if latest := r.latest.Load(); latest != nil {
		return latest
	}
	return r
}

// prepare fits g to roots, now that nothing but an override can add to its Spec anymore, and lists it.
func (g *Guard) prepare(roots keyexpr.Roots, can abilities) (*runner, error) {
	at := &site{guard: *g, roots: maps.Clone(roots), can: can}
	r, err := g.fitTo(roots, can, (*Registry).said)
	at.runner = r
	for ; r != nil && err == nil; r = r.next {
		if reg := r.guard.registry; reg != nil {
			err = reg.register(r, at)
		}
	}
	return at.runner, err
}

// fitTo fits g to roots, and the guards behind it, each with the overrides of its registry. It changes g.
func (g *Guard) fitTo(roots keyexpr.Roots, can abilities, said func(*Registry) map[string]Spec) (*runner, error) {
	g.override(said)
	g.faults.check(g.registry == nil && g.spec.Switchable, "switchable, but in no registry: give guard.In")
	g.imply()
	g.serves()
	if g.adopted {
		g.spec.implyFallback()
	}
	faults := append(g.spec.admit(g.fallback != nil || g.adopted, g.owner != nil, can), g.mistakes(g.owner != nil)...)
	r, more := g.compile(roots)
	r.leads = can.leads
	own := r.spec.errors(append(faults, more...))
	if err := errors.Join(append([]error{own}, g.fitRest(r, roots, can, said)...)...); err != nil {
		return nil, err
	}
	if g.tel.unset == nil {
		g.tel.begin(context.Background(), r.labels)
	}
	return r, nil
}

// compile fits the texts of g to roots.
func (g *Guard) compile(roots keyexpr.Roots) (r *runner, faults []error) {
	r = &runner{
		spec: g.spec, request: g.spec.request(), locker: g.locker, tel: g.tel, labels: newLabels(g.spec),
		observers: slices.Clone(g.observers), wantKeys: g.wantKeys, keyFunc: g.keyFunc,
		guard: g, recent: new(recentHolds), local: g.local,
		releaseTimeout: cmp.Or(g.releaseTimeout, releaseTimeout), maxRetryAfter: g.maxRetryAfter,
	}
	g.fitted = r
	return r, append(g.spec.missing(g.keyFunc != nil), r.parse(g, roots)...)
}

// constant is the error for a condition that is the same for all requests. One that is always false would lock nothing.
func constant(when *keyexpr.Condition) error {
	if len(when.Fields()) == 0 && !strings.Contains(when.String(), "(") {
		return fmt.Errorf("%s is the same for every call, as nothing of the request is read: a Registry switches guards off", when)
	}
	if holds, ok := when.Constant(); ok {
		return fmt.Errorf("%s is %t for every call, as nothing of the request makes a difference: a Registry switches guards off", when, holds)
	}
	return nil
}

// parse fits the key, the condition and the expressions of g to roots.
func (r *runner) parse(g *Guard, roots keyexpr.Roots) (f faults) {
	var err error
	options := slices.Clone(g.functions)
	if r.spec.When != "" {
		r.when, err = keyexpr.ParseCondition(r.spec.When, roots, options...)
		if err == nil {
			err = constant(r.when)
		}
		f.check(err != nil, "when: %w", err)
	}
	if r.spec.OneKey || len(roots) == 0 {
		options = append(options, keyexpr.OneKey())
	}
	switch err = nil; {
	case g.keyFunc != nil:
		err = g.keyFunc.fits(roots)
	case g.source != nil:
		r.key, err = g.source.Parse(roots, options...)
	case r.spec.Key != "" && r.spec.bounded():
		r.key, err = parseOne(r.spec.Key, roots, options)
	case r.spec.Key != "":
		r.key, err = keyexpr.Parse(r.spec.Key, roots, options...)
	}
	f.check(err != nil, "key: %w", err)
	return append(f, r.parseExpressions(roots, g.functions)...)
}

// fields returns the facts that the key reads, as far as they are known.
func (r *runner) fields() []string {
	if r.keyFunc != nil {
		return nil
	}
	return r.key.Fields()
}

var (
	errNoKeys   = fmt.Errorf("%w: the template gave no keys", keyexpr.ErrValue)
	errEmptyKey = fmt.Errorf("%w: the key function gave an empty key", keyexpr.ErrValue)
)
