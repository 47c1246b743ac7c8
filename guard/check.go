package guard

import (
	"fmt"
	"reflect"
)

// CheckRequest is adapter.CheckRequest.
func (a adapter) CheckRequest(t reflect.Type) error {
	if err := a.unmade("Check of"); err != nil {
		return err
	}
	_, err := a.fit(fittingOf(t, reflect.TypeOf(a.fallback)))
	return err
}

// CheckFields is adapter.CheckFields.
func (a adapter) CheckFields(t reflect.Type, check fieldWrapper) error {
	if err := a.unmade("Bind with"); err != nil {
		return err
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return fmt.Errorf("guard: Bind wants a pointer to a struct, not *%v", t)
	}
	falls := check != nil
	b := binder{seen: make(map[place]bool), named: make(map[string]string), wrap: a.guarding(&falls)}
	if check != nil {
		b.wrap = a.adapted(check)
	}
	if err := b.find(t, reflect.Value{}); err != nil {
		return err
	}
	return a.checkFalls(falls)
}
