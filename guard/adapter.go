package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// An Ability is what an adapter does for a Spec that not all can do, for Prepare.
type Ability int

const (
	// ServesMethods is that of adapters of HTTP: requests of other methods than Spec.Methods pass.
	ServesMethods Ability = iota + 1
	// ServesFallback is that of adapters which got a fallback, and give it to RunOr. It is the policy RunFallback where no
	// other one is given.
	ServesFallback
	// MustAnswer is that of adapters which have nothing to answer where a call is skipped, so that the policy Skip is refused.
	MustAnswer
)

// admit describes what s wants and neither the guard nor its adapter does, and fills in what a fallback implies.
// In a struct that is bound, the tag of a field may do without the fallback of all.
func (s *Spec) admit(own, tagged bool, can []Ability) (faults []error) {
	adapters := slices.Contains(can, ServesFallback)
	if adapters {
		s.implyFallback()
	}
	runs := s.fallsBack()
	if runs && !own && !adapters {
		faults = append(faults, errors.New("policy fallback without a fallback: give Fallback"))
	}
	if adapters && !runs && !tagged {
		faults = append(faults, s.idleFallback())
	}
	if slices.Contains(can, MustAnswer) && (s.Busy == Skip || s.Outage == Skip) {
		faults = append(faults, errors.New("a skipped call must answer something, but the type of its responses is not known: let the guard fail"))
	}
	if s.Methods != "" && !slices.Contains(can, ServesMethods) {
		faults = append(faults, fmt.Errorf("methods=%s is about requests of HTTP, which there are none of here", s.Methods))
	}
	return faults
}

// implyFallback makes the fallback the policy where no other one is given.
func (s *Spec) implyFallback() {
	given := s.given()
	if given&fieldBusy == 0 {
		s.Busy = RunFallback
	}
	if given&fieldOutage == 0 {
		s.Outage = RunFallback
	}
}

func (s *Spec) idleFallback() error {
	return fmt.Errorf("a Fallback that never runs: the policies are busy=%v and outage=%v", s.Busy, s.Outage)
}

// RunOr is Run for adapters with a fallback (ServesFallback): where the policy is RunFallback, it runs instead of fn, with
// the caller's context and the *Error that says why. Its error is then the call's, and ran is false.
func (r *Runner) RunOr(ctx context.Context, facts keyexpr.Facts, fn func(context.Context) error,
	fallback func(context.Context, error) error) (ran bool, err error) {
	r = r.Current()
	t := task{run: fn, instead: fallback}
	if r.next != nil {
		return (&call{Runner: r}).descend(ctx, facts, t)
	}
	c := call{Runner: r}
	return c.start(ctx, facts, &t, nil)
}

// RequestType returns what the KeyFunc or KeysFunc of g takes, be it one of a Stack, and nil if there is none. An adapter
// that has such a request offers it as the root `req`.
func (g *Guard) RequestType() reflect.Type {
	if g == nil {
		return nil
	}
	for _, g := range append([]*Guard{g}, g.rest...) {
		if g.keyFunc != nil {
			return g.keyFunc.request
		}
	}
	return nil
}

// Specs returns what the guard of r declares, with what tags and overrides say. Of a Stack they are several, the first one
// first. An adapter that looks into a Spec looks into these: that of a Guard is not the last word.
func (r *Runner) Specs() []Spec {
	var specs []Spec
	for r = r.Current(); r != nil; r = r.next {
		s := r.spec
		s.zeros = 0
		specs = append(specs, s)
	}
	return specs
}

// String returns the text of Specs, with bars between them.
func (r *Runner) String() string { return specsText(r.Specs()) }

// On reports whether the guard of r, or one of a Stack, is in the mode On at this moment. Where none is, an adapter does nothing
// for the sake of a lock before it calls Run, as there will be none.
func (r *Runner) On() bool {
	for r = r.Current(); r != nil; r = r.next {
		if r.entry == nil || Mode(r.entry.mode.Load()) == On {
			return true
		}
	}
	return false
}

// A Field is one with a guard tag, in a struct that an adapter binds.
type Field struct {
	// Path leads to it, as in "Orders.Pay".
	Path string
	// Tag has all of its tags.
	Tag reflect.StructTag
	// Type is its type.
	Type reflect.Type
	// Value is what it holds: no nil. CheckFields has none.
	Value reflect.Value
	// Guard is the one of BindFields with what the tag says.
	Guard *Guard
}

// BindFields is Bind for adapters, whose functions are of other types: wrap returns what a field is to hold in place of
// its value. All else is as in Bind.
func BindFields(g *Guard, target any, wrap func(Field) (reflect.Value, error)) error {
	return bind(g, target, g.adapted(wrap), func() error { return nil })
}

// adapted is wrap for binder.
func (g *Guard) adapted(wrap func(Field) (reflect.Value, error)) wrapper {
	return func(f taggedField) (string, reflect.Value, error) {
		tagged := *g
		tagged.owner = f.owner
		tagged.fill(f.spec, g.defaults())
		tagged.spec.Name = cmp.Or(tagged.spec.Name, f.path)
		guarded, err := wrap(Field{f.path, f.tags, f.t, f.value, &tagged})
		return tagged.spec.Name, guarded, err
	}
}
