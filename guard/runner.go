package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// requestRoot is what templates call the request of Func and Bind.
const requestRoot = "req"

// A Runner is a Guard fitted to the facts that an adapter can offer. It is immutable and safe for concurrent use.
type Runner struct {
	spec      Spec
	locker    lock.Locker
	tel       *telemetry
	labels    labels
	observers []func(context.Context, Event)
	wantKeys  bool // by one of them
	recent    *recentHolds

	releaseTimeout time.Duration
	maxRetryAfter  time.Duration // 0 is none

	keyFunc *keyFunc          // or
	key     *keyexpr.Template // the other is nil
	when    *keyexpr.Condition
}

// Prepare fits g to roots, for adapters: it checks that key and condition name nothing else and have fitting types.
// A KeyFunc wants a root `req` of its request type. A Fallback is refused, as only Func knows the type of results. What
// not all adapters do is refused unless it is in can.
func (g *Guard) Prepare(roots keyexpr.Roots, can ...Ability) (*Runner, error) {
	if g == nil {
		return nil, errors.New("guard: Prepare of a nil guard")
	}
	if g.fallback != nil {
		return nil, g.spec.errorf("a Fallback works with guard.Func only, and would be ignored here")
	}
	return g.prepare(roots, can...)
}

func (g *Guard) prepare(roots keyexpr.Roots, can ...Ability) (*Runner, error) {
	s := g.spec
	if err := s.complete(g.keyFunc != nil); err != nil {
		return nil, err
	}
	if err := s.admit(g.fallback != nil, can); err != nil {
		return nil, err
	}
	r := &Runner{
		spec: s, locker: g.locker, tel: g.tel, labels: newLabels(s),
		observers: slices.Clone(g.observers), wantKeys: g.wantKeys, keyFunc: g.keyFunc,
		recent: new(recentHolds), releaseTimeout: cmp.Or(g.releaseTimeout, releaseTimeout), maxRetryAfter: g.maxRetryAfter,
	}
	var err error
	if g.keyFunc != nil {
		err = g.keyFunc.fits(roots)
	} else {
		options := slices.Clone(g.functions)
		if s.OneKey || len(roots) == 0 {
			options = append(options, keyexpr.OneKey())
		}
		if g.source != nil {
			r.key, err = g.source.Parse(roots, options...)
		} else {
			r.key, err = keyexpr.Parse(s.Key, roots, options...)
		}
	}
	if err != nil {
		return nil, s.errorf("key: %w", err)
	}
	if s.When != "" {
		if r.when, err = keyexpr.ParseCondition(s.When, roots, g.functions...); err != nil {
			return nil, s.errorf("when: %w", err)
		}
	}
	return r, nil
}

// Uses reports whether the key or the condition names root, so that an adapter can save preparing what nobody reads.
func (r *Runner) Uses(root string) bool {
	switch {
	case r.when != nil && slices.Contains(r.when.Roots(), root):
		return true
	case r.keyFunc != nil:
		return root == requestRoot
	}
	return slices.Contains(r.key.Roots(), root)
}

// keys renders the keys of one call, in room if there is enough: at least one, none of them empty.
func (r *Runner) keys(ctx context.Context, room []string, facts keyexpr.Facts) ([]string, error) {
	if r.keyFunc != nil {
		return r.keyFunc.keys(facts)
	}
	keys, err := r.key.AppendKeys(ctx, room, facts)
	if err == nil && len(keys) == 0 {
		err = errNoKeys // nothing to lock must not mean to run without a lock
	}
	return keys, err
}

// fields is what the key reads of the facts, as far as that is known.
func (r *Runner) fields() []string {
	if r.keyFunc != nil {
		return nil
	}
	return r.key.Fields()
}

var (
	errNoKeys   = fmt.Errorf("%w: the template gave no keys", keyexpr.ErrValue)
	errEmptyKey = fmt.Errorf("%w: the key function gave an empty key", keyexpr.ErrValue)
)

// keyFunc is a KeyFunc whose request type is known at run time only.
type keyFunc struct {
	request reflect.Type
	call    func(request any) (string, error)
}

func newKeyFunc[Req any](key func(Req) (string, error)) *keyFunc {
	k := &keyFunc{request: reflect.TypeFor[Req]()}
	if key == nil {
		return k
	}
	k.call = func(request any) (string, error) {
		req, ok := request.(Req)
		if !ok && request != nil { // a nil of interface type is a Req, though it does not assert as one
			return "", fmt.Errorf("request is a %T, not a %v", request, k.request)
		}
		return key(req)
	}
	return k
}

// fits reports whether roots have the request that k wants.
func (k *keyFunc) fits(roots keyexpr.Roots) error {
	root, ok := roots[requestRoot]
	if !ok {
		return fmt.Errorf("KeyFunc takes requests of type %v, but there is no request (root %q) here: use a template", k.request, requestRoot)
	}
	if !reflect.DeepEqual(root, keyexpr.Type(k.request)) {
		return fmt.Errorf("KeyFunc takes requests of type %v, which these are not", k.request)
	}
	return nil
}

func (k *keyFunc) keys(facts keyexpr.Facts) ([]string, error) {
	request, err := facts(requestRoot)
	if err != nil {
		return nil, err
	}
	key, err := k.call(request)
	if err == nil && key == "" {
		err = errEmptyKey
	}
	return []string{key}, err
}
