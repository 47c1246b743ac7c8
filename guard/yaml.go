package guard

import (
	"encoding/json"
	"errors"
	"fmt"
)

// UnmarshalYAML sets all of s from a map of attributes, or from a string with its text form, for packages of YAML that
// look for this method. They write one by MarshalText. Without this method they would pass over attributes that they do not find among the fields.
func (s *Spec) UnmarshalYAML(decode func(any) error) error {
	var text string
	if err := decode(&text); err == nil {
		return s.UnmarshalText([]byte(text))
	}
	var m map[string]any
	if err := decode(&m); err != nil {
		return errors.Join(errors.New("guard: want a map of attributes, or a text like that of a tag"), err)
	}
	object, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return s.UnmarshalJSON(object)
}
