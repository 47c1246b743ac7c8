package guard

import (
	"fmt"
	"reflect"
)

// CheckRequest reports what Func, Action, Try and Do would say to g in front of a function whose request is of type t, and Job
// where t is nil. It is for tools that know a program by its source, whose types need not be of the running program. It does not
// look at the type of a Fallback.
func (g *Guard) CheckRequest(t reflect.Type) error {
	if err := g.unmade("Check of"); err != nil {
		return err
	}
	_, err := g.fit(fittingOf(t, reflect.TypeOf(g.fallback)))
	return err
}

// CheckFields reports what Bind would say to a struct of type t, or to a pointer to one, as far as it depends on types and
// tags and not on what the fields hold. It is for tools, as CheckRequest is. With check, it is BindFields that is asked, and
// check is called for each tagged field.
func CheckFields(g *Guard, t reflect.Type, check func(Field) error) error {
	if err := g.unmade("Bind with"); err != nil {
		return err
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return fmt.Errorf("guard: Bind wants a pointer to a struct, not *%v", t)
	}
	falls := check != nil
	b := binder{seen: make(map[place]bool), named: make(map[string]string), wrap: func(f taggedField) (string, reflect.Value, error) {
		bound, err := g.bind(f)
		if err != nil {
			return "", f.value, err
		}
		falls = falls || bound.runner.spec.fallsBack()
		return bound.runner.spec.Name, f.value, nil
	}}
	if check != nil {
		b.wrap = g.adapted(func(f Field) (reflect.Value, error) { return f.Value, check(f) })
	}
	if err := b.find(t, reflect.Value{}); err != nil {
		return err
	}
	return g.checkFalls(falls)
}
