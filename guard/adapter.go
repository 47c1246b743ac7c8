package guard

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// Adapter is for package guard/adapter, which has the API of a guard for adapters and generators. Nobody else calls it.
func (g *Guard) Adapter() adapter { return adapter{g} }

// adapter has the methods of a Guard that package adapter documents, under the names that it has for them.
type adapter struct{ *Guard }

// Runner returns the runner of a guard that is fitted. Package adapter documents its methods, too.
func (a adapter) Runner() *runner { return a.fitted }

// abilities are the parts of a Spec that not every adapter can serve; see adapter.Ability. Lead leads.
type abilities struct{ methods, fallback, answer, leads bool }

// admit describes the wishes of s that neither the guard nor its adapter serves, and fills in the fields that a
// fallback or Lead implies. In a struct that is bound, the tag of a field may do without the fallback of all.
func (s *Spec) admit(own, tagged bool, can abilities) (f faults) {
	if can.fallback {
		s.implyFallback()
	}
	if can.leads && s.given()&fieldWait == 0 {
		s.Wait = Forever
	}
	runs := s.fallsBack()
	f.check(runs && !own && !can.fallback, "policy fallback without a fallback: give Fallback")
	f.check(can.fallback && !runs && !tagged, "%w", s.idleFallback())
	f.check(can.answer && (s.Busy == Skip || s.Outage == Skip),
		"a skipped call must answer something, but the type of its responses is not known: let the guard fail")
	f.check(s.Methods != "" && !can.methods, "methods=%s is about requests of HTTP, which there are none of here", s.Methods)
	f.check(can.leads && s.Wait != Forever, "Lead with wait=%v: it waits for as long as its context, so leave it out", s.Wait)
	f.check(can.leads && (s.Busy != Fail || s.Outage != Fail), "Lead with busy=%v and outage=%v: it stands again by itself, so leave them out", s.Busy, s.Outage)
	f.check(can.leads && s.When != "", "Lead with when=%s: where that is false, everybody would lead", s.When)
	f.check(can.leads && s.Switchable, "Lead with switchable: switched off, everybody would lead")
	f.check(can.leads && s.Hold > 0, "Lead with hold=%v: the lock would be held while nobody leads", s.Hold)
	f.check(can.leads && (s.Kind == lock.Read || s.Kind == lock.Permit), "Lead with kind=%v: several would lead at a time", s.Kind)
	return f
}

// implyFallback makes the fallback the policy where no other one is given.
func (s *Spec) implyFallback() {
	s.merge(Spec{Busy: RunFallback, Outage: RunFallback}, (fieldBusy|fieldOutage)&^s.given())
}

func (s *Spec) idleFallback() error {
	return fmt.Errorf("a Fallback that never runs: the policies are busy=%v and outage=%v", s.Busy, s.Outage)
}

// RunOr makes one guarded call of fn, or of fallback where the policy is RunFallback; see adapter.Runner.
func (r *runner) RunOr(ctx context.Context, facts keyexpr.Facts, fn func(context.Context) error,
	fallback func(context.Context, error) error) (ran bool, err error) {
	r = r.current()
	t := task{run: fn, instead: fallback}
	if r.next != nil {
		return (&call{runner: r}).descend(ctx, facts, t)
	}
	c := call{runner: r}
	return c.start(ctx, facts, &t, nil)
}

// RequestType is adapter.RequestType.
func (a adapter) RequestType() reflect.Type {
	if a.Guard == nil {
		return nil
	}
	for _, g := range append([]*Guard{a.Guard}, a.rest...) {
		if g.keyFunc != nil {
			return g.keyFunc.request
		}
	}
	return nil
}

// Current returns the guard that the next call uses.
func (r *runner) Current() *Guard { return r.current().guard }

// Specs returns the declaration of the guard of r, with tags and overrides applied. A Stack has several, the first one
// first.
func (r *runner) Specs() []Spec {
	var specs []Spec
	for r = r.current(); r != nil; r = r.next {
		specs = append(specs, r.guard.Spec())
	}
	return specs
}

// String returns the text of Specs, with bars between them.
func (r *runner) String() string { return specsText(r.Specs()) }

// On reports whether the guard of r, or one of a Stack, is in the mode On at this moment.
func (r *runner) On() bool {
	for r = r.current(); r != nil; r = r.next {
		if r.entry == nil || Mode(r.entry.mode.Load()) == On {
			return true
		}
	}
	return false
}

// fieldWrapper returns the new value of the field at path. tagged is the guard with the field's tag applied.
type fieldWrapper func(path string, f reflect.StructField, v reflect.Value, tagged *Guard) (reflect.Value, error)

// BindFields is Bind for functions of other types.
func (a adapter) BindFields(target any, wrap fieldWrapper) error {
	return a.bindFields(target, a.adapted(wrap), true)
}

// adapted is wrap for binder.
func (a adapter) adapted(wrap fieldWrapper) wrapper {
	return func(f taggedField) (binding, error) {
		tagged := *a.Guard
		tagged.owner = f.owner
		tagged.fill(f.spec, a.defaults())
		tagged.spec.Name = cmp.Or(tagged.spec.Name, f.path)
		guarded, err := wrap(f.path, f.field, f.value, &tagged)
		return binding{name: tagged.spec.Name, field: f.value, guarded: guarded}, err
	}
}
