// Package adapter has what adapters and generators need of package guard. It is for authors of an adapter for another server or queue, of a code
// generator, or of a tool that checks declarations. Everybody else needs package guard alone, and adapters that are there, such as package
// middleware.
//
// An adapter fits a guard to its facts once, with [Prepare], and makes each call with the [Runner] that it gets:
//
//	runner, err := adapter.Prepare(g, keyexpr.Roots{"topic": keyexpr.TypeFor[string]()})
//	…
//	ran, err := runner.Run(ctx, facts, work)
//
// [BindFields] is for an adapter with a Bind of its own, and [Wrap] for generated code. [CheckRequest], [CheckFields] and [CheckDirective] are for
// tools that know a program by its source.
package adapter

import (
	"context"
	"reflect"
	"slices"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// An Ability is what an adapter does for a Spec that not all can do, for Prepare.
type Ability int

const (
	// ServesMethods is that of adapters of HTTP: requests of other methods than Spec.Methods pass.
	ServesMethods Ability = iota + 1
	// ServesFallback is that of adapters which got a fallback, and give it to Runner.RunOr. It is the policy RunFallback where no
	// other one is given.
	ServesFallback
	// MustAnswer is that of adapters which have nothing to answer where a call is skipped, so that the policy Skip is refused.
	MustAnswer
)

// Prepare fits g to roots: it checks that key and condition name nothing else and have fitting types. A KeyFunc wants a
// root `req` of its request type. A Fallback is refused, as only functions know the type of results. A Spec that needs
// an Ability is refused unless can lists it. The error joins all mistakes.
func Prepare(g *guard.Guard, roots keyexpr.Roots, can ...Ability) (Runner, error) {
	does := func(a Ability) bool { return slices.Contains(can, a) }
	fitted, err := g.Adapter().Prepare(roots, does(ServesMethods), does(ServesFallback), does(MustAnswer))
	return Runner{fitted}, err
}

// A Runner is a Guard fitted to the facts that an adapter can offer, by Prepare; its zero value is of no use. It is safe for concurrent
// use. Only Registry.Override changes it, for calls that are yet to begin; see Current.
type Runner struct{ fitted *guard.Guard }

// Run makes one guarded call: it evaluates the condition, renders the keys, takes the locks in the order of their names
// (all or none), runs fn with a context that ends when one of them is lost, and gives them back, also if fn panics.
// facts is asked for a root once for each of the condition, the key, and the expressions of lease and limit that name it.
//
// ran says whether fn was called. The error is fn's own, untouched; or a *guard.Error; or, if ctx ended before fn could
// start, one that names the guard and matches both ctx.Err() and the cause of ctx. With Skip, a call that could not have
// the lock returns false and nil.
func (r Runner) Run(ctx context.Context, facts keyexpr.Facts, fn func(context.Context) error) (ran bool, err error) {
	return r.RunOr(ctx, facts, fn, nil)
}

// RunOr is Run for adapters with a fallback (ServesFallback): where the policy is RunFallback, it runs instead of fn, with
// the caller's context and the *guard.Error that says why. Its error is then the call's, and ran is false.
func (r Runner) RunOr(ctx context.Context, facts keyexpr.Facts, fn func(context.Context) error,
	fallback func(context.Context, error) error) (ran bool, err error) {
	return r.fitted.Adapter().Runner().RunOr(ctx, facts, fn, fallback)
}

// Explain says what Run would do now with a call that has these facts, without taking a lock or running anything; see
// [guard.Guard.Explain].
func (r Runner) Explain(ctx context.Context, facts keyexpr.Facts) guard.Explanation {
	return r.fitted.Adapter().Runner().Explain(ctx, facts)
}

// Current returns what the next call runs: r, or what Registry.Override has made of it since. An adapter whose calls depend on Specs asks
// for it at the beginning of each, and runs that. It is == to r as long as nothing was overridden.
func (r Runner) Current() Runner { return Runner{r.fitted.Adapter().Runner().Current()} }

// Specs returns the declaration of the guard of r, with tags and overrides applied. A Stack has several, the first one
// first. An adapter that reads a Spec reads these: a Guard's own Spec lacks tags and overrides.
func (r Runner) Specs() []guard.Spec { return r.fitted.Adapter().Runner().Specs() }

// String returns the text of Specs, with bars between them.
func (r Runner) String() string { return r.fitted.Adapter().Runner().String() }

// On reports whether the guard of r, or one of a Stack, is in the mode On at this moment. Where none is, an adapter does nothing
// for the sake of a lock before it calls Run, as there will be none.
func (r Runner) On() bool { return r.fitted.Adapter().Runner().On() }

// RequestType returns what the KeyFunc or KeysFunc of g takes, be it one of a Stack, and nil if there is none. An adapter
// that has such a request offers it as the root `req`.
func RequestType(g *guard.Guard) reflect.Type { return g.Adapter().RequestType() }

// CheckRequest reports what Func, Action, Try and Do would say to g in front of a function whose request is of type t, and Job
// where t is nil. It is for tools that know a program by its source, whose types need not be of the running program. It does not
// look at the type of a Fallback.
func CheckRequest(g *guard.Guard, t reflect.Type) error { return g.Adapter().CheckRequest(t) }

// Outcomes returns all Outcome constants of package guard, for those who make a dashboard or a test of them.
func Outcomes() []string { return new(guard.Guard).Adapter().Outcomes() }

// A KeySource is a key that is not written as a template, for guard.KeyFrom. Those of package spel are.
type KeySource interface {
	// String returns its text, which becomes Spec.Key.
	String() string
	// Check reports a mistake that shows without knowing the facts.
	Check() error
	// Parse checks it against the facts.
	Parse(roots keyexpr.Roots, opts ...keyexpr.Option) (*keyexpr.Template, error)
}
