package guard

import (
	"cmp"
	"reflect"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// fitting describes the function that a guard must fit.
type fitting struct {
	name     string        // default of Spec.Name
	owner    any           // Guard.owner
	tag      Spec          // of the function itself
	request  reflect.Type  // of the only argument; nil if there are others, or none
	roots    keyexpr.Roots // of templates
	args     bool          // Spec.Args was understood
	fallback reflect.Type  // the type of a fallback
}

// fit fits g to a function. The tag of the function fills in the fields that the options of g leave open, and then the
// tag of the request type does. Over defaults, both have the last word.
func (g *Guard) fit(f fitting) (*runner, error) {
	merged := *g
	merged.owner = f.owner
	tag, err := requestTag(f.request)
	if g.defaults() {
		merged.fill(tag.spec, true)
		merged.fill(f.tag, true)
	} else {
		merged.fill(f.tag, false)
		merged.fill(tag.spec, false)
	}
	named := merged.spec.Name != ""
	if g.defaults() || f.owner != nil { // who gives a key gives a name, but for all fields of Bind
		merged.spec.Name = cmp.Or(merged.spec.Name, f.name)
	}
	if err != nil {
		return nil, merged.spec.errorf("%w", err)
	}
	if merged.spec.Key == "" && merged.keyFunc == nil && len(tag.keyParts) > 0 {
		if !named {
			return nil, merged.spec.errorf("fields marked as key follow the guard's name in the key, and types of two packages can " +
				"have the same: give guard.Name, or name=... in a tag")
		}
		merged.spec.Key = tag.key(merged.spec.Name)
	}
	merged.faults.check(merged.spec.Args != "" && !f.args, "args=%s is for functions that Bind finds", merged.spec.Args)
	if t := structType(f.request); t != nil && t.NumField() == 0 {
		merged.spec.OneKey, merged.unread = true, true // there is nothing to read
	}
	merged.imply()
	misfit := merged.spec.fallsBack() && g.fallback != nil && reflect.TypeOf(g.fallback) != f.fallback
	merged.faults.check(misfit, "Fallback is a %T, but this function needs a %v", g.fallback, f.fallback)
	return merged.prepare(f.roots, abilities{})
}

// fallsBack reports whether a policy is to run the fallback.
func (s Spec) fallsBack() bool { return s.Busy == RunFallback || s.Outage == RunFallback }

// fittingOf is the fitting of a function with one argument of type request, or without any.
func fittingOf(request, fallback reflect.Type) fitting {
	if request == nil {
		return fitting{fallback: fallback}
	}
	return fitting{
		name: typeName(request), request: request, fallback: fallback,
		roots: keyexpr.Roots{requestRoot: keyexpr.Type(request)},
	}
}

// typeName is the name of a defined type or of a pointer to one, and otherwise empty.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.PkgPath() == "" {
		return ""
	}
	return t.Name()
}
