package guard

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// Override changes the declarations of guards: the fields given in the Spec under a guard's name take the place of code
// and tags, and are checked with them. Before the guards are made, call it with the result of ParseSpecs, and Check
// afterwards. Several calls add up, as for a file and then an environment variable: the last one wins, field by field.
//
// It may be called again while the program runs, as with a file that has changed. Calls under way keep their
// declaration, and the next ones have the new one. A new key or condition is checked against the requests of each
// function and route that the guard stands before. The name, the kind of lock, and whether a Fallback is ever wanted
// can't change there. A field that a later call does not give keeps its earlier override. Between calls with an old and
// a new key there is no exclusion.
//
// All specs are taken, or none: the error joins the mistakes of each, and nothing has changed.
func (r *Registry) Override(specs map[string]Spec) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	said := maps.Clone(r.overrides)
	var faults []error
	var sites []*site
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		s := specs[name]
		if s.Name != "" && s.Name != name {
			faults = append(faults, fmt.Errorf("guard %q: Override can't change the name to %q: leave it out", name, s.Name))
		}
		merged := said[name]
		merged.merge(s, s.given())
		said[name] = merged
		if e := r.entries[name]; e != nil {
			sites = append(sites, e.sites...)
		}
	}
	if err := r.refitLocked(said, faults, sites...); err != nil {
		return err
	}
	r.overrides = said
	return nil
}

// refitLocked fits the guards of sites once more, with the overrides said, for calls that are yet to begin. If they or
// faults have a mistake, nothing changes.
func (r *Registry) refitLocked(said map[string]Spec, faults []error, sites ...*site) error {
	next := make(map[*site]*runner) // a Stack may be in sites for each of its guards
	for _, at := range sites {
		if _, done := next[at]; !done {
			run, err := at.refit(r, said)
			next[at], faults = run, append(faults, err)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	for at, run := range next {
		for old := at.runner; old != nil; old, run = old.next, run.next {
			old.latest.Store(run)
		}
	}
	return nil
}

// said returns the overrides so far. The map does not change.
func (r *Registry) said() map[string]Spec {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.overrides
}

// override applies the overrides of g's registry to g.
func (g *Guard) override(said func(*Registry) map[string]Spec) {
	if g.registry != nil {
		g.said = said(g.registry)[g.spec.Name]
		g.fromSpec(g.said)
	}
}

// Check reports each name given to Override that no guard has, or one that is in front of nothing. Call it when all guards have been made.
func (r *Registry) Check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := slices.Sorted(maps.Keys(r.entries))
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(r.overrides)) {
		switch {
		case r.entries[name] != nil:
		case r.made[name]:
			faults = append(faults, fmt.Errorf("guard: Override of %q, which was made and is in front of nothing: give it to a function or a route", name))
		default:
			faults = append(faults, fmt.Errorf("guard: Override of %q, which is the name of no guard%s", name, suggest.Ending(name, names)))
		}
	}
	return errors.Join(faults...)
}

// site is a function or a route with the guard in front of it, or the Stack.
type site struct {
	guard  Guard // as it came here, before Override
	roots  keyexpr.Roots
	can    abilities
	runner *runner // that the function or the route has
}

// like reports whether s is the same guard in front of the same sort of function. Such places share a runner, because a
// program may make one for each of its tenants, and forget it.
func (s *site) like(other *site) bool {
	g, o := &s.guard, &other.guard
	return g.origin == o.origin && g.owner == o.owner && g.spec == o.spec && slices.Equal(g.rest, o.rest) &&
		s.can == other.can && reflect.DeepEqual(s.roots, other.roots)
}

// refit fits the guards of s once more. Those in r get the overrides said.
func (s *site) refit(r *Registry, said map[string]Spec) (*runner, error) {
	g := s.guard
	next, err := g.fitTo(s.roots, s.can, func(*Registry) map[string]Spec { return said })
	faults := []error{err}
	for old, run := s.runner, next; run != nil; old, run = old.next, run.next {
		run.entry, run.recent = old.entry, old.recent
		if other := run.guard.registry; other != nil && other != r {
			faults = append(faults, run.spec.errorf("Override comes too late in a Stack of guards from several registries: make all of them In one"))
		}
		faults = append(faults, run.spec.errors(run.spec.fixed(&old.spec)))
	}
	return next, errors.Join(faults...)
}

// fixed describes the fields of s that can't change in a guard that was made with old.
func (s *Spec) fixed(old *Spec) (faults []error) {
	for _, a := range attributes {
		frozen := a.field&(fieldKind|fieldArgs) != 0 || a.field&(fieldBusy|fieldOutage) != 0 && s.fallsBack() && !old.fallsBack()
		if was, is := a.format(old), a.format(s); frozen && was != is {
			faults = append(faults, fmt.Errorf("%s=%s can't become %s while the guard is in use: restart the program with it", a.name, was, is))
		}
	}
	return faults
}
