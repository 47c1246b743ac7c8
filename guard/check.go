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
	wrap := a.wrap
	if check != nil {
		wrap = a.adapted(check)
	}
	_, err := a.findFields(t, reflect.Value{}, wrap, check != nil)
	return err
}
